"""Requests and responses of HTTP, and the bounds of a server."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: The usual type of content.
JSON = "application/json"


@dataclass(frozen=True)
class Limits:
    """Bounds of a server, in bytes and seconds."""

    #: Connections at a time; one more is answered with 503 and closed.
    connections: int = 256
    #: Bytes of a request's line and headers.
    headers: int = 1 << 14
    #: Bytes of a request's body.
    body: int = 1 << 26
    #: Bytes of all bodies that are in memory at a time.
    bodies: int = 1 << 28
    #: Seconds in which a request's headers must arrive once they have begun, and the seconds that a
    #: body, or a piece of a response, may take in addition to its time at the slowest rate.
    patience: float = 10.0
    #: Bytes a second at which bodies must arrive, and responses be taken.
    slowest: int = 1 << 13
    #: Seconds that a connection may idle between requests.
    idle: float = 75.0


@dataclass(frozen=True)
class Request:
    """A whole request. Names of headers are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes | bytearray = field(repr=False)


@dataclass(frozen=True)
class Response:
    """A response with its body."""

    status: int
    body: bytes = field(repr=False)
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


class Refused(Exception):  # noqa: N818 -- an answer, not a failure of this program
    """A request that is answered with an error.

    Args:
        status: HTTP's status.
        text: what is wrong, and what to do. It quotes no value of a tensor.
        retry_after: seconds after which the same request may succeed.
        allowed: methods that the path takes, with status 405.
    """

    def __init__(
        self,
        status: int,
        text: str,
        retry_after: float | None = None,
        allowed: tuple[str, ...] = (),
    ) -> None:
        super().__init__(text)
        self.status = status
        self._headers = []
        if retry_after is not None:
            # The header has whole seconds.
            self._headers.append(("Retry-After", str(max(1, math.ceil(retry_after)))))
        if allowed:
            self._headers.append(("Allow", ", ".join(allowed)))

    def response(self) -> Response:
        """Returns the answer: ``{"error": text}``."""
        return json_response({"error": str(self)}, self.status, tuple(self._headers))


def only(request: Request, *methods: str) -> None:
    """Refuses a request of other methods than those that a path takes.

    Raises:
        Refused: it is one.
    """
    if request.method not in methods:
        raise Refused(405, f"this path takes {' and '.join(methods)}", allowed=methods)


def refuse_pages(request: Request, hosts: frozenset[str] | None, who: str) -> None:
    """Refuses what pages in a browser ask for.

    A page can send requests to addresses of the machine that it is shown on, under a name of its
    own too (DNS rebinding), and then reads the answers.

    Args:
        request: any.
        hosts: the names by which the server may be addressed, or ``None`` for any.
        who: what the server is called.

    Raises:
        Refused: it is from a page, or addressed to another name.
    """
    if "origin" in request.headers:
        raise Refused(403, f"{who} serves programs, and no pages in a browser")
    host = request.headers.get("host", "")
    if hosts is not None and _name(host) not in hosts:
        raise Refused(403, f"{who} is addressed as {' or '.join(sorted(hosts))} only")


def _name(host: str) -> str:
    """Returns the name of a Host header, without its port."""
    if host.startswith("["):
        return host.partition("]")[0].removeprefix("[").lower()
    return host.partition(":")[0].lower()


def json_response(
    content: Any, status: int = 200, headers: tuple[tuple[str, str], ...] = ()
) -> Response:
    """Returns a response with JSON."""
    return Response(status, json.dumps(content, allow_nan=False).encode(), headers=headers)
