"""A proxy that delays a link by a fixed time in both directions.

Its bandwidth is that of the machine. A packet is what the proxy takes from a connection at a time;
each has the delay of its own, and none waits for the one before it."""

import queue
import socket
import threading
import time

#: Most bytes of a packet if nothing else is given, and seconds between two attempts to reach the
#: far end.
CHUNK, RETRY = 1 << 20, 0.05

#: Number of attempts to reach the far end.
ATTEMPTS = 1200


class Delay:
    """A listener that forwards connections with a delay, as long as its process lives."""

    def __init__(self, address: str, target: str, seconds: float, packet: int = CHUNK) -> None:
        """Forwards each connection to ``address`` to ``target``, with a delay of ``seconds``, in
        packets of at most ``packet`` bytes."""
        self._target, self._seconds, self._packet = _pair(target), seconds, packet
        self._listening = socket.create_server(_pair(address))
        host, port = self._listening.getsockname()[:2]
        #: Address at which it listens.
        self.address = f"{host}:{port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            near, _ = self._listening.accept()
            threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        far = _reached(self._target)
        if far is None:
            near.close()
            return
        for source, sink in ((near, far), (far, near)):
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            coming: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
            for work, end in ((self._take, source), (_give, sink)):
                threading.Thread(target=work, args=(end, coming), daemon=True).start()

    def _take(
        self, source: socket.socket, coming: "queue.SimpleQueue[tuple[float, bytes]]"
    ) -> None:
        chunk = b"first"
        while chunk:
            try:
                chunk = source.recv(self._packet)
            except OSError:
                chunk = b""
            coming.put((time.monotonic() + self._seconds, chunk))


def _give(sink: socket.socket, coming: "queue.SimpleQueue[tuple[float, bytes]]") -> None:
    """Sends the chunks in order when they are due. An empty chunk means the end."""
    while True:
        due, chunk = coming.get()
        time.sleep(max(0.0, due - time.monotonic()))
        try:
            if not chunk:
                sink.shutdown(socket.SHUT_WR)
                return
            sink.sendall(chunk)
        except OSError:
            # The receiver has gone. The other side notices that the connection is closed.
            sink.close()
            return


def _reached(target: tuple[str, int]) -> socket.socket | None:
    """Connects to the far end, which may not listen yet."""
    for _ in range(ATTEMPTS):
        try:
            return socket.create_connection(target)
        except OSError:
            time.sleep(RETRY)
    return None


def _pair(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)
