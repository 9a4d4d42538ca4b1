"""Two threads of one party's program: every party gets an error that names this cause, and never
hangs."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

import tacit
from tacit.sessions import WAITS, running


def noting(program: Callable[[], Any], folder: Path) -> Callable[[], Any]:
    """Wraps a program so that each party writes its error to a file."""

    def noted() -> Any:
        try:
            return program()
        except tacit.TacitError as error:
            (folder / str(tacit.session().party)).write_text(str(error))
            raise

    return noted


@pytest.mark.parametrize("what", ["operators", "reveal"])
def test_two_threads_at_once_are_named_to_all(what: str, tmp_path: Path) -> None:
    def program() -> None:
        party = tacit.session().party
        secret = tacit.share(torch.ones(2000), owner=0)

        def work(_: int) -> None:
            for _ in range(200):
                _ = secret * secret if what == "operators" else secret.reveal()

        if party == 1:
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(work, range(2)))
        else:
            work(0)
            work(0)

    with pytest.raises(
        tacit.MisuseError, match="program computes on secrets in two threads of one party at once"
    ):
        tacit.launch(noting(program, tmp_path), timeout=20.0)
    told = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert len(told) == 3
    for party in ("0", "2"):
        assert "party 1 failed" in told[party]
        assert "in two threads of one party at once" in told[party]


def test_threads_that_take_turns_in_another_order_are_named() -> None:
    def program() -> None:
        party = tacit.session().party
        secret = tacit.share(torch.ones(3), owner=0)

        def product() -> None:
            (secret * secret).reveal()

        def total() -> None:
            torch.relu(secret).reveal()

        with ThreadPoolExecutor(1) as pool:
            for work in (product, total) if party else (total, product):
                pool.submit(work).result()

    with pytest.raises(
        tacit.DesyncError, match="computes on secrets in several threads, whose order"
    ):
        tacit.launch(program)


def test_one_thread_after_another_may_compute() -> None:
    """This is the case of servers that work in thread pools, and the remedy of both errors."""

    def program() -> list[float]:
        secret = tacit.share(torch.tensor([2.0, 3.0]), owner=0)
        with ThreadPoolExecutor(2) as pool:
            loaded = pool.submit(lambda: torch.ones(2))
            squares = pool.submit(lambda: secret * secret).result()
            return (squares + loaded.result()).reveal().tolist()

    assert tacit.launch(program) == [[5.0, 10.0]] * 3


def test_sharing_in_a_thread_of_its_own_is_named() -> None:
    def program() -> str:
        raised = []

        def load() -> None:
            with pytest.raises(tacit.NoSessionError) as error:
                tacit.share(torch.ones(3), owner=0)
            raised.append(str(error.value))

        thread = threading.Thread(target=load)
        thread.start()
        thread.join()
        return raised[0]

    for text in tacit.launch(program):
        assert "one is open in another thread" in text
        assert "the thread that opened it" in text


def test_the_meter_is_read_beside() -> None:
    """A progress bar reads the meter this way."""

    def program() -> int:
        secret = tacit.share(torch.ones(2000), owner=0)
        session, seen, over = tacit.session(), [], threading.Event()

        def watch() -> None:
            while not over.is_set():
                seen.append(session.meter.total.bytes_sent)
                time.sleep(0.001)

        thread = threading.Thread(target=watch)
        thread.start()
        for _ in range(50):
            _ = secret * secret
        over.set()
        thread.join()
        return len(seen)

    assert min(tacit.launch(program)) > 0


def test_who_has_ended_says_that_it_waits(capsys: pytest.CaptureFixture[str]) -> None:
    cores = tacit._core.Session.in_memory(2, "plain", 20.0, None, None)

    def party(core: Any) -> None:
        with running(core, 0.2 if core.party else None):
            tacit.share(torch.ones(1), owner=0).reveal()
            time.sleep(0 if core.party else 1.5)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(party, cores))
    assert capsys.readouterr().err == f"{WAITS}\n"
