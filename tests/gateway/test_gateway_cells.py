"""Requests over several cells: which cell gets one, and that none is asked twice for the same."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from serving_in_clear import DOUBLE, InClear, row

from tacit.client import Model
from tacit.errors import (
    LateError,
    MisuseError,
    PeerError,
    RequestRefusedError,
    TacitError,
    unused,
)
from tacit.gateway.cells import PATIENCE, Cells

#: Seconds between two questions for models.
SOON = 0.05


class Cell(InClear):
    """A cell that raises what ``error`` says."""

    def __init__(self, error: TacitError | None = None) -> None:
        super().__init__(self._fail)
        self.error = error
        self.away: TacitError | None = None
        self.known: Mapping[str, Model] = super().models()

    def models(self) -> Mapping[str, Model]:
        if self.away is not None:
            raise self.away
        return self.known

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


@contextmanager
def spread(*backends: Any, interval: float = SOON) -> Iterator[Cells]:
    cells = Cells(backends, interval)
    try:
        cells.models()
        until(lambda: cells._unasked == 0)
        yield cells
    finally:
        cells.close()


def until(is_so: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def ask(cells: Cells, **named: Any) -> Any:
    return cells.infer("double", {"x": row(1, 2, 3)}, **named)


def refused(cause: str) -> RequestRefusedError:
    return RequestRefusedError.of(cause, 0, "no", 1.0)


def test_idle_cells_take_turns() -> None:
    with spread(Cell(), Cell(), Cell()) as cells:
        for _ in range(9):
            assert ask(cells)[0].tolist() == [[2, 4, 6]]
        assert [len(each.backend.asked) for each in cells._cells] == [3, 3, 3]


def test_the_cell_with_the_fewest_waiting_is_next() -> None:
    gate, entered = threading.Event(), threading.Event()

    class Slow(Cell):
        def _fail(self) -> None:
            entered.set()
            assert gate.wait(20)

    slow, quick = Slow(), Cell()
    with spread(slow, quick) as cells:
        thread = threading.Thread(target=ask, args=(cells,))
        thread.start()
        assert entered.wait(10)
        for _ in range(5):
            ask(cells)
        gate.set()
        thread.join(20)
        assert (len(slow.asked), len(quick.asked)) == (1, 5)


@pytest.mark.parametrize(
    "error",
    [
        *map(refused, ("starting", "draining", "busy", "unknown")),
        PeerError("party 1 cannot be reached"),
    ],
    ids=lambda error: getattr(error, "cause", "peer"),
)
def test_a_request_that_was_not_used_goes_to_another_cell(error: TacitError) -> None:
    first, second = Cell(unused(error)), Cell()
    with spread(first, second) as cells:
        assert ask(cells)[0].tolist() == [[2, 4, 6]]
        assert (len(first.asked), len(second.asked)) == (1, 1)


@pytest.mark.parametrize(
    "error",
    [
        *map(refused, ("starting", "draining", "busy", "unknown", "deadline", "lost")),
        PeerError("party 1 has died"),
        LateError("party 1 did not answer"),
        # Another cell would not take these, or must not.
        *(unused(refused(cause)) for cause in ("quota", "conflict", "invalid")),
        unused(MisuseError("the service has no model 'double'")),
    ],
    ids=lambda error: getattr(error, "cause", type(error).__name__),
)
def test_a_request_that_may_have_been_used_goes_nowhere_else(error: TacitError) -> None:
    first, second = Cell(error), Cell()
    with spread(first, second) as cells:
        with pytest.raises(type(error)) as raised:
            ask(cells)
        assert raised.value is error
        assert (len(first.asked), len(second.asked)) == (1, 0)


def test_each_cell_is_asked_once_at_most() -> None:
    backends = [Cell(unused(refused("busy"))) for _ in range(3)]
    with spread(*backends) as cells:
        with pytest.raises(RequestRefusedError):
            ask(cells)
        assert [len(each.asked) for each in backends] == [1, 1, 1]


def test_the_timeout_is_for_all_cells_together() -> None:
    class Slow(Cell):
        def _fail(self) -> None:
            time.sleep(0.2)
            raise unused(refused("busy"))

    first, second = Slow(), Cell()
    with spread(first, second) as cells:
        ask(cells, timeout=300)
        left = second.asked[0][2]
        assert left is not None
        assert 200 < left <= 299.8


def test_a_cell_that_is_not_ready_gets_a_share_of_the_time() -> None:
    """While there are others, it is waited for only for so long; the last one for all the time."""
    backends = [Cell(unused(refused("starting"))) for _ in range(2)]
    with spread(*backends, Cell(), interval=600) as cells:
        ask(cells, timeout=300)
        found = [each.backend.patience for each in cells._cells]
        assert found == [[PATIENCE], [PATIENCE], [None]]
        # They are left alone until they describe their models again.
        ask(cells, timeout=300)
        assert [len(each.backend.asked) for each in cells._cells] == [1, 1, 2]
    short = Cell(unused(refused("starting")))
    with spread(short, Cell()) as cells:
        ask(cells, timeout=PATIENCE)
        assert short.patience == [pytest.approx(PATIENCE / 2, abs=0.2)]


def test_a_cell_that_is_late_is_not_away() -> None:
    first = Cell(LateError("party 1 did not answer"))
    with spread(first, Cell(), interval=600) as cells:
        with pytest.raises(LateError):
            ask(cells)
        assert all(cell.models is not None for cell in cells._cells)


def test_no_cell_is_asked_after_the_timeout() -> None:
    class Slow(Cell):
        def _fail(self) -> None:
            time.sleep(0.2)
            raise unused(refused("busy"))

    first, second = Slow(), Cell()
    with spread(first, second) as cells:
        with pytest.raises(RequestRefusedError):
            ask(cells, timeout=0.1)
        assert second.asked == []


def test_a_cell_that_fails_is_away_until_it_answers_again() -> None:
    first, second = Cell(PeerError("party 1 has died")), Cell()
    with spread(first, second) as cells:
        first.away = PeerError("party 1 cannot be reached")
        with pytest.raises(PeerError, match="has died"):
            ask(cells)
        for _ in range(4):
            ask(cells)
        assert (len(first.asked), len(second.asked)) == (1, 4)
        first.away = first.error = None
        until(lambda: cells._cells[0].models is not None)
        for _ in range(6):
            ask(cells)
        assert len(first.asked) > 1


def test_without_cells_the_error_says_why() -> None:
    first, second = Cell(), Cell()
    first.away = second.away = PeerError("party 1 cannot be reached")
    cells = Cells([first, second], SOON)
    try:
        for call in (cells.models, lambda: ask(cells)):
            with pytest.raises(PeerError, match="2 cells do not answer; party 1 cannot be reached"):
                call()
    finally:
        cells.close()


def test_an_unforeseen_error_does_not_end_the_questions() -> None:
    class Odd(Cell):
        is_odd = True

        def models(self) -> Mapping[str, Model]:
            if self.is_odd:
                raise ZeroDivisionError
            return super().models()

    odd = Odd()
    cells = Cells([odd], SOON)
    try:
        with pytest.raises(PeerError, match="cell 0 could not be asked: ZeroDivisionError"):
            cells.models()
        odd.is_odd = False
        until(lambda: cells._cells[0].models is not None)
    finally:
        cells.close()


def test_a_cell_that_hangs_does_not_hold_the_others() -> None:
    gate = threading.Event()

    class Hangs(Cell):
        def models(self) -> Mapping[str, Model]:
            assert gate.wait(20)
            return super().models()

    cells = Cells([Hangs(), Cell()], SOON)
    try:
        until(lambda: cells._cells[1].models is not None)
        assert "double" in cells.models()
        assert ask(cells)[0].tolist() == [[2, 4, 6]]
    finally:
        gate.set()
        cells.close()


def test_closing_ends_a_wait_for_models() -> None:
    gate, waiting = threading.Event(), threading.Event()

    class Hangs(Cell):
        def models(self) -> Mapping[str, Model]:
            waiting.set()
            assert gate.wait(60)
            return super().models()

    cells, raised = Cells([Hangs()], SOON), []

    def ask_for_models() -> None:
        try:
            cells.models()
        except PeerError as error:
            raised.append(error)

    thread = threading.Thread(target=ask_for_models)
    thread.start()
    try:
        assert waiting.wait(20)
        cells.close()
        thread.join(20)
        assert len(raised) == 1
    finally:
        gate.set()


def test_a_version_is_asked_for_where_it_is() -> None:
    """While a new version is rolled out, cells differ."""
    first, second = Cell(), Cell()
    first.known = {"double": DOUBLE._replace(versions=("1",))}
    with spread(first, second) as cells:
        for _ in range(3):
            ask(cells, version="2")
        assert (len(first.asked), len(second.asked)) == (0, 3)
        ask(cells, version="1")
        assert len(first.asked) == 1
