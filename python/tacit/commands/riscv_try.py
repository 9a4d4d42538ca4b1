"""``tacit riscv try``: runs a program, or a function of one, with all parties on this machine."""

import argparse
from typing import Any

from tacit.commands.options import (
    add_attestation,
    add_checked,
    add_network,
    add_setting,
    chosen_setting,
    output,
    print_threat_model,
    write_json,
)
from tacit.commands.riscv_job import Job, add_job, job, show


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "try",
        help="run a program with all parties on this machine",
        description="Runs a compiled program, or calls a function of it, with all parties on this "
        "machine.",
    )
    add_job(parser)
    add_checked(parser)
    add_setting(parser)
    add_network(parser)
    add_attestation(parser)
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    setting, wanted = chosen_setting(parsed), job(parsed, None)
    wanted.check(setting.parties)

    import tacit

    console = output()
    print_threat_model(console, setting)
    told = tacit.launch(
        _party,
        wanted,
        parties=setting.parties,
        protocol=setting.protocol,
        source=setting.source,
        network=parsed.network,
        transport="tcp",
        checked=parsed.checked,
        attestation=setting.attestation,
    )
    from tacit.meter import attestation_of

    by_party = [each.pop("attestation") for each in told]
    report = {**_of_all(told), **attestation_of(by_party)}
    show(console, report, is_run=parsed.call is None)
    write_json(parsed.json, report)


def _party(wanted: Job) -> dict[str, Any]:
    """Runs one party's part, and returns its report and what it attested."""
    import tacit

    return {**wanted.carry_out(), "attestation": tacit.session().attestation}


def _of_all(told: list[dict[str, Any]]) -> dict[str, Any]:
    """Combines what the parties learn."""

    def learned(values: list[Any]) -> Any:
        return next((value for value in values if value is not None), None)

    outputs = {
        name: learned([each["outputs"][name] for each in told]) for name in told[0]["outputs"]
    }
    return {**told[0], "outputs": outputs, "result": learned([each["result"] for each in told])}
