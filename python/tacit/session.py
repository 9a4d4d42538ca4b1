"""The session of a party: who takes part, under which protocol, and what it has cost so far."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from tacit import _core
from tacit.errors import MisuseError
from tacit.meter import Meter

#: Fraction bits of fixed-point numbers.
SCALE = 16


class RunningModules:
    """The modules of a model under way in one party, outermost first, with the names in the outermost."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.labels: list[str] = []


#: Views of one storage that have names: a weight is used in few ways, and its rows one by one need none.
MOST_VIEWS = 1024


class Lasting:
    """Tensors that are used again and again, such as weights, by name.

    A protocol that masks its operands masks these once. A name stands for a storage in one state and
    one geometry; when the storage is written to, or freed, its names are forgotten. All parties run the
    same program, so the same names stand for the same values everywhere. Operators that write say so
    (``writable``): below autograd, where they run, PyTorch counts no versions.
    """

    def __init__(self, core: _core.Session) -> None:
        self._core = core
        self._storages: dict[int, StorageWeakRef] = {}
        self._names: dict[int, dict[tuple[Any, ...], int]] = {}
        self._next = 0

    def add(self, tensor: torch.Tensor) -> None:
        """Whoever multiplies by this tensor, or a view of it, will do so again."""
        reference = StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]
        self._storages[reference.cdata] = reference

    def forget(self, tensor: torch.Tensor) -> None:
        """What shares its storage with this tensor is about to be written to."""
        if self._names:
            storage = StorageWeakRef(tensor.untyped_storage()).cdata  # type: ignore[no-untyped-call]
            self._forget(self._names.pop(storage, {}))

    def name(self, tensor: torch.Tensor) -> int | None:
        """The name of this view, if its storage lasts."""
        if not self._storages:
            return None
        if any(stride == 0 for stride in tensor.stride()):
            # Repeated along a dimension: as large as what it multiplies, and seldom twice of one size.
            return None
        storage = StorageWeakRef(tensor.untyped_storage()).cdata  # type: ignore[no-untyped-call]
        if storage not in self._storages:
            return None
        self._drop_freed()
        names = self._names.setdefault(storage, {})
        geometry = (tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
        if geometry not in names:
            if len(names) == MOST_VIEWS:
                return None
            names[geometry] = self._next
            self._next += 1
        return names[geometry]

    def _drop_freed(self) -> None:
        for storage in [key for key, reference in self._storages.items() if reference.expired()]:  # type: ignore[no-untyped-call]
            self._forget(self._names.pop(storage, {}))
            del self._storages[storage]

    def _forget(self, names: dict[tuple[Any, ...], int]) -> None:
        for name in names.values():
            self._core.forget(name)


class Session:
    """One party's part in a computation; what ``tacit.session()`` returns."""

    def __init__(self, core: _core.Session) -> None:
        self.core = core
        self.party = core.party
        self.parties = core.parties
        self.protocol = core.protocol
        self.transport = core.transport
        self.meter = Meter(core)
        self.scale = SCALE
        self.width = 64
        self.modules = RunningModules()
        self.lasting = Lasting(core)

    @property
    def threat_model(self) -> str:
        """In one sentence, what is protected against whom."""
        return self.core.threat_model

    @property
    def demand(self) -> str | None:
        """What was asked of the source of correlations so far, where the session records it: the text that
        ``tacit correlations make`` reads."""
        return self.core.demand()

    def __repr__(self) -> str:
        return f"Session(party {self.party} of {self.parties}, {self.protocol}, {self.transport})"


_current: ContextVar[Session | None] = ContextVar("tacit_session", default=None)


def current_session() -> Session | None:
    """The session that this code runs in, if any."""
    return _current.get()


def session() -> Session:
    """The session that this code runs in.

    Raises:
        MisuseError: outside of any.
    """
    current = _current.get()
    if current is None:
        raise MisuseError(
            "no session: run this inside tacit.launch(fn), `with tacit.connect(config, party):`, `tacit run`"
        )
    return current


@contextmanager
def running(core: _core.Session) -> Iterator[Session]:
    """Makes a session the current one. At an exception the other parties are told that this one ends,
    with the exception's type alone, since its message may hold what is secret."""
    current = Session(core)
    token = _current.set(current)
    try:
        yield current
        core.close()
    except SystemExit as leaving:
        # As a script ends that has done its work, or has not.
        if leaving.code in (None, 0):
            core.close()
        else:
            core.abort("its program ended with an exit code; see its own output")
        raise
    except BaseException as error:
        core.abort(f"its program raised {type(error).__name__}; see its own output")
        raise
    finally:
        _current.reset(token)


@contextmanager
def connect(
    config: str,
    party: int,
    *,
    protocol: str | None = None,
    source: str | None = None,
    timeout: float | None = None,
    threads: int | None = None,
    record: bool = False,
) -> Iterator[Session]:
    """Takes part as ``party`` in the session that a file such as ``examples/parties.toml`` describes.

    Args:
        config: path of the file.
        party: this party's number, its place in the file, from 0.
        protocol: instead of the file's.
        source: of correlations, instead of the file's.
        timeout: longest wait for one message in seconds, instead of the file's.
        threads: threads of this process's kernels; all cores if not given.
        record: whether ``Session.demand`` keeps what is asked of the source of correlations.

    Raises:
        SetupError: file, address or certificates are wrong.
        PeerError: a party did not come within the timeout, or failed later.
    """
    with running(
        _core.Session.connect(str(config), party, protocol, timeout, threads, source, record)
    ) as current:
        yield current


@contextmanager
def comparison_width(bits: int) -> Iterator[None]:
    """Within it, comparisons (ReLU, maximum, ...) assume that values need at most that many bits: with
    the default 16 fraction bits, ``comparison_width(32)`` is right for \\|x\\| < 2^15 and costs less.

    Values that need more are compared wrongly, so choose it only where the range is known.

    Raises:
        MisuseError: not 8 to 64.
    """
    if not 8 <= bits <= 64:
        raise MisuseError(f"a comparison width is 8 to 64 bits, not {bits}")
    current = session()
    previous, current.width = current.width, bits
    try:
        yield
    finally:
        current.width = previous
