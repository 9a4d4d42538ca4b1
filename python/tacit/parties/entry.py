"""The first that runs in a process that ``tacit.parties.spawn`` began."""

import importlib
import os
import sys
from multiprocessing.connection import Connection


def begin(entry: str, receiving: int, sending: int) -> None:
    """Calls ``main`` of the module with both pipes, in the environment that comes first."""
    pipe = Connection(receiving, writable=False)
    try:
        environment, path = pipe.recv()
    except EOFError:
        return  # Whoever asked for this process is gone.
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:] = path
    importlib.import_module(entry).main(pipe, Connection(sending, readable=False))


if __name__ == "__main__":
    begin(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
