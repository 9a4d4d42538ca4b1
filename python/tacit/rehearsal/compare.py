"""Compares a module on plain tensors with the same module on secret tensors.

It shows how exact the module is, and how much room its numbers leave.
"""

import math
import pickle
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

from tacit import fixed
from tacit.errors import EncodingError, MisuseError, PrecisionWarning, RangeWarning
from tacit.fixed import Scale
from tacit.operators.dispatch.operands import compared
from tacit.parties.launch import launch
from tacit.parties.pickling import pickled
from tacit.providers import REFERENCE
from tacit.rehearsal.lenient import shown
from tacit.rehearsal.subject import Subject, arguments, program_of
from tacit.sessions import fraction_bits, session

#: Normalised squared error above which numbers do not match.
TOLERANCE = 1e-3

#: Errors below this are those of the fixed-point resolution.
RESOLUTION = 2.0**-13

#: Modules whose output is that of the last module inside.
CONTAINERS = (torch.nn.Sequential,)

#: Name under which modules lie that compute weights. They run whenever a weight is used, in no
#: fixed order.
PARAMETRISING = "parametrizations"

#: Bits of range that an advised scale leaves for data larger than the example.
MARGIN = 2

#: Smallest and largest scale that is advised.
LEAST, MOST = 8, fixed.RANGE // 2 - 1


@dataclass(frozen=True)
class Layer:
    """Results for one module that ran."""

    #: Path of the module; for the whole, the name of its class.
    name: str
    type: str
    low: float
    #: Range of the output on plain tensors, without NaN.
    high: float
    #: Largest difference of the output on secret tensors, where the plain output is finite.
    error: float
    #: Squared norm of all these differences, divided by that of the plain output.
    normalised: float
    #: Number of outputs that are infinite or NaN on plain tensors and something else on secret
    #: ones.
    #:
    #: Secret tensors have no NaN, and infinities only as numbers beyond all others.
    missed: int
    #: Bits of range that the largest number, or product before truncation, left.
    #:
    #: Below 0 the result is wrong. None if the module computes nothing itself.
    headroom: float | None

    @property
    def diverges(self) -> bool:
        """Whether the module's numbers do not match."""
        is_off = self.normalised > TOLERANCE and self.error > RESOLUTION
        return is_off or self.missed > 0 or (self.headroom or 0) < 0


@dataclass(frozen=True)
class Comparison:
    """Result of ``tacit.compare``."""

    #: Fraction bits of the run.
    scale: int
    #: Modules in the order in which they finished; the last is the whole.
    layers: list[Layer]
    #: Values that left their range, with operator and module.
    overflows: list[str]
    #: Weights that are too small for their scale, and constants that round to 0 or to 1.
    losses: list[str]
    #: Fraction bits with which the example stays in range and is most exact; None if none do.
    advised_scale: int | None
    #: Normalised squared error with the advised fraction bits.
    advised_error: float | None

    @property
    def first_divergence(self) -> Layer | None:
        """The first layer whose numbers do not match, or that left its range."""
        return next((layer for layer in self.layers if layer.diverges), None)

    @property
    def passed(self) -> bool:
        """Whether nothing left its range, and the result matches."""
        return not self.overflows and not self.layers[-1].diverges

    def as_json(self) -> dict[str, Any]:
        """Returns all results by name."""
        first = self.first_divergence
        found = {**asdict(self), "passed": self.passed, "first_divergence": first and first.name}
        # JSON has no infinity, so an error that is not finite becomes null.
        return pytree.tree_map(lambda leaf: leaf if _is_measured(leaf) else None, found)

    def __str__(self) -> str:
        return "\n".join([*_table(self.layers), *_summary(self)])


