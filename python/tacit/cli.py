"""The command line: ``tacit demo``, ``bench``, ``run``, ``dealer``, ``correlations``, ``certificates``.

What a command needs is imported where it runs: those that only make files or deal do not load PyTorch.
"""

import argparse
import json
import os
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
    run.add_argument("--party", required=True, type=int, metavar="I", help="which of them this is, from 0")
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

    certificates = commands.add_parser("certificates", help="make a key and a certificate for each party")
    certificates.add_argument("--parties", required=True, type=_positive, metavar="N", help="how many")
    certificates.add_argument("--out", required=True, metavar="DIR", help="an empty directory")
    certificates.add_argument("--dealer", action="store_true", help="also for a dealer")
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
    make.add_argument("--party", required=True, type=int, metavar="I", help="which of them this is, from 0")
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


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("a number from 1")
    return number


def _print_threat_model(console: "Console", setting: Setting) -> None:
    """Of the sessions that the demo and the benchmarks start."""
    threat_model = _core.threat_model(setting.protocol, setting.parties, setting.source)
    console.print(f"Threat model: {threat_model}; links: TLS 1.3, mutual certificates.")


def _write(path: Path | None, content: Any) -> None:
    if path is not None:
        path.write_text(json.dumps(content, indent=2) + "\n")


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
    with tacit.connect(parsed.config, parsed.party, record=parsed.record is not None) as session:
        print(f"tacit: party {session.party}; {session.threat_model}", file=sys.stderr)
        sys.argv = [parsed.program, *parsed.arguments]
        sys.path.insert(0, str(Path(parsed.program).resolve().parent))
        runpy.run_path(parsed.program, run_name="__main__")
        if parsed.record is not None:
            _write_demand(parsed.record, session.demand)


def _write_demand(path: Path, demand: str | None) -> None:
    if demand is None:
        raise MisuseError("--record: this session's protocol consumes no correlations")
    path.write_text(demand)
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


def _certificates(parsed: argparse.Namespace) -> None:
    _core.write_certificates(parsed.parties, parsed.out)
    last = parsed.parties - 1
    print(f"Wrote party-0.pem, party-0.key to party-{last}.pem, party-{last}.key in {parsed.out}.")
    if parsed.dealer:
        _write_dealers_certificate(parsed.parties, Path(parsed.out))
        print(f"Wrote dealer.pem, dealer.key in {parsed.out}.")
    print("Give every party all .pem files, and its own .key to it alone.")


def _write_dealers_certificate(parties: int, folder: Path) -> None:
    """The dealer counts after the parties."""
    certificate, key = _core.generate_certificate(parties)
    for path, text, mode in (
        (folder / "dealer.pem", certificate, 0o644),
        (folder / "dealer.key", key, 0o600),
    ):
        try:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
                file.write(text)
        except OSError as error:
            raise SetupError(f"cannot write {path}: {error.strerror}; choose an empty directory") from None


if __name__ == "__main__":
    sys.exit(main())
