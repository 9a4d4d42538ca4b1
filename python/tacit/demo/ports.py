"""Free ports of this machine for parties that are told in advance where to listen."""

import os
import socket
from collections.abc import Iterator
from functools import cache
from itertools import cycle
from pathlib import Path

#: Number of ports that one process uses, in turn.
STRETCH = 200


def free_ports(count: int) -> list[int]:
    """Returns ports on which no process listens.

    The system never assigns these ports to a connection. Such a connection would be in the way when
    the program begins to listen.
    """
    found: list[int] = []
    while len(found) < count:
        port = next(_own(os.getpid()))
        if port not in found and _is_free(port):
            found.append(port)
    return found


def free_addresses(count: int) -> list[str]:
    """Returns free addresses of this machine, as configurations write them."""
    return [f"127.0.0.1:{port}" for port in free_ports(count)]


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


@cache
def _own(process: int) -> Iterator[int]:
    """Cycles through the ports of a process. Another process at the same time has others."""
    lowest, highest = 10_000, 32_000
    chosen = Path("/proc/sys/net/ipv4/ip_local_port_range")
    if chosen.exists():
        first, last = map(int, chosen.read_text().split())
        lowest, highest = max(
            (lowest, min(highest, first)), (last + 1, 65_536), key=lambda ends: ends[1] - ends[0]
        )
    stretches = (highest - lowest) // STRETCH
    begin = lowest + process % stretches * STRETCH
    return cycle(range(begin, begin + STRETCH))
