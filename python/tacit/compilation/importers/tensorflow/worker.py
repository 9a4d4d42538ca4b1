"""Converts a model of TensorFlow to ONNX.

This file alone is run, in a process of its own. It imports nothing of tacit, and nothing else of
tacit imports TensorFlow, whose threads and memory end with the process.

    worker.py FORMAT MODEL FOLDER

It writes ``model.onnx`` and, last of all, ``result.json`` into the folder: an object with "kind"
and "text". What libraries print is discarded. An operator of TensorFlow that has no counterpart
keeps its name, in a domain of its own, so that the reader of the ONNX file reports it together with
all else that is missing."""

import importlib.util
import json
import logging
import sys
from pathlib import Path
from typing import Any

#: ONNX opset that is written: with later ones tf2onnx leaves transpositions around averages.
OPSET = 17

#: Name of the function that a SavedModel serves, and tag of the graph that has it.
SIGNATURE, TAG = "serving_default", "serve"

#: Domain of operators that have no counterpart. tf2onnx also gives it to other operators that it
#: keeps.
DOMAIN = "ai.onnx.converters.tensorflow"

#: Operators that stand for no value, and so for no output.
NO_VALUES = {"Assert", "Const", "NoOp", "Placeholder", "PlaceholderWithDefault"}


class RefusedError(Exception):
    """Reason why a model is not converted, with the remedy."""


def main(kind: str, model: Path, folder: Path) -> None:
    """Converts a model and writes the outcome."""
    folder.mkdir(parents=True, exist_ok=True)
    absent = [name for name in ("tensorflow", "tf2onnx") if importlib.util.find_spec(name) is None]
    result = (
        {"kind": "absent", "text": " and ".join(absent)} if absent else _tried(kind, model, folder)
    )
    (folder / "result.json").write_text(json.dumps(result))


def _tried(kind: str, model: Path, folder: Path) -> dict[str, str]:
    try:
        with _Failures() as failures:
            converted = {"SavedModel": _saved, "frozen graph": _frozen, ".keras": _keras}[kind](
                model, folder
            )
        (folder / "model.onnx").write_bytes(converted.SerializeToString())
    except RefusedError as refusal:
        return {"kind": "refused", "text": str(refusal)}
    except Exception as error:
        text = "; ".join(failures.told) or f"{type(error).__name__}: {error}"
        return {"kind": "failed", "text": text}
    return {"kind": "converted", "text": ""}


