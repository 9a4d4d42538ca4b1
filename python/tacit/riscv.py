"""Compiled programs on secret data: what an ordinary compiler makes of C or Rust for RISC-V.

    mean = tacit.riscv.load("mean.elf")
    found = mean.call("mean", ["a", "len:a"], secret={"a": (0, salaries if party == 0 else None)})
    found.result

Every party runs the same program. Which data are secret is said here, and not in it. What depends on a secret
and would be seen, a branch or an address, stops the program with its place. crates/riscv has the machine.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit import _core
from tacit.errors import MisuseError, SetupError
from tacit.session import Session, session

#: Integers that arrays have, by what C calls them in short.
TYPES = {f"{sign}{bits}": f"{'u' * (sign == 'u')}int{bits}" for sign in "ui" for bits in (8, 16, 32, 64)}

#: Instructions that a call carries out at most, where nobody says otherwise.
LIMIT = 1 << 30

#: The largest file of a program, in bytes.
LARGEST = 1 << 28

#: Elements of an array at most.
MOST_ELEMENTS = 1 << 24

#: Who learns something: all, a party, or nobody.
Receiver = str | int | None


@dataclass(frozen=True)
class Outcome:
    """What this party learns of a call."""

    #: What the function returned, without sign; ``None`` where others learn it.
    result: int | None
    #: Arrays after the call, by name.
    outputs: dict[str, NDArray[Any] | None]
    #: How many were carried out, by the program.
    instructions: int


@dataclass(frozen=True)
class _Given:
    """An array of a call."""

    name: str
    owner: int | None
    type: str
    count: int
    values: NDArray[Any] | None = field(repr=False)

    @property
    def for_core(self) -> tuple[int | None, int, int, list[int] | None]:
        bytes_each = np.dtype(TYPES[self.type]).itemsize
        values = None if self.values is None else self.values.astype(np.int64).view(np.uint64).tolist()
        return self.owner, bytes_each, self.count, values


class Program:
    """A program, as its file has it. Use :func:`load`."""

    def __init__(self, file: bytes) -> None:
        """Of an ELF file's bytes.

        Raises:
            MisuseError: it is no program for RISC-V of 64 bits that is linked to run as it is.
        """
        self._core = _core.Program(file)
        #: What it was made of.
        self.file = file

    def call(
        self,
        function: str,
        arguments: Sequence[str | int] = (),
        *,
        secret: Mapping[str, tuple[int, ArrayLike | None]] | None = None,
        public: Mapping[str, ArrayLike] | None = None,
        result: Receiver = "all",
        output: Mapping[str, Receiver] | None = None,
        limit: int = LIMIT,
    ) -> Outcome:
        """Calls a function, in the session that this code runs in. All parties call it alike.

        Args:
            function: its name in the program.
            arguments: for each parameter, eight at most, a number, or the name of an array, which stands for
                its address, or ``len:NAME`` for how many elements that has.
            secret: arrays of integers, in one dimension, by name: who has it, and the values there; the
                others pass ``None`` in their place, and learn type and length.
            public: arrays that everybody has.
            result: who learns what the function returns: "all", a party, or None.
            output: arrays that are opened after the call, and to whom: "all", or a party.
            limit: instructions at most.

        Raises:
            MisuseError: a name, a type or a party that does not exist; or the program stops before its end,
                for a reason that the message says with the place in the program.
            DesyncError: the parties call different programs, or call them differently.
        """
        here = session()
        given = [_public(name, values) for name, values in (public or {}).items()]
        given += [_secret(here, name, *owned) for name, owned in (secret or {}).items()]
        names = [each.name for each in given]
        if len(set(names)) != len(names):
            raise MisuseError("an array is given as public and as secret")
        outputs = {name: _receiver(to) for name, to in (output or {}).items()}
        for name in outputs:
            _known(name, names)
        passed = [_argument(each, names) for each in arguments]
        described = [(each.name, each.owner, each.type, each.count) for each in given]
        here.core.note(self.file)
        said = ("riscv", function, described, passed, result, outputs, limit)
        here.core.note(repr(said).encode())
        for each in given:
            if each.owner is None and each.values is not None and each.count:
                here.core.note_public(each.name, each.values.view(np.uint8))
        found, opened, instructions = here.core.call(
            self._core,
            function,
            [each.for_core for each in given],
            passed,
            result is not None,
            _receiver(result),
            [(names.index(name), to) for name, to in outputs.items()],
            limit,
        )
        kinds = {each.name: np.dtype(TYPES[each.type]) for each in given}
        arrays = {
            name: None if words is None else np.array(words, np.uint64).astype(kinds[name])
            for name, words in zip(outputs, opened, strict=True)
        }
        return Outcome(found, arrays, instructions)


def load(path: str | Path) -> Program:
    """Reads a program.

    Raises:
        SetupError: the file cannot be read.
        MisuseError: it is no program for this machine.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise SetupError(f"cannot read {path}: {error.strerror}") from None
    if len(content) > LARGEST:
        raise MisuseError(f"{path} has more than {LARGEST >> 20} MiB")
    return Program(content)


def _array(name: str, values: ArrayLike) -> NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.name not in TYPES.values() or array.ndim != 1:
        raise MisuseError(
            f"{name} is of {array.dtype} in {array.ndim} dimensions; arrays are of integers, in one"
        )
    if len(array) > MOST_ELEMENTS:
        raise MisuseError(f"{name} has {len(array)} elements, and {MOST_ELEMENTS} are the most")
    return np.ascontiguousarray(array)


def _short(array: NDArray[Any]) -> str:
    return next(short for short, name in TYPES.items() if name == array.dtype.name)


def _public(name: str, values: ArrayLike) -> _Given:
    array = _array(name, values)
    return _Given(name, None, _short(array), len(array), array)


def _secret(here: Session, name: str, owner: int, values: ArrayLike | None) -> _Given:
    """An array that one party has, of which the others learn type and length."""
    array = None
    if here.party == owner:
        if values is None:
            raise MisuseError(f"{name} is of party {owner}, which is this one, and there are no values")
        array = _array(name, values)
    told = here.core.broadcast(owner, None if array is None else f"{_short(array)}:{len(array)}".encode())
    match = re.fullmatch(rb"([ui]\d\d?):(\d{1,9})", told)
    kind, count = (match[1].decode(), int(match[2])) if match else ("", 0)
    if kind not in TYPES or count > MOST_ELEMENTS:
        raise MisuseError(f"party {owner} tells of an array {name} that cannot be")
    return _Given(name, owner, kind, count, array)


def _known(name: str, names: Sequence[str]) -> int:
    if name not in names:
        raise MisuseError(f"no array is called {name!r}; there are {', '.join(names) or 'none'}")
    return names.index(name)


def _argument(argument: str | int, names: Sequence[str]) -> tuple[str, int]:
    if isinstance(argument, int):
        if not -(1 << 63) <= argument < 1 << 64:
            raise MisuseError(f"the argument {argument} has more than 64 bits")
        return "number", argument % (1 << 64)
    if argument.startswith("len:"):
        return "count", _known(argument.removeprefix("len:"), names)
    return "address", _known(argument, names)


def _receiver(to: Receiver) -> int | None:
    if isinstance(to, str) and to != "all":
        raise MisuseError(f'{to!r} learns nothing: "all" does, or a party by its number')
    return None if isinstance(to, str) else to
