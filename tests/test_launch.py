"""Parties as threads and as processes: results, errors and their causes."""

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from importlib import import_module
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import fx, nn

import tacit
from commands import Command
from tacit.parties import shutdown, spawn
from tacit.parties.worker import report

#: For tests of the timeout.
SHORT = 3.0


def double(value: int) -> tuple[int, int]:
    """Returns the party's number, and twice a secret sum."""
    secret = tacit.share(torch.tensor([value]), owner=0)
    return tacit.session().party, int((secret + secret).reveal())


@pytest.mark.parametrize("transport", ["memory", "tcp"])
def test_results_come_by_party(transport: str) -> None:
    assert tacit.launch(double, 21, transport=transport) == [(0, 42), (1, 42), (2, 42)]


@pytest.mark.parametrize("transport", ["memory", "tcp"])
def test_links_are_as_slow_as_a_network(transport: str) -> None:
    """Rounds wait for the delay, and bytes for the bandwidth, except for a party's last bytes,
    which it need not wait for. A link without either would take a tenth at most."""

    def times() -> tuple[float, float]:
        meter, spent = tacit.session().meter, []
        for count in (1, 25_000):
            secret = tacit.share(torch.ones(count), owner=0)
            started, before = time.monotonic(), meter.total
            (secret * secret).reveal()
            cost = meter.total - before
            network = 0.1 * cost.rounds + cost.payload_bytes / 1e6
            spent.append((time.monotonic() - started) / network)
        return spent[0], spent[1]

    for short, long in tacit.launch(times, transport=transport, network="200,8"):
        assert min(short, long) > 0.8


def test_processes_are_processes() -> None:
    pids = tacit.launch(os.getpid, transport="tcp")
    assert len({*pids, os.getpid()}) == 4


def test_parties_do_not_share_their_arguments() -> None:
    def program(values: list[int]) -> list[int]:
        values.append(tacit.session().party)
        return values

    mine: list[int] = []
    assert tacit.launch(program, mine) == [[0], [1], [2]]
    assert mine == []


def test_parties_are_given_graphs() -> None:
    """PyTorch traces a graph when it loads it. Meanwhile no other thread may trace or compute."""
    graph = fx.symbolic_trace(torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(8))))
    expected = graph(torch.ones(1, 4))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for found in tacit.launch(lambda: graph(torch.ones(1, 4))):
            torch.testing.assert_close(found, expected)
    finally:
        sys.setswitchinterval(interval)


def test_who_is_on_the_way_out_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a thread leaves tacit, it still runs code of PyTorch and of the user before it ends.
    The shutdown waits for this, but not for a thread that sleeps in the user's code."""
    ended, never = threading.Event(), threading.Event()

    def leaves() -> None:
        time.sleep(0.05)
        ended.set()

    left = [threading.Thread(target=each, daemon=True) for each in (leaves, never.wait)]
    monkeypatch.setattr(shutdown, "_left", left)
    for worker in left:
        worker.start()
    shutdown._wait()
    assert ended.is_set()
    assert left[1].is_alive()
    never.set()


def test_who_is_interrupted_need_not_reach_tacit_again() -> None:
    """Threads that compute in PyTorch alone are interrupted too, although no operator of tacit
    stops them."""

    def goes_on() -> None:
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                torch.ones(3) + 1

    workers = [threading.Thread(target=goes_on, daemon=True) for _ in range(3)]
    for worker in workers:
        worker.start()
    shutdown.interrupt(workers)
    for worker in workers:
        worker.join(60)
    assert not any(worker.is_alive() for worker in workers)


#: When the interpreter ends, a thread is in the user's code, called by PyTorch.
LEFT = """
import threading, time, torch
from tacit.parties import shutdown
shutdown.LINGER = 0.3

def sleeps(*_):
    inside.set()
    time.sleep(600)

class Sleeps(torch.nn.Module):
    forward = sleeps

inside = threading.Event()
worker = threading.Thread(target={target}, daemon=True)
worker.start()
inside.wait()
shutdown.leave_behind([worker])
print("main ends", flush=True)
{last}
"""


@pytest.mark.parametrize(
    ("target", "last", "code"),
    [
        ("Sleeps()", "", -signal.SIGINT),
        ("Sleeps()", "raise KeyboardInterrupt", -signal.SIGINT),
        ("Sleeps()", "raise ValueError", 1),
        ("sleeps", "", 0),
    ],
    ids=["PyTorch", "PyTorch, interrupted", "PyTorch, failed", "program"],
)
def test_no_interpreter_ends_under_who_came_through_pytorch(
    target: str, last: str, code: int
) -> None:
    program = LEFT.format(target=target, last=last)
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (code, "main ends\n")
    assert ended.stderr.splitlines()[-1:] == last.removeprefix("raise ").split()


