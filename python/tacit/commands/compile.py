"""``tacit compile``: compiles a model to a program and its weights."""

import argparse
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
        description="The owner of a model does this, in the clear: the program, which all parties "
        "get, and "
        "the weights, which stay. What cannot be compiled is named, all of it at once.",
    )
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="an ONNX file; of one's own, as loading one can run code: an exported program (.pt2), "
        "and of "
        "TensorFlow a SavedModel (a folder), a frozen graph (.pb) or .keras; or FILE.py:CALLABLE, "
        "a function "
        "without arguments that returns (module, example inputs)",
    )
    parser.add_argument(
        "--calibrate",
        type=Path,
        action="append",
        metavar="FILE.npy",
        help="inputs like those to come, for scales and intervals; of several inputs one file "
        "each, in order",
    )
    parser.add_argument(
        "--labels", type=Path, metavar="FILE.npy", help="the right class of each of them"
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.tacit")
    parser.add_argument(
        "--weights", type=Path, metavar="FILE", help=f"by default the output's name, with {WEIGHTS}"
    )
    parser.add_argument(
        "--widths",
        choices=("proved", "uniform"),
        default="proved",
        help="proved (default): what each comparison needs; uniform: one width for all, which "
        "tells less of "
        "weights and data",
    )
    parser.add_argument(
        "--margin",
        type=float,
        metavar="N",
        help="with --calibrate: what a ReLU compares may be N times greater than in calibration "
        "before its "
        "guard fails, which leaves no result; if not given 4, and only where guards save more than "
        "they take",
    )
    parser.add_argument(
        "--error-budget",
        type=float,
        metavar="E",
        help="what GELU, sigmoid, tanh, exp, softmax and their like may be off by, relative where "
        "they are "
        "above 1, at most 2^-6 (0.015625): each has the cheapest series that is no worse; without "
        "it as "
        "exact as without compiling",
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        metavar="T",
        help="what a ReLU may err by, in units of the model's numbers: its comparison looks at no "
        "bits below "
        "that, and a positive number below it may become zero; other comparisons look at all, as "
        "do ReLUs "
        "without it",
    )
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=N,..",
        help="of an input of a file that leaves it open, such as images=1,3,224,224; without it "
        "that of one "
        "row of the calibration data",
    )
    parser.add_argument(
        "--secret",
        action="append",
        default=[],
        metavar="NAME",
        help="a number of an ONNX file that has no dimension and was learned, such as a "
        "temperature; others "
        "are public",
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
        progress=lambda what: print(f"tacit: {what} ...", file=sys.stderr),
    )
    program.save(parsed.output)
    weights.save(at)
    print(f"{parsed.output}: the program, for all parties; BLAKE3 {program.digest}")
    print(f"{at}: its weights, for their owner alone")


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, sizes = text.partition("=")
    try:
        return name, tuple(int(size) for size in sizes.split(","))
    except ValueError:
        raise MisuseError(
            f"--shape {text}: NAME=N,.. is wanted, such as images=1,3,224,224"
        ) from None
