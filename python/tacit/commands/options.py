"""Options and output that several commands share. Each option is defined here once."""

import argparse
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit import _core
from tacit.atomic_write import cannot_write, write
from tacit.bench.settings import Setting
from tacit.errors import setup_error
from tacit.providers import (
    CONSUMING,
    DEFAULT,
    DEFAULT_DEVICE,
    DEVICES,
    LIVE,
    PROTOCOLS,
    SOURCES,
    described,
)

if TYPE_CHECKING:
    from rich.console import Console

#: The kind of evidence that needs no hardware, and proves nothing.
SIMULATED = "simulated"

#: Width of a line in a file or a pipe, which have none: more than any line has.
WIDEST = 100_000

#: Greatest number of parties of a session.
MOST_PARTIES = 64


def add_setting(command: argparse.ArgumentParser) -> None:
    """Adds the options that choose a protocol, the number of its parties and its source."""
    secret = [protocol for protocol in PROTOCOLS.values() if protocol.is_secret]
    usual = ", ".join(
        f"{protocol.usual_parties} with {protocol.name} sharing" for protocol in secret
    )
    command.add_argument(
        "--protocol",
        choices=[protocol.name for protocol in secret],
        help=described(secret),
    )
    command.add_argument(
        "--parties",
        type=positive,
        metavar="N",
        help=f"how many; by default {usual}. With another number "
        f"than {PROTOCOLS[DEFAULT].usual_parties}, and no --protocol, it is {CONSUMING} sharing",
    )
    command.add_argument(
        "--source",
        choices=LIVE,
        help=f"of the correlations of {CONSUMING} sharing: "
        f"{described([SOURCES[name] for name in LIVE])}",
    )


def add_attestation(command: argparse.ArgumentParser) -> None:
    """Adds the option for evidence of the program that each party runs."""
    command.add_argument(
        "--attestation",
        choices=[SIMULATED],
        help="let all parties show each other evidence of the program that they run before anything "
        "is shared, and sign all messages; servers of a federation show it to clients too. "
        "Simulated evidence proves nothing: it is for trials. Members on their own machines have "
        "[attestation] in parties.toml or federation.toml",
    )


def add_device(command: argparse.ArgumentParser, *, has_config: bool = False) -> None:
    """Adds the option for what products are evaluated on.

    Args:
        has_config: whether the command reads parties.toml, in which each party can name its own.
    """
    besides = "; overrides the line `device` of this party in parties.toml" if has_config else ""
    command.add_argument(
        "--device",
        choices=list(DEVICES),
        default=None if has_config else DEFAULT_DEVICE,
        help="evaluate matrix products and convolutions on it: "
        f"{described(list(DEVICES.values()))}. All compute the same words, so parties need not "
        f"choose alike{besides}",
    )


def add_network(command: argparse.ArgumentParser) -> None:
    """Adds the option for the network that the links of this machine imitate."""
    command.add_argument(
        "--network",
        metavar="lan|wan|RTT,MBIT",
        help="let links be as slow as those of a network: lan (a round trip of 1 ms, 1000 Mbit/s), "
        "wan (40 ms, 100 Mbit/s), or milliseconds of a round trip and megabits a second, such as "
        "20,100; as fast as this machine if not given",
    )


def add_servers_protocol(command: argparse.ArgumentParser, besides: str = "") -> None:
    """Adds the option for the protocol of a federation's servers; ``check_protocol`` of
    ``tacit.federated.rounds.settings`` checks it."""
    serving = [protocol for protocol in PROTOCOLS.values() if protocol.serves_federations]
    command.add_argument(
        "--protocol", metavar="NAME", help=f"of the servers{besides}: {described(serving)}"
    )


def chosen_setting(parsed: argparse.Namespace) -> Setting:
    """Returns the setting that the options of :func:`add_setting` choose; raises for an impossible
    one, before anything is started."""
    setting = Setting.of(parsed.protocol, parsed.parties, parsed.source)
    setting = replace(
        setting,
        attestation=getattr(parsed, "attestation", None),
        device=getattr(parsed, "device", DEFAULT_DEVICE),
    )
    _core.threat_model(setting.protocol, setting.parties, setting.source)
    return setting


def add_config(
    command: argparse.ArgumentParser, file: str = "parties.toml", besides: str = ""
) -> None:
    """Adds the option for the configuration, which says who takes part."""
    command.add_argument(
        "--config", required=True, metavar=file, help=f"who takes part, and where{besides}"
    )


