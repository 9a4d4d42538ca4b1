"""Records what a party does while it runs: modules, their operators, sharing and revealing.

Each span has its time, bytes, rounds and waiting. All of these follow from shapes and from the
clock. No value is recorded.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from tacit.errors import MisuseError
from tacit.sessions import Session, session
from tacit.trace.rows import MEASURES, rows

#: Most operators that are recorded. Modules are always recorded.
MOST_OPERATORS = 20_000


class Trace(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The nested spans of a party, recorded while the mode is active."""

    def __init__(self, current: Session) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._session = current
        self._started = time.perf_counter()
        self._root = self._begun("", "program")
        self._open = [self._root]
        self._operators = 0

    def enter(self, name: str, kind: str) -> None:
        """Begins a span inside the current one."""
        span = self._begun(name, kind)
        self._open[-1]["inside"].append(span)
        self._open.append(span)

    def leave(self) -> None:
        """Ends the span that began last."""
        self._end(self._open.pop())

    @contextmanager
    def span(self, name: str, kind: str) -> Iterator[None]:
        """Records the context as a span."""
        self.enter(name, kind)
        try:
            yield
        finally:
            self.leave()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if not types or self._operators >= MOST_OPERATORS:
            return func(*args, **(kwargs or {}))
        self._operators += 1
        with self.span(func._schema.name.removeprefix("aten::"), "operator"):
            return func(*args, **(kwargs or {}))

    def finished(self) -> dict[str, Any]:
        """Ends all spans and returns them with the session's properties, for a page."""
        while self._open:
            self.leave()
        current, made = self._session, self._session.meter.correlations
        verified = current.meter.verification
        return {
            "party": current.party,
            "parties": current.parties,
            "protocol": current.protocol,
            "source": current.core.source,
            "transport": current.transport,
            "threat_model": current.threat_model,
            "correlation_bytes_sent": made.bytes_sent,
            "correlation_bytes_received": made.bytes_received,
            "waited_for_correlations": current.meter.waited_for_correlations,
            **({} if verified is None else {"verification": asdict(verified)}),
            "complete": self._operators < MOST_OPERATORS,
            "rows": rows(self._root),
            "spans": self._root,
        }

    def _begun(self, name: str, kind: str) -> dict[str, Any]:
        totals = self._session.core.totals()
        measured = {measure: totals[measure] for measure in MEASURES}
        return {
            "name": name,
            "kind": kind,
            "start": self._now(),
            "end": 0.0,
            **measured,
            "inside": [],
        }

    def _end(self, span: dict[str, Any]) -> None:
        totals = self._session.core.totals()
        span["end"] = self._now()
        for measure in MEASURES:
            span[measure] = totals[measure] - span[measure]

    def _now(self) -> float:
        return time.perf_counter() - self._started


@contextmanager
def recording() -> Iterator[Trace]:
    """Records what the current session does while the context is active.

    Raises:
        NoSessionError: there is no session.
        MisuseError: the session is recorded already.
    """
    current = session()
    if current.trace is not None:
        raise MisuseError("this session is recorded already")
    trace = Trace(current)
    current.trace = trace
    try:
        with trace:
            yield trace
    finally:
        current.trace = None


def recorded(fn: Callable[..., Any], *args: Any) -> tuple[Any, dict[str, Any]]:
    """Returns the result of ``fn(*args)``, and the recording of the call."""
    with recording() as trace:
        value = fn(*args)
    return value, trace.finished()
