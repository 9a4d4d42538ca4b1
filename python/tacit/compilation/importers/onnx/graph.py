"""Converter of an ONNX graph to the steps of a module.

Every node is evaluated once here. If all its operands are known it is evaluated on their values, so
shapes and whatever depends on weights alone are folded. Otherwise it is evaluated on shapes alone
(PyTorch's fake tensors), which finds every shape and every operand that does not fit.

A known value is public if it depends only on the graph's own constants and on shapes, or is not a
real number. A value that depends on weights is held as a parameter and stays secret. Exporters
write the numbers of a formula (x · 0.5) and learned numbers alike. Zero-dimensional numbers are
assumed to belong to a formula. Each value knows which numbers of the file it follows from, so that
those that become public are reported (``disclosed.py``)."""

import logging
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)

from tacit.compilation.importers.onnx import tensors
from tacit.compilation.importers.onnx.attributes import attributes
from tacit.compilation.importers.onnx.control import (
    Bodies,
    body,
    check_lengths,
    check_rounds,
    names_in,
    single,
)
from tacit.compilation.importers.onnx.disclosed import NONE, Disclosed, Names
from tacit.compilation.importers.onnx.module import Flowing, Held, OnnxModule, Step, results
from tacit.compilation.importers.onnx.problems import NotImportedError, Problems, quoted
from tacit.compilation.importers.onnx.reading import EXPANDED, Read, refusal_of
from tacit.compilation.importers.onnx.table import OPERATORS, OWN, Node, Operator, operator_of
from tacit.compilation.importers.onnx.types import check

#: Greatest number of elements that importing may compute in total.
MOST_FOLDED = 1 << 28

#: Greatest number of values that an operator may take as Python values.
MOST_KNOWN = 1 << 16

#: Greatest number of a mask that excludes an element: the exponential of such a number is as good
#: as zero.
LEAST_OF_MASKS = -1e4

#: Operators that need only the shape of their input.
SHAPES = ("Shape", "Size")

#: Operator whose result has a shape that depends on the values of its input.
MEASURING = "NonZero"

#: Operators that take quantised weights and biases.
QUANTISED = ("DequantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger")

#: Errors that PyTorch raises if a shape, or a value, cannot be found without the data.
DEPENDS = (DataDependentOutputException, DynamicOutputShapeException)


@dataclass(frozen=True)
class Value:
    """A value of the graph, as it is represented while importing."""

    #: Dtype and shape of the value.
    fake: torch.Tensor
    #: The value itself, if it is known.
    known: torch.Tensor | None = None
    #: Whether real numbers that follow from it are public. Others are public in any case.
    public: bool = False
    #: Names of numbers of the file that it follows from, if they may have been learned.
    learned: Names = NONE
    #: Names of those that its shape follows from.
    shaped: Names = NONE