def add_member(command: argparse.ArgumentParser) -> None:
    """Adds the options for the configuration and for which of its parties this is."""
    add_config(command)
    command.add_argument(
        "--party", required=True, type=party, metavar="I", help="which of them this is, from 0"
    )


def add_threads(
    command: argparse.ArgumentParser, what: str = "threads of this process; all cores if not given"
) -> None:
    """Adds the option for the number of threads that kernels use."""
    command.add_argument("--threads", type=positive, metavar="N", help=what)


def add_json(command: argparse.ArgumentParser) -> None:
    """Adds the option for the file of a report; :func:`check_report` and :func:`write_json` belong
    to it."""
    command.add_argument("--json", type=Path, metavar="FILE", help="write the report there as JSON")


def add_out(command: argparse.ArgumentParser) -> None:
    """Adds the option for the folder of keys and certificates."""
    command.add_argument("--out", required=True, metavar="DIR", help="where they are written")


def add_program(command: argparse.ArgumentParser) -> None:
    """Adds the argument for a compiled program."""
    command.add_argument(
        "program",
        type=Path,
        metavar="FILE.tacit",
        help="a compiled program, as tacit compile wrote it",
    )


def add_subject(command: argparse.ArgumentParser) -> None:
    """Adds the argument for the subject of a rehearsal, and the option for its report."""
    command.add_argument(
        "subject",
        metavar="FILE:CALLABLE",
        help="a function without arguments that returns (module, example inputs), or that is "
        "itself the program of every party, such as model.py:build",
    )
    add_json(command)


def add_checked(command: argparse.ArgumentParser, *, has_config: bool = False) -> None:
    """Adds the option that turns on checked mode (``tacit.checked``).

    Args:
        has_config: whether the command reads parties.toml, which can turn it on too.
    """
    besides = "; `checked = true` in parties.toml turns it on too" if has_config else ""
    command.add_argument(
        "--checked",
        action="store_true",
        help="check in secret that every number stays in its range, and show no result if one does "
        f"not; the same in every party{besides}",
    )


def add_streams(command: argparse.ArgumentParser) -> None:
    """Adds the option for how many examples of a batch run side by side
    (``tacit.compilation.streams``)."""
    command.add_argument(
        "--streams",
        type=whole,
        default=1,
        metavar="K",
        help="number of examples of a batch that run side by side, the same in every party: while "
        "the messages of one are in transit, another one is computed (1 if not given)",
    )


def whole(text: str) -> int:
    """Parses a whole number in an option."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a whole number, not {text}") from None


def party(text: str) -> int:
    """Parses the number of a party in an option."""
    number = whole(text)
    if not 0 <= number < MOST_PARTIES:
        raise argparse.ArgumentTypeError(f"parties count from 0 to {MOST_PARTIES - 1}")
    return number


def positive(text: str) -> int:
    """Parses a whole number from 1 in an option."""
    number = whole(text)
    if number < 1:
        raise argparse.ArgumentTypeError("a number from 1")
    return number


def output() -> "Console":
    """Returns the console that results are printed on. In a file or a pipe, which have no width,
    nothing is folded or cut."""
    from rich.console import Console

    has_width = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console() if has_width else Console(width=WIDEST)


def print_threat_model(console: "Console", setting: Setting) -> None:
    """Prints the threat model of the sessions that the demo and the benchmarks start."""
    threat_model = _core.threat_model(setting.protocol, setting.parties, setting.source)
    attested = ""
    if setting.attestation is not None:
        attested = f"; {_core.attestation_model(setting.attestation)}"
    console.print(f"Threat model: {threat_model}; links: TLS 1.3, mutual certificates{attested}.")


def check_writable(*paths: Path | None) -> None:
    """Checks that the files that a command writes at its end can be written, before it takes
    minutes.

    ``None`` stands for a file that is not requested.

    Raises:
        SetupError: a file cannot be written.
    """
    for path in paths:
        if (wrong := cannot_write(path)) is not None:
            raise setup_error(wrong)


def check_report(parsed: argparse.Namespace) -> None:
    """Checks that the report of a command can be written, if the command has one."""
    check_writable(getattr(parsed, "json", None))


def write_json(path: Path | None, content: Any) -> None:
    """Writes a report, if one is requested."""
    if path is not None:
        write(path, json.dumps(content, indent=2) + "\n")
