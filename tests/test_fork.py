"""A forked process inherits its parent's keys, counters and links, and must not use them."""

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tacit import _core
from tacit.fixed import EXACT, Shift

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="needs fork"),
    # Python warns about forks in processes with threads, which these tests need.
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = _core.Program((ROOT / "crates/riscv/programs/arrays.elf").read_bytes())
VALUES = np.array([3, -5], dtype=np.int64)


def expectation() -> _core.Expectation:
    """Returns the expectation of a program that uses no correlations."""
    session = _core.Session.in_memory(2, "additive", 60.0, None, "dealer")[0]
    assert session.rehearse()
    found = session.expect()
    assert found is not None
    return found


NOTHING = expectation()


def connected(protocol: str, source: str | None, parties: int) -> list[_core.Session]:
    """Connects parties over TCP. A fork inherits their sockets."""
    listeners = [_core.Listener("127.0.0.1:0") for _ in range(parties)]
    addresses = [listener.address for listener in listeners]
    pairs = [_core.generate_certificate(party, 1) for party in range(parties)]
    certificates = [certificate for certificate, _ in pairs]
    sessions: dict[int, _core.Session] = {}

    def connect(party: int) -> None:
        sessions[party] = _core.Session.connect_local(
            listeners[party],
            party,
            addresses,
            certificates,
            pairs[party][1],
            protocol,
            60.0,
            1,
            source,
        )

    together([lambda party=party: connect(party) for party in range(parties)])
    return [sessions[party] for party in range(parties)]


