"""The arrays that programs receive, and the arrays that they return."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from tacit import _core, fixed
from tacit.errors import DesyncError, DeviationError, MisuseError, stopped_error, tellable
from tacit.flags import Known
from tacit.refusals import Task, misuse, refusal, settle
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.tensor import SecretTensor

#: The element types of arrays by short name, with NumPy's name for each.
TYPES = {
    f"{sign}{bits}": f"{'u' * (sign == 'u')}int{bits}" for sign in "ui" for bits in (8, 16, 32, 64)
} | {
    "f32": "float32",
    "f64": "float64",
}

#: The maximum number of elements of an array.
MOST_ELEMENTS = 1 << 24

#: The largest magnitude of a range's end, so that products of several stay finite.
LARGEST_END = 1e60

#: Who learns a value: "all", a party's number, or None for nobody. An output for nobody stays
#: secret.
Receiver = str | int | None

#: The least and the greatest value that an element of an array can have.
Range = tuple[float, float]


@dataclass(frozen=True)
class Typed:
    """An array of one party whose type all parties state, so that they compare it."""

    type: str
    #: The values, at the owner only.
    values: NDArray[Any] | None = field(default=None, repr=False)


#: A secret array as a party passes it: the owner with, at the owner, the values; or a secret
#: tensor.
Secret = tuple[int, ArrayLike | Typed | None] | SecretTensor


@dataclass(frozen=True)
class Given:
    """An array of a program."""

    name: str
    type: str
    count: int
    owner: int | None = None
    #: The values, at the owner only.
    values: NDArray[Any] | None = field(default=None, repr=False)
    public: NDArray[np.uint8] | None = field(default=None, repr=False)
    shares: tuple[torch.Tensor, ...] | None = field(default=None, repr=False)
    #: For shares: the fraction bits, and the tensor's number within the session.
    scale: int = 0
    number: int = 0
    #: The range that all parties have stated for the elements.
    range: tuple[float, float] | None = None
    #: The flags that the array depends on. If a check failed, the shares are of zeros.
    known: Known = field(default=None, repr=False)

    @property
    def described(self) -> tuple[Any, ...]:
        """The description that must be the same at all parties."""
        content = None if self.public is None else _core.blake3(self.public.tobytes())
        is_shared = self.shares is not None
        kind = self.name, self.type, self.count, self.owner, content, is_shared
        return *kind, self.scale, self.number, self.range

    @property
    def for_core(self) -> _core.Given:
        """The array in the form that the core takes."""
        own = None
        if self.shares is not None:
            own = [_words(part.reshape(-1).numpy()) for part in self.shares]
        return _core.Given(
            self.name,
            np.dtype(TYPES[self.type]).itemsize,
            self.type[0] == "f",
            self.owner,
            self.count,
            None if self.values is None else _words(self.values),
            None if self.public is None else self.public.tobytes(),
            own,
            self.scale,
            self.range,
        )


@dataclass(frozen=True)
class Said:
    """Digests of everything that all parties must run alike. Each party sends them together with
    the types and lengths of its arrays."""

    program: str
    options: str
    public: str

    @staticmethod
    def of(program: bytes, public: Mapping[str, ArrayLike | bytes] | None, *options: Any) -> "Said":
        contents = ":".join(
            _core.blake3(_bytes_or_array(each).tobytes()) for each in (public or {}).values()
        )
        return Said(*map(_core.riscv_digest, (program, repr(options).encode(), contents.encode())))

    def hold(self, own: int, party: int, theirs: "Said") -> None:
        """Compares what party ``own`` runs with what another party has announced.

        Raises:
            DesyncError: the other party runs another program, or the same with other options.
        """
        for what, mine, other, remedy in (
            ("programs", self.program, theirs.program, "the same ELF file"),
            (
                "options",
                self.options,
                theirs.options,
                "the same function, arguments, files with their types and lengths, outputs and "
                "limits",
            ),
            ("public files", self.public, theirs.public, "the same bytes in all public files"),
        ):
            if mine != other:
                begun = f"the parties run different {what}: that of"
                ended = (
                    f"has the hash {mine}, that of party {party} {other}. Give all parties {remedy}"
                )
                raise tellable(
                    DesyncError(f"{begun} this party {ended}"), f"{begun} party {own} {ended}"
                )


def said_of(
    public: Mapping[str, ArrayLike | bytes] | None, secret: Mapping[str, Secret] | None
) -> list[tuple[Any, ...]]:
    """Describes the arrays as all parties state them: names; types and lengths of public arrays;
    the owners of secret arrays, and their types if all parties state them. A secret tensor has no
    owner."""
    said: list[tuple[Any, ...]] = []
    for name, content in (public or {}).items():
        array = _bytes_or_array(content)
        said.append((name, array.dtype.name, array.shape))
    for name, values in (secret or {}).items():
        if isinstance(values, SecretTensor):
            said.append((name, None))
        else:
            said.append((name, values[0], values[1].type if isinstance(values[1], Typed) else None))
    return said


def _words(values: NDArray[Any]) -> list[int]:
    """Converts to integers modulo 2^64; floats to their bits."""
    if values.dtype.kind == "f":
        return values.view(f"uint{8 * values.itemsize}").tolist()
    return values.astype(np.int64).view(np.uint64).tolist()


def given(
    here: Session,
    public: Mapping[str, ArrayLike | bytes] | None,
    secret: Mapping[str, Secret] | None,
    said: Said,
    ranges: Mapping[str, Range],
) -> list[Given]:
    """Collects all arrays of a program. In one round each party sends the digests of what it runs,
    and the types and lengths of its own arrays. If a party has invalid values, all parties raise,
    and the session continues.

    Raises:
        DesyncError: another party runs something else.
        MisuseError: values that are not integers or floats or lie outside their range.
        StoppedError: an owner that does not exist, a name that is used twice, or an invalid range
            or one for an array that is not secret.
    """
    task = Task()
    within = {name: _ends(name, each, secret or {}) for name, each in ranges.items()}
    arrays = [_public(name, values) for name, values in (public or {}).items()]
    owned: dict[str, NDArray[Any] | None] = {}
    for name, values in (secret or {}).items():
        if isinstance(values, SecretTensor):
            arrays.append(_shared(here, name, values))
        else:
            with task.keep_error():
                owned[name] = _inside(name, _own(here, name, *values), within.get(name))
    names = [*(each.name for each in arrays), *owned]
    if twice := {name for name in names if names.count(name) > 1}:
        raise stopped_error(
            f"{', '.join(sorted(twice))}: an array is public or secret, but this is given as both"
        )
    told = _announced_arrays(
        here, said, [each for each in owned.values() if each is not None], task
    )
    for name, values in (secret or {}).items():
        if not isinstance(values, SecretTensor):
            kind, count = next(told[values[0]], ("", 0))
            if kind not in TYPES or count > MOST_ELEMENTS:
                raise MisuseError(f"party {values[0]} announced an array {name} that cannot exist")
            arrays.append(Given(name, kind, count, values[0], owned[name]))
    order = list(secret or {})
    arrays = [replace(each, range=within.get(each.name)) for each in arrays]
    return sorted(arrays, key=lambda each: order.index(each.name) if each.name in order else -1)


def _announced_arrays(
    here: Session, said: Said, own: list[NDArray[Any]], task: Task
) -> list[Iterator[tuple[str, int]]]:
    """Returns the types and lengths of each party's arrays, in the owner's order, once all parties
    have confirmed that they run the same and none has refused."""
    told = task.told
    tells = [
        said.program,
        said.options,
        said.public,
        *(f"{_short(each.dtype.name)}*{len(each)}" for each in own),
        *([f"!{told['refused']}"] if told is not None else []),
    ]
    found, refused = [], {}
    for party, content in enumerate(here.told_by_all(":".join(tells).encode())):
        match = re.fullmatch(
            rb"([0-9a-f]{16}):([0-9a-f]{16}):([0-9a-f]{16})((?::[uif]\d\d?\*\d{1,9})*)(:![a-z]+)?",
            content,
        )
        if match is None:
            raise DeviationError.of(party, "sent a malformed description of what it runs")
        *theirs, has, why = (group.decode() for group in match.groups(b""))
        said.hold(here.party, party, Said(*theirs))
        each = (text.partition("*") for text in has.split(":")[1:])
        found.append(iter([(kind, int(count)) for kind, _, count in each]))
        if why and (cause := refusal({"refused": why.removeprefix(":!")}, party)) is not None:
            refused[party] = cause
    settle(here, task, refused, "to give the program its arrays")
    return found


def note(here: Session, program: bytes, said: tuple[Any, ...], arrays: list[Given]) -> None:
    """Records what all parties must have in common, for the comparison before any opening."""
    here.core.note(program)
    here.core.note(repr((*said, [each.described for each in arrays])).encode())


def _bytes_or_array(values: ArrayLike | bytes) -> NDArray[Any]:
    return np.frombuffer(values, np.uint8) if isinstance(values, bytes) else np.asarray(values)


def _array(name: str, values: ArrayLike | bytes) -> NDArray[Any]:
    array = _bytes_or_array(values)
    if array.dtype.name not in TYPES.values() or array.ndim != 1:
        raise misuse(
            "kind",
            f"{name} is of {array.dtype} in {array.ndim} dimensions; arrays are of integers, "
            f"float32 or "
            "float64, in one dimension",
        )
    if len(array) > MOST_ELEMENTS:
        raise misuse(
            "kind", f"{name} has {len(array)} elements, and {MOST_ELEMENTS} is the maximum"
        )
    return np.ascontiguousarray(array)


def _short(name: str) -> str | None:
    return next((short for short, known in TYPES.items() if known == name), None)


def _public(name: str, values: ArrayLike | bytes) -> Given:
    array = _array(name, values)
    kind = _short(array.dtype.name)
    assert kind is not None, "it was looked at"
    return Given(name, kind, len(array), public=array.view(np.uint8))


def _shared(here: Session, name: str, tensor: SecretTensor) -> Given:
    """Describes a secret tensor as an array, with its shares unchanged."""
    kind = _short(str(tensor.dtype).removeprefix("torch."))
    if kind is None:
        raise MisuseError(
            f"{name} is a secret tensor of {tensor.dtype}; programs take integers, float32 and "
            f"float64"
        )
    if tensor._session is not here:
        raise MisuseError(f"{name} is a secret tensor of another session")
    if tensor.numel() > MOST_ELEMENTS:
        raise MisuseError(
            f"{name} has {tensor.numel()} elements, and {MOST_ELEMENTS} is the maximum"
        )
    known = tensor.flags
    return Given(
        name,
        kind,
        tensor.numel(),
        shares=shares.checked(here, tensor._parts, known),
        scale=tensor._scale.bits,
        number=tensor._number,
        known=known,
    )


def _own(
    here: Session, name: str, owner: int, values: ArrayLike | Typed | None
) -> NDArray[Any] | None:
    """Returns an owned array at its owner, and ``None`` at the other parties."""
    if not 0 <= owner < here.parties:
        raise stopped_error(
            f"{name}: owner {owner} does not exist; there are parties 0 to {here.parties - 1}"
        )
    if isinstance(values, Typed):
        values = values.values
    if here.party != owner:
        return None
    if values is None:
        raise misuse("nothing", f"{name} belongs to this party ({owner}), but no values were given")
    return _array(name, values)


def _ends(name: str, ends: Range, secret: Mapping[str, Secret]) -> Range:
    """Checks a range that all parties state for a secret array.

    Raises:
        StoppedError: there is no secret array of this name, or the range is invalid.
    """
    if name not in secret:
        raise stopped_error(
            f"the range of {name}: no secret array is called that; there are "
            f"{', '.join(secret) or 'none'}"
        )
    least, most = float(ends[0]), float(ends[1])
    if not -LARGEST_END <= least <= most <= LARGEST_END:
        raise stopped_error(
            f"the range of {name} is from {least:g} to {most:g}: give the lower number first, "
            f"and none above "
            f"{LARGEST_END:g} in magnitude"
        )
    return least, most


def _inside(name: str, values: NDArray[Any] | None, ends: Range | None) -> NDArray[Any] | None:
    """Returns the values unchanged, after a check that all lie in the stated range."""
    if values is None or ends is None or len(values) == 0:
        return values
    # A NaN fails both comparisons.
    if not bool(((values >= ends[0]) & (values <= ends[1])).all()):
        raise misuse(
            "range",
            f"{name} has a value that is not from {ends[0]:g} to {ends[1]:g}, the range that all "
            f"parties stated: give "
            "a wider range, at all parties",
        )
    return values


def becomes(to: Receiver) -> tuple[bool, int | None]:
    """Returns whether an output stays secret, and otherwise who learns it, as the core takes it."""
    return to is None, receiver(to)


def receiver(to: Receiver) -> int | None:
    """Returns the party that learns a value, or ``None`` for all."""
    if isinstance(to, str) and to != "all":
        raise stopped_error(f'{to!r} is not a receiver: give "all", or a party by its number')
    return None if isinstance(to, str) else to


def left(
    here: Session, kind: str, values: list[int] | None, own: list[list[int]] | None, scale: int
) -> Any:
    """Converts an output to Python: an array of values opened to this party, a secret tensor, or
    ``None`` if only others learn it."""
    if own is not None:
        parts = tuple(torch.from_numpy(np.array(part, np.uint64).view(np.int64)) for part in own)
        # A type without a shareable dtype takes the next larger dtype that can hold it.
        dtype = getattr(
            torch, {"u16": "int32", "u32": "int64", "u64": "int64"}.get(kind, TYPES[kind])
        )
        unreduced = kind[0] != "f" and dtype != torch.int64
        return SecretTensor(parts, fixed.Scale(scale), here, dtype, unreduced=unreduced).numbered()
    if values is None:
        return None
    words, dtype = np.array(values, np.uint64), np.dtype(TYPES[kind])
    if dtype.kind == "f":
        return words.astype(f"uint{8 * dtype.itemsize}").view(dtype)
    return words.astype(dtype)
