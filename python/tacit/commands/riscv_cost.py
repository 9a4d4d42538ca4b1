"""``tacit riscv cost``: shows what a program costs, without any other party."""

import argparse
import re
from typing import Any

from tacit.commands.options import add_setting, chosen_setting, write_json
from tacit.commands.riscv_job import Job, add_job, job, scanned_lines, values
from tacit.errors import StoppedError, stopped_error
from tacit.providers import consumes


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "cost",
        help="say what a program costs, without any other party",
        description="Runs a program between parties in this process, on zeros instead of secrets, "
        "and "
        "says what that costs: rounds and bytes are exactly those of any run, unless the "
        "program opens values on its way and continues by them. The length of a secret is "
        "enough, as in --secret a=0:u64:1000. The correlations of additive sharing are "
        "counted if --source names where they come from.",
    )
    add_job(parser)
    add_setting(parser)
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    setting, wanted = chosen_setting(parsed), job(parsed, None, lengths=True)
    wanted.check(setting.parties)
    from tacit.meter import verification_lines
    from tacit.parties.launch import rehearse

    try:
        told = rehearse(
            _rehearsed,
            wanted,
            parties=setting.parties,
            protocol=setting.protocol,
            source=parsed.source,
        )
    except StoppedError as error:
        # All parties report the same.
        refused = re.sub(r"^party \d+: ", "", str(error)).splitlines()
        write_json(parsed.json, {"refused": refused})
        if len(refused) == 1:
            raise
        raise stopped_error(f"{len(refused)} lines are refused:\n" + "\n".join(refused)) from None
    report, _ = told[0]
    made = max(each for _, each in told) if parsed.source else None
    cost = {
        "instructions": report["instructions"],
        "rounds": report["rounds"],
        "bytes_sent_per_party": report["bytes_sent_per_party"],
        "correlation_bytes": made,
        **({"verification": report["verification"]} if "verification" in report else {}),
        "opened": report["opened"],
        "scanned": report["scanned"],
        "refused": [],
    }
    write_json(parsed.json, cost)
    print(
        f"{cost['instructions']} instructions, {cost['rounds']} rounds, "
        f"{max(cost['bytes_sent_per_party'])} bytes sent by the party that sends most"
    )
    for line in verification_lines(cost):
        print(line)
    if made is not None:
        print(f"correlations: {made} bytes sent or received by the party that does so most")
    elif consumes(setting.protocol):
        print("as with source ot; not counted: correlations; --source says where they come from")
    for line in scanned_lines(cost):
        print(line)
    for each in cost["opened"]:
        print(f"opens {values(each['values'])} of {each['what']} to {each['to']}")


def _rehearsed(wanted: Job) -> tuple[dict[str, Any], int]:
    """Returns the report, and the number of bytes that making correlations sent or received."""
    import tacit

    report, made = wanted.carry_out(passes_over=True), tacit.session().meter.correlations
    return report, max(made.bytes_sent, made.bytes_received)