def together(programs: list[Callable[[], None]]) -> None:
    """Runs a program for each party, in threads."""
    threads = [threading.Thread(target=program) for program in programs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def squares(session: _core.Session) -> list[int]:
    """Performs an operation that uses masks; returns its result."""
    x, y = ([np.empty(2, np.int64) for _ in range(session.parts)] for _ in range(2))
    session.share(VALUES if session.party == 0 else None, 0, x)
    session.multiply(x, [part.copy() for part in x], y, 0, (None, None))
    out = np.empty(2, np.int64)
    session.reveal(y, None, out)
    return out.tolist()


def operations(session: _core.Session) -> dict[str, Callable[[], object]]:
    """Returns all operations that use keys, counters or links."""
    words = [np.zeros(2, np.int64) for _ in range(session.parts)]
    other = [np.zeros(2, np.int64) for _ in range(session.parts)]
    out = [np.zeros(2, np.int64) for _ in range(session.parts)]
    bits = [np.zeros(2, np.uint8) for _ in range(session.parts)]
    flags = [np.zeros(2, np.uint8) for _ in range(session.parts)]
    planes = [np.zeros(4, np.uint8) for _ in range(session.parts)]
    shape = _core.Convolution(
        batch=1,
        groups=1,
        in_channels=1,
        out_channels=1,
        input=(1, 2),
        kernel=(1, 2),
        stride=(1, 1),
        padding=(0, 1),
        dilation=(1, 1),
    )
    three = [np.zeros(3, np.int64) for _ in range(session.parts)]
    nameless = (None, None)
    return {
        "broadcast": lambda: session.broadcast(0, b"x"),
        "attestation": lambda: session.attestation(),
        "device": lambda: session.device(),
        "gather": lambda: session.gather(b"x"),
        "note_told": lambda: session.note_told(b"x"),
        "public_coin": lambda: session.public_coin(bytes(16)),
        "checks": lambda: session.checks,
        "settle": lambda: session.settle([(words, None)], []),
        "share": lambda: session.share(VALUES, 0, out),
        "share_bits": lambda: session.share_bits(bits[0], 0, flags),
        "trivial": lambda: session.trivial(VALUES, out),
        "trivial_bits": lambda: session.trivial_bits(bits[0], flags),
        "reveal": lambda: session.reveal(words, None, out[0]),
        "reveal_bits": lambda: session.reveal_bits(bits, None, flags[0]),
        "multiply": lambda: session.multiply(words, other, out, 0, nameless),
        "matmul": lambda: session.matmul(words, other, out, 2, 1, 1, 1, False, EXACT, nameless),
        "convolution": lambda: session.convolution(words, other, three, shape, EXACT, nameless),
        "forget": lambda: session.forget(1),
        "rehearse": session.rehearse,
        "expect": session.expect,
        "expect_again": lambda: session.expect_again(NOTHING),
        "expect_no_more": session.expect_no_more,
        "truncate": lambda: session.truncate(words, out, 3),
        "sign": lambda: session.sign(words, 64, flags),
        "equal_zero": lambda: session.equal_zero(words, 64, flags),
        "low_bits": lambda: session.low_bits(words, 8, out),
        "to_binary": lambda: session.to_binary(words, 1, flags),
        "leading_zeros": lambda: session.leading_zeros(words, 2, planes),
        "series": lambda: session.series(words, 20, [[1, 1], [1, 1]], out),
        "relu": lambda: session.relu(words, 64, out),
        "guards": lambda: session.guards,
        "toss": session.toss,
        "tell_flags": lambda: session.tell_flags([], None),
        "checked": lambda: session.checked(words, out, []),
        "flag_bits": lambda: session.flag_bits([]),
        "affine": lambda: session.affine(
            [(words, other, ((2, 1, 1, 1), False), nameless)], [], out, Shift(16)
        ),
        "maximum": lambda: session.maximum(words, other, 64, out),
        "and_bits": lambda: session.and_bits(bits, [part.copy() for part in bits], flags),
        "bit_multiply": lambda: session.bit_multiply(bits, words, out),
        "bit_to_ring": lambda: session.bit_to_ring(bits, out),
        "seal": lambda: session.seal(words, out[0]),
        "sealed": lambda: session.sealed(8),
        "add_noise": lambda: session.add_noise(words, 1),
        "confirm": session.confirm,
        "call": lambda: session.call(PROGRAM, "mean", [], [], None, [], ([], [], 1, False, False)),
        "run_program": lambda: session.run_program(
            PROGRAM, ["arrays"], [], [], ([], [], 1, False, False)
        ),
        "note": lambda: session.note(b"x"),
        "note_public": lambda: session.note_public("x", bits[0]),
        "set_label": lambda: session.set_label("x"),
        "meter": session.meter,
        "totals": session.totals,
        "demand": session.demand,
        "correlations": session.correlations,
        "verify": session.verify,
        "verification": session.verification,
        "side_by_side": lambda: session.side_by_side([]),
        "close": session.close,
    }


#: Members that only describe a session, or that do nothing in a fork.
HARMLESS = {
    "party",
    "parties",
    "parts",
    "protocol",
    "source",
    "transport",
    "threat_model",
    "abort",
    "flag_of",
    "is_checked",
    "words",
}


def outcomes(session: _core.Session) -> list[str]:
    """Returns the outcome of each operation."""
    told = []
    for name, operation in operations(session).items():
        try:
            operation()
            told.append(f"{name}: it was done")
        except _core.MisuseError as error:
            told.append(f"{name}: {error}")
    session.abort("nothing that concerns the others")
    return told


def in_a_fork(work: Callable[[], list[str]]) -> list[str]:
    """Runs a function in a fork of this process; returns its result."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            lines = work()
        except BaseException as error:
            lines = [f"raised {error!r}"]
        os.write(writing, "\n".join(lines).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read().decode().split("\n")
    assert os.waitpid(child, 0)[1] == 0
    return told


@pytest.mark.parametrize(
    ("protocol", "source", "parties"),
    [("additive", "ot", 2), ("replicated", None, 3)],
    ids=["additive", "replicated"],
)
def test_a_fork_is_refused_everything_and_ends_nothing(
    protocol: str, source: str | None, parties: int
) -> None:
    sessions = connected(protocol, source, parties)
    results: dict[int, list[list[int]]] = {party: [] for party in range(parties)}

    def compute() -> None:
        together(
            [
                lambda session=session: results[session.party].append(squares(session))  # type: ignore[misc]
                for session in sessions
            ]
        )

    def ends() -> list[str]:
        told = outcomes(sessions[0])
        # Dropping the sessions must not wait for threads that the fork lacks, nor cut links that it
        # shares.
        sessions.clear()
        return told

    compute()
    told = in_a_fork(ends)
    names = set(operations(sessions[0]))
    assert {line.split(":")[0] for line in told} == names, told
    assert all("this session belongs to process" in line for line in told), told
    # The original process continues.
    compute()
    assert all(result == [[9, 25], [9, 25]] for result in results.values())
    together([session.close for session in sessions])


def test_a_fork_of_a_process_that_has_computed_does_not_wait_for_its_threads() -> None:
    one = np.ones(1, np.int64)
    _core.ring_matmul(one, one.copy(), np.empty(1, np.int64), 1, 1, 1, 1)

    def computes() -> list[str]:
        told = []
        for work in (
            lambda: _core.ring_matmul(one, one.copy(), np.empty(1, np.int64), 1, 1, 1, 1),
            lambda: _core.Session.in_memory(2, "plain", 60.0),
        ):
            with pytest.raises(_core.MisuseError) as error:
                work()
            told.append(str(error.value))
        return told

    assert all("start it afresh" in line for line in in_a_fork(computes))


def test_no_operation_is_left_out() -> None:
    session = _core.Session.in_memory(2, "plain", 60.0)[0]
    constructors = {"in_memory", "rehearsed", "connect", "connect_local"}
    known = {name for name in dir(session) if not name.startswith("_")} - HARMLESS - constructors
    assert known == set(operations(session))
