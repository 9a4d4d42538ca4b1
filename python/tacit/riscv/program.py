"""A program: its functions are called, or all of it is run."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tacit import _core, checks
from tacit.errors import (
    DesyncError,
    MisuseError,
    NetworkError,
    PeerError,
    RangeError,
    StoppedError,
    cause,
    setup_error,
    stopped_error,
)
from tacit.flags import Known, each_of, union
from tacit.riscv.arrays import (
    TYPES,
    Given,
    Range,
    Receiver,
    Said,
    Secret,
    becomes,
    given,
    left,
    note,
    receiver,
    said_of,
)
from tacit.sessions import Session, session
from tacit.sharings.shares import refused
from tacit.tensor import SecretTensor

#: Instructions that a program carries out at most, where nobody says otherwise.
LIMIT = 1 << 30

#: The largest file of a program, in bytes.
LARGEST = 1 << 28


class Opened(NamedTuple):
    """What was opened."""

    what: str
    """An output's name, "result", or where in the program."""
    to: Receiver
    values: int


@dataclass(frozen=True)
class Outcome:
    """What this party learns of a program."""

    #: What the function returned, of the type that was asked for and else without sign, or the
    #: status that the program ended with; ``None`` where others learn it.
    result: int | float | None
    #: By name: an array where this party learns it, a ``SecretTensor`` where nobody does.
    outputs: dict[str, Any]
    #: How many were carried out.
    instructions: int
    #: What was written to standard output and standard error.
    printed: bytes
    #: All that was opened: on the way, by places in the program, and then.
    opened: list[Opened]
    #: For what this party has waited, in seconds, the longest first: by functions, or by what the
    #: program has called its work with ``tacit_label``. Words that are computed at once count for
    #: where most are from.
    waited: dict[str, float]


