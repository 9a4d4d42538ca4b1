"""What is known of tensors that last, such as weights, for as long as nobody writes to them.

A protocol that masks its operands masks those that are used again once, under a *name* for each
view. And what an operator computed from several tensors, such as the factor of a normalisation, or
beside a result, such as the bits of a ReLU for its gradient, can be kept (*derived*). Both stand
for storages in one state: when one of these is written to, or freed, all that was known of it is
forgotten. Operators that write say so (``written``): below autograd, where they run, PyTorch counts
no versions."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from tacit import _core
from tacit.flags import Dependencies, Known

#: Views of one storage that have names: a weight is used in few ways, and its rows one by one need
#: none.
MOST_VIEWS = 1024

#: Offset, shape and strides of a view.
Geometry = tuple[Any, ...]


class _Lasting:
    """A storage that somebody uses again."""

    def __init__(self, reference: StorageWeakRef) -> None:
        self.reference = reference
        self.names: dict[Geometry, int] = {}
        #: What was kept that follows from it, with its insertion index.
        self.derived: dict[Any, int] = {}
        #: Whether its views have names.
        self.is_named = False


class Storages:
    """The lasting storages of one party, by the components of its sharings.

    All parties run the same program, so the same names stand for the same values everywhere.
    """

    def __init__(self, core: _core.Session, dependencies: Dependencies) -> None:
        self._core = core
        self._dependencies = dependencies
        self._lasting: dict[int, _Lasting] = {}
        self._derived: dict[Any, Any] = {}
        #: What each depends on.
        self._flags: dict[Any, Known] = {}
        #: Insertion index of each; distinguishes a new storage at a reused address.
        self._turns: dict[Any, int] = {}
        self._kept = 0
        self._next = 0
        #: Names that are asked for before freed storages are looked for again.
        self._patience = 0

    def add(self, tensor: torch.Tensor) -> None:
        """Whoever multiplies by this tensor, or a view of it, will do so again."""
        self._drop_freed()
        self._entry(tensor).is_named = True

    def name(self, tensor: torch.Tensor) -> int | None:
        """The name of this view, if its storage lasts."""
        if not self._lasting:
            return None
        strides = tensor.stride()
        if 0 in strides:
            # Repeated along a dimension: as large as what it multiplies, and seldom twice of one
            # size.
            return None
        lasting = self._lasting.get(tensor.untyped_storage()._cdata)
        if lasting is None or not lasting.is_named:
            return None
        # Looking takes as long as there are storages, and a name is asked for in every product.
        self._patience -= 1
        if self._patience < 0:
            self._drop_freed()
        geometry = (tensor.storage_offset(), tuple(tensor.shape), strides)
        name = lasting.names.get(geometry)
        if name is None and len(lasting.names) < MOST_VIEWS:
            name = lasting.names[geometry] = self._next
            self._next += 1
        return name

    def derived(self, kind: Any, tensors: Sequence[torch.Tensor]) -> Any:
        """What was kept of that kind for these tensors in their present state;
        ``None`` if nothing."""
        return self._used((kind, *map(geometry, tensors)))

    def derive(
        self,
        kind: Any,
        tensors: Sequence[torch.Tensor],
        value: Any,
        *,
        of: Sequence[torch.Tensor] = (),
    ) -> None:
        """Keeps a value that follows from these tensors, until one of them is written to or freed,
        or one of those that it is made of."""
        self._keep((kind, *map(geometry, tensors)), value, (*tensors, *of))

    def beside(self, kind: Any, tensor: torch.Tensor) -> Any:
        """What was kept of that kind beside the storage that this is a view of; ``None`` if
        nothing."""
        return self._used((kind, tensor.untyped_storage()._cdata))

    def _used(self, key: Any) -> Any:
        """What was kept, for whoever uses it now."""
        found = self._derived.get(key)
        if found is not None:
            self._dependencies.use_within(self._flags.get(key))
        return found

    def keep_beside(
        self, kind: Any, tensor: torch.Tensor, value: Any, *, of: Sequence[torch.Tensor]
    ) -> Any:
        """Keeps a value that follows from all of a storage, as ``derive`` does; where, is given
        back."""
        key = kind, tensor.untyped_storage()._cdata
        self._keep(key, value, (tensor, *of))
        return key

    def let_go(self, key: Any, value: Any) -> None:
        """Keeps a value no longer, unless another one is kept in its place."""
        if self._derived.get(key) is value:
            self._derived.pop(key, None)
            self._flags.pop(key, None)

    def _keep(self, key: Any, value: Any, tensors: Sequence[torch.Tensor]) -> None:
        self._drop_freed()
        # Work side by side is done by threads: another one may keep something else meanwhile.
        turn = self._kept = self._kept + 1
        self._derived[key], self._turns[key] = value, turn
        self._flags[key] = self._dependencies.now()
        for tensor in tensors:
            self._entry(tensor).derived[key] = turn

    @contextmanager
    def rehearsed(self) -> Iterator[None]:
        """What is computed within it follows from no number, and is kept for nothing after it."""
        before, flags = dict(self._derived), dict(self._flags)
        try:
            yield
        finally:
            self._derived = {key: value for key, value in before.items() if key in self._derived}
            self._flags = {key: flags.get(key) for key in self._derived}

    def written(self, tensor: torch.Tensor) -> None:
        """What shares its storage with this tensor is about to be written to."""
        if self._lasting:
            lasting = self._lasting.get(tensor.untyped_storage()._cdata)
            if lasting is not None:
                self._forget(lasting)

    def _entry(self, tensor: torch.Tensor) -> _Lasting:
        reference = StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]
        return self._lasting.setdefault(reference.cdata, _Lasting(reference))

    def _forget(self, lasting: _Lasting) -> None:
        for name in list(lasting.names.values()):
            self._core.forget(name)
        for key, turn in list(lasting.derived.items()):
            if self._turns.get(key) == turn:
                self._derived.pop(key, None)
                self._turns.pop(key, None)
                self._flags.pop(key, None)
        lasting.names, lasting.derived = {}, {}

    def _drop_freed(self) -> None:
        self._patience = len(self._lasting)
        # Work side by side is done by threads: another one may add an entry, or drop the same.
        for at, entry in list(self._lasting.items()):
            if entry.reference.expired():  # type: ignore[no-untyped-call]
                self._lasting.pop(at, None)
                self._forget(entry)


def geometry(tensor: torch.Tensor) -> Geometry:
    """A storage and a view of it: equal ones are the same elements in the same order."""
    place = tensor.storage_offset(), tuple(tensor.shape), tensor.stride()
    return tensor.untyped_storage()._cdata, *place
