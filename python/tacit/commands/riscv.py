"""``tacit riscv``: runs compiled programs on secret data."""

from typing import Any

from tacit.commands import riscv_cc, riscv_cost, riscv_run, riscv_try

#: Commands of ``tacit riscv``, one per file.
COMMANDS = (riscv_cc, riscv_try, riscv_run, riscv_cost)


def add(commands: Any) -> None:
    parser = commands.add_parser("riscv", help="run compiled programs on secret data")
    inner = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(inner)
