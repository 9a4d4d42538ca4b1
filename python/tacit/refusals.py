"""What keeps one party from its part of what all do together, such as a NaN in what it shares: it
is told in the very message that the others wait for. All raise then, and the session goes on.

The message says which of :data:`WHY` it is, and nothing of a value. Whoever refuses raises its own
error, with all details.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tacit.errors import DeviationError, EncodingError, MisuseError, TacitError, source_lines
from tacit.sessions import Session

#: What may stand in a message, and what the others say of it.
WHY = {
    "encoding": "it has a value without a fixed-point encoding",
    "finite": "a value is NaN or infinite, which has no fixed-point encoding",
    "large": "a value is too large for fixed point with so many fraction bits",
    "interval": "values are outside of the interval that the program was compiled for",
    "range": "a value is outside of the range that all have said for it",
    "nothing": "it passed None",
    "type": "it passed something else",
    "kind": "its shape, dtype or layout cannot be",
    "file": "its file is missing, damaged or another one",
    "disk": "its file cannot be written",
    "other": "its own output says why",
}

#: Those of an :class:`EncodingError`.
OF_ENCODING = ("encoding", "finite", "large")


def misuse(why: str, text: str) -> MisuseError:
    """The error of a party that tells the others why."""
    assert why in WHY
    error = MisuseError(text)
    error.why = why  # type: ignore[attr-defined]
    return error


def why(error: BaseException) -> str:
    """What the others are told of an error."""
    if isinstance(error, OSError):
        return "disk"
    found = getattr(error, "why", "other")
    return found if found in WHY else "other"


def refuser(error: BaseException | None) -> int | None:
    """The party that refused, where it was another than the one that raises this."""
    found: int | None = getattr(error, "refuser", None)
    return found


class Task:
    """What a party does alone before it tells the others: its error is kept
    until all know of it."""

    error: Exception | None = None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Within it, an error is kept."""
        try:
            yield
        except Exception as error:
            self.error = error

    @property
    def told(self) -> dict[str, str] | None:
        """What the others are told, if anything went wrong."""
        return None if self.error is None else {"refused": why(self.error)}


def announced(current: Session, owner: int, what: str, make: Callable[[], Any]) -> Any:
    """What the owner makes, in every party: one round, which the owner does not wait for.

    Args:
        what: is not done if the owner refuses, as errors call it.
        make: called in the owner alone; gives what JSON can hold. Its error is the refusal.

    Raises:
        EncodingError: the owner has values without an encoding.
        MisuseError: it refuses for another cause.
        PeerError: what came is not JSON.
    """
    task, payload = Task(), None
    if current.party == owner:
        with task.alone():
            payload = json.dumps(make()).encode()
        payload = payload or json.dumps(task.told).encode()
    told = announcement(current.core.broadcast(owner, payload), owner, current.member)
    cause = refusal(told, owner, current.member)
    if cause is not None:
        settle(current, task, {owner: cause}, what)
    return told


def told_by_all(current: Session, task: Task, what: str, own: Any = None) -> list[Any]:
    """What each party tells all others after its task, in every party. One round.

    Raises:
        EncodingError: a party refuses, since it has values without an encoding.
        MisuseError: one refuses for another cause. All parties raise.
        PeerError: what came is not JSON.
    """
    message = own if task.told is None else task.told
    told = current.told_by_all(json.dumps(message).encode())
    member = current.member
    read = [announcement(content, party, member) for party, content in enumerate(told)]
    refused = {party: refusal(each, party, member) for party, each in enumerate(read)}
    settle(
        current, task, {party: each for party, each in refused.items() if each is not None}, what
    )
    return read


def settle(current: Session, task: Task, refused: dict[int, str], what: str) -> None:
    """Goes on where nobody has refused; else raises, in every party, once all have heard of it:
    whoever raises may end the session by that, before others have read why.

    Raises:
        EncodingError: as of :func:`announced`.
        MisuseError: likewise.
    """
    if not refused:
        return
    with suppress(TacitError):
        current.told_by_all(b"")
    if task.error is not None:
        raise task.error
    party, cause = next(iter(refused.items()))
    line = source_lines.line()
    kind = EncodingError if cause in OF_ENCODING else MisuseError
    error = kind(
        f"{current.member} {party} refused {what}{f' ({line})' if line else ''}: {WHY[cause]}; its "
        f"own "
        f"output says more. Nothing was done, in any {current.member}, and the session goes on"
    )
    error.refuser = party  # type: ignore[attr-defined]
    raise error


def announcement(payload: bytes, owner: int, member: str = "party") -> Any:
    """JSON of another party, which may be anything.

    Raises:
        PeerError: it is not JSON.
    """
    try:
        return json.loads(payload)
    except (ValueError, RecursionError):
        raise DeviationError.of(
            owner, "announced what is not a description of a tensor", member
        ) from None


def refusal(told: Any, party: int, member: str = "party") -> str | None:
    """Why a party refuses, if it does.

    Raises:
        PeerError: for no cause that there is.
    """
    if not isinstance(told, dict) or "refused" not in told:
        return None
    cause = told["refused"]
    if not isinstance(cause, str) or cause not in WHY:
        raise DeviationError.of(party, "refused for a cause that there is not", member)
    return cause
