"""Refusals: one party cannot do its part of a joint step, and all parties raise an error.

A party refuses, for example, if its data contain a NaN. It says so in the message that the others
wait for. All parties then raise, and the session continues.

The message contains one of the causes in :data:`WHY`, and never a value. The party that refuses
raises its own error, with all details.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tacit.errors import DeviationError, EncodingError, MisuseError, TacitError, source_lines
from tacit.sessions import Session

#: Causes that a message may name, and their texts in the errors of the other parties.
WHY = {
    "encoding": "it has a value without a fixed-point encoding",
    "finite": "a value is NaN or infinite, which has no fixed-point encoding",
    "large": "a value is too large for fixed point with so many fraction bits",
    "interval": "values are outside the interval that the program was compiled for",
    "range": "a value is outside the range that all parties have declared for it",
    "nothing": "it passed None",
    "type": "it passed something else",
    "kind": "its shape, dtype or layout is not supported",
    "file": "its file is missing, damaged or another one",
    "disk": "its file cannot be written",
    "other": "its own output says why",
}

#: Causes that raise an :class:`EncodingError`.
OF_ENCODING = ("encoding", "finite", "large")


def misuse(why: str, text: str) -> MisuseError:
    """Returns an error whose cause the other parties are told."""
    assert why in WHY
    error = MisuseError(text)
    error.why = why  # type: ignore[attr-defined]
    return error


def why(error: BaseException) -> str:
    """Returns the cause of an error that the other parties are told."""
    if isinstance(error, OSError):
        return "disk"
    found = getattr(error, "why", "other")
    return found if found in WHY else "other"


def refuser(error: BaseException | None) -> int | None:
    """Returns the party that refused, if it is not the party that raised the error."""
    found: int | None = getattr(error, "refuser", None)
    return found


class Task:
    """Local work before a message to the other parties. Its error is kept until all know of it."""

    error: Exception | None = None

    @contextmanager
    def keep_error(self) -> Iterator[None]:
        """Catches an error and keeps it."""
        try:
            yield
        except Exception as error:
            self.error = error

    @property
    def told(self) -> dict[str, str] | None:
        """The message to the other parties if the work failed, else ``None``."""
        return None if self.error is None else {"refused": why(self.error)}


def announced(current: Session, owner: int, what: str, make: Callable[[], Any]) -> Any:
    """Broadcasts a description that the owner makes. One round, which the owner does not wait for.

    Args:
        current: the session.
        owner: the party that makes the description.
        what: name, in errors, of the step that is not done if the owner refuses.
        make: called in the owner alone; returns what JSON can hold. Its error is the refusal.

    Returns:
        The description, in every party.

    Raises:
        EncodingError: the owner has values that cannot be encoded.
        MisuseError: the owner refuses for another cause.
        PeerError: the message is not JSON.
    """
    task, payload = Task(), None
    if current.party == owner:
        with task.keep_error():
            payload = json.dumps(make()).encode()
        payload = payload or json.dumps(task.told).encode()
    told = announcement(current.core.broadcast(owner, payload), owner, current.member)
    cause = refusal(told, owner, current.member)
    if cause is not None:
        settle(current, task, {owner: cause}, what)
    return told


def told_by_all(current: Session, task: Task, what: str, own: Any = None) -> list[Any]:
    """Exchanges a message of each party after its local task. One round.

    Returns:
        The messages of all parties, in every party.

    Raises:
        EncodingError: a party refuses, since it has values that cannot be encoded.
        MisuseError: a party refuses for another cause. All parties raise.
        PeerError: a message is not JSON.
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
    """Raises an error in every party if a party refused, once all parties have read the refusal.

    A party that raises may end the session, so it must not do so before the others have read why.

    Raises:
        EncodingError: as for :func:`announced`.
        MisuseError: as for :func:`announced`.
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
    """Parses a message of another party, which may be anything.

    Raises:
        PeerError: the message is not JSON.
    """
    try:
        return json.loads(payload)
    except (ValueError, RecursionError):
        raise DeviationError.of(
            owner, "announced what is not a description of a tensor", member
        ) from None


def refusal(told: Any, party: int, member: str = "party") -> str | None:
    """Returns the cause for which a party refuses, or ``None``.

    Raises:
        PeerError: the cause is not one of :data:`WHY`.
    """
    if not isinstance(told, dict) or "refused" not in told:
        return None
    cause = told["refused"]
    if not isinstance(cause, str) or cause not in WHY:
        raise DeviationError.of(party, "refused for an unknown cause", member)
    return cause
