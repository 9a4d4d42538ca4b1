"""Names of the members in errors of a session of servers: its own errors, and those it receives."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from worlds import Servers, written

from tacit import _core
from tacit.errors import DesyncError, PeerError, TacitError
from tacit.federated.service.server import Server


def session_of_three(work: Callable[[_core.Session], object], *, servers: bool) -> list[TacitError]:
    """Runs three members, and returns the error that each raises."""
    listeners = [_core.Listener("127.0.0.1:0") for _ in range(3)]
    pairs = [_core.generate_certificate(number, 1) for number in range(3)]

    def member(number: int) -> TacitError:
        with pytest.raises(TacitError) as raised:
            work(
                _core.Session.connect_local(
                    listeners[number],
                    number,
                    [listener.address for listener in listeners],
                    [certificate for certificate, _ in pairs],
                    pairs[number][1],
                    "replicated",
                    20.0,
                    servers=servers,
                )
            )
        return raised.value

    with ThreadPoolExecutor(3) as threads:
        return list(threads.map(member, range(3)))


def other_payloads(session: _core.Session) -> None:
    """Runs a program at member 1 that differs from the others'."""
    session.note(b"this" if session.party == 1 else b"that")
    session.gather(b"here")
    session.close()


@pytest.mark.parametrize(
    ("servers", "one", "all_"), [(True, "server", "servers"), (False, "party", "parties")]
)
def test_members_are_called_what_they_are(servers: bool, one: str, all_: str) -> None:
    errors = session_of_three(other_payloads, servers=servers)
    other = "party" if servers else "server"
    assert any(isinstance(error, DesyncError) for error in errors)
    for error in errors:
        assert isinstance(error, PeerError)
        assert f"in every {one}; " in str(error)
        assert f"draw in all {all_} alike (with tacit.public_random():)" in str(error)
        assert other not in str(error).replace("parties.toml", "")


def test_what_a_server_tells_the_others_names_it() -> None:
    def deviate(session: _core.Session) -> None:
        if session.party == 1:
            session.abort("it stops")
        session.gather(b"here")

    first, own, last = session_of_three(deviate, servers=True)
    assert str(own) == "this server ended the run: it stops"
    for error in (first, last):
        assert str(error).startswith("server 1 failed in step ")
        assert str(error).endswith("it stops")


def test_a_federation_opens_its_session_so(tmp_path: Path) -> None:
    def work(server: Server) -> None:
        if server.number == 1:
            raise ValueError("a secret of server 1")
        server.round(torch.zeros(4))

    failed = [
        error
        for error in Servers(written(tmp_path, 2), work).failed()
        if isinstance(error, PeerError)
    ]
    assert failed
    for error in failed:
        assert str(error).startswith("server 1 failed in step ")
        assert str(error).endswith("its program raised ValueError; see its own output")
        assert "party" not in str(error)
