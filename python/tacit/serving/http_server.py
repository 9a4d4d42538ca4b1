"""A small HTTP/1.1 server with bounds, for the gateway and for a party's status pages.

h11 reads and writes the protocol, strictly: it has no sockets, and bounds what it keeps of an
unfinished message. This module adds the sockets and the bounds of time and memory. Whoever reaches
the port may be hostile: connections, headers, bodies, all bodies together, and the time that each
may take are bounded."""

import asyncio
import logging
import threading
import traceback
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Self

from tacit.errors import cause, setup_error
from tacit.serving.http_messages import Limits, Refused, Request, Response

if TYPE_CHECKING:
    import h11

logger = logging.getLogger(__name__)

#: Bytes that are read or written at a time.
PIECE = 1 << 16

#: Connections beyond the bound that are told so. Even more are closed without a word.
TOLD = 32

#: Answers a request. It may raise ``Refused``.
Handler = Callable[[Request], Awaitable[Response]]

#: Returns the most bytes of a body with these headers and what is said of a longer one, or ``None``
#: if the server's bound is enough. It may raise ``Refused``.
Longest = Callable[[Mapping[str, str]], tuple[int, str] | None]


class _Ended(Exception):  # noqa: N818 -- how a connection ends
    """The peer closed the connection, or was too slow to be told."""


class HttpServer:
    """Serves requests on one address, until it is closed."""

    def __init__(
        self,
        handler: Handler,
        limits: Limits | None = None,
        longest: Longest = lambda _: None,
    ) -> None:
        self._h11 = _library()
        self._handler, self._longest = handler, longest
        self._limits = limits or Limits()
        self._in_memory = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._busy: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._closing = False

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        """Begins to listen, and returns host and port; port 0 lets the system choose.

        Raises:
            OSError: the address cannot be used.
        """
        self._server = await asyncio.start_server(self._connected, host, port, limit=PIECE)
        address = self._server.sockets[0].getsockname()
        return address[0], address[1]

    async def close(self, patience: float = 0.0) -> None:
        """Stops listening, and closes every connection.

        Requests that are being answered have ``patience`` seconds to end."""
        self._closing = True
        if self._server is not None:
            self._server.close()
        for task in self._tasks - self._busy:
            task.cancel()
        if self._busy:
            await asyncio.wait(set(self._busy), timeout=patience)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        beyond = len(self._tasks) - self._limits.connections
        if beyond >= TOLD:
            writer.transport.abort()
            return
        self._tasks.add(task)
        connection = _Connection(self._h11, reader, writer, self._limits)
        try:
            if beyond >= 0:
                raise Refused(503, "too many connections: close those that idle", 1.0)
            while not self._closing and await self._exchange(connection, task):
                pass
        except Refused as refused:
            # What is left of the request is not read, so that the connection ends here.
            await connection.refuse(refused)
        except (_Ended, OSError, asyncio.CancelledError):
            pass
        except Exception as error:
            logger.error("a connection ended in %s, at %s", type(error).__name__, _place(error))
        finally:
            self._tasks.discard(task)
            self._busy.discard(task)
            writer.transport.abort()

    async def _exchange(self, connection: "_Connection", task: asyncio.Task[None]) -> bool:
        """Answers one request; returns whether the connection goes on."""
        head = await connection.head()
        self._busy.add(task)
        taken = [0]
        try:
            request = await self._whole(connection, head, taken)
            try:
                response = await self._handler(request)
            except Refused as refused:
                response = refused.response()
            except Exception as error:
                # The text of an unforeseen error may quote what was asked.
                logger.error("a request ended in %s, at %s", type(error).__name__, _place(error))
                response = Refused(500, "the request failed here: see the log").response()
            return await connection.answer(response, request.method == "HEAD", self._closing)
        finally:
            self._in_memory -= taken[0]
            self._busy.discard(task)

    async def _whole(
        self, connection: "_Connection", head: "h11.Request", taken: list[int]
    ) -> Request:
        """Reads the body. ``taken[0]`` counts its bytes, which the caller frees."""
        if sum(len(part) for pair in head.headers for part in pair) > self._limits.headers:
            raise Refused(431, f"the headers are longer than {self._limits.headers} bytes")
        headers: dict[str, str] = {}
        for raw_name, raw_value in head.headers:
            name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        bounds = [
            (
                self._limits.body,
                f"the body is longer than {self._limits.body} bytes: split the request",
            )
        ]
        if (bound := self._longest(headers)) is not None:
            bounds.append(bound)
        most, said = min(bounds)
        if int(headers.get("content-length", 0)) > most:
            raise Refused(413, said)
        body = bytearray()
        async for piece in connection.body():
            taken[0] += len(piece)
            self._in_memory += len(piece)
            if taken[0] > most:
                raise Refused(413, said)
            if self._in_memory > self._limits.bodies:
                raise Refused(503, "other requests take all memory: come again later", 1.0)
            body += piece
        return Request(head.method.decode("ascii"), head.target.decode("ascii"), headers, body)


