"""Runs the Python of a page of docs/, in a process that is forked."""

import runpy
import sys
from multiprocessing.connection import Connection


def main(receiving: Connection, _sending: Connection) -> None:
    """What the page's process does; its code lies in the folder that it is in."""
    path, *arguments = receiving.recv()
    sys.path.insert(0, "")
    sys.argv = [path, *arguments]
    runpy.run_path(path, run_name="__main__")
