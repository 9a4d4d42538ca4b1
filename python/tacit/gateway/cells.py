"""Several sessions of the same parties, as one service.

A cell is one session: replica i of every party forms cell i, with its own addresses. Each request
goes to the present cell with the fewest requests of this client. A cell whose parties do not answer
is away until they describe their models again, which is asked for without any request.

A request is never doubled. It goes to another cell only if not all parties of the first one have
it: one of them refused it, or was not reached. After any other error the parties may have used it,
and the caller is told. While there are other cells, one whose parties are away or not ready is
waited for only briefly."""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

from tacit.client import Model
from tacit.errors import (
    LateError,
    PeerError,
    RequestRefusedError,
    TacitError,
    is_unused,
    peer_error,
)
from tacit.gateway.backend import Array, Backend

logger = logging.getLogger(__name__)

#: Seconds between two questions to a cell for its models.
INTERVAL = 2.0

#: The longest wait for a cell whose parties are away or not ready, in seconds, while there are
#: others.
PATIENCE = 2.0

#: Causes of refusals for which a cell gets no more requests until it describes its models again.
_AWAY = frozenset({"starting", "draining"})

#: Causes of refusals after which other cells may take a request. They may not after "quota": a
#: client's quota is not meant to grow with the cells.
_ELSEWHERE = _AWAY | {"busy", "unknown"}


@dataclass
class _Cell:
    """A cell, and what is known of it."""

    number: int
    backend: Backend
    #: Requests of this client that are with it.
    waiting: int = 0
    #: Requests that it was given; of cells that are equally busy the one with fewest is next.
    given: int = 0
    #: Its models, or None while it is away.
    models: Mapping[str, Model] | None = None
    #: Why it is away.
    error: TacitError | None = None

    def has(self, name: str, version: str | None) -> bool:
        """Returns whether the cell is present, and has a model in this version."""
        found = (self.models or {}).get(name)
        return found is not None and version in (None, *found.versions)


class Cells:
    """Spreads requests over cells. Threads may share it; ``close`` ends its own threads.

    Args:
        backends: a client of each cell.
        interval: seconds between two questions to a cell for its models.
    """

    def __init__(self, backends: Sequence[Backend], interval: float = INTERVAL) -> None:
        self._cells = [_Cell(number, backend) for number, backend in enumerate(backends)]
        self._interval = interval
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._unasked = len(self._cells)
        for cell in self._cells:
            threading.Thread(
                target=self._watch, args=(cell,), name=f"cell {cell.number}", daemon=True
            ).start()

    def close(self) -> None:
        """Ends the questions to cells. It does not close their clients."""
        with self._changed:
            self._ended.set()
            self._changed.notify_all()

    def models(self) -> Mapping[str, Model]:
        """Returns the models of all present cells; of two that differ, that of the first cell.

        It waits only until each cell has been asked once.

        Raises:
            PeerError: no cell is present.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._unasked == 0 or self._present() or self._ended.is_set()
            )
            present = self._present()
            if not present:
                raise self._nobody()
            found: dict[str, Model] = {}
            for cell in reversed(present):
                found |= cell.models or {}
            return found

    def infer(
        self,
        model: str,
        inputs: Mapping[str, Array],
        *,
        version: str | None = None,
        timeout: float | None = None,
        patience: float | None = None,
    ) -> tuple[Array, ...]:
        """Asks the least busy cell, and others only if the request cannot have been used there.
        ``patience`` is for the last one.

        Raises:
            PeerError: no cell is present that has this model.
            TacitError: as the last cell that was asked raised it.
        """
        until = None if timeout is None else monotonic() + timeout
        tried: set[int] = set()
        error: TacitError | None = None
        while (taken := self._taken(model, version, tried)) is not None:
            cell, others = taken
            tried.add(cell.number)
            left = None if until is None else until - monotonic()
            share = patience
            if others:
                # The others get as much of the time.
                share = PATIENCE if left is None else min(PATIENCE, left / (others + 1))
            try:
                return cell.backend.infer(
                    model, inputs, version=version, timeout=left, patience=share
                )
            except TacitError as found:
                error = found
                if _is_away(found):
                    self._leave(cell, found)
                is_late = until is not None and monotonic() >= until
                if is_late or not (is_unused(found) and _may_go_elsewhere(found)):
                    raise
            finally:
                with self._changed:
                    cell.waiting -= 1
        if error is not None:
            raise error
        raise self._nobody()

    def _taken(self, model: str, version: str | None, tried: set[int]) -> tuple[_Cell, int] | None:
        """Returns the cell for a request, which is counted for it, and how many others are left."""
        with self._changed:
            able = [
                cell
                for cell in self._cells
                if cell.number not in tried and cell.has(model, version)
            ]
            if not able:
                return None
            cell = min(able, key=lambda each: (each.waiting, each.given))
            cell.waiting += 1
            cell.given += 1
            return cell, len(able) - 1

    def _watch(self, cell: _Cell) -> None:
        """Asks a cell for its models, again and again."""
        is_first = True
        while not self._ended.is_set():
            models: Mapping[str, Model] | None = None
            error: TacitError | None = None
            try:
                models = cell.backend.models()
            except TacitError as found:
                error = found
            except Exception as found:
                # Whatever it is, this thread goes on, since without it the cell would stay away.
                error = PeerError(f"cell {cell.number} could not be asked: {type(found).__name__}")
            with self._changed:
                if (models is None) != (cell.models is None):
                    logger.info(
                        "cell %s is %s", cell.number, "away" if models is None else "present"
                    )
                cell.models, cell.error = models, error
                self._unasked -= is_first
                is_first = False
                self._changed.notify_all()
            self._ended.wait(self._interval)

    def _leave(self, cell: _Cell, error: TacitError) -> None:
        with self._changed:
            if cell.models is not None:
                logger.warning("cell %s is away: %s", cell.number, type(error).__name__)
            cell.models, cell.error = None, error

    def _present(self) -> list[_Cell]:
        return [cell for cell in self._cells if cell.models is not None]

    def _nobody(self) -> PeerError:
        """Returns the error while no cell is present, with the reason of the first one."""
        reason = next((str(cell.error) for cell in self._cells if cell.error is not None), "")
        said = "the service does" if len(self._cells) == 1 else f"{len(self._cells)} cells do"
        return peer_error(f"{said} not answer; {reason}" if reason else f"{said} not answer")


def _is_away(error: TacitError) -> bool:
    """Returns whether parties of a cell cannot be asked. One that is late has been asked."""
    if isinstance(error, RequestRefusedError):
        return error.cause in _AWAY
    return isinstance(error, PeerError) and not isinstance(error, LateError)


def _may_go_elsewhere(error: TacitError) -> bool:
    """Returns whether another cell may take a request that was not used."""
    if isinstance(error, RequestRefusedError):
        return error.cause in _ELSEWHERE
    return isinstance(error, PeerError)
