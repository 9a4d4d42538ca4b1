"""``tacit run ... model.tacit``: runs a compiled program as one party of a session.

Each party itself says whether it has the weights or inputs, and whether it learns the result. All
parties are told before anything is shared."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import tacit
from tacit import _core
from tacit.commands.options import add_streams, check_writable
from tacit.commands.run_report import Report
from tacit.errors import DeviationError, MisuseError, RangeError, SetupError, setup_error

if TYPE_CHECKING:
    import torch

    from tacit.compilation.program import Program
    from tacit.compilation.weights import Weights
    from tacit.sessions import Session

#: Message to the other parties about an error of this one. Details may be in the name of a file,
#: which they need not know.
WRONG = "its program, options or files are wrong"

#: Suffix of a program's name.
SUFFIX = ".tacit"


class _Parser(argparse.ArgumentParser):
    """Parser whose errors are reported to the other parties."""

    def error(self, message: str) -> NoReturn:
        """Raises an error instead of exiting."""
        raise MisuseError(f"{message}; {self.prog} --help lists the options")


class Part(NamedTuple):
    """Part of this party in a run."""

    program: "Program"
    #: Content of the file that the program was read from, whose digest this party attests.
    content: bytes
    weights: "Weights | None"
    #: Inputs that this party has, by placeholder.
    inputs: "dict[str, torch.Tensor]"
    #: File for the result, if this party learns it.
    output: Path | None
    #: Number of examples of a batch that run side by side.
    streams: int
    #: Number of examples in this party's inputs.
    examples: int


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that follow a compiled program."""
    parser.add_argument("--weights", type=Path, metavar="FILE", help="if this party owns them")
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE.npy",
        help="if this party has it; NAME if the program takes several inputs",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE.npy", help="if this party learns the result"
    )
    add_streams(parser)


def parsed_part(program: Path, arguments: Sequence[str]) -> Part:
    """Returns this party's part, with all its files read before the parties connect.

    Raises:
        SetupError: a file cannot be read.
        MisuseError: a file does not fit the program.
    """
    parser = _Parser(prog=f"tacit run {program.name}")
    add_options(parser)
    parsed = parser.parse_args(arguments)
    from tacit.commands.arrays import read
    from tacit.compilation.check_inputs import check_interval, placeholder_of, same_kind
    from tacit.compilation.graph import outputs
    from tacit.compilation.program import Program, read_program
    from tacit.compilation.streams import check
    from tacit.compilation.weights import load_weights

    check(parsed.streams)
    content = read_program(program)
    loaded = Program.parsed(content, str(program))
    weights = None if parsed.weights is None else load_weights(parsed.weights, with_model=False)
    if weights is not None:
        weights.check(loaded)
    inputs = {}
    for text in parsed.input:
        name, equals, path = text.rpartition("=")
        placeholder = placeholder_of(loaded, name if equals else None)
        if placeholder in inputs:
            raise MisuseError(f"--input {text}: that input is given twice")
        inputs[placeholder] = read(Path(path))
        check_interval(loaded.inputs[placeholder], inputs[placeholder])
    count = same_kind(loaded, inputs)
    if len(outputs(loaded.graph)) > 1:
        raise MisuseError(
            "the program gives several tensors: tacit run writes one; compile it for one "
            "(--result NAME), or run it from Python"
        )
    check_writable(parsed.output)
    return Part(loaded, content, weights, inputs, parsed.output, parsed.streams, count)


def take_part(
    config: str,
    party: int,
    program: Path,
    arguments: Sequence[str],
    while_starting: float,
    report: Report,
    threads: int | None = None,
    *,
    checked: bool | None = None,
    device: str | None = None,
) -> None:
    """Runs a program, on ``threads`` threads or by default on all cores, with products evaluated on
    ``device``. If that is impossible, tells the other parties."""
    try:
        part = parsed_part(program, arguments)
    except (MisuseError, SetupError) as error:
        report.wrong = type(error).__name__, WRONG
        print(f"tacit: {error}; telling the other parties ...", file=sys.stderr)
        _core.refuse(config, party, WRONG, while_starting)
        sys.exit(1)
    with tacit.connect(
        config, party, threads=threads, checked=checked, program=part.content, device=device
    ) as session:
        report.opened(session)
        print(f"tacit: party {session.party}; {session.threat_model}", file=sys.stderr)
        result = _carried_out(session, part)
    if part.output is not None:
        from tacit.commands.arrays import write

        write(part.output, result)
        print(f"tacit: wrote {part.output}", file=sys.stderr)


def _carried_out(session: "Session", part: Part) -> Any:
    roles = _roles(session, part)
    (weights_owner,) = _owners(roles, "weights", "the weights: --weights FILE at their owner")
    owners = {}
    for name, each in part.program.inputs.items():
        (owners[name],) = _owners(
            roles, f"input {name}", f"the input {each.name}: --input FILE.npy at its owner"
        )
    receivers = [party for party, role in enumerate(roles) if role["output"]]
    if not receivers:
        raise setup_error(
            "no party learns the result: give --output FILE.npy in the party that should"
        )
    from tacit.compilation.execute import revealed

    counts = {roles[owner][f"input {name}"] for name, owner in owners.items()}
    if len(counts) > 1:
        said = ", ".join(
            f"party {owner} has {roles[owner][f'input {name}']} of {part.program.inputs[name].name}"
            for name, owner in owners.items()
        )
        raise setup_error(
            f"the inputs are different numbers of examples, {said}: give as many of each"
        )
    bound = part.program.share(part.weights, owner=weights_owner, streams=part.streams)
    given = [
        bound.given(
            part.inputs.get(name), owner=owner, name=name, count=roles[owner][f"input {name}"]
        )
        for name, owner in owners.items()
    ]
    first = bound(*given)
    mine, failed = None, None
    for receiver in receivers:
        # If this party's own result fails, those of the other parties must still be opened.
        try:
            shown = revealed(first, receiver)
        except RangeError as error:
            failed, shown = error, None
        mine = shown if shown is not None else mine
    if failed is not None:
        raise failed
    return mine


def _roles(session: "Session", part: Part) -> list[dict[str, int]]:
    """Returns what each party has and requests, in every party; for an input, how many examples it
    has."""
    names = ["weights", *(f"input {name}" for name in part.program.inputs), "output"]
    has = [
        int(part.weights is not None),
        *(part.examples if name in part.inputs else 0 for name in part.program.inputs),
        int(part.output is not None),
    ]
    from tacit.compilation.execute import reports_of

    told = []
    for party, read in enumerate(reports_of(session, part.program, has)):
        if len(read) != len(names) or not all(type(each) is int and each >= 0 for each in read):
            raise DeviationError.of(party, "did not report what it has")
        told.append(dict(zip(names, read, strict=True)))
    return told


def _owners(roles: list[dict[str, int]], what: str, remedy: str) -> list[int]:
    owners = [party for party, role in enumerate(roles) if role[what]]
    if len(owners) == 1:
        return owners
    who = "no party has" if not owners else f"parties {', '.join(map(str, owners))} have"
    raise setup_error(f"{who} {remedy}, and at no other party")