class Program:
    """A program, as its file has it. Use :func:`load`."""

    def __init__(self, file: bytes, name: str = "program") -> None:
        """Of an ELF file's bytes.

        Raises:
            MisuseError: it is no program for RISC-V of 64 bits that is linked to run as it is.
        """
        self._core = _core.Program(file)
        #: What it was made of.
        self.file = file
        #: The first of its arguments.
        self.name = name
        #: Whether it goes on where secrets stop it, to find all that is refused, and stops at its
        #: end.
        self.passes_over = False

    def call(
        self,
        function: str,
        arguments: Sequence[str | float | np.floating[Any]] = (),
        *,
        secret: Mapping[str, Secret] | None = None,
        public: Mapping[str, ArrayLike | bytes] | None = None,
        result: Receiver | tuple[Receiver, str] = "all",
        output: Mapping[str, Receiver] | None = None,
        open_branches: Sequence[str] = (),
        oblivious: Sequence[str] = (),
        limit: int = LIMIT,
        ranges: Mapping[str, Range] | None = None,
    ) -> Outcome:
        """Calls a function, in the session that this code runs in. All parties call it alike.

        Args:
            function: its name in the program.
            arguments: for each parameter a number, or the name of an array, which stands for its
                address, or ``len:NAME`` for how many elements that has. A ``float`` is a double,
                and a ``numpy.float32`` a float, in registers of their own; of integers there are
                eight at most.
            secret: arrays of integers or floats, in one dimension, by name: who has it, and the
                values there, where the others pass ``None``, and learn type and length. Where all
                parties are to say the type too, each passes a :class:`Typed`. Or a
                ``SecretTensor``, which is opened to nobody.
            public: arrays that everybody has.
            result: who learns what the function returns: "all", a party, or None. With a type, as
                in ``("all", "f64")``, it is of that; else an integer of 64 bits without sign. Of a
                function that returns a float the type must be said.
            output: arrays after the call, and who learns them: "all", or a party; with None nobody
                does, and each is a ``SecretTensor``, of the type of the array.
            open_branches: functions whose branches on secrets are opened to all, and counted in
                ``opened``, each bit apart;
                in all others both sides are carried out.
            oblivious: arrays, or objects of the program by their names, that may be read and
                written at secret places, by looking at all of each.
            limit: instructions at most.
            ranges: of secret arrays, the least and the greatest that an element can be, as in
                ``{"salaries": (0, 2e5)}``. Floats then have as many fraction bits as their range
                leaves, and so has what is computed of them; integers take fewer bits. Of a value
                outside, its owner refuses the call; of a ``SecretTensor`` nobody can tell, and what
                is computed is wrong.

        Raises:
            StoppedError: a name, a type or a party that does not exist; or the program stops before
                its end, for a reason that the message says with the place in the program. All
                parties are told it.
            MisuseError: values of this party that cannot be given.
            RangeError: at whoever something was opened to, if a guarded comparison that a given
                tensor depends on left its range, or an operator that was checked, when the program
                ran on zeros; or in checked mode, if a secret float that this was computed of left
                its range, with its line in the program. The error's ``outcome`` has what it left
                secret.
            DesyncError: the parties call different programs, or call them differently.
        """
        here = session()
        options = (
            list(open_branches),
            list(oblivious),
            limit,
            self.passes_over,
            checks.is_on(here),
        )
        within = dict(ranges or {})
        files = (said_of(public, secret), dict(output or {}), sorted(within.items()))
        told_so = [each if isinstance(each, str) else _argument(each, ()) for each in arguments]
        said = Said.of(self.file, public, "call", function, told_so, result, *files, options)
        arrays = given(here, public, secret, said, within)
        names = [each.name for each in arrays]
        outputs = [(_known(name, names), becomes(to)) for name, to in (output or {}).items()]
        passed = [_argument(each, names) for each in arguments]
        returns = _returns(result)
        note(here, self.file, ("riscv call", function, passed, returns, outputs, options), arrays)
        receivers = [to for _, (is_kept, to) in outputs if not is_kept]
        receivers += [] if returns is None else [returns[0]]
        with _telling_where_it_stops(here, arrays, receivers):
            told = here.core.call(
                self._core,
                function,
                [each.for_core for each in arrays],
                passed,
                returns,
                outputs,
                options,
            )
        types = [arrays[place].type for place, _ in outputs]
        return _outcome(list(output or {}), types, told, arrays, returns)

    def run(
        self,
        arguments: Sequence[str] = (),
        *,
        secret: Mapping[str, Secret] | None = None,
        public: Mapping[str, ArrayLike | bytes] | None = None,
        output: Mapping[str, Receiver | tuple[Receiver, str]] | None = None,
        open_branches: Sequence[str] = (),
        oblivious: Sequence[str] = (),
        limit: int = LIMIT,
        ranges: Mapping[str, Range] | None = None,
    ) -> Outcome:
        """Runs the whole program, in the session that this code runs in. All parties run it alike.

        It reads what it is given, and writes its outputs, as files of these names in the directory
        that it is started in; ``stdin`` is standard input.

        Args:
            arguments: what ``main`` is told, behind the program's name.
            secret: files of integers or floats, as arrays by name; see :meth:`call`.
            public: files that everybody has: arrays, or bytes.
            output: files that the program writes, and who learns them: "all", a party, or None for
                nobody. With a type, as in ``("all", "u32")``, they are of that; else of the type
                that all secret files have.
            open_branches: as in :meth:`call`.
            oblivious: objects of the program; as in :meth:`call`.
            limit: instructions at most.
            ranges: of secret files; as in :meth:`call`.

        Raises:
            StoppedError: as :meth:`call`; or an output that the program did not write.
            MisuseError: as :meth:`call`.
            RangeError: as :meth:`call`.
            DesyncError: the parties run different programs, or run them differently.
        """
        here = session()
        options = (
            list(open_branches),
            list(oblivious),
            limit,
            self.passes_over,
            checks.is_on(here),
        )
        within = dict(ranges or {})
        files = (said_of(public, secret), dict(output or {}), sorted(within.items()))
        said = Said.of(self.file, public, "run", list(arguments), *files, options)
        arrays = given(here, public, secret, said, within)
        outputs = [(name, *_typed(name, to, arrays)) for name, to in (output or {}).items()]
        told = [self.name, *arguments]
        note(here, self.file, ("riscv run", told, outputs, options), arrays)
        wanted = [
            (name, np.dtype(TYPES[kind]).itemsize, kind[0] == "f", becomes(to))
            for name, to, kind in outputs
        ]
        with _telling_where_it_stops(
            here, arrays, [to for *_, (is_kept, to) in wanted if not is_kept]
        ):
            found = here.core.run_program(
                self._core, told, [each.for_core for each in arrays], wanted, options
            )
        return _outcome(list(output or {}), [kind for _, _, kind in outputs], found, arrays)


