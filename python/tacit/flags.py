"""Tracking of the flags that values depend on.

A guarded comparison has a secret flag (``_core.Flag``), which says whether its numbers were in
range. All values that are computed from its result depend on that flag. When values are opened, the
flags that they depend on are checked. Flags are recorded by storage, so that all views of a value
have the same flags.

An operator's results depend on the flags of its operands, and on those of its own comparisons. A
write to a part of a storage adds flags to those of the whole storage. A write to all of a storage
replaces them. A cached value brings its flags to each operator that uses it. Values that are
computed outside operators, or by a tracer, are not tracked: their flags count for every later
opening.
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
    """The union of the flags of several values. Joining takes constant time."""

    __slots__ = ("of",)

    def __init__(self, of: "tuple[Joined | _core.Flag, ...]") -> None:
        self.of = of


#: Flags that a value depends on; None if there are none.
Known = Optional["Joined | _core.Flag"]


def union(known: Iterable[Known]) -> Known:
    """Returns the union of flags.

    A member that is part of another member is dropped. So the union does not grow if a value is
    combined with the same values again and again."""
    each = {id(one): one for one in known if one is not None}
    inside = {id(part) for one in each.values() if isinstance(one, Joined) for part in one.of}
    several = tuple(one for at, one in each.items() if at not in inside)
    return Joined(several) if len(several) > 1 else next(iter(several), None)


def each_of(known: Known) -> list[_core.Flag]:
    """Lists each flag once, in an order that is the same in all parties.

    Flags that all parties know to hold are left out."""
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
    """The state of a running operator."""

    __slots__ = ("claim", "found", "overwritten", "written")

    def __init__(self, operands: Known) -> None:
        #: Flags that its results depend on.
        self.found: list[Known] = [operands]
        #: Components that it has written to.
        self.written: list[torch.Tensor] = []
        #: Components whose whole storage it has overwritten.
        self.overwritten: list[torch.Tensor] = []
        #: Its claim in checked mode (``checks``).
        self.claim: Any = None


class _Thread(local):
    running: Running | None = None


class Dependencies:
    """The flags of a party's values, by the storage of a sharing's first component."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[StorageWeakRef, Known]] = {}
        #: Number of entries from which freed storages are dropped again.
        self._cleanup_threshold = 0
        #: Threads may run concurrently, each with its own operator.
        self._thread = _Thread()
        #: Whether any value ever depended on a flag.
        self.are_there = False
        #: Flags that every value depends on, as one union, if there are any.
        self._of_all: list[Known] = []

    def of(self, parts: Parts) -> Known:
        """Returns the flags that the values of a sharing depend on."""
        found = self._of.get(parts[0].untyped_storage()._cdata) if self._of and parts else None
        return union((*self._of_all, found and found[1]))

    def carry(self, parts: Parts, known: Known) -> None:
        """Adds flags to values, and to all values that share their memory."""
        if known is None or not parts:
            return
        self.are_there = True
        storage = parts[0].untyped_storage()
        there = self._of.get(storage._cdata)
        if there is not None:
            if there[1] is known:
                return
            known = union((there[1], known))
        elif len(self._of) > self._cleanup_threshold:
            self._drop_freed()
        # The weak reference ensures that no other storage gets this address.
        reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
        self._of[reference.cdata] = reference, known

    def carry_to_all(self, known: Known) -> None:
        """Adds flags to all values that are opened from now on."""
        if known is not None:
            self._of_all[:] = [union((*self._of_all, known))]

    def add(self, flag: _core.Flag | None) -> None:
        """Adds the flag of a comparison to the running operator."""
        if flag is not None:
            self.use(flag)

    def use(self, known: Known) -> None:
        """Adds flags to the running operator, or to all later openings if none runs."""
        if known is None:
            return
        self.are_there = True
        if (running := self._thread.running) is None:
            self.carry_to_all(known)
        else:
            running.found.append(known)

    def use_within(self, known: Known) -> None:
        """Adds flags to the running operator, if there is one."""
        if self._thread.running is not None:
            self.use(known)

    @property
    def current(self) -> Running | None:
        """The running operator, if there is one."""
        return self._thread.running

    def now(self) -> Known:
        """Returns the flags that the running operator has collected so far."""
        running = self._thread.running
        return None if running is None else union(running.found)

    def written(self, parts: Parts) -> None:
        """Records that the running operator writes to these components."""
        if (running := self._thread.running) is not None:
            running.written.append(parts[0])

    def overwritten(self, parts: Parts) -> None:
        """Records that the running operator has written to all elements of these components."""
        running = self._thread.running
        if running is not None and self.are_there and is_all_of_its_storage(parts[0]):
            running.overwritten.append(parts[0])

    @contextmanager
    def running(self, operands: Known) -> Iterator[Running]:
        """Runs an operator whose operands depend on these flags."""
        at, running = self._thread, Running(operands)
        previous, at.running = at.running, running
        try:
            yield running
        except BaseException:
            # Writes before the failure stay, and so must their flags.
            self.finish(running)
            raise
        finally:
            at.running = previous

    def finish(self, running: Running) -> Known:
        """Returns the flags of the operator's results, and adds them to what it has written to."""
        known = union(running.found)
        for part in running.written:
            self.carry((part,), known)
        for part in running.overwritten:
            self._carry_alone(part, known)
        return known

    def _carry_alone(self, part: torch.Tensor, known: Known) -> None:
        """Replaces the flags of all values that share this memory."""
        storage = part.untyped_storage()
        if known is None:
            self._of.pop(storage._cdata, None)
        else:
            reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
            self._of[reference.cdata] = reference, known

    def _drop_freed(self) -> None:
        # Another thread may add an entry meanwhile, or drop the same one.
        for at, (reference, _) in list(self._of.items()):
            if reference.expired():  # type: ignore[no-untyped-call]
                self._of.pop(at, None)
        self._cleanup_threshold = 2 * len(self._of) + 64


def is_all_of_its_storage(part: torch.Tensor) -> bool:
    """Whether a view has each element of its storage exactly once."""
    if part.numel() * part.element_size() != part.untyped_storage().nbytes():
        return False
    if part.is_contiguous():
        return True
    elements = 1
    for stride, size in sorted(zip(part.stride(), part.shape, strict=True)):
        if size > 1 and stride != elements:
            return False
        elements *= size
    return True
