"""Importer of PyTorch modules, by ``torch.export``.

Composite operators stay whole if the operator table has them. Shapes are those of the example."""

import copy
import io
import linecache
import logging
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

from tacit.compilation.allowlist import is_allowed, trains
from tacit.compilation.graph import Draft
from tacit.compilation.importers.composites import ASSERTIONS, Written, decomposed
from tacit.compilation.passes.normalise import normalise
from tacit.errors import MisuseError, UnsupportedOperatorError, setup_error, source_lines
from tacit.operators.dispatch.hints import rewrite

#: Layer that is named for an operator outside all submodules.
OUTSIDE = "the model itself"

#: Loggers by which PyTorch reports that it cannot say which line branches on values, or that a file
#: is not its own.
TELLING = tuple(map(logging.getLogger, ("torch.fx.experimental.symbolic_shapes", "torch.export")))


def of_module(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    layers: Mapping[str, str] | None = None,
) -> Draft:
    """Makes a draft of a module in evaluation mode, for inputs like the example.

    ``layers`` gives names to submodules that the model calls otherwise.

    Raises:
        MisuseError: the module is in training mode, or branches on values of its inputs.
        UnsupportedOperatorError: secret tensors lack operators; the error names all of them.
    """
    training = [
        name or type(module).__name__ for name, part in module.named_modules() if part.training
    ]
    if training:
        raise MisuseError(
            f"{training[0]} is in training mode, in which a model behaves differently: call "
            "model.eval()"
        )
    copied = copy.deepcopy(module)
    try:
        with torch.no_grad(), Written(), _quiet():
            exported = torch.export.export(copied, args, kwargs)
    except Exception as error:
        raise MisuseError(_not_exported(error, copied)) from None
    return of_exported(exported, layers)


def of_file(path: Path) -> Draft:
    """Makes a draft of a file of ``torch.export.save``.

    Loading a file can run code that it holds, so load only your own."""
    try:
        with _quiet():
            exported = torch.export.load(path)
    except Exception as error:
        raise setup_error(
            f"{path} is no exported program of this PyTorch: {_first_line(error)}"
        ) from None
    return of_exported(exported)


def of_exported(exported: ExportedProgram, layers: Mapping[str, str] | None = None) -> Draft:
    """Makes a draft of what ``torch.export`` returns."""
    _check_training(exported.graph)
    exported = decomposed(exported)
    for node in reversed(list(exported.graph.nodes)):
        if node.target in ASSERTIONS:
            exported.graph.erase_node(node)
    _check_shapes(exported)
    draft = _Conversion(exported, layers or {}).draft
    # Values that follow from constants alone may be computed by operators that no program may call.
    normalise(draft)
    _check_missing(draft.graph)
    return draft


class _Conversion:
    """Copies an exported graph into a draft's: first inputs, weights and constants, in this order,
    then operators."""

    def __init__(self, exported: ExportedProgram, layers: Mapping[str, str]) -> None:
        self._exported, self._layers = exported, layers
        self._nodes: dict[fx.Node, fx.Node] = {}
        self._signature = exported.graph_signature
        self.draft = Draft(fx.Graph(), {}, {}, {})
        inputs, weights, constants = self._sorted()
        for node, example in inputs:
            name = self._placed(node)
            self.draft.examples[name], self.draft.names[name] = example, node.name
        for node, value in weights:
            self.draft.weights[self._placed(node)] = value.detach().to(torch.float64)
        for node, value in constants:
            self.draft.constants[self._placed(node)] = value.detach().contiguous()
        for node in exported.graph.nodes:
            if node.op == "call_function":
                self._copy(node)
        self._return()

    def _sorted(self) -> tuple[list[Any], list[Any], list[Any]]:
        """Returns inputs with their examples, and weights and constants with their values."""
        given = iter(pytree.tree_leaves(self._exported.example_inputs))
        inputs: list[Any] = []
        weights: list[Any] = []
        constants: list[Any] = []
        nodes = {node.name: node for node in self._exported.graph.nodes if node.op == "placeholder"}
        for spec in self._signature.input_specs:
            node = nodes[spec.arg.name]
            if spec.kind == InputKind.USER_INPUT:
                example = next(given)
                if isinstance(example, torch.Tensor):
                    inputs.append((node, example.detach()))
                elif node.users:
                    raise MisuseError(
                        f"the input {node.name} is {type(example).__name__}: inputs are tensors"
                    )
                continue
            value = self._value(spec)
            kind = (
                weights
                if value.is_floating_point() and spec.kind != InputKind.CONSTANT_TENSOR
                else constants
            )
            kind.append((node, value))
        return inputs, weights, constants

    def _value(self, spec: Any) -> torch.Tensor:
        exported = self._exported
        if spec.target in exported.state_dict:
            value: torch.Tensor = exported.state_dict[spec.target]
        else:
            value = exported.constants[spec.target]
        if not isinstance(value, torch.Tensor):
            raise MisuseError(f"{spec.target} is {type(value).__name__}, which no program holds")
        # Masks are public, and may be infinite.
        wrong = value.isnan() if spec.kind == InputKind.CONSTANT_TENSOR else ~value.isfinite()
        if value.is_floating_point() and bool(wrong.any()):
            raise MisuseError(
                f"{spec.target} holds NaN or infinity, which has no fixed-point encoding: train "
                f"the model "
                "again, or in masks use -1e4 for -∞"
            )
        return value

    def _placed(self, node: fx.Node) -> str:
        """Adds a placeholder for a node and returns its name, which differs from the node's if
        Python already uses that name."""
        made = self._nodes[node] = self.draft.graph.placeholder(node.name)
        made.meta = {"layer": ""}
        return made.name

    def _copy(self, node: fx.Node) -> None:
        made = self.draft.graph.node_copy(node, lambda of: self._nodes[of])
        layer = layer_of(node)
        made.meta = {"layer": self._layers.get(layer, layer)}
        self._nodes[node] = made

    def _return(self) -> None:
        returned = []
        for spec, node in zip(
            self._signature.output_specs, self._exported.graph.output_node().args[0], strict=True
        ):
            if spec.kind != OutputKind.USER_OUTPUT:
                raise MisuseError(
                    f"the model writes to {spec.target} while it runs: programs change nothing"
                )
            if isinstance(node, fx.Node):
                returned.append(self._nodes[node])
        self.draft.graph.output(tuple(returned))