def load(path: str | Path) -> Program:
    """Reads a program.

    Args:
        path: of an ELF file of RISC-V of 64 bits, as ``tacit riscv cc`` makes it; 256 MiB at most.

    Raises:
        SetupError: the file cannot be read.
        MisuseError: it is no program for this machine.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise setup_error(f"cannot read {path}: {cause(error)}") from None
    if len(content) > LARGEST:
        raise MisuseError(f"{path} has more than {LARGEST >> 20} MiB")
    return Program(content, Path(path).name)


def _known(name: str, names: Sequence[str]) -> int:
    if name not in names:
        raise stopped_error(f"no array is called {name!r}; there are {', '.join(names) or 'none'}")
    return names.index(name)


def _argument(argument: str | float | np.floating[Any], names: Sequence[str]) -> tuple[str, int]:
    """As the machine takes it."""
    if isinstance(argument, np.float32):
        # A float of four bytes has ones above it.
        return "float", 0xFFFFFFFF << 32 | int(argument.view(np.uint32))
    if isinstance(argument, float):
        return "float", int(np.float64(argument).view(np.uint64))
    if isinstance(argument, np.floating):
        raise stopped_error(
            f"the argument {argument} is a {argument.dtype}; floats are float32 or float64"
        )
    if isinstance(argument, int | np.integer):
        argument = int(argument)
        if not -(1 << 63) <= argument < 1 << 64:
            raise stopped_error(f"the argument {argument} has more than 64 bits")
        return "number", argument % (1 << 64)
    if argument.startswith("len:"):
        return "count", _known(argument.removeprefix("len:"), names)
    return "address", _known(argument, names)


def _returns(result: Receiver | tuple[Receiver, str]) -> tuple[int | None, str, int] | None:
    """Who learns a result, and its type, as the machine takes it: "f", "i" or "u", and bytes;
    nothing where nobody has said it."""
    to, kind = result if isinstance(result, tuple) else (result, "")
    if kind and kind not in TYPES:
        raise stopped_error(f"result: no type is called {kind!r}; known are {', '.join(TYPES)}")
    if to is None:
        return None
    return receiver(to), kind[:1], np.dtype(TYPES[kind]).itemsize if kind else 0


def _number(word: int | None, returns: tuple[int | None, str, int] | None) -> int | float | None:
    """What a result is, of whose register this is what was opened."""
    _, kind, size = returns or (None, "", 0)
    if word is None or not kind:
        return word
    low = np.array([word], np.uint64).view(np.uint8)[:size]
    number: int | float = low.view(f"<{kind}{size}").item()
    return number


def _typed(
    name: str, to: Receiver | tuple[Receiver, str], arrays: list[Given]
) -> tuple[Receiver, str]:
    """Who learns an output, and its type."""
    if isinstance(to, tuple):
        if to[1] not in TYPES:
            raise stopped_error(
                f"{name}: no type is called {to[1]!r}; known are {', '.join(TYPES)}"
            )
        return to
    types = {each.type for each in arrays if each.public is None}
    if len(types) > 1:
        raise stopped_error(
            f"{name}: say its type, since the secret files are of {', '.join(sorted(types))}"
        )
    return to, types.pop() if types else "u8"


#: For what left its range within a program.
_REMEDY = (
    "Say the range of the program's arrays, or a greater one (--range, ranges=, tacit_real_range), "
    "or scale "
    "the data down"
)


def _refusal(
    here: Session, known: Known, receivers: Sequence[int | None], failed: Sequence[str] = ()
) -> RangeError | None:
    """Tells those to whom something is opened whether what the program was given was in range: the
    error at these, if it was not, when the program ran on zeros, or if something had failed in the
    program itself."""
    # All before the others: what all know is told once.
    told: list[str] = []
    for to in sorted(set(receivers), key=lambda to: -1 if to is None else to):
        if flags := each_of(known):
            here.claims.settle()
            told += here.core.tell_flags(flags, to)
    refusal = (
        refused(here, list(dict.fromkeys(told)), is_told_to_all=None in receivers) if told else None
    )
    # Of this the others may have heard nothing.
    return RangeError.of(list(dict.fromkeys([*failed, *told])), _REMEDY) if failed else refusal


@contextmanager
def _telling_where_it_stops(
    here: Session, arrays: Sequence[Given], receivers: Sequence[int | None]
) -> Iterator[None]:
    """Within it a program runs. Where it stops, these receivers are told in the place of what they
    were to
    learn, as they are at its end: it may have stopped because it ran on zeros.

    Raises:
        RangeError: at these, if what it was given was not in range.
    """
    try:
        yield
    except StoppedError as stopped:
        refusal = None
        # Of what stops this party alone the others know nothing; they end by it.
        with suppress(PeerError, NetworkError, DesyncError):
            refusal = _refusal(here, union(each.known for each in arrays), receivers)
        if refusal is not None:
            raise refusal from stopped
        raise


def _outcome(
    names: list[str],
    types: list[str],
    told: "_core.Told",
    arrays: Sequence[Given],
    returns: tuple[int | None, str, int] | None = None,
) -> Outcome:
    """What this party has learned.

    Raises:
        RangeError: something that it was to learn was out of range.
    """
    result, had, instructions, printed, opened, waited, failed = told
    here, known, outputs = session(), union(each.known for each in arrays), {}
    # Of a program that has stopped for that there are none.
    for name, kind, (values, own, scale, flags) in zip(names, types, had, strict=not failed):
        outputs[name] = left(here, kind, values, own, scale)
        if isinstance(outputs[name], SecretTensor):
            outputs[name].depends(union((known, *flags)))
    shown = [Opened(what, "all" if to is None else to, values) for what, to, values in opened]
    outcome = Outcome(_number(result, returns), outputs, instructions, printed, shown, dict(waited))
    refusal = _refusal(here, known, [to for _, to, _ in opened], failed)
    if refusal is None:
        return outcome
    secret = {
        name: each if isinstance(each, SecretTensor) else None for name, each in outputs.items()
    }
    refusal.outcome = replace(outcome, result=None, outputs=secret)
    raise refusal
