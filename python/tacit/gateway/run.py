"""Runs a gateway until it is told to end."""

import asyncio
import contextlib
import signal
from collections.abc import Callable

from tacit.errors import MisuseError, Terminated, cause, setup_error
from tacit.gateway.backend import Backend
from tacit.gateway.messages import longest
from tacit.gateway.routes import MOST_WAITING, Routes
from tacit.serving.addresses import is_loopback, names_of, parse
from tacit.serving.http_messages import Limits
from tacit.serving.http_server import HttpServer

#: Option that lets other machines send plain numbers to the gateway.
REMOTE = "--allow-remote-clients"

#: What is raised after a signal, when requests have ended.
_SIGNALS: dict[int, type[BaseException]] = {
    signal.SIGTERM: Terminated,
    signal.SIGINT: KeyboardInterrupt,
}

#: Seconds in which requests that are under way may end after a signal.
DRAIN = 30.0


def check(address: str, allows_remote: bool) -> tuple[str, int]:
    """Returns host and port of an address that a gateway may listen on.

    Raises:
        MisuseError: other machines would reach it, and ``allows_remote`` does not say that they
            may; or it is no address.
    """
    host, port = parse(address)
    if not allows_remote and not is_loopback(host):
        raise MisuseError(
            f"the gateway takes plain numbers, and {host} is not a loopback address: applications "
            "on other machines would send their inputs over the network for anyone on its way to "
            "read. Run one gateway on each client's machine with --listen 127.0.0.1:8080. If this "
            f"network is yours alone, such as a pod's, give {REMOTE} too"
        )
    return host, port


async def serve(
    backend: Backend,
    address: tuple[str, int],
    told: Callable[[str], None],
    limits: Limits | None = None,
    drain: float = DRAIN,
    most_waiting: int = MOST_WAITING,
) -> None:
    """Serves until SIGTERM, Ctrl-C or a cancellation; then requests under way may end.

    Args:
        backend: the client of the service.
        address: host and port.
        told: is called with the gateway's address once it listens.
        limits: bounds of the HTTP server.
        drain: seconds that requests under way have to end.
        most_waiting: the most requests that are with the parties at a time.

    Raises:
        SetupError: the address cannot be used.
        Terminated: SIGTERM came, and the requests have ended.
        KeyboardInterrupt: the same after Ctrl-C.
    """
    host, port = address
    hosts = names_of(host)
    loop = asyncio.get_running_loop()
    signalled: asyncio.Future[type[BaseException]] = loop.create_future()

    def end(how: type[BaseException]) -> None:
        if not signalled.done():
            signalled.set_result(how)

    with Routes(backend, hosts, most_waiting) as routes, contextlib.ExitStack() as stack:
        server = HttpServer(routes, limits, longest)
        for number, raised in _SIGNALS.items():
            # Only the main thread has signals; elsewhere a cancellation ends the gateway.
            with contextlib.suppress(ValueError, RuntimeError):
                loop.add_signal_handler(number, end, raised)
                stack.callback(loop.remove_signal_handler, number)
        try:
            found = await server.listen(host, port)
        except OSError as error:
            raise setup_error(f"cannot listen on {host}:{port}: {cause(error)}") from None
        told(_url(*found))
        try:
            how = await signalled
        finally:
            await server.close(drain)
    raise how


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
