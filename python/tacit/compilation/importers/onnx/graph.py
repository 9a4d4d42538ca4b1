"""From a graph to steps. Every node is evaluated once here: on what is known, for real, so that
shapes and what is made of weights alone are done with; on all else, on shapes alone (PyTorch's fake
tensors), which tells every shape there is and what cannot be.

What is known is public if it comes of the graph's own constants and shapes alone, or is no real
number; what comes of weights is held as a parameter and stays secret. Exporters write the numbers
of a formula (x · 0.5)
and those that were learned alike: what has no dimension is taken for the former, and is told."""

import logging
import math
from collections.abc import Callable, Container, Iterator
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
from tacit.compilation.importers.onnx.module import Flowing, Held, OnnxModule, Step, results
from tacit.compilation.importers.onnx.problems import NotImportedError, Problems, quoted
from tacit.compilation.importers.onnx.reading import OWN, Read
from tacit.compilation.importers.onnx.table import OPERATORS, Node, Operator
from tacit.compilation.importers.onnx.types import check

#: How many elements all that is computed while importing may have together.
MOST_FOLDED = 1 << 28

#: How many numbers an operator may take as values of Python.
MOST_KNOWN = 1 << 16

#: What keeps out is at most this: exp of it is nothing.
LEAST_OF_MASKS = -1e4

#: What takes nothing but the shape of what goes in.
SHAPES = ("Shape", "Size")

#: Its result has a shape that depends on the values that go in.
MEASURING = "NonZero"

#: What PyTorch raises where a shape, or a value, is not to be told without the data.
DEPENDS = (DataDependentOutputException, DynamicOutputShapeException)


@dataclass(frozen=True)
class Value:
    """What stands for a value while importing."""

    #: Its type and shape.
    fake: torch.Tensor
    #: Itself, where it is known.
    known: torch.Tensor | None = None
    #: Whether everybody may see it.
    public: bool = False


