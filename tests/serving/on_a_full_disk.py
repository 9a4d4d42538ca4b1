"""Runs a command whose files have no more room than a short message needs."""

import resource
from multiprocessing.connection import Connection

import commands

#: Bytes that a file may have.
ROOM = 4096


def main(receiving: Connection, sending: Connection) -> None:
    """As ``main`` of ``commands``."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, resource.RLIM_INFINITY))
    commands.main(receiving, sending)