def compare(module: Subject, example: Any, *, scale: int = fixed.DEFAULT.bits) -> Comparison:
    """Runs a module on plain and on secret tensors, and compares the outputs of every layer.

    The secret run uses the reference protocol, in which values can be inspected. It detects every
    value that leaves its range.

    Weights and inputs count as secret. Errors are those of any protocol, except for the last bit of
    each truncation, which is random. Layers that draw random numbers, such as dropout in training,
    do not match.

    Args:
        module: an ordinary module.
        example: inputs of the module: a tensor, a tuple of the arguments, or a mapping of them by
            name.
        scale: number of fraction bits.

    Raises:
        UnsupportedOperatorError: secret tensors do not have an operator; ``tacit.check`` lists all.

    Warns:
        RangeWarning: a value or a product left its range.
    """
    if not isinstance(module, torch.nn.Module):
        raise MisuseError(
            "compare takes a module and an example of its inputs: a program has no plain run to "
            "compare with"
        )
    args, kwargs = arguments(example)
    # ``copy.deepcopy`` does not support every module that can be pickled for the parties.
    twin = pickle.loads(pickled(module, "the module"))
    with torch.no_grad(), _recorded(twin) as plain:
        twin(*args, **kwargs)
    run = _run(module, example, scale)
    layers = _layers(plain, run)
    advised: tuple[int | None, float | None] = scale, layers[-1].normalised
    if run.overflows or layers[-1].diverges:
        advised = _advice(module, example, plain, run, scale, layers[-1].normalised)
    return Comparison(scale, layers, run.overflows, run.losses, *advised)


def _is_measured(leaf: Any) -> bool:
    return not isinstance(leaf, float) or math.isfinite(leaf)


class _Output(NamedTuple):
    """Output of one module."""

    name: str
    type: str
    tensors: list[torch.Tensor]


class _Run(NamedTuple):
    """Results of a run on secret tensors."""

    outputs: list[_Output]
    headroom: dict[tuple[str, str], float]
    overflows: list[str]
    losses: list[str]
    #: Number that stands for an infinite public one.
    infinity: float

    def left(self, kind: str) -> float:
        """Returns the least headroom of all modules for one kind of number."""
        return min(
            (bits for (_, of), bits in self.headroom.items() if of == kind), default=math.inf
        )


@contextmanager
def _recorded(module: torch.nn.Module) -> Iterator[list[_Output]]:
    """Records the output of each module inside, as plain tensors, while the context is active."""
    outputs: list[_Output] = []

    def record(name: str) -> Any:
        def hook(part: torch.nn.Module, _args: Any, result: Any) -> None:
            leaves = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
            # Another module may write into the output later.
            outputs.append(
                _Output(name, type(part).__name__, [shown(leaf).clone() for leaf in leaves])
            )

        return hook

    handles = [
        part.register_forward_hook(record(name or type(module).__name__))
        for name, part in module.named_modules()
        if not name or not (isinstance(part, CONTAINERS) or PARAMETRISING in name.split("."))
    ]
    try:
        yield outputs
    finally:
        for handle in handles:
            handle.remove()


def _run(module: torch.nn.Module, example: Any, scale: int) -> _Run:
    program = program_of(module, example)

    def recorded() -> _Run:
        current = session()
        current.headroom = {}
        with fraction_bits(scale), _recorded(module) as outputs:
            program()
        overflows = [f"{where} has {what}" for where, what in current.reported.items()]
        infinity = 2.0 ** (fixed.unbounded(compared(current, Scale(scale))) - scale)
        return _Run(outputs, current.headroom, overflows, [], infinity)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run: _Run = launch(recorded, parties=2, protocol=REFERENCE)[0]
    losses = [str(each.message) for each in caught if each.category is PrecisionWarning]
    for each in caught:
        if each.category is not PrecisionWarning:
            warnings.warn(each.message, each.category, stacklevel=3)
    return run._replace(losses=losses)


def _layers(plain: list[_Output], run: _Run) -> list[Layer]:
    return [
        _layer(expected, found, run) for expected, found in zip(plain, run.outputs, strict=True)
    ]


