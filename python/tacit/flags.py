"""Which flags values depend on.

A guarded comparison has a flag (``_core.Flag``): whether it kept its range, which is secret. All
that is computed of its result depends on that flag, and an opening takes the flags of what it
opens. They are kept here by storage, so that all views of a value have the same ones, whoever holds
them.

An operator's results depend on the flags of its operands, and on those of the comparisons within
it. What it writes to a part of a storage adds its flags to those of the whole; where it writes over
all of a storage, they take the place of the others. What it keeps for later brings its flags to the
operator that uses it. What is computed outside of operators, or goes through a tracer, is not
followed: its flags count for all that is opened from then on.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import local
from typing import Any, Optional

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from tacit import _core

Parts = Sequence[torch.Tensor]


class Joined:
    """The flags of several values. Joining takes as long however many flags there are."""

    __slots__ = ("of",)

    def __init__(self, of: "tuple[Joined | _core.Flag, ...]") -> None:
        self.of = of


#: Flags that a value depends on, if there are any.
Known = Optional["Joined | _core.Flag"]


def union(known: Iterable[Known]) -> Known:
    """All of these. What another one of them has is not named twice, so that what meets the same
    values again and again does not grow."""
    each = {id(one): one for one in known if one is not None}
    inside = {id(part) for one in each.values() if isinstance(one, Joined) for part in one.of}
    several = tuple(one for at, one in each.items() if at not in inside)
    return Joined(several) if len(several) > 1 else next(iter(several), None)


def each_of(known: Known) -> list[_core.Flag]:
    """The flags, each once, in an order that is the same in all parties; but for those of which all
    parties know that they hold."""
    found: dict[int, _core.Flag] = {}
    seen: set[int] = set()
    stack: list[Joined | _core.Flag] = [] if known is None else [known]
    while stack:
        at = stack.pop()
        if isinstance(at, Joined):
            if id(at) not in seen:
                seen.add(id(at))
                stack += reversed(at.of)
        elif not at.is_over:
            found[id(at)] = at
    return list(found.values())


class Running:
    """An operator that is carried out."""

    __slots__ = ("claim", "found", "overwritten", "written")

    def __init__(self, operands: Known) -> None:
        #: What its results depend on.
        self.found: list[Known] = [operands]
        #: What it has written to.
        self.written: list[torch.Tensor] = []
        #: What it has written to so that nothing is left of what the storage was.
        self.overwritten: list[torch.Tensor] = []
        #: Its claim, where it is checked (``checks``).
        self.claim: Any = None


class _Thread(local):
    running: Running | None = None


class Dependencies:
    """The flags of a party's values, by the storage of a sharing's first component."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[StorageWeakRef, Known]] = {}
        #: Storages that are looked through before freed ones are dropped again.
        self._patience = 0
        #: Work side by side is done by threads, each in the middle of an operator of its own.
        self._thread = _Thread()
        #: Whether anything ever depended on a flag.
        self.are_there = False
        #: What everything depends on, as one, if there is anything.
        self._of_all: list[Known] = []

    def of(self, parts: Parts) -> Known:
        """What the values of a sharing depend on."""
        found = self._of.get(parts[0].untyped_storage()._cdata) if self._of and parts else None
        return union((*self._of_all, found and found[1]))

    def carry(self, parts: Parts, known: Known) -> None:
        """Has these values, and all that share their memory, depend on these flags too."""
        if known is None or not parts:
            return
        self.are_there = True
        storage = parts[0].untyped_storage()
        there = self._of.get(storage._cdata)
        if there is not None:
            if there[1] is known:
                return
            known = union((there[1], known))
        elif len(self._of) > self._patience:
            self._drop_freed()
        # As long as it is referred to, no other storage lies where this one does.
        reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
        self._of[reference.cdata] = reference, known

    def carry_to_all(self, known: Known) -> None:
        """Has all that is opened from now on depend on these flags."""
        if known is not None:
            self._of_all[:] = [union((*self._of_all, known))]

    def add(self, flag: _core.Flag | None) -> None:
        """A comparison was made, for the operator that is carried out."""
        if flag is not None:
            self.use(flag)

    def use(self, known: Known) -> None:
        """The operator that is carried out uses something that depends on these."""
        if known is None:
            return
        self.are_there = True
        if (running := self._thread.running) is None:
            self.carry_to_all(known)
        else:
            running.found.append(known)

    def use_within(self, known: Known) -> None:
        """The operator that is carried out, if one is, uses something that depends on these."""
        if self._thread.running is not None:
            self.use(known)

    @property
    def current(self) -> Running | None:
        """The operator that is carried out, if one is."""
        return self._thread.running

    def now(self) -> Known:
        """What the results of the operator depend on that is carried out, as far as it has come."""
        running = self._thread.running
        return None if running is None else union(running.found)

    def written(self, parts: Parts) -> None:
        """The operator that is carried out writes to these."""
        if (running := self._thread.running) is not None:
            running.written.append(parts[0])

    def overwritten(self, parts: Parts) -> None:
        """The operator that is carried out has written to all elements of these."""
        running = self._thread.running
        if running is not None and self.are_there and _is_all_of_its_storage(parts[0]):
            running.overwritten.append(parts[0])

    @contextmanager
    def running(self, operands: Known) -> Iterator[Running]:
        """Within it an operator is carried out whose operands depend on these."""
        at, running = self._thread, Running(operands)
        previous, at.running = at.running, running
        try:
            yield running
        except BaseException:
            # What it has written before it failed is written.
            self.finish(running)
            raise
        finally:
            at.running = previous

    def finish(self, running: Running) -> Known:
        """What the operator's results depend on, as does what it has written to."""
        known = union(running.found)
        for part in running.written:
            self.carry((part,), known)
        for part in running.overwritten:
            self._carry_alone(part, known)
        return known

    def _carry_alone(self, part: torch.Tensor, known: Known) -> None:
        """Has all that share this memory depend on these flags, and on no others."""
        storage = part.untyped_storage()
        if known is None:
            self._of.pop(storage._cdata, None)
        else:
            reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
            self._of[reference.cdata] = reference, known

    def _drop_freed(self) -> None:
        # Work side by side is done by threads: another one may add an entry, or drop the same.
        for at, (reference, _) in list(self._of.items()):
            if reference.expired():  # type: ignore[no-untyped-call]
                self._of.pop(at, None)
        self._patience = 2 * len(self._of) + 64


def _is_all_of_its_storage(part: torch.Tensor) -> bool:
    """Whether a view has each element of its storage, and each once."""
    if part.numel() * part.element_size() != part.untyped_storage().nbytes():
        return False
    elements = 1
    for stride, size in sorted(zip(part.stride(), part.shape, strict=True)):
        if size > 1 and stride != elements:
            return False
        elements *= size
    return True
