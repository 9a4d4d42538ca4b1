"""A cache of facts about tensors that are used again, such as weights, until they are written to.

A protocol that masks its operands masks a tensor that is used again only once, under a *name* for
each view. Operators can also keep *derived* values: values that were computed from several tensors,
such as the factor of a normalisation, or values that belong to a result, such as the bits of a ReLU
for its gradient. Names and derived values hold for the present contents of storages. They are
forgotten when one of these storages is written to or freed. Operators report their writes by
``written``, since PyTorch counts no versions below autograd, where operators run."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from tacit import _core
from tacit.flags import Dependencies, Known

#: Most named views of one storage. A weight is used in few ways, and single rows need no names.
MOST_VIEWS = 1024

#: Offset, shape and strides of a view.
Geometry = tuple[Any, ...]


class _Lasting:
    """A storage that is used again, with its names and derived values."""

    def __init__(self, reference: StorageWeakRef) -> None:
        self.reference = reference
        self.names: dict[Geometry, int] = {}
        #: Keys of values that were derived from it, with their insertion indices.
        self.derived: dict[Any, int] = {}
        #: Whether its views have names.
        self.is_named = False


class Storages:
    """The lasting storages of one party, by the first components of sharings.

    All parties run the same program, so a name stands for the same value in every party.
    """

    def __init__(self, core: _core.Session, dependencies: Dependencies) -> None:
        self._core = core
        self._dependencies = dependencies
        self._lasting: dict[int, _Lasting] = {}
        self._derived: dict[Any, Any] = {}
        #: Flags that each derived value depends on.
        self._flags: dict[Any, Known] = {}
        #: Insertion index of each derived value; distinguishes a new storage at a reused address.
        self._turns: dict[Any, int] = {}
        self._kept = 0
        self._next = 0
        #: Number of requests for names until freed storages are looked for again.
        self._requests_until_cleanup = 0

    def add(self, tensor: torch.Tensor) -> None:
        """Marks a tensor as a factor that will be used again, with its views."""
        self._drop_freed()
        self._entry(tensor).is_named = True

    def name(self, tensor: torch.Tensor) -> int | None:
        """Returns the name of a view, if its storage lasts."""
        if not self._lasting:
            return None
        strides = tensor.stride()
        if 0 in strides:
            # An expanded view is as large as the other factor, and its size seldom repeats.
            return None
        lasting = self._lasting.get(tensor.untyped_storage()._cdata)
        if lasting is None or not lasting.is_named:
            return None
        # The search takes time in the number of storages, and every product asks for a name.
        self._requests_until_cleanup -= 1
        if self._requests_until_cleanup < 0:
            self._drop_freed()
        geometry = (tensor.storage_offset(), tuple(tensor.shape), strides)
        name = lasting.names.get(geometry)
        if name is None and len(lasting.names) < MOST_VIEWS:
            name = lasting.names[geometry] = self._next
            self._next += 1
        return name

    def derived(self, kind: Any, tensors: Sequence[torch.Tensor]) -> Any:
        """Returns the value of a kind that was kept for these tensors' contents, or ``None``."""
        return self._used((kind, *map(geometry, tensors)))

    def derive(
        self,
        kind: Any,
        tensors: Sequence[torch.Tensor],
        value: Any,
        *,
        of: Sequence[torch.Tensor] = (),
    ) -> None:
        """Keeps a value that was derived from tensors.

        It is forgotten when one of ``tensors``, or one of the tensors in ``of``, is written to or
        freed."""
        self._keep((kind, *map(geometry, tensors)), value, (*tensors, *of))

    def kept_with_storage(self, kind: Any, tensor: torch.Tensor) -> Any:
        """Returns the value of a kind that was kept with the storage of a tensor, or ``None``."""
        return self._used((kind, tensor.untyped_storage()._cdata))

    def _used(self, key: Any) -> Any:
        """Returns a kept value, and adds its flags to the running operator."""
        found = self._derived.get(key)
        if found is not None:
            self._dependencies.use_within(self._flags.get(key))
        return found

    def keep_with_storage(
        self, kind: Any, tensor: torch.Tensor, value: Any, *, of: Sequence[torch.Tensor]
    ) -> Any:
        """Keeps a value with the storage of a tensor, as ``derive`` does, and returns its key."""
        key = kind, tensor.untyped_storage()._cdata
        self._keep(key, value, (tensor, *of))
        return key

    def evict(self, key: Any, value: Any) -> None:
        """Forgets a value, unless another value has replaced it."""
        if self._derived.get(key) is value:
            self._derived.pop(key, None)
            self._flags.pop(key, None)

    def _keep(self, key: Any, value: Any, tensors: Sequence[torch.Tensor]) -> None:
        self._drop_freed()
        # Another thread may keep another value meanwhile.
        turn = self._kept = self._kept + 1
        self._derived[key], self._turns[key] = value, turn
        self._flags[key] = self._dependencies.now()
        for tensor in tensors:
            self._entry(tensor).derived[key] = turn

    @contextmanager
    def rehearsed(self) -> Iterator[None]:
        """Discards values that are derived during a rehearsal, which has no real numbers."""
        before, flags = dict(self._derived), dict(self._flags)
        try:
            yield
        finally:
            self._derived = {key: value for key, value in before.items() if key in self._derived}
            self._flags = {key: flags.get(key) for key in self._derived}

    def written(self, tensor: torch.Tensor) -> None:
        """Records a write to the storage of a tensor: all facts about it are forgotten."""
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
        self._requests_until_cleanup = len(self._lasting)
        # Another thread may add an entry meanwhile, or drop the same one.
        for at, entry in list(self._lasting.items()):
            if entry.reference.expired():  # type: ignore[no-untyped-call]
                self._lasting.pop(at, None)
                self._forget(entry)


def geometry(tensor: torch.Tensor) -> Geometry:
    """Returns a key of a storage and a view. Equal keys are the same elements in the same order."""
    place = tensor.storage_offset(), tuple(tensor.shape), tensor.stride()
    return tensor.untyped_storage()._cdata, *place
