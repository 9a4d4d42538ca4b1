"""Generates the files of this folder.

This needs what `pip install 'tacit-mpc[tensorflow]'` installs:

    python tests/compilation/made_by_tensorflow/make.py

TensorFlow saves each model in one of its formats. tacit's worker converts it as `tacit compile`
does. The result is stored here as NAME.onnx. NAME.npz has inputs and TensorFlow's outputs for them.
With a folder as argument, this program only saves the models there in TensorFlow's formats.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

HERE = Path(__file__).resolve().parent
WORKER = HERE.parents[2] / "python/tacit/compilation/importers/tensorflow/worker.py"

#: Rows of the inputs.
ROWS = 3


def lenet() -> keras.Model:
    """A small version of LeCun's network."""
    return keras.Sequential(
        [
            keras.Input((16, 16, 1), name="images"),
            layers.Conv2D(4, 5, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(8, 5, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(24, activation="relu"),
            layers.Dense(16, activation="relu"),
            layers.Dense(10),
        ]
    )


def residual() -> keras.Model:
    """Two blocks of a residual network. The second has a layer on the skip path."""
    images = keras.Input((12, 12, 3), name="images")
    x = layers.ReLU()(
        layers.BatchNormalization()(layers.Conv2D(8, 3, padding="same", use_bias=False)(images))
    )
    y = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(8, 3, padding="same")(x)))
    x = layers.ReLU()(
        layers.Add()([x, layers.BatchNormalization()(layers.Conv2D(8, 3, padding="same")(y))])
    )
    y = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(12, 3, 2, padding="same")(x)))
    y = layers.BatchNormalization()(layers.Conv2D(12, 3, padding="same")(y))
    x = layers.ReLU()(layers.Add()([y, layers.BatchNormalization()(layers.Conv2D(12, 1, 2)(x))]))
    return keras.Model(images, layers.Dense(5)(layers.GlobalAveragePooling2D()(x)))


def mobile() -> keras.Model:
    """An inverted residual block with a depthwise convolution, and one with another stride and
    padding."""
    images = keras.Input((12, 12, 3), name="images")
    x = layers.ReLU(6.0)(
        layers.BatchNormalization()(layers.Conv2D(6, 3, 2, padding="same")(images))
    )
    y = layers.ReLU(6.0)(layers.BatchNormalization()(layers.Conv2D(18, 1, use_bias=False)(x)))
    y = layers.DepthwiseConv2D(3, padding="same", use_bias=False)(y)
    y = layers.ReLU(6.0)(layers.BatchNormalization()(y))
    x = layers.Add()([x, layers.BatchNormalization()(layers.Conv2D(6, 1, use_bias=False)(y))])
    y = layers.DepthwiseConv2D(3, strides=2, use_bias=False)(
        layers.ZeroPadding2D(((0, 1), (0, 1)))(x)
    )
    y = layers.ReLU(6.0)(layers.BatchNormalization()(y))
    return keras.Model(
        images, layers.Dense(5, activation="softmax")(layers.GlobalAveragePooling2D()(y))
    )


def dense() -> keras.Model:
    """Layers on vectors that end in probabilities."""
    return keras.Sequential(
        [
            keras.Input((20,), name="features"),
            layers.Dense(16, activation="tanh"),
            layers.Dense(12, activation="relu"),
            layers.Dense(4, activation="softmax"),
        ]
    )


class Averages(tf.Module):
    """Average pooling, and plain TensorFlow layers; two inputs and two results."""

    def __init__(self) -> None:
        super().__init__()
        self.kernel, self.offset = tf.Variable(tf.zeros((3, 3, 2, 6))), tf.Variable(tf.zeros((6,)))
        self.weights = tf.Variable(tf.zeros((6 * 4 * 4 + 3, 5)))

    @tf.function(
        input_signature=[
            tf.TensorSpec((None, 8, 8, 2), name="images"),
            tf.TensorSpec((None, 3), name="numbers"),
        ]
    )
    def call(self, images: Any, numbers: Any) -> dict[str, Any]:
        x = tf.nn.bias_add(tf.nn.conv2d(images, self.kernel, 1, "SAME"), self.offset)
        x = tf.nn.avg_pool2d(tf.nn.relu(x), 2, 2, "VALID")
        x = tf.reshape(x, (-1, 6 * 4 * 4))
        return {"scores": tf.concat([x, numbers], 1) @ self.weights, "largest": tf.reduce_max(x, 1)}