#: Parties concurrently call operators that Python sees for the first time. Creating PyTorch's
#: object for a new operator takes a while.
FIRST_SEEN = """
import time
import torch
from torch.utils._python_dispatch import TorchDispatchMode
import tacit

NAMES = "msort", "ravel", "atleast_3d", "argwhere", "isreal"

def program():
    class Sees(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    seen = []
    with torch.inference_mode():
        for name in NAMES:
            with tacit.public_random():
                pass
            with Sees():
                getattr(torch, name)(torch.ones(3, 3))
    return [getattr(torch.ops.aten, name).default in seen for name in NAMES]

def slowly(name, *of):
    made = at_once(name, *of)
    if name.removeprefix("aten::") in NAMES:
        time.sleep(0.02)
    return made

at_once, torch._ops._get_packet = torch._ops._get_packet, slowly
print(tacit.launch(program))
"""


def test_operators_that_parties_see_first_at_once() -> None:
    """PyTorch keeps the address of the object that the first thread made for an operator.
    ``torch.ops`` must keep the same object. If another thread's object replaced it there, the
    first one would be collected while still in use."""
    ended = subprocess.run(
        [sys.executable, "-c", FIRST_SEEN], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, f"{[[True] * 5] * 3}\n"), ended.stderr


def test_processes_that_begin_afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawn, "FORKS", False)
    assert tacit.launch(double, 21, transport="tcp") == [(0, 42), (1, 42), (2, 42)]


@pytest.mark.skipif(not spawn.FORKS, reason="processes begin afresh on this system")
def test_what_programs_are_read_by_is_imported_once_for_all_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in spawn.LATE:
        import_module(name)
    monkeypatch.setattr(spawn, "_latest", None)

    def program() -> tuple[bool, int]:
        threads = len(os.listdir(f"/proc/{os.getppid()}/task"))
        return all(name in sys.modules for name in spawn.LATE), threads

    assert tacit.launch(program, transport="tcp") == [(True, 1)] * 3
    # None of the imported modules prints anything when a process ends.
    assert Command("--version").ended()[2] == ""