class _Failures(logging.Handler):
    """Collects what tf2onnx logs about operators that it fails to convert, because it raises only
    the first failure."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if str(record.msg).startswith("Failed to convert node") and record.exc_info:
            assert isinstance(record.args, tuple)
            self.told.append(f"{record.args[0]}: {record.exc_info[1]}")

    def __enter__(self) -> "_Failures":
        logging.getLogger("tf2onnx").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("tf2onnx").removeHandler(self)


def _keras(model: Path, folder: Path) -> Any:
    """Converts a Keras model by way of a SavedModel, which has the shapes and names of the
    inputs."""
    import keras

    try:
        loaded = keras.saving.load_model(model, compile=False, safe_mode=True)
    except (TypeError, ValueError) as error:
        told = str(error)
        if "unsafe" in told or "Lambda" in told:
            raise RefusedError(
                "it has a Lambda layer, which is code: write it with Keras' layers or keras.ops, "
                "or save the "
                "model by model.export(FOLDER), which traces it"
            ) from None
        if "custom" in told or "registered" in told or "locate" in told:
            raise RefusedError(
                "it has custom layers, whose code is not in the file: save the model by "
                "model.export(FOLDER), which traces them"
            ) from None
        raise
    if not loaded.built or not getattr(loaded, "inputs", None):
        raise RefusedError(
            "it does not say what goes in: begin the model with keras.Input(shape), or save it by "
            "model.export(FOLDER) after a call"
        )
    loaded.export(str(folder / "saved"), format="tf_saved_model", verbose=False)
    return _saved(folder / "saved", folder, [each.name for each in loaded.inputs])


def _saved(model: Path, _folder: Path, order: list[str] | None = None) -> Any:
    """Converts the function that a SavedModel serves; its inputs come in the given order."""
    from tensorflow.core.protobuf import saved_model_pb2
    from tf2onnx import tf_loader

    held = saved_model_pb2.SavedModel.FromString((model / "saved_model.pb").read_bytes())
    graphs = [each for each in held.meta_graphs if TAG in each.meta_info_def.tags]
    if not graphs:
        raise RefusedError(f'it has no graph that is served, with the tag "{TAG}": save it again')
    names = sorted(name for name in graphs[0].signature_def if not name.startswith("__"))
    signature = SIGNATURE if SIGNATURE in names else names[0] if len(names) == 1 else None
    if signature is None:
        raise RefusedError(
            f'it has no function that is served, a signature "{SIGNATURE}", but '
            f"{', '.join(names) or 'none'}: save it with "
            "signatures=function.get_concrete_function(tf.TensorSpec(...))"
        )
    graph, inputs, outputs, tables, renamed = tf_loader.from_saved_model(
        str(model),
        None,
        None,
        tag=[TAG],
        signatures=[signature],
        return_initialized_tables=True,
        return_tensors_to_rename=True,
    )
    if order is not None and {renamed.get(name) for name in inputs} == set(order):
        inputs = sorted(inputs, key=lambda name: order.index(renamed[name]))
    return _converted(graph, inputs, outputs, tensors_to_rename=renamed, initialized_tables=tables)


def _frozen(model: Path, _folder: Path) -> Any:
    """Converts a graph without variables: its placeholders are the inputs, and results that nothing
    takes are the outputs."""
    import tensorflow as tf
    from google.protobuf.message import DecodeError
    from tf2onnx import tf_loader

    graph = tf.compat.v1.GraphDef()
    try:
        graph.ParseFromString(model.read_bytes())
    except DecodeError:
        raise RefusedError("it is no graph of TensorFlow (a GraphDef)") from None
    variables = [
        each.name for each in graph.node if each.op in ("VarHandleOp", "Variable", "VariableV2")
    ]
    if variables:
        raise RefusedError(
            f"it holds variables, such as {variables[0]}, and not their values: freeze it "
            "(convert_variables_to_constants_v2), or save the model as a SavedModel"
        )
    taken = {name.lstrip("^").partition(":")[0] for each in graph.node for name in each.input}
    ends = [each.name for each in graph.node if each.name not in taken and each.op not in NO_VALUES]
    begins = [each.name for each in graph.node if each.op == "Placeholder"]
    if not begins or not ends:
        raise RefusedError(
            "nothing goes into its graph (no Placeholder), or nothing comes out of it"
        )
    defaults = [each.name for each in graph.node if each.op == "PlaceholderWithDefault"]
    names = [f"{name}:0" for name in begins], [f"{name}:0" for name in ends]
    graph, inputs, outputs = tf_loader.from_graphdef(str(model), *names)
    renamed = {name: name.removesuffix(":0") for name in (*inputs, *outputs)}
    return _converted(graph, inputs, outputs, tensors_to_rename=renamed, use_default=defaults)


def _converted(graph: Any, inputs: list[str], outputs: list[str], **others: Any) -> Any:
    """Converts a graph to an ONNX model.

    Every failure raises, because a graph that is converted in part is another model."""
    import tensorflow as tf
    from tf2onnx import handler, optimizer, tfonnx, utils

    nodes = [
        *graph.node,
        *(node for function in graph.library.function for node in function.node_def),
    ]
    without = {node.op for node in nodes} - set(handler.tf_op.create_mapping(OPSET, []))
    with tf.device("/cpu:0"), tf.Graph().as_default() as imported:
        tf.import_graph_def(graph, name="")
        made = tfonnx.process_tf_graph(
            imported,
            continue_on_error=False,
            opset=OPSET,
            extra_opset=[utils.make_opsetid(DOMAIN, 1)],
            custom_op_handlers={
                operator: (_composed.get(operator, _kept), []) for operator in without
            },
            input_names=inputs,
            output_names=outputs,
            **others,
        )
        return optimizer.optimize_graph(made).make_model("converted from TensorFlow")


def _kept(_graph: Any, node: Any, _name: str, _args: list[Any]) -> Any:
    """Keeps an operator that has no counterpart."""
    node.domain = DOMAIN
    return node


def _erfc(graph: Any, node: Any, name: str, _args: list[Any]) -> Any:
    """Writes erfc as 1 − erf(x). Keras' GELU is written with it."""
    import numpy as np
    from tf2onnx import utils

    kind = utils.map_onnx_to_numpy_type(graph.get_dtype(node.output[0]))
    one = graph.make_const(utils.make_name(name), np.ones((), kind))
    erf = graph.make_node("Erf", list(node.input))
    node.type = "Sub"
    graph.replace_inputs(node, [one.output[0], erf.output[0]])
    return node


#: Operators that tf2onnx lacks, composed of others.
_composed = {"Erfc": _erfc}


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
