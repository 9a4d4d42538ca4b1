"""The command line: ``tacit demo``, ``bench``, ``run``, ``doctor`` and so on.

What a command needs is imported where it runs: those that only make files or deal do not load PyTorch.
"""

import argparse
import json
import runpy
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tacit
from tacit import _core
from tacit.bench.settings import SETTINGS, Setting
from tacit.errors import MisuseError, SetupError, TacitError

if TYPE_CHECKING:
    from rich.console import Console


#: Of one session at most.
MOST_PARTIES = 64

#: Seconds in which the other parties may come up that are to be told why this one does not take part.
WHILE_STARTING = 20.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; 1 after an error of tacit's own, which is printed as one message."""
    parsed = _parser().parse_args(arguments)
    try:
        parsed.command(parsed)
    except TacitError as error:
        print(f"tacit: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("tacit: interrupted", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tacit",
        description="Compute together on data that nobody shows: secure multi-party computation.",
    )
    parser.add_argument("--version", action="version", version=f"tacit {tacit.__version__}")
    commands = parser.add_subparsers(title="commands", required=True)

    demo = commands.add_parser("demo", help="classify handwritten digits privately, on this machine")
    _add_setting(demo)
    demo.add_argument("--json", type=Path, metavar="FILE", help="write the outcome there as JSON")
    demo.add_argument(
        "--samples", type=_positive, metavar="N", help="classify only the first N held-out images"
    )
    demo.set_defaults(command=_demo)

    bench = commands.add_parser(
        "bench",
        help="measure the protocols between processes",
        description="Measures the protocols between processes: without any option under four settings, "
        "or else under the one that the options name.",
    )
    _add_setting(bench)
    bench.add_argument("--only", metavar="NAME,..", help="these cases only")
    bench.add_argument(
        "--threads", type=_positive, metavar="N", help="threads of each party; cores / parties if not given"
    )
    bench.add_argument("--json", type=Path, metavar="FILE", help="write the report there as JSON")
    bench.set_defaults(command=_bench)

    run = commands.add_parser("run", help="take part in a session with parties on other machines")
    run.add_argument("--config", required=True, metavar="parties.toml", help="who takes part, and where")
    run.add_argument("--party", required=True, type=_party, metavar="I", help="which of them this is, from 0")
    run.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="write there what was asked of the source of correlations, for `tacit correlations make`",
    )
    run.add_argument("program", help="the Python program that every party runs")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="its own arguments")
    run.set_defaults(command=_run)

    dealer = commands.add_parser(
        "dealer", help="make correlations for parties on other machines, until they have finished"
    )
    dealer.add_argument("--config", required=True, metavar="parties.toml", help="who takes part, and where")
    dealer.add_argument(
        "--threads", type=_positive, metavar="N", help="of this process; all cores if not given"
    )
    dealer.set_defaults(command=_dealer)

    _add_correlations(commands)

    doctor = commands.add_parser(
        "doctor",
        help="say whether a session is possible, and what to mend",
        description="Examines versions, the configuration, certificates and keys; and as one of the members, "
        "whether it can listen, who of the others is there, and whether clocks and settings agree.",
    )
    doctor.add_argument("--config", required=True, metavar="parties.toml", help="who takes part, and where")
    member = doctor.add_mutually_exclusive_group()
    member.add_argument("--party", type=_party, metavar="I", help="which of them this is, from 0")
    member.add_argument("--dealer", action="store_true", help="this is the dealer")
    doctor.add_argument(
        "--wait", type=float, default=3.0, metavar="S", help="look for the others so many seconds (3)"
    )
    doctor.add_argument("--json", type=Path, metavar="FILE", help="write the checks there as JSON")
    doctor.set_defaults(command=_doctor)

    certificates = commands.add_parser(
        "certificates",
        help="make a key and a certificate",
        description="Makes a key and a certificate: with --party for this party, with --dealer for the "
        "dealer, as each runs it for itself; with --parties for all parties, for trials.",
    )
    whose = certificates.add_mutually_exclusive_group()
    whose.add_argument("--party", type=_party, metavar="I", help="for this one, counted from 0")
    whose.add_argument("--parties", type=_positive, metavar="N", help="for so many, each their own")
    certificates.add_argument("--dealer", action="store_true", help="for the dealer, alone or with --parties")
    certificates.add_argument("--out", required=True, metavar="DIR", help="where they are written")
    certificates.set_defaults(command=_certificates)
    return parser


