"""``tacit compile``: compiles a model to a program and its weights."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tacit.commands.options import check_writable
from tacit.errors import MisuseError

#: Suffix of the file of weights, which is next to that of the program by default.
WEIGHTS = ".weights"


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "compile",
        help="make a program of a model, for inference on secret data",
        description="Compiles a model in the clear, on its owner's machine: writes the program, "
        "which all "
        "parties get, and the weights, which stay with the owner. Everything that cannot be "
        "compiled is named at once.",
    )
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="an ONNX file; or, of your own only, because loading one can run code, an exported "
        "program (.pt2) or from TensorFlow a SavedModel (a folder), a frozen graph (.pb) or "
        ".keras; or FILE.py:CALLABLE, a function without arguments that returns (module, "
        "example inputs)",
    )
    parser.add_argument(
        "--calibrate",
        type=Path,
        action="append",
        metavar="FILE.npy",
        help="inputs like those of later runs, for scales and intervals; if the model takes "
        "several inputs, one file for each, in order",
    )
    parser.add_argument(
        "--labels",
        type=Path,
        metavar="FILE.npy",
        help="the correct class of each row of the calibration data",
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.tacit")
    parser.add_argument(
        "--weights", type=Path, metavar="FILE", help=f"by default the output's name, with {WEIGHTS}"
    )
    parser.add_argument(
        "--widths",
        choices=("proved", "uniform"),
        default="proved",
        help="proved (default): for each comparison the width that it needs; uniform: one width "
        "for all, which reveals less about weights and data",
    )
    parser.add_argument(
        "--margin",
        type=float,
        metavar="N",
        help="with --calibrate: numbers that a ReLU compares may be N times greater than in "
        "calibration before its guard fails, which leaves no result; by default 4, and guards "
        "only where they save more than they take",
    )
    parser.add_argument(
        "--error-budget",
        type=float,
        metavar="E",
        help="greatest error of GELU, sigmoid, tanh, exp, softmax and similar functions, relative "
        "where they are above 1; at most 2^-6 (0.015625). Each function gets the cheapest "
        "series within the budget; by default functions are as exact as without compiling",
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        metavar="T",
        help="greatest error of a ReLU, in units of the model's numbers: its comparison ignores "
        "all bits below that, so a positive number below it may become zero; other "
        "comparisons use all bits, as do ReLUs by default",
    )
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=N,..",
        help="shape of an input that the file leaves open, such as images=1,3,224,224; by default "
        "that of one row of the calibration data",
    )
    parser.add_argument(
        "--secret",
        action="append",
        default=[],
        metavar="NAME",
        help="a number without dimensions in an ONNX file that was learned, such as a temperature; "
        "other such numbers are public",
    )
    parser.add_argument(
        "--result",
        action="append",
        default=[],
        metavar="NAME",
        help="an output of the file that the program computes, such as label; by default all",
    )
    parser.add_argument(
        "--public",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an input of the file that all parties know, such as use_cache=0: a number, or several "
        "as NAME=1,2,3; the program is made for it, and takes the other inputs only",
    )
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    shapes = dict(map(_shape, parsed.shape)) or None
    at = parsed.weights or parsed.output.with_suffix(WEIGHTS)
    # This is checked before anything takes minutes.
    check_writable(parsed.output, at)
    from tacit.commands.arrays import read
    from tacit.compilation import compiler

    calibrate = None if parsed.calibrate is None else tuple(map(read, parsed.calibrate))
    labels = None if parsed.labels is None else read(parsed.labels)
    program, weights = compiler.compile(
        parsed.model,
        calibrate=calibrate,
        labels=labels,
        widths=parsed.widths,
        **({} if parsed.margin is None else {"margin": parsed.margin}),
        error_budget=parsed.error_budget,
        tolerance=parsed.tolerance,
        shapes=shapes,
        secret=parsed.secret,
        results=parsed.result,
        public=dict(map(_public, parsed.public)) or None,
        progress=lambda what: print(f"tacit: {what} ...", file=sys.stderr),
    )
    program.save(parsed.output)
    weights.save(at)
    print(f"{parsed.output}: the program, for all parties; BLAKE3 {program.digest}")
    print(f"{at}: its weights, for their owner alone")


def _public(text: str) -> tuple[str, float | int | list[float | int]]:
    name, _, values = text.partition("=")
    try:
        found = [json.loads(each) for each in values.split(",")]
        if not name or any(not isinstance(each, int | float) for each in found):
            raise ValueError
    except ValueError:
        raise MisuseError(
            f"--public {text}: the form is NAME=VALUE with a number or true or false, or several as "
            "NAME=1,2,3"
        ) from None
    return name, found[0] if len(found) == 1 else found


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, sizes = text.partition("=")
    try:
        return name, tuple(int(size) for size in sizes.split(","))
    except ValueError:
        raise MisuseError(
            f"--shape {text}: the form is NAME=N,.., such as images=1,3,224,224"
        ) from None
