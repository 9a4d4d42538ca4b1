"""The process in which TensorFlow converts a model: starts it and reports its outcome."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tacit.compilation.importers.tensorflow import worker
from tacit.compilation.importers.tensorflow.formats import Format
from tacit.errors import MisuseError, cause, printable, setup_error

#: Interpreter whose TensorFlow is used.
INTERPRETER = sys.executable

#: Greatest duration of a conversion in seconds.
LONGEST = 900.0

#: Greatest size of a result in bytes.
MOST_BYTES = 1 << 20

#: Environment of the process: no accelerator, no log on the standard error, and Keras 3 on
#: TensorFlow.
SETTINGS = {
    "CUDA_VISIBLE_DEVICES": "-1",
    "KERAS_BACKEND": "tensorflow",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_USE_LEGACY_KERAS": "0",
}

#: Paths in the messages of libraries, which mean nothing to the user.
INSIDE = re.compile(r"(?<![\w.])(/[\w.@+-]+){2,}")


def convert(path: Path, kind: Format, folder: Path) -> Path:
    """Converts a model to ONNX and writes the result into a folder.

    Raises:
        SetupError: the model cannot be converted, or TensorFlow is not installed.
        MisuseError: the model is not saved in the required way.
    """
    # -P keeps the script's folder out of those that Python imports from.
    command = [INTERPRETER, "-P", worker.__file__, kind.value, str(path.resolve()), str(folder)]
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | SETTINGS,
            check=False,
            timeout=LONGEST,
        ).returncode
    except subprocess.TimeoutExpired:
        raise setup_error(
            f"{path} was not converted to ONNX within {LONGEST:g} s: {_elsewhere(path, kind)}"
        ) from None
    except OSError as error:
        raise setup_error(f"cannot start {INTERPRETER} to convert {path}: {cause(error)}") from None
    result = _result(folder / "result.json")
    if result is None:
        how = f"was killed by signal {-ended}" if ended < 0 else f"ended with exit code {ended}"
        raise setup_error(
            f"{path} was not converted to ONNX: the process of TensorFlow {how} and left no "
            f"result; it may "
            f"lack memory. Otherwise {_elsewhere(path, kind)}"
        )
    outcome, text = result
    if outcome == "absent":
        raise setup_error(
            f"{path} is TensorFlow's, and {text} cannot be found here: "
            f"pip install 'tacit-mpc[tensorflow]', or {_elsewhere(path, kind)}"
        )
    if outcome == "refused":
        raise MisuseError(f"{path} cannot be compiled: {printable(text)}")
    converted = folder / "model.onnx"
    if outcome != "converted" or not converted.is_file():
        raise setup_error(f"TensorFlow does not convert {path} to ONNX: {_plain(text, folder)}")
    return converted


def _result(path: Path) -> tuple[str, str] | None:
    """Returns the outcome that the process reports, if it reports one."""
    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or set(found) != {"kind", "text"}:
        return None
    if not all(isinstance(each, str) for each in found.values()):
        return None
    return found["kind"], found["text"]


def _plain(text: str, folder: Path) -> str:
    """Returns a library's message without its internal paths."""
    return printable(INSIDE.sub("...", text.replace(str(folder), "...")))


def _elsewhere(path: Path, kind: Format) -> str:
    """Returns how to convert the model on a machine that has TensorFlow."""
    options = {
        Format.SAVED_MODEL: f"--saved-model {path}",
        Format.KERAS: f"--keras {path}",
        Format.FROZEN: f"--graphdef {path} --inputs NAME:0 --outputs NAME:0",
    }[kind]
    return (
        f"convert it where TensorFlow is (python -m tf2onnx.convert {options} --opset "
        f"{worker.OPSET} "
        "--output model.onnx) and compile model.onnx"
    )
