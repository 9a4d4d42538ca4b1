"""``tacit try``: runs a compiled program with all parties on this machine, and compares it with the
model before compilation and with plain PyTorch."""

import argparse
from pathlib import Path
from typing import Any

from tacit.commands.options import (
    add_attestation,
    add_checked,
    add_device,
    add_json,
    add_network,
    add_program,
    add_setting,
    add_streams,
    chosen_setting,
    output,
    print_threat_model,
    write_json,
)
from tacit.errors import MisuseError


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "try",
        help="run a compiled program with all parties on this machine",
        description="Runs a compiled program, and the model before compilation, with all parties on this "
        "machine, and compares both with plain PyTorch.",
    )
    add_program(parser)
    parser.add_argument(
        "--weights", type=Path, required=True, metavar="FILE", help="as tacit compile wrote them"
    )
    parser.add_argument(
        "--input",
        type=Path,
        action="append",
        required=True,
        metavar="FILE.npy",
        help="of the shape that the program was compiled for, or a batch with a multiple of its "
        "rows; if the program takes several inputs, one file for each, in order",
    )
    add_streams(parser)
    add_checked(parser)
    add_json(parser)
    add_setting(parser)
    add_network(parser)
    add_attestation(parser)
    add_device(parser)
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    setting = chosen_setting(parsed)

    from tacit.commands.arrays import read
    from tacit.compilation.program import load_program
    from tacit.compilation.try_model import tried
    from tacit.compilation.weights import load_weights

    program, weights = load_program(parsed.program), load_weights(parsed.weights)
    inputs = [read(path) for path in parsed.input]
    if len(inputs) != len(program.inputs):
        raise MisuseError(
            f"--input: the program takes {len(program.inputs)} inputs, {len(inputs)} are given"
        )
    console = output()
    print_threat_model(console, setting)
    found = tried(
        program,
        weights,
        inputs,
        parties=setting.parties,
        protocol=setting.protocol,
        source=setting.source,
        network=parsed.network,
        attestation=setting.attestation,
        device=setting.device,
        streams=parsed.streams,
        checked=parsed.checked,
    )
    write_json(parsed.json, found.as_json())
    print(found)
