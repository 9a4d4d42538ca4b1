"""Reader of ONNX files, which may come from anyone, to models that are well formed.

Such a model has a known version and is not larger than protobuf can carry. Functions are inlined
where they are called. The graph is sorted and has no cycles, and each operator has types that ONNX
allows."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tacit.compilation.importers.onnx import tensors
from tacit.compilation.importers.onnx.control import graphs_of
from tacit.compilation.importers.onnx.inputs import Inputs, Like, alike, fix, inputs, static
from tacit.compilation.importers.onnx.problems import NotImportedError, Problems, quoted
from tacit.compilation.importers.onnx.table import CLASSICAL, OWN, operator_of
from tacit.errors import cause, printable, setup_error

#: Oldest version of operators that is imported as it is: from here on their parameters come as
#: inputs.
OLDEST = 13

#: Oldest version that ONNX's own converter brings to that one.
CONVERTED = 7

#: Greatest file that protobuf can carry, and reasonable limits on nodes and on the depth of
#: functions.
MOST_BYTES, MOST_NODES, DEEPEST = (1 << 31) - 1, 100_000, 100

#: First version in which a Resize says where its elements come from.
RESIZED = 11

#: Greatest number of characters of another library's error.
MOST_TOLD = 300

#: Greatest number of elements of a tensor that stays in what ONNX checks, since it may be a shape.
FEW = 1024

#: Domain of TensorFlow operators that have no counterpart.
TENSORFLOW = "ai.onnx.converters.tensorflow"

#: Control flow that is imported if what it decides is public: see ``control``.
EXPANDED = {"If", "Loop"}


@dataclass(frozen=True)
class Read:
    """Graph of a file, with its tensors kept apart."""

    graph: Any
    #: Version of the operators of each domain; "" for ONNX's own.
    opsets: Mapping[str, int]
    inputs: Inputs
    tensors: dict[str, torch.Tensor]
    #: Type and shape that the file claims for what it computes. They may be wrong: nothing relies
    #: on them.
    claimed: dict[str, tuple[int, tuple[int, ...]] | None]


def read(
    path: Path,
    shapes: Mapping[str, Sequence[int]],
    problems: Problems,
    like: Like = (),
    public: Collection[str] = (),
) -> Read:
    """Reads a file. Inputs whose shapes it leaves open get the given shapes, or those of data for
    them. ``public`` names inputs for which no data are given.

    Raises:
        SetupError: the file is not an ONNX file, or is too large, too old or malformed; or ONNX is
            not installed.
        UnsupportedOperatorError: inputs have open shapes.
    """
    try:
        import onnx
    except ImportError:
        raise setup_error("ONNX's files are read by onnx: pip install 'tacit-mpc[onnx]'") from None
    model = _parsed(path)
    opset = _opset(model, path)
    model = _inlined(model, path)
    if opset < OLDEST:
        model = _converted(model, path, opset)
    graph = model.graph
    _complete(graph)
    if len(graph.node) > MOST_NODES:
        raise setup_error(
            f"{path} has {len(graph.node)} operators; {MOST_NODES} are the most that are imported"
        )
    _missing(graph, problems)
    found = _tensors(graph, path)
    fix(graph, {**alike(graph, like, {*found, *public}), **shapes}, found, path)
    given = inputs(graph, found, problems)
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, ValueError, RuntimeError, TypeError) as error:
        # Something that is missing may be the reason. The rest is checked anyway.
        if not problems:
            raise setup_error(f"{path} is not a sound ONNX model: {printable(error)}") from None
    claimed = {info.name: static(info) for info in (*graph.value_info, *graph.output)}
    opsets = {
        "" if each.domain in OWN else each.domain: each.version for each in model.opset_import
    }
    return Read(graph, opsets, given, found, claimed)


def _parsed(path: Path) -> Any:
    from onnx import ModelProto

    try:
        if not path.is_file():
            raise setup_error(f"{path} is no file")
        if (size := path.stat().st_size) > MOST_BYTES:
            raise setup_error(
                f"{path} has {size} bytes, and no more than 2 GiB can be read: save its weights "
                f"beside it "
                "(onnx.save with save_as_external_data=True)"
            )
        model = ModelProto.FromString(path.read_bytes())
    except OSError as error:
        raise setup_error(f"{path} cannot be read: {cause(error)}") from None
    except Exception as error:
        # Protobuf's own error is known by its name, because its module has no types.
        if not isinstance(error, ValueError) and type(error).__name__ != "DecodeError":
            raise
        raise setup_error(f"{path} is not an ONNX file") from None
    if not model.HasField("graph") or not model.opset_import or not model.graph.output:
        raise setup_error(f"{path} is not an ONNX file: it has no graph, no outputs or no version")
    return model


def _opset(model: Any, path: Path) -> int:
    """Returns the version of ONNX's own operators, and keeps one entry for each domain: exporters
    of classical models repeat them."""
    from onnx import defs

    versions: dict[str, int] = {}
    for each in model.opset_import:
        domain = "" if each.domain in OWN else each.domain
        if versions.setdefault(domain, each.version) != each.version:
            raise setup_error(
                f"{path} names the versions {versions[domain]} and {each.version} of the operators "
                f"of {quoted(domain or 'ai.onnx')}, and must name one: export it again with one "
                "target_opset"
            )
    if "" not in versions and any(node.domain in OWN for node in model.graph.node):
        raise setup_error(
            f"{path} names no version of ONNX's operators: export it again with an opset_version"
        )
    opset = versions.setdefault("", OLDEST)
    if opset < CONVERTED:
        raise setup_error(
            f"{path} is of opset {opset}, and {CONVERTED} is the oldest that is imported: export "
            "it again"
        )
    if opset > defs.onnx_opset_version():
        raise setup_error(
            f"{path} is of opset {opset}, which the onnx {_version()} installed here does not "
            "know: upgrade onnx, or export with a lower opset_version"
        )
    del model.opset_import[:]
    for domain, version in versions.items():
        model.opset_import.add(domain=domain, version=version)
    return opset


def _converted(model: Any, path: Path, opset: int) -> Any:
    """Brings a model to the oldest version whose operators are imported."""
    from onnx import version_converter

    try:
        converted = version_converter.convert_version(model, OLDEST)
    except (RuntimeError, ValueError, TypeError, version_converter.ConvertError) as error:
        raise setup_error(
            f"{path} is of opset {opset}, and ONNX's converter does not bring it to {OLDEST} "
            f"({printable(error, MOST_TOLD)}): export it again with opset_version={OLDEST} or later"
        ) from None
    if opset < RESIZED:
        _resize_as_before(converted.graph)
    return converted


def _resize_as_before(graph: Any) -> None:
    """States where resized images take their elements from, which older versions did not say and
    the converter leaves to the newer default."""
    from onnx import helper

    before = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    for node in graph.node:
        for inner in graphs_of(node):
            _resize_as_before(inner)
        stated = {each.name for each in node.attribute}
        if node.op_type == "Resize" and "coordinate_transformation_mode" not in stated:
            node.attribute.extend(helper.make_attribute(*each) for each in before.items())


def _version() -> str:
    import onnx

    return str(onnx.__version__)


def _inlined(model: Any, path: Path) -> Any:
    """Inlines the file's own functions where they are called.

    The resulting nodes are counted first, because a few lines can ask for any number of them."""
    if not model.functions:
        return model
    from onnx import inliner

    functions = {(each.domain, each.name): each for each in model.functions}
    sizes: dict[tuple[str, str], int] = {}

    def size(nodes: Any, depth: int) -> int:
        if depth > DEEPEST:
            raise setup_error(
                f"{path} has functions that call themselves, or more than {DEEPEST} deep"
            )
        total = 0
        for node in nodes:
            key = (node.domain, node.op_type)
            if key in functions and key not in sizes:
                sizes[key] = size(functions[key].node, depth + 1)
            total += sizes.get(key, 1)
            for attribute in node.attribute:
                for graph in (attribute.g, *attribute.graphs):
                    total += size(graph.node, depth + 1)
        return total

    if (total := size(model.graph.node, 0)) > MOST_NODES:
        raise setup_error(
            f"{path} has {total} operators; {MOST_NODES} are the most that are imported"
        )
    try:
        return inliner.inline_local_functions(model)
    except (RuntimeError, ValueError, TypeError) as error:
        raise setup_error(
            f"{path} has functions that cannot be put in: {printable(error)}"
        ) from None


def _complete(graph: Any) -> None:
    """Adds shapes to outputs that have none, because ONNX's own check requires them. Nothing relies
    on them."""
    for info in graph.output:
        if info.type.WhichOneof("value") == "tensor_type":
            info.type.tensor_type.shape.SetInParent()


def _missing(graph: Any, problems: Problems) -> None:
    """Collects operators that have no entry in the table."""
    for node in graph.node:
        if (refusal := refusal_of(node)) is not None:
            problems.add(quoted(node.op_type)[1:-1], node.name, refusal)


def refusal_of(node: Any) -> NotImportedError | None:
    """Returns why a node has no entry in the table, or ``None`` if it has one, or is replaced by
    the graphs inside of it."""
    if node.domain == TENSORFLOW:
        return NotImportedError(
            "this operator of TensorFlow has none of ONNX for it",
            "replace it in the model, or leave it to the receiver",
        )
    if operator_of(node.domain, node.op_type) is not None:
        return None
    if node.domain not in (*OWN, CLASSICAL):
        return NotImportedError(
            f"operators of {quoted(node.domain)} are not imported",
            "export without that runtime's own optimisations, to ONNX's operators alone",
        )
    if node.domain in OWN and node.op_type in EXPANDED:
        return None
    if node.domain in OWN and node.op_type == "Scan":
        return NotImportedError("a Scan is not imported", "export it as a Loop, or unrolled")
    return NotImportedError(
        "this operator is not imported", "replace it in the model, or leave it to the receiver"
    )


def _tensors(graph: Any, path: Path) -> dict[str, torch.Tensor]:
    """Reads the tensors of the graph and leaves inputs in place of large ones, so that what ONNX
    checks is small."""
    from onnx import helper

    if graph.sparse_initializer:
        raise setup_error(
            f"{path} holds sparse tensors, which are not imported: store them densely"
        )
    found: dict[str, torch.Tensor] = {}
    declared = {each.name for each in graph.input}
    kept = []
    for tensor in graph.initializer:
        if tensor.name in found:
            raise setup_error(f"{path} holds two tensors named {quoted(tensor.name)}")
        found[tensor.name] = tensors.read(tensor, path.parent)
        if found[tensor.name].numel() <= FEW and not tensor.external_data:
            kept.append(tensor)
        elif tensor.name not in declared:
            info = helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            graph.input.append(info)
    del graph.initializer[:]
    graph.initializer.extend(kept)
    return found
