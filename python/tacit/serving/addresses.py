"""Addresses that commands listen on for HTTP."""

import ipaddress

from tacit.errors import MisuseError

#: Names that stand for this machine in every system.
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def parse(address: str) -> tuple[str, int]:
    """Returns the host and the port of ``HOST:PORT``, where IPv6 has brackets.

    Raises:
        MisuseError: it is no such address.
    """
    host, _, port = address.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    if is_bracketed:
        host = host[1:-1]
    is_port = port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65_535
    if not host or not is_port or (":" in host) != is_bracketed:
        raise MisuseError(
            f"{address!r} is no address: give HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080"
        )
    return host, int(port)


def names_of(host: str) -> frozenset[str] | None:
    """Returns the names by which programs address a server that listens on a host, or ``None`` for
    any: on an address of a network it has names that it does not know."""
    return LOOPBACK_NAMES | {host.lower()} if is_loopback(host) else None


def is_loopback(host: str) -> bool:
    """Returns whether only programs of this machine reach a host.

    A name is not resolved: what it stands for may change, except for ``localhost``."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
