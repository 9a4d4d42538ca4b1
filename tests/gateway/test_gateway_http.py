"""The gateway over HTTP: its paths and statuses, and clients that are slow, large or hostile."""

import asyncio
import contextlib
import gc
import http.client
import json
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from serving_in_clear import Array, InClear, gateway

import tacit
from over_http import ask
from tacit import cli
from tacit.errors import (
    DeviationError,
    EncodingError,
    LateError,
    MisuseError,
    PeerError,
    RangeError,
    RequestRefusedError,
    SetupError,
    Terminated,
)
from tacit.gateway import messages
from tacit.gateway.run import REMOTE, check, serve
from tacit.serving import http_server
from tacit.serving.http_messages import Limits

INFER = "/v2/models/double/infer"
BODY = json.dumps(
    {"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}]}
).encode()

#: Bounds that a test reaches soon.
TIGHT = Limits(connections=3, headers=2048, body=4096, bodies=6000, patience=1.0, idle=1.0)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with gateway(InClear()) as found:
        yield found


@pytest.fixture
def tight() -> Iterator[str]:
    with gateway(InClear(), TIGHT) as found:
        yield found


def connect(address: str) -> socket.socket:
    host, port = address.split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def raw(address: str, sent: bytes) -> bytes:
    """Sends bytes, and returns all that comes until the gateway closes."""
    with connect(address) as link:
        link.sendall(sent)
        return received(link)


def received(link: socket.socket) -> bytes:
    """Returns what comes until the other side closes."""
    found = b""
    while piece := link.recv(65536):
        found += piece
    return found


def until(is_so: Callable[[], bool], seconds: float = 5) -> None:
    """Waits until something is so."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def head(lines: str = "", path: str = INFER, method: str = "POST") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n".encode()


def test_paths(address: str) -> None:
    assert ask(address, "GET", "/v2")[::2] == (
        200,
        {"name": "tacit", "version": tacit.__version__, "extensions": ["binary_tensor_data"]},
    )
    assert ask(address, "GET", "/v2/health/live")[::2] == (200, {"live": True})
    assert ask(address, "GET", "/v2/health/ready")[::2] == (200, {"ready": True})
    described = {
        "name": "double",
        "versions": ["1", "2"],
        "platform": "tacit",
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}],
        "outputs": [
            {"name": "twice", "datatype": "FP32", "shape": [-1, 3]},
            {"name": "sum", "datatype": "FP32", "shape": [-1]},
        ],
    }
    for path in ("/v2/models/double", "/v2/models/double/versions/2", "/v2/models/d%6Fuble?a=b"):
        assert ask(address, "GET", path)[::2] == (200, described)
    assert ask(address, "GET", "/v2/models/double/ready")[2] == {"name": "double", "ready": True}
    assert ask(address, "POST", INFER, BODY)[::2] == (
        200,
        {
            "model_name": "double",
            "outputs": [
                {"name": "twice", "datatype": "FP32", "shape": [1, 3], "data": [2, 4, 6]},
                {"name": "sum", "datatype": "FP32", "shape": [1], "data": [6]},
            ],
        },
    )
    versioned = ask(address, "POST", "/v2/models/double/versions/1/infer", BODY)
    assert versioned[2]["model_version"] == "1"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v2/health", 404),
        ("GET", "/v2/models", 404),
        ("GET", "/v2/models/other", 404),
        ("GET", "/v2/models/other/ready", 404),
        ("GET", "/v2/models/double/versions/3", 404),
        ("GET", "/v2/models/double/versions/", 404),
        ("GET", "/v2/models/double/config", 404),
        ("GET", "/v2/models/../double", 404),
        ("POST", "/v2/models/other/infer", 404),
        ("POST", "/v2", 405),
        ("GET", INFER, 405),
        ("DELETE", "/v2/models/double", 405),
    ],
)
def test_paths_that_are_not_there(address: str, method: str, path: str, status: int) -> None:
    found, headers, said = ask(address, method, path, BODY if method == "POST" else None)
    assert found == status
    assert list(said) == ["error"]
    assert ("allow" in headers) == (status == 405)


def test_a_connection_serves_many_requests(address: str) -> None:
    connection = http.client.HTTPConnection(address, timeout=10)
    for _ in range(5):
        connection.request("POST", INFER, BODY)
        assert connection.getresponse().read().startswith(b'{"model_name"')
    connection.request("HEAD", "/v2")
    assert connection.getresponse().read() == b""
    connection.request("POST", INFER, iter([BODY[:7], BODY[7:]]), encode_chunked=True)
    assert connection.getresponse().status == 200
    connection.close()


def test_a_client_may_wait_for_leave_to_send_its_body(address: str) -> None:
    with connect(address) as link:
        link.sendall(head(f"Expect: 100-continue\r\nContent-Length: {len(BODY)}\r\n"))
        assert link.recv(1000).startswith(b"HTTP/1.1 100")
        link.sendall(BODY)
        assert link.recv(1000).startswith(b"HTTP/1.1 200")


ERRORS: dict[str, tuple[Exception, int, str | None]] = {
    "busy": (RequestRefusedError.of("busy", 1, "its queue is full", 2.2), 429, "3"),
    "quota": (RequestRefusedError.of("quota", 1, "over its quota", 0.01), 429, "1"),
    "endless": (RequestRefusedError.of("quota", 1, "over its quota", float("inf")), 429, "3600"),
    "some time": (RequestRefusedError.of("busy", 1, "its queue is full", float("nan")), 429, "1"),
    "no time": (RequestRefusedError.of("quota", 1, "over its quota"), 429, "1"),
    "starting": (RequestRefusedError.of("starting", 0, "it starts", 1), 503, "1"),
    "draining": (RequestRefusedError.of("draining", 0, "it ends"), 503, "1"),
    "deadline": (RequestRefusedError.of("deadline", 0, "it waited too long", 1), 504, "1"),
    "unknown": (RequestRefusedError.of("unknown", 0, "it has no such model"), 404, None),
    "lost": (RequestRefusedError.of("lost", 0, "the session ended", 1), 503, "1"),
    "peer": (PeerError("party 2 cannot be reached"), 503, "1"),
    "late": (LateError("party 2 did not answer within the timeout"), 504, None),
    "wrong": (DeviationError("the parties sent parts that are not of one result"), 502, None),
    "conflict": (RequestRefusedError.of("conflict", 0, "its number was used"), 409, None),
    "range": (RangeError("numbers left the range"), 422, None),
    "setup": (SetupError("a certificate is wrong"), 503, "1"),
    "misuse": (MisuseError("no such shape"), 400, None),
    "encoding": (EncodingError("a value is too large"), 400, None),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_of_the_service(case: str) -> None:
    error, status, retry = ERRORS[case]

    def fails() -> None:
        raise error

    with gateway(InClear(fails)) as address:
        found, headers, said = ask(address, "POST", INFER, BODY)
        assert (found, said) == (status, {"error": str(error)})
        assert headers.get("retry-after") == retry
        # The same connection and the gateway go on.
        assert ask(address, "GET", "/v2/health/live")[0] == 200


@pytest.mark.parametrize(
    "results",
    [
        (np.zeros((1, 3), np.float32),),
        (np.zeros((1, 4), np.float32), np.zeros(1, np.float32)),
        (np.zeros(3, np.float32), np.zeros(1, np.float32)),
    ],
    ids=["one of two", "another shape", "fewer dimensions"],
)
def test_results_that_the_model_does_not_have(results: tuple[Array, ...]) -> None:
    class Other(InClear):
        def infer(self, *_: Any, **__: Any) -> tuple[Array, ...]:
            return results

    with gateway(Other()) as address:
        status, _, said = ask(address, "POST", INFER, BODY)
    assert status == 502
    assert "other outputs than those of the last version of double" in said["error"]


def test_long_json_is_refused_before_it_comes(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = messages.MOST_JSON + 1
    for lines in (
        f"Content-Length: {long}\r\n",
        f"Content-Length: {long}\r\nExpect: 100-continue\r\n",
        f"Content-Length: {2 * long}\r\n{messages.HEADER_LENGTH}: {long}\r\n",
    ):
        answer = raw(address, head(lines))
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"send tensors as raw bytes" in answer
    # Raw bytes have room, and the length of a body may not be known before.
    monkeypatch.setattr(messages, "MOST_JSON", 1000)
    body = BODY + b" " * (1001 - len(BODY))
    sent = head("Transfer-Encoding: chunked\r\n") + b"%x\r\n" % len(body) + body
    assert raw(address, sent).startswith(b"HTTP/1.1 413 ")
    parameters = {"binary_data_size": 2400}
    entry = {"name": "x", "shape": [200, 3], "datatype": "FP32", "parameters": parameters}
    text = json.dumps({"inputs": [entry]}).encode()
    found = ask(
        address, "POST", INFER, text + bytes(2400), {messages.HEADER_LENGTH: str(len(text))}
    )
    assert found[0] == 200


def test_an_unforeseen_error_is_not_quoted(caplog: pytest.LogCaptureFixture) -> None:
    def fails() -> None:
        raise ValueError("secret 4.25")

    with gateway(InClear(fails)) as address:
        status, _, said = ask(address, "POST", INFER, BODY)
    assert (status, "secret" in str(said)) == (500, False)
    assert "secret" not in "".join(record.getMessage() for record in caplog.records)


def test_an_unforeseen_error_of_a_connection_is_not_quoted(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise ZeroDivisionError("secret 4.25")

    with gateway(InClear()) as address:
        with monkeypatch.context() as patch:
            patch.setattr(http_server.HttpServer, "_whole", fails)
            assert raw(address, head(path="/v2", method="GET")) == b""
        assert ask(address, "GET", "/v2")[0] == 200
    said = "".join(record.getMessage() for record in caplog.records)
    assert "a connection ended in ZeroDivisionError, at " in said
    assert "secret" not in said
    assert not any(record.exc_info for record in caplog.records)


def test_a_service_that_is_away_is_not_ready() -> None:
    class Away(InClear):
        def models(self) -> Any:
            raise PeerError("party 1 cannot be reached")

    with gateway(Away()) as address:
        assert ask(address, "GET", "/v2/health/live")[0] == 200
        for method, path in (("GET", "/v2/health/ready"), ("POST", INFER)):
            found = ask(address, method, path, BODY if method == "POST" else None)
            assert found[0] == 503
            assert found[2] == {"error": "party 1 cannot be reached"}


def test_requests_beyond_the_bound_come_again_later() -> None:
    gate, entered = threading.Event(), threading.Semaphore(0)

    def waits() -> None:
        entered.release()
        assert gate.wait(20)

    with gateway(InClear(waits), most_waiting=2) as address:
        answers: list[int] = []
        threads = [
            threading.Thread(target=lambda: answers.append(ask(address, "POST", INFER, BODY)[0]))
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for _ in threads:
            assert entered.acquire(timeout=10)
        status, headers, _ = ask(address, "POST", INFER, BODY)
        assert (status, headers["retry-after"]) == (429, "1")
        assert ask(address, "GET", "/v2/health/ready")[0] == 200
        gate.set()
        for thread in threads:
            thread.join(20)
        assert answers == [200, 200]


def test_pages_in_a_browser_are_refused(address: str) -> None:
    """A page may send a request to a loopback address, also under a name of its own."""
    for headers in ({"Origin": "http://localhost"}, {"Host": "evil.example"}):
        assert ask(address, "POST", INFER, BODY, headers)[0] == 403
    for name in ("localhost:80", "[::1]:80", "127.0.0.1", "LOCALHOST"):
        assert ask(address, "POST", INFER, BODY, {"Host": name})[0] == 200


def test_compressed_bodies_are_refused(address: str) -> None:
    assert ask(address, "POST", INFER, BODY, {"Content-Encoding": "gzip"})[0] == 415


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(20) + b"\r\n\r\n", 400),
        (b"GET /v2\r\n\r\n", 400),
        (b"GET /v2 HTTP/1.1\r\n\r\n", 400),
        (b"GET /v2 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET /v2 HTTP/1.1\r\nHost : a\r\n\r\n", 400),
        (head("Content-Length: 1\r\nContent-Length: 2\r\n"), 400),
        (head("Content-Length: -1\r\n"), 400),
        (head("Content-Length: 1e9\r\n"), 400),
        (head("Content-Length: " + "9" * 5000 + "\r\n"), 400),
        (head("Transfer-Encoding: gzip\r\n"), 501),
        (head("Transfer-Encoding: chunked\r\n") + b"zz\r\n", 400),
        (head("Transfer-Encoding: chunked\r\n") + b"-5\r\n", 400),
        (head("X: " + "a" * 5000 + "\r\n"), 431),
        (b"GET /" + b"a" * 5000, 431),
        (head("Content-Length: 4097\r\n"), 413),
        (head("Content-Length: 99999999999999999999\r\n"), 413),
        (head("Transfer-Encoding: chunked\r\n") + b"1001\r\n" + bytes(4097), 413),
    ],
)
def test_what_is_no_request_is_refused(tight: str, sent: bytes, status: int) -> None:
    answer = raw(tight, sent)
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer
    header, _, body = answer.partition(b"\r\n\r\n")
    assert b"connection: close" in header.lower()
    assert list(json.loads(body)) == ["error"]
    assert ask(tight, "POST", INFER, BODY)[0] == 200


def test_slow_headers_and_bodies_end(tight: str) -> None:
    for sent in (b"POST ", head(f"Content-Length: {len(BODY)}\r\n") + BODY[:5]):
        begin = time.monotonic()
        answer = raw(tight, sent)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert time.monotonic() - begin < 5
    # An idle connection ends without a word.
    assert raw(tight, b"") == b""


def test_a_trickle_does_not_hold_a_connection(tight: str) -> None:
    """Each byte comes soon after the one before, and the whole comes too slowly."""
    with connect(tight) as link:
        link.sendall(head("Content-Length: 4000\r\n"))
        begin = time.monotonic()
        with contextlib.suppress(OSError):
            while time.monotonic() - begin < 8:
                link.sendall(b" ")
                time.sleep(0.05)
        assert time.monotonic() - begin < 5


def test_connections_and_bodies_in_memory_are_bounded(tight: str) -> None:
    half = head("Content-Length: 4000\r\n") + bytes(3500)
    with connect(tight) as first, connect(tight) as second:
        first.sendall(half)
        time.sleep(0.1)
        second.sendall(half)
        answer = received(second)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1" in answer.lower()
    with contextlib.ExitStack() as stack:
        held: list[socket.socket] = []
        deadline = time.monotonic() + 5
        # Connections of before may still be counted.
        while len(held) < TIGHT.connections:
            assert time.monotonic() < deadline
            link = stack.enter_context(connect(tight))
            link.sendall(head(path="/v2", method="GET"))
            if link.recv(1000).startswith(b"HTTP/1.1 200"):
                held.append(link)
        assert raw(tight, b"").startswith(b"HTTP/1.1 503 ")
    until(lambda: ask(tight, "POST", INFER, BODY)[0] == 200)


def test_a_client_that_leaves_frees_its_memory(tight: str) -> None:
    for _ in range(20):
        with connect(tight) as link:
            link.sendall(head("Content-Length: 4000\r\n") + bytes(3500))
    until(lambda: ask(tight, "POST", INFER, BODY.ljust(4096))[0] == 200)


class Large(InClear):
    """A backend whose results do not fit into the buffers of a connection."""

    def infer(self, *_: Any, **__: Any) -> tuple[Array, ...]:
        return np.zeros((1 << 19, 3), np.float32), np.zeros(1 << 19, np.float32)


def test_a_client_that_takes_no_answer_ends() -> None:
    with (
        gateway(Large(), Limits(patience=0.5, slowest=1 << 20, connections=1)) as address,
        connect(address) as link,
    ):
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.sendall(head(f"Content-Length: {len(BODY)}\r\n") + BODY)
        assert link.recv(12) == b"HTTP/1.1 200"
        # Nobody else is served while this connection lasts, and it ends although it is not read.
        assert ask(address, "GET", "/v2")[0] == 503
        until(lambda: ask(address, "GET", "/v2")[0] == 200, 15)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are counted in /proc")
def test_many_requests_leave_nothing_behind() -> None:
    """Memory, threads and descriptors after twice as many requests are the same."""

    def ask_often(times: int) -> tuple[int, int]:
        for number in range(times):
            connection = http.client.HTTPConnection(address, timeout=10)
            connection.request("POST", INFER, BODY if number % 3 else b"{")
            connection.getresponse().read()
            connection.close()
        until(lambda: len(os.listdir("/proc/self/fd")) <= descriptors)
        gc.collect()
        return sys.getallocatedblocks(), threading.active_count()

    backend = InClear()
    backend.before = lambda: (backend.asked.clear(), backend.patience.clear())
    with gateway(backend) as address:
        descriptors = len(os.listdir("/proc/self/fd")) + 4
        before, after = ask_often(1000), ask_often(1000)
        # Less than half an object for each request.
        assert after[0] <= before[0] + 500
        assert after[1] <= before[1]


def test_only_loopback_addresses_are_listened_on() -> None:
    for found in ("127.0.0.1:8080", "127.9.9.9:1", "[::1]:0", "localhost:80"):
        check(found, False)
    for found in ("0.0.0.0:8080", "[::]:80", "10.0.0.1:80", "example.org:80", "localhost.a:80"):
        with pytest.raises(MisuseError, match="is not a loopback address") as refused:
            check(found, False)
        assert REMOTE in str(refused.value)
        check(found, True)
    for found in ("8080", "127.0.0.1", ":80", "127.0.0.1:99999", "::1:80", "[::1]", "a:-1", "a:٣"):
        with pytest.raises(MisuseError, match="give HOST:PORT"):
            check(found, True)


def test_the_command_refuses_before_it_reads_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service = str(tmp_path / "none.toml")
    assert cli.main(["gateway", "--service", service, "--listen", "0.0.0.0:0"]) == 1
    assert "0.0.0.0 is not a loopback address" in capsys.readouterr().err
    assert cli.main(["gateway", "--service", service, "--service", service]) == 1
    assert "--service names one file twice" in capsys.readouterr().err
    assert cli.main(["gateway", "--service", service]) == 1
    assert f"cannot read {service}" in capsys.readouterr().err


def test_a_signal_lets_requests_end() -> None:
    """SIGTERM ends the gateway after the request that it has."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_until_signalled, args=(theirs,))
    process.start()
    address = ours.recv()
    answers: list[int] = []
    thread = threading.Thread(target=lambda: answers.append(ask(address, "POST", INFER, BODY)[0]))
    thread.start()
    assert ours.recv() == "begun"
    assert process.pid is not None

    os.kill(process.pid, signal.SIGTERM)
    time.sleep(0.2)
    with pytest.raises(OSError):
        connect(address).close()
    ours.send("end")
    thread.join(20)
    process.join(20)
    assert (answers, process.exitcode) == ([200], 7)


def _until_signalled(pipe: Any) -> None:
    def waits() -> None:
        pipe.send("begun")
        pipe.recv()

    def told(url: str) -> None:
        pipe.send(url.removeprefix("http://"))

    try:
        asyncio.run(serve(InClear(waits), ("127.0.0.1", 0), told))
    except Terminated:
        os._exit(7)
