"""Relays between a client and a party, or between parties: slow ones, and ones that cut."""

import contextlib
import queue
import socket
import threading
import time
from pathlib import Path
from typing import Self

#: Bytes that are passed on at a time, and how many such pieces may be on their way.
PIECE, ON_THE_WAY = 1 << 14, 64


class Relay:
    """A relay to an address, from when it is entered until it is left.

    Args:
        address: where it passes connections on to.
        most: bytes to that address after which a connection ends.
    """

    def __init__(self, address: str, most: int | None = None) -> None:
        host, port = address.split(":")
        self._to, self._most = (host, int(port)), most
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        #: Seconds that each byte is on its way, and bytes a second in each direction.
        self.delay, self.rate = 0.0, float("inf")
        #: While it is not set, nothing comes back.
        self.answers = threading.Event()
        self.answers.set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        self.answers.set()
        self.cut()

    def cut(self) -> None:
        """Ends the connections that there are."""
        with self._lock:
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._listening.accept()
            except OSError:
                return
            try:
                there = socket.create_connection(self._to, timeout=10)
            except OSError:
                here.close()
                continue
            there.settimeout(None)
            for each in (here, there):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._open |= {here, there}
            for name, link in (("to", (here, there)), ("from", (there, here))):
                waiting: queue.Queue[tuple[float, bytes]] = queue.Queue(ON_THE_WAY)
                for work in (self._take, self._give):
                    threading.Thread(target=work, args=(name, link, waiting), daemon=True).start()

    def _take(
        self,
        name: str,
        link: tuple[socket.socket, socket.socket],
        waiting: "queue.Queue[tuple[float, bytes]]",
    ) -> None:
        """Takes bytes from a side, and says when they come to the other."""
        left, due = self._most if name == "to" else None, 0.0
        with contextlib.suppress(OSError):
            while left != 0 and (data := link[0].recv(PIECE if left is None else min(left, PIECE))):
                left = None if left is None else left - len(data)
                due = max(due, time.monotonic()) + len(data) / self.rate
                waiting.put((due + self.delay, data))
        waiting.put((0.0, b""))

    def _give(
        self,
        name: str,
        link: tuple[socket.socket, socket.socket],
        waiting: "queue.Queue[tuple[float, bytes]]",
    ) -> None:
        """Gives the other side what has come, and ends the connection after the last."""
        with contextlib.suppress(OSError):
            while True:
                due, data = waiting.get()
                if not data:
                    break
                time.sleep(max(0.0, due - time.monotonic()))
                if name == "from":
                    self.answers.wait()
                link[1].sendall(data)
        for each in link:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            with self._lock:
                self._open.discard(each)
        # Whoever takes in the other direction ends by itself; nothing is left to be given.
        with contextlib.suppress(queue.Empty):
            while True:
                waiting.get_nowait()


def between_parties(config: Path, address: str, relay: str) -> None:
    """Lets the other parties reach one through a relay. It listens where it did."""
    text = config.read_text()
    line = f'address = "{address}"'
    assert line in text
    config.write_text(text.replace(line, f'address = "{relay}"\nlisten = "{address}"'))