class Importing:
    """One graph on its way to a module."""

    def __init__(
        self,
        read: Read,
        folder: Path,
        module: OnnxModule,
        problems: Problems,
        secret: Container[str],
    ) -> None:
        self.read, self.folder, self.module, self.problems = read, folder, module, problems
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        self.values: dict[str, Value | None] = {"": None}
        #: What comes of inputs, also where it has no value, as what gives it is missing.
        self.flowing: set[str] = set()
        self.held: dict[str, Held] = {}
        self.steps: list[Step] = []
        self.folded = 0
        for name, tensor in read.tensors.items():
            public = name not in secret and (tensor.ndim == 0 or _is_mask(tensor))
            self.values[name] = self._known(tensor, public or not tensor.is_floating_point())

    def take(self, name: str, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
        """That the model has this input."""
        self.values[name] = Value(self._fake(shape, dtype))
        self.flowing.add(name)

    def node(self, proto: Any) -> None:
        """Evaluates a node, or notes it as a step; its results have values after it."""
        names, operator = list(proto.output), OPERATORS.get(proto.op_type)
        label = proto.name or next((name for name in names if name), "")
        if (
            proto.domain in OWN
            and operator is not None
            and all(name in self.values for name in proto.input)
        ):
            with self.problems.at(proto.op_type, label):
                found = attributes(proto, self.folder)
                kinds = tuple(self._kind(name) for name in proto.input)
                node = Node(proto.op_type, label, self.read.opset, found, len(names), kinds)
                check(node)
                self._evaluate(node, operator, list(proto.input), names)
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

    def _evaluate(
        self, node: Node, operator: Operator, inputs: list[str], names: list[str]
    ) -> None:
        values = [self.values[name] for name in inputs]
        arguments: list[Any] = []
        folds = operator.folds and all(value is None or value.known is not None for value in values)
        for at, (name, value) in enumerate(zip(inputs, values, strict=True)):
            if value is None:
                arguments.append(None)
            elif operator.knows(at) or (at in operator.prefers and _is_given(value)):
                arguments.append(self._python(value, name, at))
            elif not folds and operator.numbers and (number := _number(value, values)) is not None:
                arguments.append(number)
            else:
                arguments.append(Flowing(name))
        if node.operator == "Constant":
            self.values[names[0]] = self._constant(node)
            return
        given = self._shapes(node, operator, arguments, folds)
        # What depends on shapes alone is known too.
        folds = folds or node.operator in SHAPES
        if folds:
            self.folded += sum(each.numel() for each in given)
            if self.folded > MOST_FOLDED:
                raise NotImportedError(
                    "what the file computes of constants is too large", "compute it beforehand"
                )
            public = node.operator in SHAPES or all(
                value is None or value.public for value in values
            )
            real = self._call(node, operator, arguments, self._real)
            for name, each in zip(names, real, strict=False):
                self.values[name] = self._known(
                    each.detach(), public or not each.is_floating_point()
                )
            return
        for each in given:
            if each.numel() > tensors.MOST_ELEMENTS:
                raise NotImportedError(
                    f"its result would have the shape {tuple(each.shape)}", "use smaller inputs"
                )
        self.steps.append(Step(node, operator.function, tuple(arguments), tuple(names), ()))
        for name, each in zip(names, given, strict=False):
            if name:
                self.values[name] = Value(each)

    def _shapes(
        self, node: Node, operator: Operator, arguments: list[Any], folds: bool
    ) -> tuple[Any, ...]:
        """The results without their data."""
        try:
            with self.mode, _quiet():
                return self._call(node, operator, arguments, lambda name: self._value(name).fake)
        except DEPENDS:
            if folds and node.operator == MEASURING:
                # Then it is known after all, and no larger than what goes in by more than its rank.
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

    def _constant(self, node: Node) -> Value:
        tensor = OPERATORS["Constant"].function(node)
        # Several numbers may be weights, as some exporters write them.
        public = tensor.numel() == 1 or _is_mask(tensor) or not tensor.is_floating_point()
        return self._known(tensor, public)

    def _known(self, tensor: torch.Tensor, public: bool) -> Value:
        return Value(self._fake(tuple(tensor.shape), tensor.dtype), tensor, public)

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
        """A value as Python's numbers, in lists where it has dimensions."""
        if value.known is None:
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

    def _place(self, argument: Flowing) -> Flowing | Held:
        """Where a step finds a value: what is known is held by the module from now on."""
        value = self._value(argument.name)
        if value.known is None:
            return argument
        if argument.name not in self.held:
            self.held[argument.name] = self.module.hold(
                argument.name, _sound(value, argument.name), value.public
            )
        return self.held[argument.name]

    def finish(self, outputs: list[str]) -> None:
        """Hands the module the steps that lead to the outputs, and what is
        known that these take."""
        steps = []
        for step in needed(self.steps, outputs):
            with self.problems.at(step.node.operator, step.node.name):
                placed = (
                    self._place(each) if isinstance(each, Flowing) else each
                    for each in step.arguments
                )
                steps.append(replace(step, arguments=tuple(placed)))
        places = []
        for name in outputs:
            with self.problems.at("output", name):
                if name in self.values:
                    places.append(self._place(Flowing(name)))
                elif not self.problems:
                    raise NotImportedError("nothing gives it", "export the model again")
        self.module.finish(steps, places)

    def _assume(self, name: str) -> None:
        """A value whose node could not be evaluated, as the file claims it: what follows is seen
        too."""
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
    """Without what PyTorch writes of operands that do not fit: it is told as an error."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


def _is_mask(tensor: torch.Tensor) -> bool:
    """Whether it only lets pass or keeps out what it is added to, as no weights do."""
    if not tensor.is_floating_point():
        return False
    out = tensor <= LEAST_OF_MASKS
    return bool(out.any() and (out | (tensor == 0)).all())


def _is_given(value: Value) -> bool:
    """Whether it is known and anybody may see it."""
    return value.known is not None and value.public and value.known.numel() <= MOST_KNOWN


def _number(value: Value, among: list[Value | None]) -> float | int | bool | None:
    """A public number as Python's, if the shape of the result does not come of it."""
    if (
        value.known is None
        or not value.public
        or value.known.numel() != 1
        or value.known.dtype == torch.bool
    ):
        return None
    others = [each for each in among if each is not None and each.known is None]
    if not others or max(each.fake.ndim for each in others) < value.fake.ndim:
        return None
    return value.known.item()


def _sound(value: Value, name: str) -> torch.Tensor:
    """A tensor that is held: weights are finite, and what is public no NaN; masks have −∞."""
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
    """The steps that the outputs come of, each with what nothing takes after it."""
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
