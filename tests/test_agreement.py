"""Parameters and public values that differ between the parties, at the border to Rust."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tacit
from tacit.atomic_write import write

SETTINGS = [
    pytest.param("replicated", None, "threads", id="replicated"),
    pytest.param("replicated", None, "tcp", id="replicated-tcp"),
    pytest.param("additive", "dealer", "threads", id="additive"),
]


def ending(core_call: str, differ: bool, protocol: str, source: str | None, transport: str) -> None:
    """Runs parties that pass equal or different values to their sessions, and then open a
    secret."""

    def program() -> list[float] | None:
        secret = tacit.share(torch.ones(3), owner=0)
        core = tacit.session().core
        mine = tacit.session().party if differ else 7
        if core_call == "note":
            core.note(bytes([mine]))
        else:
            core.note_public("mul", np.full(1000, mine, dtype=np.uint8))
            core.note_public("add", bytes([mine]))
        opened = secret.reveal()
        assert opened is not None
        return list(opened)

    kind = "memory" if transport == "threads" else transport
    results = tacit.launch(program, protocol=protocol, source=source, transport=kind)
    assert results == [[1.0] * 3] * len(results)


@pytest.mark.parametrize(("protocol", "source", "transport"), SETTINGS)
def test_public_values_that_differ_end_the_session(
    protocol: str, source: str | None, transport: str
) -> None:
    with pytest.raises(
        tacit.DesyncError, match=r'"mul".*: run the same program.*tacit\.public_random'
    ):
        ending("note_public", True, protocol, source, transport)


@pytest.mark.parametrize(("protocol", "source", "transport"), SETTINGS)
def test_parameters_that_differ_end_the_session(
    protocol: str, source: str | None, transport: str
) -> None:
    with pytest.raises(tacit.DesyncError, match=r"reveal of 3.*with other parameters"):
        ending("note", True, protocol, source, transport)


@pytest.mark.parametrize("call", ["note", "note_public"])
def test_equal_ones_do_not(call: str) -> None:
    ending(call, False, "replicated", None, "threads")
    ending(call, False, "additive", "dealer", "threads")


def test_a_public_value_is_bytes_that_lie_together() -> None:
    def program() -> None:
        core = tacit.session().core
        with pytest.raises(tacit.MisuseError, match="contiguous"):
            core.note_public("mul", np.zeros(10, dtype=np.uint8)[::2])
        with pytest.raises((BufferError, TypeError)):
            core.note_public("mul", np.zeros(10))  # type: ignore[arg-type]

    tacit.launch(program)


@pytest.mark.parametrize(("protocol", "source", "transport"), SETTINGS)
@pytest.mark.parametrize("odd", [0, 1])
def test_a_receiver_that_differs_in_the_last_reveal_ends_the_session(
    protocol: str, source: str | None, transport: str, odd: int
) -> None:
    def program() -> None:
        secret = tacit.share(torch.ones(3), owner=0)
        secret.reveal(to=int(tacit.session().party == odd))

    # The step is named because the error comes at once: after a timeout it would be no DesyncError.
    with pytest.raises(
        tacit.DesyncError, match=r"reveal of 3.*(other parameters|not that of the others)"
    ):
        run(program, protocol, source, transport)


def to_oneself(secret: torch.Tensor, party: int) -> object:
    return secret.reveal(to=min(party, 1))  # type: ignore[attr-defined]


def by_another_exponent(secret: torch.Tensor, party: int) -> object:
    return (secret ** (3 + 4 * (party == 1))).reveal()  # type: ignore[attr-defined]


def one_product_less(secret: torch.Tensor, party: int) -> object:
    return (secret if party == 1 else secret * secret).reveal(to=0)  # type: ignore[attr-defined]


def nothing_more(secret: torch.Tensor, party: int) -> object:
    return None if party == 1 else (secret * secret).reveal(to=0)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("protocol", "source", "transport"), SETTINGS)
@pytest.mark.parametrize(
    "differ", [to_oneself, by_another_exponent, one_product_less, nothing_more]
)
def test_whoever_sends_to_whom_programs_that_differ_end_by_name_of_the_step(
    differ: Callable[[torch.Tensor, int], object],
    protocol: str,
    source: str | None,
    transport: str,
    tmp_path: Path,
) -> None:
    """No party receives a value, and no error contains a secret."""

    def program() -> None:
        party = tacit.session().party
        secret = tacit.share(torch.full((3,), 1.3377331) if party == 0 else None, owner=0)
        opened = differ(secret, party)
        assert opened is None, "opened"

    # An exponent is a public value, so the parties compare it.
    with pytest.raises(tacit.DesyncError, match=r"programs differ|public values of .* differ"):
        run(noting(program, tmp_path), protocol, source, transport)
    told = [path.read_text() for path in tmp_path.iterdir()]
    assert told
    for text in told:
        assert re.search(r'step (\d+ )?"', text), text
        assert "33773" not in text


@pytest.mark.parametrize(("protocol", "source", "transport"), SETTINGS)
def test_one_step_more_ends_the_session(protocol: str, source: str | None, transport: str) -> None:
    def program() -> None:
        secret = tacit.share(torch.ones(3), owner=0)
        secret.reveal()
        if tacit.session().party == 1:
            tacit.share(torch.ones(3), owner=1)

    with pytest.raises(tacit.DesyncError, match=r"ended its program after step.*reveal of 3"):
        run(program, protocol, source, transport)


@pytest.mark.parametrize(("protocol", "source", "transport"), SETTINGS)
def test_who_raises_after_its_last_step_fails_the_others(
    protocol: str, source: str | None, transport: str, tmp_path: Path
) -> None:
    def program() -> None:
        tacit.share(torch.ones(3), owner=0).reveal()
        party = tacit.session().party
        if party == 1:
            raise ValueError("what is said here may be secret")

    def noted() -> None:
        """Writes the others' error to a file, because launch may show the error of another
        party."""
        party = tacit.session().party
        try:
            program()
            tacit.session().core.close()
        except tacit.PeerError as error:
            (tmp_path / str(party)).write_text(str(error))
            raise

    with pytest.raises(ValueError, match="may be secret"):
        run(noted, protocol, source, transport)
    told = [path.read_text() for path in tmp_path.iterdir()]
    assert told
    for text in told:
        assert "party 1 failed" in text
        assert "its program raised ValueError" in text
        assert "secret" not in text


def noting(program: Callable[[], None], folder: Path) -> Callable[[], None]:
    """Wraps a program so that each party writes its error to a file, because launch shows only
    one."""

    def noted() -> None:
        try:
            program()
        except tacit.TacitError as error:
            (folder / str(tacit.session().party)).write_text(str(error))
            raise

    return noted


@pytest.mark.parametrize(("protocol", "source", "transport"), SETTINGS)
def test_what_one_party_says_of_another_all_parties_do(
    protocol: str, source: str | None, transport: str, tmp_path: Path
) -> None:
    """Party 1 announces an invalid tensor. All parties blame it, with the same cause."""

    def program() -> None:
        session = tacit.session()
        if session.party == 1:
            session.core.broadcast(1, b"garbage")
            session.core.broadcast(0, None)
        tacit.share(None, owner=1)

    with pytest.raises(tacit.PeerError):
        run(noting(program, tmp_path), protocol, source, transport)
    told = [path.read_text() for path in sorted(tmp_path.iterdir())]
    assert len(told) == 3
    for text in told:
        assert re.match(
            r"party 1 (failed in step .*: as party \d reports, it )?announced what is not", text
        ), text


@pytest.mark.parametrize(("protocol", "source", "transport"), SETTINGS)
def test_others_are_told_what_tacit_says_and_not_what_a_program_says(
    protocol: str, source: str | None, transport: str, tmp_path: Path
) -> None:
    def of_tacit() -> None:
        if tacit.session().party == 1:
            write(tmp_path / "no folder" / "file", "text", "the latest round to")
        tacit.session().core.broadcast(1, None)

    def of_the_program() -> None:
        if tacit.session().party == 1:
            raise tacit.SetupError("what is said here may be secret")
        tacit.session().core.broadcast(1, None)

    for program, expected in (
        (of_tacit, "cannot write the latest round to .*: there is no such file or folder"),
        (of_the_program, "its program raised SetupError; see its own output"),
    ):
        with pytest.raises(tacit.SetupError):
            run(noting(program, tmp_path), protocol, source, transport)
        text = (tmp_path / "0").read_text()
        assert re.match(f'party 1 failed in step "end": {expected}', text), text


@pytest.mark.parametrize(("protocol", "source", "transport"), SETTINGS)
def test_a_party_may_compute_alone_after_its_last_step(
    protocol: str, source: str | None, transport: str
) -> None:
    """It may take longer than the timeout, and use secrets as long as that needs no other party."""

    def program() -> list[float] | None:
        secret = tacit.share(torch.ones(3), owner=0)
        opened = secret.reveal(to=0)
        if tacit.session().party == 0:
            _ = secret + 1
            time.sleep(3.0)
        return None if opened is None else list(opened)

    results = run(program, protocol, source, transport, timeout=2.0)
    assert results[0] == [1.0] * 3


def run(
    program: Callable[[], Any],
    protocol: str,
    source: str | None,
    transport: str,
    timeout: float = 60.0,
) -> list[Any]:
    """Runs the program in each party."""
    kind = "memory" if transport == "threads" else transport
    return tacit.launch(program, protocol=protocol, source=source, transport=kind, timeout=timeout)
