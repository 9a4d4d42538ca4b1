"""The command line: ``tacit demo``, ``bench``, ``run``, ``certificates``."""

import argparse
import json
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

import tacit
from tacit import _core
from tacit.errors import TacitError


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

    demo = commands.add_parser(
        "demo", help="classify handwritten digits privately, three parties on this machine"
    )
    demo.add_argument("--json", type=Path, metavar="FILE", help="write the outcome there as JSON")
    demo.add_argument(
        "--samples", type=_positive, metavar="N", help="classify only the first N held-out images"
    )
    demo.set_defaults(command=_demo)

    bench = commands.add_parser("bench", help="measure the protocols between three processes")
    bench.add_argument("--only", metavar="NAME,..", help="these cases only")
    bench.add_argument(
        "--threads", type=_positive, metavar="N", help="threads of each party; cores / parties if not given"
    )
    bench.add_argument("--json", type=Path, metavar="FILE", help="write the report there as JSON")
    bench.set_defaults(command=_bench)

    run = commands.add_parser("run", help="take part in a session with parties on other machines")
    run.add_argument("--config", required=True, metavar="parties.toml", help="who takes part, and where")
    run.add_argument("--party", required=True, type=int, metavar="I", help="which of them this is, from 0")
    run.add_argument("program", help="the Python program that every party runs")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="its own arguments")
    run.set_defaults(command=_run)

    certificates = commands.add_parser("certificates", help="make a key and a certificate for each party")
    certificates.add_argument("--parties", required=True, type=_positive, metavar="N", help="how many")
    certificates.add_argument("--out", required=True, metavar="DIR", help="an empty directory")
    certificates.set_defaults(command=_certificates)
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("a number from 1")
    return number


def _print_threat_model(console: Console) -> None:
    """Of the sessions that the demo and the benchmarks start."""
    console.print(
        f"Threat model: {_core.threat_model('replicated', 3)}; links: TLS 1.3, mutual certificates."
    )


def _write(path: Path | None, content: Any) -> None:
    if path is not None:
        path.write_text(json.dumps(content, indent=2) + "\n")


def _demo(parsed: argparse.Namespace) -> None:
    from tacit.demo import demonstrate, report

    console = Console()
    _print_threat_model(console)
    outcome, threat_model = demonstrate(console, parsed.samples)
    report(console, outcome, threat_model)
    _write(parsed.json, outcome.as_json())


def _bench(parsed: argparse.Namespace) -> None:
    from tacit.bench.run import check, measure, table

    console = Console()
    names = check(parsed.only.split(",") if parsed.only else [])
    _print_threat_model(console)
    entries, memory = [], []
    for name in names:
        with console.status(f"{name} ..."):
            entry, peak = measure(name, parsed.threads)
        console.print(f"{name}: {entry['seconds_median']:.4f} s")
        entries.append(entry)
        memory.append(peak)
        _write(parsed.json, entries)
    console.print(table(entries, memory))


def _run(parsed: argparse.Namespace) -> None:
    with tacit.connect(parsed.config, parsed.party) as session:
        print(f"tacit: party {session.party}; {session.threat_model}", file=sys.stderr)
        sys.argv = [parsed.program, *parsed.arguments]
        sys.path.insert(0, str(Path(parsed.program).resolve().parent))
        runpy.run_path(parsed.program, run_name="__main__")


def _certificates(parsed: argparse.Namespace) -> None:
    _core.write_certificates(parsed.parties, parsed.out)
    last = parsed.parties - 1
    print(f"Wrote party-0.pem, party-0.key to party-{last}.pem, party-{last}.key in {parsed.out}.")
    print("Give every party all .pem files, and its own .key to it alone.")


if __name__ == "__main__":
    sys.exit(main())
