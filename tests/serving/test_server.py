"""A party of a service by itself: what ends it, and what ends a session only."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from services import write

from tacit.errors import DesyncError, DeviceError, MisuseError, PeerError, SetupError
from tacit.serving import server as served
from tacit.serving.batches import Notice
from tacit.serving.server import Server

ROWS = (0, b"n" * 16, b"d" * 32), (1, b"n" * 16, b"e" * 32)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(served, "SHORTEST_PAUSE", 0.001)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield Server(write(tmp_path), 0, threads=1)
    torch.set_num_threads(before)


def failing(server: Server, errors: list[BaseException], *, has_opened: bool) -> Callable[[], None]:
    """Returns what takes the place of a session: it fails in these ways, and the party leaves."""

    def session() -> None:
        server._has_served = has_opened
        if not errors:
            server.leave()
            return
        raise errors.pop(0)

    return session


def test_what_ends_a_session_does_not_end_a_party(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kinds = SetupError, DesyncError, DeviceError, MemoryError, MisuseError, PeerError
    errors: list[BaseException] = [kind("secret") for kind in kinds]
    monkeypatch.setattr(server, "_session", failing(server, errors, has_opened=True))
    with caplog.at_level(logging.WARNING, "tacit.serving.server"):
        server.run()
    levels = [record.levelno for record in caplog.records]
    assert levels == [logging.ERROR] * 5 + [logging.WARNING]
    for kind, record in zip(kinds, caplog.records, strict=True):
        assert kind.__name__ in record.getMessage()
        assert "secret" not in record.getMessage()


@pytest.mark.parametrize("kind", [SetupError, DesyncError, DeviceError, MemoryError, MisuseError])
def test_a_party_that_fits_no_other_ends(
    server: Server, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    monkeypatch.setattr(server, "_session", failing(server, [kind("wrong")], has_opened=False))
    with pytest.raises(kind, match="wrong"):
        server.run()


@pytest.mark.usefixtures("server")
def test_pytorch_has_no_more_threads_than_the_party() -> None:
    assert torch.get_num_threads() == 1


def test_requests_for_a_model_that_is_not_bound_are_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[Any] = []
    requests = SimpleNamespace(
        promise=lambda *_: [True, False],
        release=lambda _: None,
        refuse=lambda *what: refused.append(what[:3]),
    )
    monkeypatch.setattr(server, "_requests", requests)
    monkeypatch.setattr(server, "_by_digest", {}, raising=False)
    core = SimpleNamespace(note=lambda _: None)
    session: Any = SimpleNamespace(told_by_all=lambda own: [own] * 3, core=core)
    server._agree(session, Notice(ROWS, b"m" * 32), 0.0)
    assert refused == [(0, b"n" * 16, "unknown")]
