"""One model always compiles to the same program, byte for byte, under any Python version and any
hash order."""

import os
import re
import subprocess
import sys
from pathlib import Path

import torch

import tacit

HERE = Path(__file__).parent

#: The file's weights and the images below have so few digits that all sums are exact in any order.
EXACT = HERE / "exact.onnx"
IMAGES = (torch.arange(600).reshape(6, 1, 10, 10) * 37 % 16) / 16

#: Hash of the program of that file. It changes if passes or the format change. It does not depend
#: on the version of Python or on the machine.
HASH = "cfadde1e88d7584e9725bade8911a3118aced1b2aaeaa52ff0878146d8137123"

#: A model with branches, normalisations, pooling and public constants.
MODELS = ("residual",)

COMPILED = """
import sys, numpy, torch, tacit
for name in sys.argv[1:]:
    x = torch.from_numpy(numpy.load(name + ".npz")["input_0"])
    print(tacit.compile(name + ".onnx", x, calibrate=x)[0].digest)
"""


def test_the_hash_of_a_program_is_one_everywhere() -> None:
    program, _ = tacit.compile(EXACT, calibrate=IMAGES, margin=2.0, tolerance=2.0**-4)
    # The program contains everything that programs can express.
    text = program.text.decode()
    assert '"guard":[' in text
    assert '"interval":[' in text
    assert re.search('"dropped":[1-9]', text)
    assert re.search('"scale":[1-9][0-9]*,"width"', text)
    assert program.digest == HASH


def test_no_order_of_hashes_is_seen() -> None:
    folder = HERE / "made_by_tensorflow"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", COMPILED, *MODELS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=folder,
            stdout=subprocess.PIPE,
        )
        for seed in ("1", "2")
    ]
    told = [process.communicate(timeout=300)[0].split() for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert len(told[0]) == len(MODELS)
    assert told[0] == told[1]