def _layer(plain: _Output, found: _Output, run: _Run) -> Layer:
    expected, other = (
        torch.cat(
            [torch.zeros(0), *(tensor.to(torch.float64).reshape(-1) for tensor in output.tensors)]
        )
        for output in (plain, found)
    )
    finite = expected.isfinite()
    errors, norm = (other - expected)[finite], float(expected[finite].square().sum())
    squares, known = float(errors.square().sum()), expected[~expected.isnan()]
    left = [bits for (module, _), bits in run.headroom.items() if module == plain.name]
    return Layer(
        plain.name,
        plain.type,
        float(known.min()) if known.numel() else 0.0,
        float(known.max()) if known.numel() else 0.0,
        float(errors.abs().max()) if errors.numel() else 0.0,
        squares / norm if norm else math.inf if squares else 0.0,
        _missed(expected[~finite], other[~finite], run.infinity),
        min(left, default=None),
    )


def _missed(expected: torch.Tensor, other: torch.Tensor, infinity: float) -> int:
    """Returns how many infinities and NaN are something else on secret tensors.

    A number of at least half an infinity counts as infinite: softmax treats it as infinite, and
    functions that saturate do so beyond it.
    """
    is_infinite = expected.isinf() & (other * expected.sign() >= infinity / 2)
    return int((~is_infinite).sum())


def _advice(
    module: torch.nn.Module, example: Any, plain: list[_Output], run: _Run, scale: int, error: float
) -> tuple[int | None, float | None]:
    """Returns the scale with which numbers stay in range and are most exact, and its error.

    Candidates are tried out.
    """
    value, product = run.left("value") - MARGIN, run.left("product") - MARGIN
    # A product has the fraction bits of both its operands.
    most = (
        scale + math.floor(min(value, product / 2)) if math.isfinite(min(value, product)) else MOST
    )
    for bits in range(min(most, MOST), LEAST - 1, -1):
        if bits == scale:
            return (None, None) if run.overflows else (scale, error)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RangeWarning)
                other = _run(module, example, bits)
        except EncodingError:
            continue
        if not other.overflows:
            better = _layers(plain, other)[-1].normalised
            return (bits, better) if run.overflows or better < error else (scale, error)
    return None, None


def _table(layers: list[Layer]) -> list[str]:
    width = max(map(len, ["layer", *(layer.name for layer in layers)]))
    kind = max(map(len, ["type", *(layer.type for layer in layers)]))
    lines = [
        f"{'layer':<{width}}  {'type':<{kind}}  {'plain range':>23}  {'error':>8}  "
        f"{'normalised':>10}  room"
    ]
    for layer in layers:
        room = "" if layer.headroom is None else f"{layer.headroom:.1f}"
        lines.append(
            f"{layer.name:<{width}}  {layer.type:<{kind}}  "
            f"{f'{layer.low:.4g} … {layer.high:.4g}':>23}  "
            f"{layer.error:>8.1e}  {layer.normalised:>10.1e}  "
            f"{room:>4}{'  <--' if layer.diverges else ''}"
        )
    return lines


def _summary(found: Comparison) -> list[str]:
    lines = [
        "(error: the largest; normalised: the squared error by the squared norm; room: bits of "
        "range left)",
        *(f"OVERFLOW: {overflow}" for overflow in found.overflows),
        *found.losses,
    ]
    first = found.first_divergence
    lines += [
        f"NOT FINITE: {layer.name} has {layer.missed} numbers that are infinite or NaN on plain "
        f"tensors, and "
        "something else on secret ones"
        for layer in found.layers
        if layer.missed
    ]
    if first is None:
        lines.append("All layers match.")
    else:
        lines.append(f"The first that does not match is {first.name}.")
    if found.advised_scale is None:
        lines.append(
            f"No scale of {LEAST} to {MOST} fraction bits holds these numbers: scale the data down."
        )
    elif found.advised_scale == found.scale:
        lines.append(f"Advised: {found.scale} fraction bits, as it ran with.")
    else:
        lines.append(
            f"Advised: {found.advised_scale} fraction bits, with a normalised error of "
            f"{found.advised_error:.1e}; `with tacit.fraction_bits({found.advised_scale}):`"
        )
    return lines