def _add_correlations(commands: Any) -> None:
    correlations = commands.add_parser("correlations", help="make correlations ahead of a session")
    actions = correlations.add_subparsers(title="commands", required=True)
    make = actions.add_parser(
        "make",
        help="make this party's file of correlations, together with the other parties",
        description="Every party runs this at the same time; with a dealer, `tacit dealer` runs too. "
        'Sessions whose parties.toml says source = "file" then need no other source.',
    )
    make.add_argument("--config", required=True, metavar="parties.toml", help="who takes part, and where")
    make.add_argument(
        "--party", required=True, type=_party, metavar="I", help="which of them this is, from 0"
    )
    make.add_argument(
        "--demand", required=True, type=Path, metavar="FILE", help="what `tacit run --record FILE` wrote"
    )
    make.add_argument("--runs", required=True, type=_positive, metavar="N", help="for so many sessions")
    make.add_argument("--out", required=True, type=Path, metavar="FILE", help="a new file, sealed by the key")
    make.add_argument("--source", choices=["ot", "he", "dealer"], help="instead of the configuration's")
    make.add_argument("--threads", type=_positive, metavar="N", help="all cores if not given")
    make.set_defaults(command=_make_correlations)


def _add_setting(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--protocol",
        choices=["replicated", "additive"],
        help='"replicated" (default): three parties, no two together; "additive": any number, all but one',
    )
    command.add_argument(
        "--parties", type=_positive, metavar="N", help="how many: 3 by default, 2 with additive sharing"
    )
    command.add_argument(
        "--source",
        choices=["ot", "he", "dealer"],
        help='of the correlations of additive sharing: "ot" (default): oblivious transfer between the '
        'parties; "he": the same, products of matrices by homomorphic encryption; "dealer": one more '
        "process, which sees shapes only",
    )


def _setting(parsed: argparse.Namespace) -> Setting:
    setting = Setting.of(parsed.protocol, parsed.parties, parsed.source)
    # Refuses what cannot be before anything is started.
    _core.threat_model(setting.protocol, setting.parties, setting.source)
    return setting


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a whole number, not {text}") from None


def _party(text: str) -> int:
    number = _whole(text)
    if not 0 <= number < MOST_PARTIES:
        raise argparse.ArgumentTypeError(f"parties count from 0 to {MOST_PARTIES - 1}")
    return number


def _positive(text: str) -> int:
    number = _whole(text)
    if number < 1:
        raise argparse.ArgumentTypeError("a number from 1")
    return number


def _print_threat_model(console: "Console", setting: Setting) -> None:
    """Of the sessions that the demo and the benchmarks start."""
    threat_model = _core.threat_model(setting.protocol, setting.parties, setting.source)
    console.print(f"Threat model: {threat_model}; links: TLS 1.3, mutual certificates.")


def _write(path: Path | None, content: Any) -> None:
    if path is not None:
        _write_text(path, json.dumps(content, indent=2) + "\n")


def _write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise SetupError(f"cannot write {path}: {error.strerror}") from None


def _demo(parsed: argparse.Namespace) -> None:
    setting = _setting(parsed)
    from rich.console import Console

    from tacit.demo import demonstrate, report

    console = Console()
    _print_threat_model(console, setting)
    outcome, threat_model = demonstrate(
        console,
        parsed.samples,
        protocol=setting.protocol,
        parties=setting.parties,
        source=setting.source,
    )
    report(console, outcome, threat_model)
    _write(parsed.json, outcome.as_json())


def _bench(parsed: argparse.Namespace) -> None:
    one = any((parsed.only, parsed.protocol, parsed.parties is not None, parsed.source))
    settings = [_setting(parsed)] if one else SETTINGS
    from rich.console import Console

    from tacit.bench.rounds import rounds_by_parties
    from tacit.bench.run import chosen
    from tacit.bench.tables import rounds

    console = Console()
    names = chosen(parsed.only.split(",") if parsed.only else [])
    entries: list[dict[str, Any]] = []
    for setting in settings:
        _measure(console, setting, names, parsed, entries)
    if not one:
        console.print(rounds(rounds_by_parties()))


def _measure(
    console: "Console",
    setting: Setting,
    names: list[str],
    parsed: argparse.Namespace,
    entries: list[dict[str, Any]],
) -> None:
    """All cases under one setting; their entries come to those that there are."""
    from tacit.bench.run import measure
    from tacit.bench.tables import costs

    _print_threat_model(console, setting)
    first, memory = len(entries), []
    for name in names:
        with console.status(f"{name} ..."):
            entry, peak = measure(name, setting, parsed.threads)
        console.print(f"{name}: {entry['seconds_median']:.4f} s")
        entries.append(entry)
        memory.append(peak)
        _write(parsed.json, entries)
    console.print(costs(setting, entries[first:], memory))


