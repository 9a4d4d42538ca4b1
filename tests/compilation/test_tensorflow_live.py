"""Tests with TensorFlow: its models are converted and compiled as a user does.

The secret results are TensorFlow's. If a model cannot be converted, the error names the layer and
the remedy.
"""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from test_tensorflow import outputs

import tacit
from commands import tacit as command
from tacit.compilation.importers.tensorflow import conversion
from tacit.errors import UnsupportedOperatorError

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("tensorflow", "tf2onnx")),
        reason="pip install 'tacit-mpc[tensorflow]'",
    ),
]

MAKE = Path(__file__).resolve().parent / "made_by_tensorflow" / "make.py"

#: The format in which each model is saved.
PATHS = {
    "averages": "saved",
    "dense": "graph.pb",
    "lenet": "model.keras",
    "mobile": "saved",
    "residual": "model.keras",
    "sequence": "model.keras",
}


def with_tensorflow(program: str, *arguments: object) -> None:
    """Runs a program in a separate process, since this one has loaded PyTorch."""
    subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], check=True, capture_output=True
    )


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    subprocess.run([sys.executable, MAKE, folder], check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("name", PATHS)
def test_a_saved_model_is_compiled_and_tried(name: str, models: Path) -> None:
    with np.load(models / f"{name}.npz", allow_pickle=False) as file:
        arrays = {key: file[key] for key in sorted(file.files)}
    given = [value for key, value in arrays.items() if key.startswith("input")]
    expected = [
        torch.from_numpy(value) for key, value in arrays.items() if key.startswith("output")
    ]
    files = [models / f"{name}-{at}.npy" for at in range(len(given))]
    for file, value in zip(files, given, strict=True):
        np.save(file, value)
    out, weights = models / f"{name}.tacit", models / f"{name}.weights"
    calibrate = [word for file in files for word in ("--calibrate", file)]
    ended = command("compile", models / name / PATHS[name], *calibrate, "-o", out)
    assert ended.returncode == 0, ended.stderr
    program = tacit.load_program(out)
    # One row, since the batch size is open.
    rows = [torch.from_numpy(value[:1]) for value in given]
    found = outputs(program, tacit.load_weights(weights), rows)
    for result, wanted in zip(found, expected, strict=True):
        error = float((result - wanted[:1]).square().sum() / wanted[:1].square().sum())
        print(f"{name}: {error:.1e}")
        assert error < 1e-4
    for file, value in zip(files, given, strict=True):
        np.save(file, value[:1])
    words = [word for file in files for word in ("--input", file)]
    report = models / f"{name}.json"
    ended = command("try", out, "--weights", weights, *words, "--parties", 3, "--json", report)
    assert ended.returncode == 0, ended.stderr
    runs = json.loads(report.read_text())
    assert runs["compiled"]["normalised_squared_error"] < 1e-4
    assert runs["compiled"]["rounds"] <= runs["eager"]["rounds"]


def refused(path: Path, folder: Path) -> str:
    ended = command("compile", path, "-o", folder / "n.tacit")
    assert ended.returncode == 1
    assert not (folder / "n.tacit").exists()
    assert "Traceback" not in ended.stderr
    assert "site-packages" not in ended.stderr
    return ended.stderr.replace(str(path), "MODEL")


KERAS = """
import sys
import keras
import tensorflow as tf
from keras import layers

class Own(layers.Layer):
    def call(self, x):
        return x * 2.0

x = keras.Input((4,), name="x")
"""

LAMBDA = 'keras.Model(x, layers.Lambda(lambda x: x + 1)(x)).save(sys.argv[1] + "/m.keras")'
OWN = 'keras.Model(x, Own()(x)).save(sys.argv[1] + "/m.keras")'
OPEN = 'keras.Sequential([layers.Dense(3)]).save(sys.argv[1] + "/m.keras")'


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (LAMBDA, "it has a Lambda layer"),
        (OWN, "it has custom layers"),
        (OPEN, "it does not say what goes in"),
    ],
)
def test_a_file_of_keras_that_is_not_enough(made: str, said: str, tmp_path: Path) -> None:
    with_tensorflow(KERAS + made, tmp_path)
    told = refused(tmp_path / "m.keras", tmp_path)
    assert f"MODEL cannot be compiled: {said}" in told
    assert "model.export(FOLDER)" in told


def test_layers_of_ones_own_are_traced_into_a_saved_model(tmp_path: Path) -> None:
    with_tensorflow(
        KERAS + 'keras.Model(x, Own()(x)).export(sys.argv[1] + "/s", verbose=False)', tmp_path
    )
    with pytest.raises(
        UnsupportedOperatorError, match=r"input 'x': its shape is \(\?, 4\), and only"
    ):
        tacit.compile(tmp_path / "s")
    program, weights = tacit.compile(tmp_path / "s", shapes={"x": (1, 4)})
    assert [each.name for each in program.inputs.values()] == ["x"]
    x = torch.tensor([[1.0, -2.0, 3.0, 0.5]])
    torch.testing.assert_close(outputs(program, weights, [x])[0], 2 * x, rtol=0, atol=1e-3)


GRAPH = """
import sys
import tensorflow as tf
with tf.Graph().as_default() as graph:
    x = tf.compat.v1.placeholder(tf.float32, (2, 3), name="x")
"""


def test_all_operators_without_counterpart_are_told(tmp_path: Path) -> None:
    made = """
    tf.identity(tf.math.betainc(x, x, x) + tf.math.lgamma(x), name="y")
tf.io.write_graph(graph, sys.argv[1], "m.pb", as_text=False)
"""
    with_tensorflow(GRAPH + made, tmp_path)
    told = refused(tmp_path / "m.pb", tmp_path)
    assert "MODEL cannot be imported:" in told
    assert (
        "Betainc 'Betainc': this operator of TensorFlow has none of ONNX for it; replace it" in told
    )
    assert (
        "Lgamma 'Lgamma': this operator of TensorFlow has none of ONNX for it; replace it" in told
    )


def test_a_graph_with_variables_is_not_frozen(tmp_path: Path) -> None:
    made = """
    tf.identity(x * tf.compat.v1.get_variable("w", (3,)), name="y")
tf.io.write_graph(graph, sys.argv[1], "m.pb", as_text=False)
"""
    with_tensorflow(GRAPH + made, tmp_path)
    assert "MODEL cannot be compiled: it holds variables, such as w" in refused(
        tmp_path / "m.pb", tmp_path
    )


def test_what_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "m.pb").write_bytes(b"\x0a\xff\xff no graph")
    assert "it is no graph of TensorFlow" in refused(tmp_path / "m.pb", tmp_path)
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "saved_model.pb").write_bytes(b"\x08\x01")
    assert "it has no graph that is served" in refused(tmp_path / "s", tmp_path)
    (tmp_path / "s" / "saved_model.pb").write_bytes(b"\x08\x01\x12\xff")
    assert "TensorFlow does not convert MODEL to ONNX: " in refused(tmp_path / "s", tmp_path)


def test_it_is_bounded_in_time(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "LONGEST", 1.0)
    with pytest.raises(tacit.SetupError, match="was not converted to ONNX within 1 s"):
        tacit.compile(models / "mobile" / "saved")