def layer_of(node: fx.Node) -> str:
    """Returns the path of the module that a node of an exported graph comes from."""
    stack = node.meta.get("nn_module_stack") or {}
    return str(next(reversed(stack.values()))[0]) if stack else ""


def _check_shapes(exported: ExportedProgram) -> None:
    for node in exported.graph.nodes:
        if all(isinstance(size, int) for shape in _shapes(node) for size in shape):
            continue
        if node.op == "placeholder":
            raise MisuseError(
                "the model was exported with dynamic shapes: export it with those that it will run "
                "on"
            )
        # No node before this one has such a shape, so it follows from values.
        raise MisuseError(
            f"in {layer_of(node) or OUTSIDE} the shape of what {node.target} gives depends on "
            "values, which are secret: select by torch.where, or multiply by 1 or 0, which keep "
            "shapes"
        )


def _shapes(node: fx.Node) -> list[torch.Size]:
    return [value.shape for value in pytree.tree_leaves(node.meta.get("val")) if _is_tensor(value)]


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _check_training(graph: fx.Graph) -> None:
    """Raises if an operator was exported in training mode, whatever PyTorch would make of it."""
    for node in graph.nodes:
        if node.op == "call_function" and trains(node.target, node.args, node.kwargs):
            raise MisuseError(
                f"{layer_of(node) or OUTSIDE} calls {node.target} in training mode, where a model "
                f"draws "
                "numbers or changes its statistics: call model.eval() before it is exported, and "
                "give "
                "functions training=self.training, and attentions no dropout_p in evaluation"
            )


def _check_missing(graph: fx.Graph) -> None:
    """Raises if secret tensors lack operators; the error names all of them, with their layers."""
    missing: dict[Any, list[str]] = {}
    for node in graph.nodes:
        if node.op == "call_function" and not is_allowed(node.target) and _meets_data(node):
            missing.setdefault(node.target, []).append(node.meta["layer"] or OUTSIDE)
    if not missing:
        return
    lines = [
        f"{target} in {layers[0]}{_and_more(layers)}: {_remedy(target)}"
        for target, layers in missing.items()
    ]
    error = UnsupportedOperatorError(
        "secret tensors lack operators of this model:\n  " + "\n  ".join(lines)
    )
    error.what, error.remedy = ", ".join(map(str, missing)), "; ".join(map(_remedy, missing))
    raise error


def _and_more(layers: list[str]) -> str:
    return f" and {len(layers) - 1} more" if len(layers) > 1 else ""


def _remedy(target: Any) -> str:
    return (
        rewrite(target)
        if isinstance(target, torch._ops.OpOverload)
        else "write it with PyTorch's operators"
    )


def _meets_data(node: fx.Node) -> bool:
    """Returns whether anything that a node takes depends on a tensor that is not known now. What is
    known is computed now."""
    seen, stack = set(), [node]
    while stack:
        for source in stack.pop().all_input_nodes:
            if source.op == "placeholder":
                return True
            if source not in seen:
                seen.add(source)
                stack.append(source)
    return False


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps PyTorch from printing its graph, or where it was, next to tacit's own message if
    something fails in this context."""
    told = io.StringIO()
    for each in TELLING:
        each.addFilter(_is_no_warning)
    try:
        with redirect_stderr(told):
            yield
    finally:
        for each in TELLING:
            each.removeFilter(_is_no_warning)
    sys.stderr.write(told.getvalue())


def _is_no_warning(record: logging.LogRecord) -> bool:
    return record.levelno != logging.WARNING


def _not_exported(error: BaseException, module: torch.nn.Module) -> str:
    where = _where(error, module)
    if "data-dependent" in str(error) or "GuardOnDataDependent" in type(error).__name__:
        return (
            f"{where} decides by values of its inputs, which are secret: torch.where selects by a "
            "secret condition, and sizes and numbers of steps must follow from shapes alone"
        )
    return (
        f"torch.export does not take this model with this example; {where} raises "
        f"{type(error).__name__}: "
        f"{_first_line(error)}"
    )


def _where(error: BaseException, module: torch.nn.Module) -> str:
    """Returns the innermost module in which an error was raised, and the innermost line that is
    neither PyTorch's nor tacit's."""
    names = {id(part): name for name, part in module.named_modules()}
    layer, line = "", ""
    raised = [error, error.__context__] if error.__context__ else [error]
    for frame, number in (
        step for each in raised for step in traceback.walk_tb(each.__traceback__)
    ):
        layer = names.get(id(frame.f_locals.get("self")), layer)
        file = frame.f_code.co_filename
        if not source_lines.is_ours(file):
            text = linecache.getline(file, number).strip()
            line = f" ({Path(file).name}, line {number}: {text})"
    return f"{layer or OUTSIDE}{line}"


def _first_line(error: BaseException) -> str:
    told = [line.strip() for line in str(error).splitlines() if line.strip()]
    return told[0] if told else type(error).__name__
