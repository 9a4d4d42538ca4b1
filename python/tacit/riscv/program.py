"""Compiled programs: calls of one function, and runs of the whole program."""

import warnings
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
    PrecisionWarning,
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

#: The default limit on the number of executed instructions.
LIMIT = 1 << 30

#: The largest size of a program's file, in bytes.
LARGEST = 1 << 28


class Opened(NamedTuple):
    """Values that were opened."""

    #: The output's name, "result", or the place in the program.
    what: str
    to: Receiver
    values: int


class Scanned(NamedTuple):
    """Accesses at secret addresses of few values, all of which are read or written."""

    #: The place in the program.
    what: str
    #: The number of accesses.
    accesses: int
    #: The number of addresses that were read or written for them.
    addresses: int


@dataclass(frozen=True)
class Outcome:
    """The results of a program that this party learns."""

    #: The function's result, of the requested type or else as an unsigned integer; or the exit
    #: status of a whole program. ``None`` if only others learn it.
    result: int | float | None
    #: The outputs by name: an array if this party learns it, a ``SecretTensor`` if it stays secret.
    outputs: dict[str, Any]
    #: The number of executed instructions.
    instructions: int
    #: The bytes that the program wrote to standard output and standard error.
    printed: bytes
    #: All openings: those during execution, by place in the program, then those of the outputs.
    opened: list[Opened]
    #: Seconds that this party waited for messages, the longest first: by function, or by the label
    #: that the program set with ``tacit_label``. Words that are computed together count for the
    #: function that most of them are from.
    waited: dict[str, float]
    #: The accesses at secret addresses of few values, by place in the program.
    scanned: list[Scanned]


