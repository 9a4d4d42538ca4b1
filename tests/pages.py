"""Runs the Python of a page of docs/ in a forked process."""

import runpy
import sys
from multiprocessing.connection import Connection


def main(receiving: Connection, _sending: Connection) -> None:
    """Runs a page's code, which lies in the current folder."""
    path, *arguments = receiving.recv()
    sys.path.insert(0, "")
    sys.argv = [path, *arguments]
    runpy.run_path(path, run_name="__main__")
