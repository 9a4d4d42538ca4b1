"""Arrays that programs are given, and what becomes of those that they leave."""

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

#: What arrays have, integers and floats, in short and as NumPy calls it.
TYPES = {
    f"{sign}{bits}": f"{'u' * (sign == 'u')}int{bits}" for sign in "ui" for bits in (8, 16, 32, 64)
} | {
    "f32": "float32",
    "f64": "float64",
}

#: Elements of an array at most.
MOST_ELEMENTS = 1 << 24

#: Ends of ranges are no larger, so that products of some stay numbers.
LARGEST_END = 1e60

#: Who learns something: all, a party, or nobody. Of an output, nobody means that it stays secret.
Receiver = str | int | None

#: The least and the greatest that an element of an array can be.
Range = tuple[float, float]


@dataclass(frozen=True)
class Typed:
    """An array that one party has, of which all parties say the type, so that it is compared."""

    type: str
    #: Of the owner alone.
    values: NDArray[Any] | None = field(default=None, repr=False)


#: What a party passes for an array that is secret: who has it, and the values there; or a sharing.
Secret = tuple[int, ArrayLike | Typed | None] | SecretTensor


@dataclass(frozen=True)
class Given:
    """An array of a program."""

    name: str
    type: str
    count: int
    owner: int | None = None
    #: Of the owner alone.
    values: NDArray[Any] | None = field(default=None, repr=False)
    public: NDArray[np.uint8] | None = field(default=None, repr=False)
    shares: tuple[torch.Tensor, ...] | None = field(default=None, repr=False)
    #: Of shares, how many fraction bits they have, and which tensor of the session they are.
    scale: int = 0
    number: int = 0
    #: Between what all have said that its elements lie.
    range: tuple[float, float] | None = None
    #: The flags that they depend on; where one failed, the shares are of zeros.
    known: Known = field(default=None, repr=False)

    @property
    def described(self) -> tuple[Any, ...]:
        """What must be the same in all parties."""
        content = None if self.public is None else _core.blake3(self.public.tobytes())
        is_shared = self.shares is not None
        kind = self.name, self.type, self.count, self.owner, content, is_shared
        return *kind, self.scale, self.number, self.range

    @property
    def for_core(self) -> _core.Given:
        """As the machine takes it."""
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
    """What all parties must run alike, as digests. Each tells them with types and lengths of its
    arrays."""

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
        """What party ``own`` runs, against what another party has told.

        Raises:
            DesyncError: that is another program, or the same with other options.
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
            ("public files", self.public, theirs.public, "the same bytes in all that is public"),
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
    """What all parties say of arrays: their names; of public ones types and lengths; of secret ones
    who has them, and their types where all say these. A sharing nobody has."""
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
    """Integers modulo 2^64; of floats their bits."""
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
    """All arrays of a program. Each party tells all others what it runs, and types and lengths of
    its own: a round. Where a party has values that cannot be given, all raise, and the session goes
    on.

    Raises:
        DesyncError: another party runs something else.
        MisuseError: values that are no integers or outside of their range, an owner that does not
            exist, or a name that is there twice.
        StoppedError: a range of what is not secret, or one that is none.
    """
    task = Task()
    within = {name: _ends(name, each, secret or {}) for name, each in ranges.items()}
    arrays = [_public(name, values) for name, values in (public or {}).items()]
    owned: dict[str, NDArray[Any] | None] = {}
    for name, values in (secret or {}).items():
        if isinstance(values, SecretTensor):
            arrays.append(_shared(here, name, values))
        else:
            with task.alone():
                owned[name] = _inside(name, _own(here, name, *values), within.get(name))
    names = [*(each.name for each in arrays), *owned]
    if twice := {name for name in names if names.count(name) > 1}:
        raise stopped_error(
            f"{', '.join(sorted(twice))}: an array is public or secret, and this is given as both"
        )
    told = _told(here, said, [each for each in owned.values() if each is not None], task)
    for name, values in (secret or {}).items():
        if not isinstance(values, SecretTensor):
            kind, count = next(told[values[0]], ("", 0))
            if kind not in TYPES or count > MOST_ELEMENTS:
                raise MisuseError(f"party {values[0]} tells of an array {name} that cannot be")
            arrays.append(Given(name, kind, count, values[0], owned[name]))
    order = list(secret or {})
    arrays = [replace(each, range=within.get(each.name)) for each in arrays]
    return sorted(arrays, key=lambda each: order.index(each.name) if each.name in order else -1)


def _told(
    here: Session, said: Said, own: list[NDArray[Any]], task: Task
) -> list[Iterator[tuple[str, int]]]:
    """Types and lengths of what each party has, in its order; after all were seen to run the same,
    and nobody to refuse."""
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
            raise DeviationError.of(party, "does not tell what it runs")
        *theirs, has, why = (group.decode() for group in match.groups(b""))
        said.hold(here.party, party, Said(*theirs))
        each = (text.partition("*") for text in has.split(":")[1:])
        found.append(iter([(kind, int(count)) for kind, _, count in each]))
        if why and (cause := refusal({"refused": why.removeprefix(":!")}, party)) is not None:
            refused[party] = cause
    settle(here, task, refused, "to give the program its arrays")
    return found


def note(here: Session, program: bytes, said: tuple[Any, ...], arrays: list[Given]) -> None:
    """What all parties must have said alike, for the comparison before anything is opened."""
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
            "float64, in one",
        )
    if len(array) > MOST_ELEMENTS:
        raise misuse("kind", f"{name} has {len(array)} elements, and {MOST_ELEMENTS} are the most")
    return np.ascontiguousarray(array)


def _short(name: str) -> str | None:
    return next((short for short, known in TYPES.items() if known == name), None)


def _public(name: str, values: ArrayLike | bytes) -> Given:
    array = _array(name, values)
    kind = _short(array.dtype.name)
    assert kind is not None, "it was looked at"
    return Given(name, kind, len(array), public=array.view(np.uint8))


def _shared(here: Session, name: str, tensor: SecretTensor) -> Given:
    """A sharing, as it is."""
    kind = _short(str(tensor.dtype).removeprefix("torch."))
    if kind is None:
        raise MisuseError(
            f"{name} is a secret tensor of {tensor.dtype}; programs take integers, float32 and "
            f"float64"
        )
    if tensor._session is not here:
        raise MisuseError(f"{name} is a secret tensor of another session")
    if tensor.numel() > MOST_ELEMENTS:
        raise MisuseError(f"{name} has {tensor.numel()} elements, and {MOST_ELEMENTS} are the most")
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
    """An array that one party has, where it has it."""
    if not 0 <= owner < here.parties:
        raise stopped_error(
            f"{name}: owner {owner} does not exist; there are parties 0 to {here.parties - 1}"
        )
    if isinstance(values, Typed):
        values = values.values
    if here.party != owner:
        return None
    if values is None:
        raise misuse(
            "nothing", f"{name} is of party {owner}, which is this one, and there are no values"
        )
    return _array(name, values)


def _ends(name: str, ends: Range, secret: Mapping[str, Secret]) -> Range:
    """A range that all say of a secret array.

    Raises:
        StoppedError: no array is called that, or it is no range.
    """
    if name not in secret:
        raise stopped_error(
            f"the range of {name}: no secret array is called that; there are "
            f"{', '.join(secret) or 'none'}"
        )
    least, most = float(ends[0]), float(ends[1])
    if not -LARGEST_END <= least <= most <= LARGEST_END:
        raise stopped_error(
            f"the range of {name} is from {least:g} to {most:g}: say two numbers in their order, "
            f"of no more "
            f"than {LARGEST_END:g} in magnitude"
        )
    return least, most


def _inside(name: str, values: NDArray[Any] | None, ends: Range | None) -> NDArray[Any] | None:
    """The same values, where none is outside of what all have said."""
    if values is None or ends is None or len(values) == 0:
        return values
    # Neither is a NaN.
    if not bool(((values >= ends[0]) & (values <= ends[1])).all()):
        raise misuse(
            "range",
            f"{name} has a value that is not from {ends[0]:g} to {ends[1]:g}, as all have said: "
            f"say a wider "
            "range, at all parties",
        )
    return values


def becomes(to: Receiver) -> tuple[bool, int | None]:
    """Whether an output stays secret, and else who learns it, as the machine takes it."""
    return to is None, receiver(to)


def receiver(to: Receiver) -> int | None:
    """A party, or ``None`` for all."""
    if isinstance(to, str) and to != "all":
        raise stopped_error(f'{to!r} learns nothing: "all" does, or a party by its number')
    return None if isinstance(to, str) else to


def left(
    here: Session, kind: str, values: list[int] | None, own: list[list[int]] | None, scale: int
) -> Any:
    """An output as Python has it: its values where they were opened to this party, or a secret
    tensor."""
    if own is not None:
        parts = tuple(torch.from_numpy(np.array(part, np.uint64).view(np.int64)) for part in own)
        # What has no dtype that can be shared is of the next that can hold it.
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