class Program:
    """A compiled program. Create it with :func:`load`."""

    def __init__(self, file: bytes, name: str = "program") -> None:
        """Reads a program from the bytes of an ELF file.

        Args:
            file: the content of the ELF file.
            name: the program's name, which ``main`` receives as its first argument.

        Raises:
            MisuseError: the file is not a statically linked program for 64-bit RISC-V.
        """
        self._core = _core.Program(file)
        #: The bytes of the ELF file.
        self.file = file
        #: The program's name, the first of its arguments.
        self.name = name
        #: Whether the program continues where a secret would stop it, to find every such place. It
        #: then stops at its end.
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
        """Calls a function in the current session. All parties make the same call.

        Args:
            function: the function's name in the program.
            arguments: for each parameter a number, the name of an array, which passes its
                address, or ``len:NAME``, which passes its number of elements. A ``float`` is
                passed as a double and a ``numpy.float32`` as a float, in float registers. At most
                eight integers, addresses and lengths can be passed.
            secret: one-dimensional arrays of integers or floats, by name, each as a pair: the
                owner, and at the owner the values. The other parties pass ``None`` and learn type
                and length. If all parties are to state the type too, each passes a
                :class:`Typed`. A ``SecretTensor`` is also accepted; it stays secret.
            public: arrays that all parties have.
            result: who learns the function's result: "all", a party, or None. With a type, as in
                ``("all", "f64")``, the result has that type; otherwise it is an unsigned integer
                of 64 bits. The type is required if the function returns a float.
            output: arrays that are returned after the call, and who learns them: "all", or a
                party. With None nobody does, and the output is a ``SecretTensor`` of the array's
                type.
            open_branches: functions whose branches on secrets are opened to all parties. Each
                opened bit is listed in ``opened``. In all other functions both sides of such a
                branch are executed.
            oblivious: arrays, or objects of the program by name, that may be accessed at secret
                addresses. Each access scans the whole object.
            limit: the maximum number of executed instructions.
            ranges: the least and the greatest value that an element of a secret array can have,
                as in ``{"salaries": (0, 2e5)}``. Floats, and results computed from them, then
                have as many fraction bits as their range leaves; integers take fewer bits. If a
                value lies outside, its owner refuses the call. For a ``SecretTensor`` nobody can
                check this, and the results are wrong if it does not hold.

        Raises:
            StoppedError: a name, a type or a party does not exist; or the program stops before
                its end, for a reason that the message states with the place in the program. All
                parties raise it.
            MisuseError: this party passed invalid values.
            RangeError: a range check failed, at each party that was to receive a value depending
                on it: a guarded comparison behind a given tensor left its range, or a checked
                operator did (the program then ran on zeros); or, in checked mode, a secret float
                behind the value left its range, with its line in the program. The error's
                ``outcome`` has the outputs that stay secret.
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
        """Runs the whole program in the current session. All parties make the same call.

        The program reads its inputs and writes its outputs as files of the given names in its
        working directory; ``stdin`` is standard input.

        Args:
            arguments: the arguments of ``main``, after the program's name.
            secret: files of integers or floats, as arrays by name; see :meth:`call`.
            public: files that all parties have: arrays, or bytes.
            output: files that the program writes, and who learns them: "all", a party, or None
                for nobody. With a type, as in ``("all", "u32")``, the elements have that type;
                otherwise they have the type that all secret files share.
            open_branches: as in :meth:`call`.
            oblivious: objects of the program; as in :meth:`call`.
            limit: the maximum number of executed instructions.
            ranges: ranges of secret files; as in :meth:`call`.

        Raises:
            StoppedError: as in :meth:`call`; or the program did not write an output.
            MisuseError: as in :meth:`call`.
            RangeError: as in :meth:`call`.
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
    """Reads a program from a file.

    Args:
        path: the ELF file of a 64-bit RISC-V program, as ``tacit riscv cc`` makes it; at most
            256 MiB.

    Raises:
        SetupError: the file cannot be read.
        MisuseError: the file is not a program for this machine.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise setup_error(f"cannot read {path}: {cause(error)}") from None
    if len(content) > LARGEST:
        raise MisuseError(f"{path} has more than {LARGEST >> 20} MiB, the limit for a program")
    return Program(content, Path(path).name)


def _known(name: str, names: Sequence[str]) -> int:
    if name not in names:
        raise stopped_error(f"no array is called {name!r}; there are {', '.join(names) or 'none'}")
    return names.index(name)


def _argument(argument: str | float | np.floating[Any], names: Sequence[str]) -> tuple[str, int]:
    """Returns the kind and the word of an argument, as the machine takes it."""
    if isinstance(argument, np.float32):
        # A float of four bytes is NaN-boxed: the upper bits of its register are all ones.
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
    """Returns who learns a result, and its type as the machine takes it: the kind ("f", "i", "u",
    or "" if none is stated) and the bytes. Returns ``None`` if nobody learns the result."""
    to, kind = result if isinstance(result, tuple) else (result, "")
    if kind and kind not in TYPES:
        raise stopped_error(f"result: no type is called {kind!r}; known are {', '.join(TYPES)}")
    if to is None:
        return None
    return receiver(to), kind[:1], np.dtype(TYPES[kind]).itemsize if kind else 0


def _number(word: int | None, returns: tuple[int | None, str, int] | None) -> int | float | None:
    """Returns the number that an opened result register holds, according to its type."""
    _, kind, size = returns or (None, "", 0)
    if word is None or not kind:
        return word
    low = np.array([word], np.uint64).view(np.uint8)[:size]
    number: int | float = low.view(f"<{kind}{size}").item()
    return number


def _typed(
    name: str, to: Receiver | tuple[Receiver, str], arrays: list[Given]
) -> tuple[Receiver, str]:
    """Returns who learns an output, and its type."""
    if isinstance(to, tuple):
        if to[1] not in TYPES:
            raise stopped_error(
                f"{name}: no type is called {to[1]!r}; known are {', '.join(TYPES)}"
            )
        return to
    types = {each.type for each in arrays if each.public is None}
    if len(types) > 1:
        raise stopped_error(
            f"{name}: give its type, since the secret files differ: {', '.join(sorted(types))}"
        )
    return to, types.pop() if types else "u8"


#: The remedy for a value that left its range within a program.
_REMEDY = (
    "State the range of the program's arrays, or a wider one (--range, ranges=, tacit_real_range), "
    "or scale "
    "the data down"
)


def _coarse(name: str, most: float) -> str:
    """Returns what is said of a result whose range is so wide that it may have no right digit."""
    return (
        f"{name}: none of its digits may be right: by the ranges that are known, its numbers reach "
        f"{most:.3g}, and errors are up to 2^-24 of that, more than any of them. State narrower "
        "ranges of the program's arrays (--range, ranges=), or of what it computes from them "
        "(tacit_real_range)"
    )


def _refusal(
    here: Session, known: Known, receivers: Sequence[int | None], failed: Sequence[str] = ()
) -> RangeError | None:
    """Reports to the receivers of opened values whether the range checks behind the program's
    inputs passed. Returns the receivers' error if one failed (the program then ran on zeros), or
    if a check failed in the program itself."""
    # Everybody's flags come before those of single parties, so a public failure is reported once.
    told: list[str] = []
    for to in sorted(set(receivers), key=lambda to: -1 if to is None else to):
        if flags := each_of(known):
            here.claims.settle()
            told += here.core.tell_flags(flags, to)
    refusal = (
        refused(here, list(dict.fromkeys(told)), is_told_to_all=None in receivers) if told else None
    )
    # The other parties may not have received this failure.
    return RangeError.of(list(dict.fromkeys([*failed, *told])), _REMEDY) if failed else refusal


@contextmanager
def _telling_where_it_stops(
    here: Session, arrays: Sequence[Given], receivers: Sequence[int | None]
) -> Iterator[None]:
    """Wraps the execution of a program. If the program stops, the receivers learn the input range
    checks instead of their results, as they would at its end: it may have stopped because it ran
    on zeros.

    Raises:
        RangeError: at the receivers, if a range check of the inputs failed.
    """
    try:
        yield
    except StoppedError as stopped:
        refusal = None
        # The other parties do not know a cause that stops this party alone; they end because of it.
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
    """Builds the outcome of a program for this party.

    Raises:
        RangeError: a range check behind a value that this party was to learn failed.

    Warns:
        PrecisionWarning: a result that this party learns may have no right digit.
    """
    result, had, instructions, printed, opened, waited, scanned, failed, coarse = told
    here, known, outputs = session(), union(each.known for each in arrays), {}
    # A program that a failed range check stopped has no outputs.
    for name, kind, (values, own, scale, flags) in zip(names, types, had, strict=not failed):
        outputs[name] = left(here, kind, values, own, scale)
        if isinstance(outputs[name], SecretTensor):
            outputs[name].depends(union((known, *flags)))
    shown = [Opened(what, "all" if to is None else to, values) for what, to, values in opened]
    outcome = Outcome(
        _number(result, returns),
        outputs,
        instructions,
        printed,
        shown,
        dict(waited),
        [Scanned(*each) for each in scanned],
    )
    refusal = _refusal(here, known, [to for _, to, _ in opened], failed)
    if refusal is None:
        for name, most in coarse:
            warnings.warn(_coarse(name, most), PrecisionWarning, stacklevel=3)
        return outcome
    secret = {
        name: each if isinstance(each, SecretTensor) else None for name, each in outputs.items()
    }
    refusal.outcome = replace(outcome, result=None, outputs=secret)
    raise refusal
