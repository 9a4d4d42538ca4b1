"""Several sessions of the same parties, as one service.

A cell is one session: replica i of every party forms cell i, with its own addresses. Each request
goes to the present cell with the fewest requests of this client. A cell whose parties do not answer
is away until they describe their models again, which is asked for without any request.

A request is never doubled. It goes to another cell only if the first one refused it before it was
used. After any other error the parties may have used it, and the caller is told."""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

from tacit.client import Model
from tacit.errors import PeerError, RequestRefusedError, TacitError, peer_error
from tacit.gateway.backend import Array, Backend

logger = logging.getLogger(__name__)

#: Seconds between two questions to a cell for its models.
INTERVAL = 2.0

#: Causes of refusals at admission, before any party has used the request. Other cells have room
#: even so. They do not for "quota": a client's quota is not meant to grow with the cells.
_ELSEWHERE = frozenset({"starting", "draining", "busy", "unknown"})


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

    def model(self, name: str, version: str | None) -> Model | None:
        """Returns a model, if the cell is present and has it in this version."""
        found = (self.models or {}).get(name)
        return None if found is None or version not in (None, *found.versions) else found


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
        self._ended.set()

    def models(self) -> Mapping[str, Model]:
        """Returns the models of all present cells; of two that differ, that of the first cell.

        It waits only until each cell has been asked once.

        Raises:
            PeerError: no cell is present.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._unasked == 0 or self._present())
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
    ) -> tuple[Array, ...]:
        """Asks the least busy cell, and others only if the request cannot have been used there.

        Raises:
            PeerError: no cell is present that has this model.
            TacitError: as the last cell that was asked raised it.
        """
        until = None if timeout is None else monotonic() + timeout
        tried: set[int] = set()
        error: TacitError | None = None
        while (taken := self._taken(model, version, tried)) is not None:
            cell, described = taken
            tried.add(cell.number)
            try:
                left = None if until is None else until - monotonic()
                return cell.backend.infer(model, inputs, version=version, timeout=left)
            except TacitError as found:
                error = found
                if isinstance(found, PeerError):
                    self._leave(cell, found)
                is_late = until is not None and monotonic() >= until
                if is_late or not (_is_unused(found) and _is_single(described, inputs)):
                    raise
            finally:
                with self._changed:
                    cell.waiting -= 1
        if error is not None:
            raise error
        raise self._nobody()

    def _taken(
        self, model: str, version: str | None, tried: set[int]
    ) -> tuple[_Cell, Model] | None:
        """Returns the cell for a request, which is counted for it, and the model there."""
        with self._changed:
            able = [
                (cell, found)
                for cell in self._cells
                if cell.number not in tried and (found := cell.model(model, version)) is not None
            ]
            if not able:
                return None
            cell, found = min(able, key=lambda each: (each[0].waiting, each[0].given))
            cell.waiting += 1
            cell.given += 1
            return cell, found

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


def _is_unused(error: TacitError) -> bool:
    """Returns whether the parties have certainly not used a request that ended so."""
    return isinstance(error, RequestRefusedError) and error.cause in _ELSEWHERE


def _is_single(model: Model, inputs: Mapping[str, Array]) -> bool:
    """Returns whether inputs are one request. Of several, some may have been used."""
    return all(inputs[each.name].shape[:1] == each.shape[:1] for each in model.inputs if each.shape)