def _run(parsed: argparse.Namespace) -> None:
    wrong = _wrong_with(Path(parsed.program))
    if wrong is not None:
        print(f"tacit: {wrong}; telling the other parties ...", file=sys.stderr)
        _core.refuse(parsed.config, parsed.party, wrong, WHILE_STARTING)
        sys.exit(1)
    with tacit.connect(parsed.config, parsed.party, record=parsed.record is not None) as session:
        print(f"tacit: party {session.party}; {session.threat_model}", file=sys.stderr)
        sys.argv = [parsed.program, *parsed.arguments]
        sys.path.insert(0, str(Path(parsed.program).resolve().parent))
        runpy.run_path(parsed.program, run_name="__main__")
        if parsed.record is not None:
            _write_demand(parsed.record, session.demand)


def _wrong_with(program: Path) -> str | None:
    """What keeps a program from running, found before the others are met."""
    try:
        compile(program.read_bytes(), str(program), "exec")
    except FileNotFoundError:
        return f"there is no program {program}"
    except OSError as error:
        return f"cannot read the program {program}: {error.strerror}"
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        return f"the program {program}{line} is no Python: {getattr(error, 'msg', error)}"
    return None


def _write_demand(path: Path, demand: str | None) -> None:
    if demand is None:
        raise MisuseError("--record: this session's protocol consumes no correlations")
    _write_text(path, demand)
    print(f"tacit: wrote {path}: {len(demand.splitlines()) - 1} jobs", file=sys.stderr)


def _make_correlations(parsed: argparse.Namespace) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    try:
        demand = parsed.demand.read_text()
    except OSError as error:
        raise SetupError(f"cannot read {parsed.demand}: {error.strerror}") from None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("making correlations", total=None)
        _core.make_correlations(
            parsed.config,
            parsed.party,
            demand,
            parsed.runs,
            str(parsed.out),
            lambda done, total: progress.update(task, completed=done, total=total),
            parsed.source,
            parsed.threads,
        )
    print(f"Wrote {parsed.out}: correlations for {parsed.runs} sessions, each to be used once.")
    print("It can be read with this party's key alone: keep the two apart from all others.")


def _dealer(parsed: argparse.Namespace) -> None:
    parties = _parties_of(parsed.config)
    if parties is not None:
        print(f"tacit: the dealer; {_core.threat_model('additive', parties, 'dealer')}", file=sys.stderr)
    _core.deal_connected(parsed.config, threads=parsed.threads)


def _parties_of(config: str) -> int | None:
    """How many a configuration names; what is wrong with one that does not say, the core tells."""
    try:
        return len(tomllib.loads(Path(config).read_text())["party"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _doctor(parsed: argparse.Namespace) -> None:
    from tacit.doctor import examine

    checks = examine(parsed.config, parsed.party, parsed.dealer, parsed.wait)
    print("\n".join(map(str, checks)))
    _write(parsed.json, [check.as_json() for check in checks])
    if parsed.party is None and not parsed.dealer:
        print("With --party I it is examined too whether party I can listen, and who of the others is there.")
    if not all(check.ok for check in checks):
        sys.exit(1)


def _certificates(parsed: argparse.Namespace) -> None:
    one = parsed.party is not None
    if one == (parsed.parties is not None or parsed.dealer):
        raise MisuseError(
            "say for whom: --party I for one party, --dealer for the dealer, or --parties N for all; "
            "--dealer may come with --parties"
        )
    if parsed.parties is not None and not 2 <= parsed.parties <= MOST_PARTIES:
        raise MisuseError(f"a session has 2 to {MOST_PARTIES} parties, not {parsed.parties}")
    numbers = [parsed.party] if one else range(parsed.parties or 0)
    names = [f"party-{party}" for party in numbers] + ["dealer"] * parsed.dealer
    _core.write_certificates(names, parsed.out)
    files = [f"{name}.{ending}" for name in names for ending in ("pem", "key")]
    shown = files if len(files) <= 4 else [*files[:2], "...", *files[-2:]]
    print(f"Wrote {', '.join(shown)} in {parsed.out}.")
    if len(names) == 1:
        print(f"Give {files[0]} to all others by a way that they trust, and {files[1]} to nobody.")
    else:
        print("Give every party all .pem files, and its own .key to it alone.")


if __name__ == "__main__":
    sys.exit(main())