class HttpThread:
    """A server in a thread of its own, until it is closed. A context manager closes it.

    Args:
        handler: answers requests, in that thread.
        host: where to listen.
        port: with 0 the system chooses; then ``address`` says which.
        limits: bounds of the server.

    Raises:
        SetupError: the address cannot be used.
    """

    def __init__(
        self, handler: Handler, host: str, port: int, limits: Limits | None = None
    ) -> None:
        self._server = HttpServer(handler, limits)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="http", daemon=True)
        self._thread.start()
        try:
            #: Host and port.
            self.address = asyncio.run_coroutine_threadsafe(
                self._server.listen(host, port), self._loop
            ).result()
        except OSError as error:
            self._end()
            raise setup_error(f"cannot listen on {host}:{port}: {cause(error)}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops serving."""
        asyncio.run_coroutine_threadsafe(self._server.close(), self._loop).result()
        self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _Connection:
    """One connection: bytes in and out, with their deadlines."""

    def __init__(
        self,
        library: Any,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        limits: Limits,
    ) -> None:
        self._h11 = library
        self._state = library.Connection(library.SERVER, max_incomplete_event_size=limits.headers)
        self._reader, self._writer, self._limits = reader, writer, limits
        # A drain then waits until the system has all bytes, so that none is lost at the end.
        self._writer.transport.set_write_buffer_limits(0)

    async def head(self) -> "h11.Request":
        """Waits for the next request's line and headers.

        Raises:
            _Ended: the peer closed the connection, or idled too long.
            Refused: they are no HTTP, too long, or too slow.
        """
        end = None
        while True:
            event = self._event()
            if isinstance(event, self._h11.Request):
                return event
            if event is not self._h11.NEED_DATA:
                raise _Ended
            if end is None and self._state.trailing_data[0]:
                end = self._now() + self._limits.patience
            try:
                seconds = self._limits.idle if end is None else end - self._now()
                await self._read(seconds)
            except TimeoutError:
                if end is None:
                    raise _Ended from None
                raise Refused(408, "the headers came too slowly") from None

    async def body(self) -> Any:
        """Yields the pieces of the body.

        Raises:
            _Ended: the peer closed the connection.
            Refused: it is no HTTP, or came too slowly.
        """
        begin, received = self._now(), 0
        if self._state.they_are_waiting_for_100_continue:
            await self._write(
                self._state.send(self._h11.InformationalResponse(status_code=100, headers=[]))
            )
        while True:
            event = self._event()
            if isinstance(event, self._h11.Data):
                received += len(event.data)
                yield bytes(event.data)
            elif isinstance(event, self._h11.EndOfMessage):
                return
            elif event is self._h11.NEED_DATA:
                end = begin + self._limits.patience + received / self._limits.slowest
                try:
                    await self._read(end - self._now())
                except TimeoutError:
                    raise Refused(408, "the body came too slowly") from None
            else:
                raise _Ended

    async def answer(self, response: Response, is_head: bool, is_last: bool) -> bool:
        """Sends a response; returns whether another request may follow."""
        headers = [
            ("Content-Type", response.content_type),
            ("Content-Length", str(len(response.body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            *response.headers,
        ]
        if is_last:
            headers.append(("Connection", "close"))
        event = self._h11.Response(
            status_code=response.status,
            headers=headers,
            reason=HTTPStatus(response.status).phrase.encode(),
        )
        await self._write(self._state.send(event))
        if not is_head:
            for piece in self._state.send_with_data_passthrough(self._h11.Data(data=response.body)):
                await self._write(piece)
        self._state.send(self._h11.EndOfMessage())
        if self._state.our_state is self._h11.MUST_CLOSE:
            return False
        self._state.start_next_cycle()
        return True

    async def refuse(self, refused: Refused) -> None:
        """Sends an error, if the connection is in a state in which one can be sent."""
        if self._state.our_state not in (self._h11.IDLE, self._h11.SEND_RESPONSE):
            return
        try:
            await self.answer(refused.response(), False, True)
            # The peer may still send. If its bytes met a closed socket, the answer would be lost.
            self._writer.write_eof()
            end = self._now() + 1.0
            while await asyncio.wait_for(self._reader.read(PIECE), end - self._now()):
                pass
        except (_Ended, OSError, TimeoutError):
            pass

    def _event(self) -> Any:
        try:
            return self._state.next_event()
        except self._h11.RemoteProtocolError as error:
            status = error.error_status_hint
            raise Refused(status, f"this is no request of HTTP/1.1: {_plain(error)}") from None

    async def _read(self, seconds: float) -> None:
        self._state.receive_data(
            await asyncio.wait_for(self._reader.read(PIECE), max(seconds, 0.0))
        )

    async def _write(self, content: bytes) -> None:
        """Writes bytes, as fast as the peer takes them.

        Raises:
            _Ended: the peer takes them too slowly.
        """
        view = memoryview(content)
        for at in range(0, len(view), PIECE):
            piece = view[at : at + PIECE]
            self._writer.write(piece)
            # The system takes the first megabytes at once, so that each piece has its own time.
            seconds = self._limits.patience + len(piece) / self._limits.slowest
            try:
                await asyncio.wait_for(self._writer.drain(), seconds)
            except TimeoutError:
                raise _Ended from None

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


def _plain(error: Exception) -> str:
    """Returns the reason that h11 gives, without the bytes that it quotes."""
    text = str(error)
    return text if text.isascii() and text.isprintable() and len(text) <= 100 else "malformed"


def _place(error: Exception) -> str:
    """Returns the file and the line where an error was raised."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename}:{frame.lineno}"


def _library() -> Any:
    try:
        import h11
    except ImportError:
        raise setup_error(
            "HTTP is served by h11, which is not installed: pip install 'tacit-mpc[service]'"
        ) from None
    return h11
