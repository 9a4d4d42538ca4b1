"""A party of a service as a process of this machine, which its parent tells to leave."""

from contextlib import suppress
from multiprocessing.connection import Connection
from threading import Thread

from tacit import logs
from tacit.serving.server import Server


def main(receiving: Connection, sending: Connection) -> None:
    """Serves until the parent says so, or has gone. Then says how many sessions it opened."""
    config, party, threads = receiving.recv()
    logs.show()
    server = Server(config, party, threads=threads)

    def listen() -> None:
        with suppress(EOFError, OSError):
            receiving.recv()
        server.leave()

    Thread(target=listen, daemon=True).start()
    server.run()
    with suppress(OSError):
        sending.send(server.observed.value("sessions_opened"))