class Importing:
    """Conversion of one graph to a module."""

    def __init__(
        self,
        read: Read,
        folder: Path,
        module: OnnxModule,
        problems: Problems,
        secret: Collection[str],
    ) -> None:
        self.read, self.folder, self.module, self.problems = read, folder, module, problems
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        self.values: dict[str, Value | None] = {"": None}
        #: Names of values that depend on inputs, also if they are missing because their operator
        #: is.
        self.flowing: set[str] = set()
        self.held: dict[str, Held] = {}
        self.steps: list[Step] = []
        self.folded = 0
        self.bodies = Bodies(names_in(read.graph))
        self.disclosed = Disclosed(secret)
        #: Names that the shapes and the Python values of a step follow from, by its results.
        self.taken: dict[tuple[str, ...], Names] = {}
        for name, tensor in read.tensors.items():
            self._hold(name, tensor, name)

    def _hold(self, name: str, tensor: torch.Tensor, in_file: str) -> None:
        """Adds a tensor that the file has under a name."""
        is_public = tensor.ndim == 0 or _is_mask(tensor)
        self.values[name] = self._known(tensor, *self.disclosed.of(in_file, tensor, is_public))

    def take(self, name: str, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
        """Adds an input of the model."""
        self.values[name] = Value(self._fake(shape, dtype))
        self.flowing.add(name)

    def know(self, name: str, value: torch.Tensor) -> None:
        """Adds an input of which all parties know the value."""
        self.values[name] = self._known(value, public=True)

    def node(self, proto: Any) -> None:
        """Evaluates a node, or records it as a step. Its results have values afterwards."""
        names, operator = list(proto.output), operator_of(proto.domain, proto.op_type)
        label = proto.name or next((name for name in names if name), "")
        if operator is None:
            if proto.domain in OWN and proto.op_type in EXPANDED:
                if all(name in self.values for name in proto.input):
                    with self.problems.at(proto.op_type, label):
                        self._expand(proto, label)
            elif (refusal := refusal_of(proto)) is not None:
                self.problems.add(quoted(proto.op_type)[1:-1], proto.name, refusal)
        if operator is not None and all(name in self.values for name in proto.input):
            with self.problems.at(proto.op_type, label):
                found = attributes(proto, self.folder)
                kinds = tuple(self._kind(name) for name in proto.input)
                domain = "" if proto.domain in OWN else proto.domain
                opset = self.read.opsets.get(domain, 1)
                node = Node(proto.op_type, label, domain, opset, found, len(names), kinds)
                check(node)
                inputs = [*proto.input, *self._parts(node, operator, list(proto.input))]
                self._evaluate(node, operator, inputs, names)
        elif proto.domain in OWN and proto.op_type == MEASURING and self.flowing & set(proto.input):
            with self.problems.at(proto.op_type, label):
                raise _depends_on_data()
        if proto.op_type not in SHAPES and self.flowing & set(proto.input):
            self.flowing |= {name for name in names if name not in self.values}
        for name in names:
            if name and name not in self.values:
                self._assume(name)
            if name and (value := self.values.get(name)) is not None and value.known is None:
                self.flowing.add(name)

    def _expand(self, proto: Any, label: str) -> None:
        """Puts the taken branch of an If, or the rounds of a Loop, in the place of the node."""
        if proto.op_type == "If":
            check_lengths("it", proto.input, 1)
            taken = self._decided(proto.input[0], "its condition", f"If {quoted(label)}")
            given = self._inlined(body(proto, "then_branch" if taken else "else_branch"), {})
        else:
            given = self._rounds(proto, label)
        check_lengths("its graph", given, len(proto.output))
        for name, inner in zip(proto.output, given, strict=True):
            if name:
                self._make("Identity", [inner], name, label)

    def _rounds(self, proto: Any, label: str) -> list[str]:
        """Evaluates the rounds of a Loop; returns the names of what it gives."""
        graph, (most, goes_on, *state) = body(proto, "body"), proto.input
        check_lengths("its graph's inputs", graph.input, 2 + len(state))
        by = f"Loop {quoted(label)}"
        rounds = self._decided(most, "its number of rounds", by) if most else None
        if rounds is None and not goes_on:
            raise NotImportedError("it has no end", "give it a number of rounds, or a condition")
        collected: list[list[str]] = [[] for _ in range(len(proto.output) - len(state))]
        check_lengths("its graph", graph.output, 1 + len(state) + len(collected))
        at = 0
        while rounds is None or at < rounds:
            if goes_on and not self._decided(goes_on, "its condition", by):
                break
            check_rounds(at + 1, label)
            number, condition = f"{label}//{at}", f"{label}//{at}/on"
            self.values[number] = self._known(torch.tensor(at), public=True)
            self.values[condition] = self._known(torch.tensor(True), public=True)
            places = [number, condition, *state]
            outer = dict(zip((each.name for each in graph.input), places, strict=True))
            goes_on, *given = self._inlined(graph, outer)
            state = given[: len(state)]
            for row, name in zip(collected, given[len(state) :], strict=True):
                row.append(name)
            at += 1
        for name, row in zip(proto.output[len(state) :], collected, strict=True):
            if not row and name:
                raise NotImportedError(
                    "it has no rounds, so that the shape of what it collects is not known",
                    "export with a shape for which it has some",
                )
        return [*state, *(self._stacked(row, label) for row in collected)]

    def _decided(self, name: str, what: str, by: str) -> int:
        """Returns a value that decides on the course, and notes that it becomes public."""
        value = self._value(name)
        self.disclosed.add(value.learned | value.shaped, by)
        return single(value.known, what)

    def _stacked(self, names: list[str], label: str) -> str:
        """Joins what the rounds of a loop give, along a new first dimension."""
        if not names:
            return ""
        axes = f"{names[0]}/axes"
        self.values[axes] = self._known(torch.tensor([0]), public=True)
        rows = []
        for name in names:
            rows.append(f"{name}/row")
            self._make("Unsqueeze", [name, axes], rows[-1], label)
        self._make("Concat", rows, f"{names[0]}/all", label, axis=0)
        return f"{names[0]}/all"

    def _inlined(self, graph: Any, given: dict[str, str]) -> list[str]:
        """Evaluates the nodes of a graph in the place of its node; returns its results' names."""
        nodes, names, prefix = self.bodies.copy(graph, given)
        if graph.sparse_initializer:
            raise NotImportedError("it holds sparse tensors", "store them densely")
        for tensor in graph.initializer:
            self._hold(prefix + tensor.name, tensors.read(tensor, self.folder), tensor.name)
        for node in nodes:
            self.node(node)
        found = [names.get(each.name, each.name) for each in graph.output]
        if not self.problems and (lost := [name for name in found if name not in self.values]):
            raise ValueError(f"nothing gives {quoted(lost[0])}")
        return found

    def _make(self, kind: str, inputs: list[str], name: str, label: str, **more: Any) -> None:
        """Evaluates a node that the file does not have."""
        from onnx import helper

        if all(each in self.values for each in inputs):
            self.node(helper.make_node(kind, inputs, [name], name=f"{label}/{name}", **more))

    def _parts(self, node: Node, operator: Operator, inputs: list[str]) -> list[str]:
        """Returns the names of the tensors that a node has among its attributes."""
        if operator.parts is None:
            return []
        given = [self._value(name).fake for name in inputs if name]
        names = []
        for part in operator.parts(node, given):
            name = f"{node.name}.{part.name}"
            while name in self.values:
                name += "_"
            public = part.public or not part.value.is_floating_point()
            self.values[name] = self._known(part.value, public)
            names.append(name)
        return names

    def _evaluate(
        self, node: Node, operator: Operator, inputs: list[str], names: list[str]
    ) -> None:
        if node.operator == "Constant":
            self.values[names[0]] = self._constant(node, self.bodies.in_file(names[0]))
            return
        if node.operator in QUANTISED:
            self._find_quantised(inputs)
        values = [self.values[name] for name in inputs]
        present = [value for value in values if value is not None]
        folds = operator.folds and all(value.known is not None for value in present)
        arguments = self._arguments(operator, inputs, folds)
        given = self._shapes(node, operator, arguments, folds)
        learned = NONE.union(*(value.learned for value in present))
        if folds and self.disclosed.hidden(learned) and not _all_real(given):
            # Only real numbers are held in secret; what is to stay secret is computed by the
            # parties then.
            folds = False
            arguments = self._arguments(operator, inputs, folds)
        shaped = self._shaped(node, values, arguments)
        # A result that depends on shapes alone is known too.
        if node.operator in SHAPES:
            folds, learned = True, NONE.union(*(value.shaped for value in present))
        if folds:
            self.folded += sum(each.numel() for each in given)
            if self.folded > MOST_FOLDED:
                raise NotImportedError(
                    "what the file computes of constants is too large", "compute it beforehand"
                )
            public = node.operator in SHAPES or all(value.public for value in present)
            real = self._call(node, operator, arguments, self._real)
            for name, each in zip(names, real, strict=False):
                self.values[name] = self._known(each.detach(), public, learned, shaped)
            return
        for each in given:
            if each.numel() > tensors.MOST_ELEMENTS:
                raise NotImportedError(
                    f"its result would have the shape {tuple(each.shape)}", "use smaller inputs"
                )
        self.steps.append(Step(node, operator.function, tuple(arguments), tuple(names), ()))
        self.taken[tuple(names)] = shaped
        known = all(value.known is not None or value.learned for value in present)
        hidden = self.disclosed.hidden(learned) if known else NONE
        for name, each in zip(names, given, strict=False):
            if name:
                self.values[name] = Value(each, learned=hidden)

    def _find_quantised(self, names: list[str]) -> None:
        """Marks quantised biases as learned, which have the type of shapes."""
        for name in names:
            value = self.values[name]
            if value is None or value.known is None or not value.public:
                continue
            if value.known.dtype == torch.int32 and value.known.numel() > 1:
                learned = frozenset([self.bodies.in_file(name)])
                self.values[name] = replace(value, public=False, learned=learned)

    def _arguments(self, operator: Operator, inputs: list[str], folds: bool) -> list[Any]:
        """Returns what a node takes: ``Flowing``, or Python values."""
        values = [self.values[name] for name in inputs]
        arguments: list[Any] = []
        for at, (name, value) in enumerate(zip(inputs, values, strict=True)):
            if value is None:
                arguments.append(None)
            elif operator.knows(at) or (at in operator.prefers and _is_given(value)):
                arguments.append(self._python(value, name, at))
            elif not folds and operator.numbers and (number := _number(value, values)) is not None:
                arguments.append(number)
            else:
                arguments.append(Flowing(name))
        return arguments

    def _shaped(self, node: Node, values: list[Value | None], arguments: list[Any]) -> Names:
        """Returns which numbers of the file shapes follow from, and what else a node shows: those
        of the values that it takes as Python values."""
        shaped = (
            value.shaped
            if isinstance(argument, Flowing) and node.operator != MEASURING
            else value.shaped | value.learned
            for value, argument in zip(values, arguments, strict=True)
            if value is not None
        )
        return NONE.union(*shaped)

    def _shapes(
        self, node: Node, operator: Operator, arguments: list[Any], folds: bool
    ) -> tuple[Any, ...]:
        """Returns the results without their data."""
        try:
            with self.mode, _quiet():
                return self._call(node, operator, arguments, lambda name: self._value(name).fake)
        except DEPENDS:
            if folds and node.operator == MEASURING:
                # The input is known after all, and the result exceeds its size by a factor of its
                # rank at most.
                return tuple(
                    self._value(each.name).fake for each in arguments if isinstance(each, Flowing)
                )
            raise _depends_on_data() from None

    def _call(
        self,
        node: Node,
        operator: Operator,
        arguments: list[Any],
        look: Callable[[str], torch.Tensor],
    ) -> tuple[Any, ...]:
        with torch.no_grad():
            inputs = (look(each.name) if isinstance(each, Flowing) else each for each in arguments)
            found = results(operator.function(node, *inputs))
        return tuple(each for each in found if each is not None)

    def _constant(self, node: Node, in_file: str) -> Value:
        tensor = OPERATORS["", "Constant"].function(node)
        # Several numbers may be weights, which some exporters write so.
        is_public = tensor.numel() == 1 or _is_mask(tensor)
        return self._known(tensor, *self.disclosed.of(in_file, tensor, is_public))

    def _known(
        self, tensor: torch.Tensor, public: bool, learned: Names = NONE, shaped: Names = NONE
    ) -> Value:
        return Value(self._fake(tuple(tensor.shape), tensor.dtype), tensor, public, learned, shaped)

    def _fake(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        with self.mode:
            return torch.empty(shape, dtype=dtype)

    def _value(self, name: str) -> Value:
        value = self.values[name]
        assert value is not None
        return value

    def _kind(self, name: str) -> torch.dtype | None:
        value = self.values[name]
        return None if value is None else value.fake.dtype

    def _real(self, name: str) -> torch.Tensor:
        value = self._value(name)
        return value.fake if value.known is None else value.known

    def _python(self, value: Value, name: str, at: int) -> Any:
        """Returns a value as Python numbers, in lists if it has dimensions."""
        if value.known is None:
            self.disclosed.add(value.learned, name)
            raise NotImportedError(
                f"its input {at + 1} ({quoted(name)}) depends on what the model is given",
                "it has to be known while importing: export with fixed shapes, and this as a "
                "constant",
            )
        if value.known.numel() > MOST_KNOWN:
            raise NotImportedError(
                f"its input {at + 1} ({quoted(name)}) has {value.known.numel()} elements",
                "use fewer",
            )
        return value.known.tolist()

    def _place(self, argument: Flowing, by: str) -> Flowing | Held:
        """Returns where a step finds a value. The module holds a known value from now on."""
        value = self._value(argument.name)
        if value.known is None:
            return argument
        is_held_in_secret = not value.public and value.known.is_floating_point()
        self.disclosed.add(value.shaped if is_held_in_secret else value.learned | value.shaped, by)
        if argument.name not in self.held:
            self.held[argument.name] = self.module.hold(
                argument.name, _sound(value, argument.name), value.public
            )
        return self.held[argument.name]

    def finish(self, outputs: list[str]) -> None:
        """Passes to the module the steps that lead to the outputs, and the known values that these
        take."""
        steps = []
        for step in needed(self.steps, outputs):
            with self.problems.at(step.node.operator, step.node.name):
                by = f"{step.node.operator} {quoted(step.node.name)}"
                self.disclosed.add(self.taken[step.results], by)
                placed = (
                    self._place(each, by) if isinstance(each, Flowing) else each
                    for each in step.arguments
                )
                steps.append(replace(step, arguments=tuple(placed)))
        places = []
        for name in outputs:
            with self.problems.at("output", name):
                if name in self.values:
                    places.append(self._place(Flowing(name), f"the result {quoted(name)}"))
                elif not self.problems:
                    raise NotImportedError("nothing gives it", "export the model again")
        self.module.finish(steps, places)

    def _assume(self, name: str) -> None:
        """Assumes the type and shape that the file claims for a value whose node could not be
        evaluated, so that later nodes are checked too."""
        if (claim := self.read.claimed.get(name)) is not None:
            number, shape = claim
            dtype = tensors.dtype_of(number)
            if dtype is not None and math.prod(shape) <= tensors.MOST_ELEMENTS:
                self.values[name] = Value(self._fake(shape, dtype))


def _depends_on_data() -> NotImportedError:
    return NotImportedError(
        "the shape of its result depends on data", "export a model in which all shapes are fixed"
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppresses what PyTorch prints about operands that do not fit: they are reported as an
    error."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


def _is_mask(tensor: torch.Tensor) -> bool:
    """Returns whether a tensor only keeps or excludes the elements that it is added to, as no
    weights do."""
    if not tensor.is_floating_point():
        return False
    out = tensor <= LEAST_OF_MASKS
    return bool(out.any() and (out | (tensor == 0)).all())


def _all_real(given: Sequence[torch.Tensor]) -> bool:
    return all(each.is_floating_point() for each in given)


def _is_given(value: Value) -> bool:
    """Returns whether a value is known, public or whole, and small enough to become Python
    values."""
    if value.known is None or value.known.numel() > MOST_KNOWN:
        return False
    return value.public or not value.known.is_floating_point()


def _number(value: Value, among: list[Value | None]) -> float | int | bool | None:
    """Returns a public number as a Python number, unless the shape of the result depends on it."""
    if not _is_given(value):
        return None
    assert value.known is not None
    if value.known.numel() != 1 or value.known.dtype == torch.bool:
        return None
    others = [each for each in among if each is not None and each.known is None]
    if not others or max(each.fake.ndim for each in others) < value.fake.ndim:
        return None
    return value.known.item()


def _sound(value: Value, name: str) -> torch.Tensor:
    """Returns a tensor to hold, after a check: weights are finite, and public tensors have no NaN,
    but may have the −∞ of masks."""
    tensor = value.known
    assert tensor is not None
    if tensor.is_floating_point():
        infinite = not value.public and bool(tensor.isinf().any())
        wrong = "NaN" if tensor.isnan().any() else "infinite values" if infinite else None
        if wrong is not None:
            raise NotImportedError(
                f"its weights {quoted(name)} have {wrong}",
                "train again, or in masks use -1e4 for -∞",
            )
    return tensor


def needed(steps: list[Step], outputs: list[str]) -> list[Step]:
    """Returns the steps that the outputs depend on, each with the values that nothing uses after
    it."""
    wanted = set(outputs)
    kept: list[Step] = []
    for step in reversed(steps):
        given = {name for name in step.results if name}
        if not wanted & given:
            continue
        taken = {each.name for each in step.arguments if isinstance(each, Flowing)}
        kept.append(replace(step, released=tuple(sorted((taken | given) - wanted))))
        wanted |= taken
    return kept[::-1]
