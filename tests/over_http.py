"""One request over HTTP, for tests of servers of it."""

import http.client
import json
from collections.abc import Mapping
from typing import Any


def ask(
    address: str,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, Mapping[str, str], Any]:
    """Sends one request; returns the status, the headers in lower case, and the JSON."""
    connection = http.client.HTTPConnection(address, timeout=20)
    try:
        connection.request(method, path, body, dict(headers or {}))
        answer = connection.getresponse()
        content = answer.read()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, found, json.loads(content) if content else None
    finally:
        connection.close()