def test_a_process_begins_as_its_parent_is_now(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def program() -> tuple[str, str | None, int]:
        os.write(1, f"party {tacit.session().party} was here\n".encode())
        return os.getcwd(), os.environ.get("TACIT_TEST"), torch.get_num_threads()

    for number, value in enumerate(("one", None)):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.setenv("TACIT_TEST", value) if value else monkeypatch.delenv("TACIT_TEST")
        found = tacit.launch(program, transport="tcp", threads=1)
        assert found == [(str(folder), value, 1)] * 3
        assert sorted(capfd.readouterr().out.splitlines()) == [
            f"party {i} was here" for i in range(3)
        ]


def test_what_a_process_draws_is_its_own() -> None:
    def program() -> tuple[float, ...]:
        return torch.rand(1).item(), np.random.rand(), random.random()

    for drawn in zip(*tacit.launch(program, transport="tcp"), strict=True):
        assert len(set(drawn)) == 3


#: Prints the process ids of its parties, and waits forever.
ENDLESS = """
import os, time, tacit

def program():
    os.write(1, f"{os.getpid()}\\n".encode())
    time.sleep(600)

if __name__ == "__main__":
    tacit.launch(program, transport="tcp")
"""


def alive(process: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")")[-1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks processes up in /proc")
def test_parties_end_with_their_parent(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    with subprocess.Popen(
        [sys.executable, tmp_path / "endless.py"], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        try:
            parties = [int(parent.stdout.readline()) for _ in range(3)]
            assert all(map(alive, parties))
        finally:
            parent.kill()
    waited_until = time.monotonic() + 30
    while any(alive(party) for party in parties):
        assert time.monotonic() < waited_until
        time.sleep(0.05)


@pytest.mark.skipif(not spawn.FORKS, reason="here every process begins afresh")
def test_processes_are_started_after_the_fork_server_was_killed() -> None:
    assert tacit.launch(double, 1, transport="tcp")[0] == (0, 2)
    server = spawn._latest
    assert server is not None
    server._process.kill()
    server._process.wait()
    assert tacit.launch(double, 21, transport="tcp")[0] == (0, 42)


def raises(error: BaseException) -> None:
    """Party 1 raises while the others wait for it."""
    secret = tacit.share(torch.ones(3), owner=0)
    if tacit.session().party == 1:
        raise error
    (secret * secret).reveal()


@pytest.mark.parametrize("transport", ["memory", "tcp"])
def test_an_exception_ends_all_and_names_the_party(transport: str) -> None:
    with pytest.raises(ValueError, match="party 1: the cause"):
        tacit.launch(raises, ValueError("the cause"), transport=transport)


def test_an_exception_with_other_arguments_names_the_party_in_a_note() -> None:
    with pytest.raises(OSError, match="no such thing") as caught:
        tacit.launch(raises, OSError(2, "no such thing"))
    assert "raised in party 1" in caught.value.__notes__


def test_the_message_of_an_exception_is_not_sent_to_others() -> None:
    def program() -> str:
        try:
            raises(ValueError("a secret"))
        except tacit.PeerError as error:
            return str(error)
        return ""

    def outcome() -> None:
        text = program()
        assert "a secret" not in text
        assert "ValueError" in text
        raise RuntimeError("as expected")

    with pytest.raises((RuntimeError, ValueError)):
        tacit.launch(outcome)


@pytest.mark.parametrize("transport", ["memory", "tcp"])
def test_a_party_that_stalls_is_named_within_the_timeout(transport: str) -> None:
    def program() -> None:
        secret = tacit.share(torch.ones(3), owner=0)
        if tacit.session().party == 2:
            time.sleep(600)
        (secret * secret).reveal()

    with pytest.raises(tacit.PeerError, match=r"party 2 failed in step .*timeout"):
        tacit.launch(program, transport=transport, timeout=SHORT)


def test_a_party_that_is_killed_in_a_layer_is_named() -> None:
    class Deadly(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if tacit.session().party == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            return x * x

    def program() -> None:
        model = torch.nn.Sequential(torch.nn.ReLU(), Deadly())
        model(tacit.share(torch.ones(1000), owner=0)).reveal()

    with pytest.raises(
        tacit.PeerError, match=r"party 1: its process was killed by signal 9 \(SIGKILL\)"
    ):
        tacit.launch(program, transport="tcp")


def test_a_party_that_exits_is_named() -> None:
    def program() -> None:
        tacit.share(torch.ones(3), owner=0)
        if tacit.session().party == 0:
            os._exit(3)
        tacit.share(torch.ones(3), owner=0)

    with pytest.raises(tacit.PeerError, match="party 0: its process ended with exit code 3"):
        tacit.launch(program, transport="tcp")


@pytest.mark.parametrize("transport", ["memory", "tcp"])
def test_different_programs_are_named_by_both_steps(transport: str) -> None:
    def program() -> None:
        secret = tacit.share(torch.ones(3), owner=0)
        if tacit.session().party == 1:
            torch.relu(secret)
        else:
            _ = secret * secret

    with pytest.raises(
        tacit.DesyncError, match=r"multiply of 3.*sign of 3|sign of 3.*multiply of 3"
    ):
        tacit.launch(program, transport=transport)


def test_a_parent_that_has_all_it_wants_is_told_nothing() -> None:
    """The parent may end its processes while they end on their own. No traceback may appear
    then."""
    here, there = Pipe(duplex=False)
    report(there, (True, 0.0, None))
    assert here.recv() == (True, 0.0, None)
    here.close()
    report(there, (True, 0.0, None))


def test_a_party_that_finishes_early_is_named() -> None:
    def program() -> None:
        secret = tacit.share(torch.ones(3), owner=0)
        if tacit.session().party != 2:
            (secret * secret).reveal()

    with pytest.raises(tacit.DesyncError) as caught:
        tacit.launch(program)
    assert re.search(
        r"party 2 ended its program after step \d+ .* while (this party|party [01]) was at "
        r".*multiply of 3"
        r"|the program of party 2 is not that of the others",
        str(caught.value),
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"parties": 2}, "exactly 3 parties"),
        ({"parties": 1}, "2 to 64 parties"),
        ({"protocol": "magic"}, "unknown protocol"),
        ({"transport": "pigeon"}, "unknown transport"),
        ({"timeout": 0.0}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"timeout": 1e19}, "at most a day"),
        ({"protocol": "plain", "transport": "tcp"}, "refuses to run over a network"),
        ({"network": "moon"}, "'moon' is no network: write lan, wan, or RTT,MBIT"),
        ({"network": "20,0"}, "is no network"),
        ({"network": "1e9,1"}, "with at most 60 s of a round trip"),
        ({"network": "20,inf"}, "is no network"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(tacit.MisuseError, match=expected):
        tacit.launch(double, 1, **options)


def test_the_meter_is_read_while_another_thread_computes() -> None:
    def program() -> float:
        secret = tacit.share(torch.ones(3), owner=0)
        session, done = tacit.session(), threading.Event()

        def watch() -> None:
            while not done.is_set():
                _ = session.meter.total, session.threat_model

        watcher = threading.Thread(target=watch)
        if session.party == 0:
            watcher.start()
        if session.party == 1:
            _ = sum(i * i for i in range(1_000_000))  # works in Python while party 0 waits
        result = (secret * secret).sum().reveal()
        done.set()
        return float(result)

    assert tacit.launch(program, timeout=30) == pytest.approx([3.0, 3.0, 3.0], abs=1e-3)


def test_a_session_inside_a_modules_forward() -> None:
    def inner(x: torch.Tensor) -> float:
        return float(nn.Sequential(nn.ReLU())(tacit.share(x, owner=0)).sum().reveal())

    class Outer(nn.Module):
        def forward(self, x: torch.Tensor) -> list[float]:
            return tacit.launch(inner, x)

    def program() -> list[float]:
        return nn.Sequential(Outer())(torch.tensor([1.0, -2.0]))

    assert tacit.launch(program)[0] == [1.0, 1.0, 1.0]


def test_arrays_of_a_call_do_not_overlap() -> None:
    def program() -> None:
        session = tacit.session()
        words = [torch.zeros(2, dtype=torch.int64).numpy() for _ in range(session.core.parts)]
        out = [word.view("uint8")[:2] for word in words]
        with pytest.raises(tacit.MisuseError, match="overlaps"):
            session.core.sign(words, 64, out)
        with pytest.raises(tacit.MisuseError, match="overlaps"):
            session.core.truncate(words, words, 4)

    tacit.launch(program)


def test_the_session_says_what_it_is() -> None:
    def program() -> tuple[Any, ...]:
        session = tacit.session()
        return (
            session.party,
            session.parties,
            session.protocol,
            session.transport,
            session.threat_model,
        )

    for party, seen in enumerate(tacit.launch(program, transport="tcp")):
        assert seen[:4] == (party, 3, "replicated", "tcp+tls")
        assert "no single party learns anything" in seen[4]
        assert "semi-honest" in seen[4]
        assert "TLS 1.3" in seen[4]
    (_, _, _, _, model), *_ = tacit.launch(program, protocol="plain", parties=2)
    assert "NO SECRECY" in model


@pytest.mark.parametrize(
    ("source", "said", "unsaid"),
    [
        (None, "by oblivious transfer between the parties", "encryption"),
        ("ot", "by oblivious transfer between the parties", "encryption"),
        (
            "he",
            "by oblivious transfer and homomorphic encryption (ring-LWE) between the parties",
            "dealer",
        ),
        ("dealer", "from a dealer, who sees shapes and counts only", "transfer"),
    ],
)
def test_the_session_says_where_correlations_come_from(
    source: str | None, said: str, unsaid: str
) -> None:
    def program() -> str:
        return tacit.session().threat_model

    models = tacit.launch(program, protocol="additive", parties=2, source=source)
    assert len(set(models)) == 1
    assert f"correlations {said}" in models[0]
    assert unsaid not in models[0]
    assert ("no third party is needed" in models[0]) == (source != "dealer")


def test_the_meter_reads_by_module() -> None:
    def program() -> dict[str, tacit.Reading]:
        model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
        tacit.share_module(model, owner=0)
        model(tacit.share(torch.ones(600, 4), owner=1))
        meter = tacit.session().meter
        assert "total" in str(meter)
        assert meter.total.rounds == sum(reading.rounds for reading in meter.values())
        return dict(meter)

    by_party = tacit.launch(program)
    for label, rounds in (("0", 2), ("1", 8)):
        readings = [readings[label] for readings in by_party]
        # A party may enter a layer one message before another.
        assert all(abs(reading.rounds - rounds) <= 1 for reading in readings)
        assert all(reading.bytes_sent >= reading.payload_bytes for reading in readings)
        assert sum(reading.payload_bytes for reading in readings) > 0
