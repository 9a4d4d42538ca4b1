"""Entry point of a process that ``tacit.parties.spawn`` started."""

import importlib
import os
import sys
from multiprocessing.connection import Connection


def begin(entry: str, receiving: int, sending: int) -> None:
    """Receives the environment by a pipe, and calls ``main`` of a module with both pipes."""
    pipe = Connection(receiving, writable=False)
    try:
        environment, path = pipe.recv()
    except EOFError:
        return  # The parent has gone.
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:] = path
    importlib.import_module(entry).main(pipe, Connection(sending, readable=False))


if __name__ == "__main__":
    begin(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