def sequence() -> keras.Model:
    """A transformer layer on a sequence."""
    x = tokens = keras.Input((6, 8), name="tokens")
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4)(x, x))
    x = layers.LayerNormalization()(x + layers.Dense(8)(layers.Dense(16, activation="gelu")(x)))
    return keras.Model(tokens, layers.Dense(3)(layers.GlobalAveragePooling1D()(x)))


def saved_by_keras(model: keras.Model, folder: Path) -> tuple[str, Path]:
    model.save(folder / "model.keras")
    return ".keras", folder / "model.keras"


def saved(model: Any, folder: Path) -> tuple[str, Path]:
    if isinstance(model, keras.Model):
        model.export(folder / "saved", verbose=False)
    else:
        tf.saved_model.save(model, folder / "saved", signatures=model.call)
    return "SavedModel", folder / "saved"


def frozen(model: keras.Model, folder: Path) -> tuple[str, Path]:
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    given = [tf.TensorSpec(each.shape, each.dtype, name=each.name) for each in model.inputs]
    function = tf.function(lambda *each: model(list(each), training=False)).get_concrete_function(
        *given
    )
    graph = convert_variables_to_constants_v2(function).graph.as_graph_def()
    tf.io.write_graph(graph, str(folder), "graph.pb", as_text=False)
    return "frozen graph", folder / "graph.pb"


#: The models, and how each is saved.
MODELS: dict[str, tuple[Callable[[], Any], Callable[[Any, Path], tuple[str, Path]]]] = {
    "lenet": (lenet, saved_by_keras),
    "residual": (residual, saved_by_keras),
    "mobile": (mobile, saved),
    "dense": (dense, frozen),
    "averages": (Averages, saved),
    "sequence": (sequence, saved_by_keras),
}


def made(name: str, seed: int = 7) -> Any:
    """Returns the model with random weights and statistics of the magnitudes that training
    leaves."""
    draws = np.random.default_rng(seed)
    model = MODELS[name][0]()
    for each in model.weights if isinstance(model, keras.Model) else model.variables:
        path, shape = getattr(each, "path", each.name), tuple(each.shape)
        if "variance" in path or "gamma" in path:
            each.assign(draws.uniform(0.5, 1.5, shape))
        elif len(shape) < 2:
            each.assign(draws.normal(0, 0.2, shape))
        else:
            each.assign(draws.normal(0, 1.2 / np.sqrt(np.prod(shape) / shape[-1]), shape))
    return model


def run(model: Any, seed: int = 8) -> dict[str, np.ndarray]:
    """Draws inputs, and returns them with TensorFlow's outputs."""
    draws = np.random.default_rng(seed)
    own = not isinstance(model, keras.Model)
    shapes = [(8, 8, 2), (3,)] if own else [each.shape[1:] for each in model.inputs]
    given = [draws.uniform(-1, 1, (ROWS, *shape)).astype(np.float32) for shape in shapes]
    result = model.call(*map(tf.constant, given)) if own else model(given[0], training=False)
    results = [result[name] for name in sorted(result)] if isinstance(result, dict) else [result]
    found = {f"input_{at}": each for at, each in enumerate(given)}
    return found | {f"output_{at}": each.numpy() for at, each in enumerate(results)}


def left(folder: Path) -> dict[str, tuple[str, Path]]:
    """Saves all models with inputs and outputs into the folder. Returns the format and path of
    each."""
    places = {}
    for name, (_, save) in MODELS.items():
        model, own = made(name), folder / name
        own.mkdir()
        places[name] = save(model, own)
        np.savez(folder / f"{name}.npz", **run(model))
    return places


def main() -> None:
    if sys.argv[1:]:
        left(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, (kind, path) in left(Path(folder)).items():
            subprocess.run([sys.executable, "-P", WORKER, kind, path, path.parent], check=True)
            told = json.loads((path.parent / "result.json").read_text())
            assert told["kind"] == "converted", (name, told)
            (HERE / f"{name}.onnx").write_bytes((path.parent / "model.onnx").read_bytes())
            (HERE / f"{name}.npz").write_bytes((Path(folder) / f"{name}.npz").read_bytes())


if __name__ == "__main__":
    main()
