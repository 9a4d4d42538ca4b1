"""Description of a program, as text and as JSON.

It shows what each step computes, at which scale, how wide its comparisons are and why that is safe,
what a run costs, and what the program makes public."""

import math
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import fx

from tacit import fixed
from tacit.compilation.allowlist import name_of
from tacit.compilation.approximating import compares_with_cutoffs, error_of, functions_of
from tacit.compilation.comparing import COMPARING, Guard
from tacit.compilation.graph import Interval, Value, is_call
from tacit.compilation.intervals import MOVES
from tacit.compilation.passes.merge_truncations import truncations
from tacit.compilation.program import Program
from tacit.fixed import Scale

#: Columns of the report, and of what is said of each step.
COLUMNS, INDENT = 100, "    "
WRAPPED: dict[str, Any] = {
    "width": COLUMNS,
    "initial_indent": INDENT,
    "subsequent_indent": INDENT,
    "break_on_hyphens": False,
}

#: What everyone who has the file learns.
PUBLIC = (
    "the graph, the shapes of all tensors, scales, widths, series of functions, the intervals of "
    "values where they are shown, and the constants of the model that are not weights"
)


@dataclass(frozen=True)
class Step:
    """An operator of a program."""

    name: str
    layer: str
    operator: str
    shape: tuple[int, ...]
    #: Interval in which its result was proved to lie.
    interval: tuple[float, float] | None
    #: Bits of its comparisons; ``None`` if it compares nothing.
    width: int | None
    #: Why its result is right: why the width is safe, or that its numbers stay in range.
    why: str
    #: Width in runs with guards, if it differs.
    guard: Guard | None
    #: Why the width in runs with guards is safe.
    guarded: str
    #: Low bits that a ReLU does not compare.
    dropped: int
    #: Bound on the error from dropped bits, if there are any: a positive number below it may become
    #: zero.
    tolerance: float | None
    #: Series that were chosen for functions instead of the usual ones.
    fits: dict[str, str]
    #: Fraction bits of its product, if runs with guards compute only the product's lowest bits.
    narrow: int | None
    #: Fraction bits of a result that is not truncated; the truncation of a later step serves both.
    scale: int | None
    #: Bound on the error of an approximated function, at the default scale; relative where the
    #: function is above 1.
    error: float | None


@dataclass(frozen=True)
class Cost:
    """Cost of a run, without its correlations and without the sharing of weights."""

    protocol: str
    parties: int
    rounds: int
    bytes_sent_per_party: list[int]


@dataclass(frozen=True)
class Inspection:
    """Content of the report of ``tacit inspect``."""

    digest: str
    scale: int
    inputs: list[dict[str, Any]]
    #: Numbers in all weights together.
    weights: int
    #: Fraction bits of each tensor of weights; 0 for booleans.
    weight_scales: dict[str, int]
    #: Steps that bring a product back to the scale: "before" truncations were merged, and "after".
    truncations: dict[str, int]
    #: Number of "steps" whose results are shown to be "below" the limit within which products are
    #: right.
    in_range: dict[str, float]
    steps: list[Step]
    costs: list[Cost]
    #: Shapes of the tensors that are public and no weights, such as masks.
    constants: dict[str, list[int]]
    public: str = PUBLIC

    def as_json(self) -> dict[str, Any]:
        """Returns all fields by name."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def inspect(program: Program, costs: list[Cost]) -> Inspection:
    """Describes a program; ``metered`` (``dry_run.py``) finds the costs."""
    inputs = [
        {
            "name": each.name,
            "shape": list(each.shape),
            "dtype": str(each.dtype),
            "interval": each.interval,
            "exponents": list(each.exponents),
        }
        for each in program.inputs.values()
    ]
    weights = sum(torch.Size(weight.shape).numel() for weight in program.weights.values())
    steps = [_step(node, program.scale) for node in program.graph.nodes if is_call(node)]
    scales = {name: weight.bits for name, weight in program.weights.items()}
    before, after = (truncations(program.graph, merged=merged) for merged in (False, True))
    merged = {"before": before, "after": after}
    in_range = _in_range(steps, Scale(program.scale).limit)
    constants = {name: list(value.shape) for name, value in program.constants.items()}
    return Inspection(
        program.digest,
        program.scale,
        inputs,
        weights,
        scales,
        merged,
        in_range,
        steps,
        costs,
        constants,
    )


def _in_range(steps: list[Step], limit: float) -> dict[str, float]:
    shown = [step for step in steps if _is_within(step.interval, limit)]
    return {"steps": len(shown), "below": limit}


def _step(node: fx.Node, scale: int) -> Step:
    value, interval, width = node.meta["value"], node.meta.get("interval"), node.meta.get("width")
    compares, guard = (
        node.target in COMPARING or compares_with_cutoffs(node),
        node.meta.get("guard"),
    )
    dropped = node.meta.get("dropped") or 0
    return Step(
        node.name,
        node.meta.get("layer", ""),
        name_of(node.target).removesuffix(".default").removeprefix("aten."),
        tuple(value.shape) if isinstance(value, Value) else (),
        interval,
        (width or 64) if compares else None,
        _compared(width) if compares else _ranged(node, Scale(scale).limit),
        guard,
        _guarded(guard),
        dropped,
        2.0 ** (dropped - scale) if dropped else None,
        dict(node.meta.get("fits") or {}),
        node.meta.get("narrow") or None,
        node.meta.get("scale"),
        error_of(node, node.meta.get("fits") or {}) if functions_of(node) else None,
    )


def _compared(width: int | None) -> str:
    if width is None:
        return "64 bits hold every number in range"
    return (
        f"proved by the party that compiled it: below 2^{width - 17}, differences too, if inputs "
        "are as promised"
    )


def _ranged(node: fx.Node, limit: float) -> str:
    if node.target in MOVES:
        return "only moves numbers"
    if _is_within(node.meta.get("interval"), limit):
        return "proved by the party that compiled it to stay in range, if inputs are as promised"
    return "nothing shows that it stays in range"


def _is_within(interval: Interval | None, limit: float) -> bool:
    return interval is not None and max(map(abs, interval)) < limit


def _approximated(step: Step) -> str:
    if step.error is None:
        return ""
    series = "; ".join(
        f"{function} by a series of {key}" for function, key in sorted(step.fits.items())
    )
    return f"off by 2^{math.log2(step.error):.1f} at most" + (f": {series}" if series else "")


def _narrow(step: Step) -> str:
    if step.narrow is None:
        return ""
    return f"products of {fixed.NARROW + 2} bits, as it is below 2^{fixed.NARROW} before it is truncated"


def _kept(step: Step) -> str:
    return (
        ""
        if step.scale is None
        else f"keeps {step.scale} fraction bits: truncated with what follows"
    )


def _tolerated(step: Step) -> str:
    if step.tolerance is None:
        return ""
    bits = "bit" if step.dropped == 1 else "bits"
    return f"without the lowest {step.dropped} {bits}: below {step.tolerance:g} it may become zero"


#: Descriptions of a step in addition to that of its width.
TOLD = (_tolerated, _approximated, _narrow, _kept)


def _guarded(guard: Guard | None) -> str:
    if guard is None:
        return ""
    if not guard.reach:
        return (
            f"with guards {guard.width} bits, proved by the party that compiled it, if the guards "
            "before it hold"
        )
    return (
        f"with guards {guard.width} bits and {guard.reach} that are tested: below {guard.passes:g} "
        f"it "
        f"passes, above {guard.most:g} there is no result"
    )


def _steps(steps: list[Step]) -> Iterator[str]:
    """Yields a line for each step, and below it what is said of the step."""
    rows = [("step", "shape", "between", "bits", "layer")]
    for step in steps:
        between = f"{step.interval[0]:.4g} … {step.interval[1]:.4g}" if step.interval else ""
        shape = "×".join(map(str, step.shape))
        rows.append((step.operator, shape, between, str(step.width or ""), step.layer))
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    said = ["", *("; ".join(filter(None, _said(step))) for step in steps)]
    for row, why in zip(rows, said, strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield from _fitted("  ".join([*cells, row[4]]).rstrip(), row[4])
        yield from textwrap.wrap(why, **WRAPPED)


def _said(step: Step) -> list[str]:
    return [step.why, step.guarded, *(tell(step) for tell in TOLD)]


def _fitted(line: str, layer: str) -> Iterator[str]:
    """Yields a step's line, with a long layer below it."""
    if len(line) <= COLUMNS:
        yield line
        return
    yield line.removesuffix(layer).rstrip()
    yield from textwrap.wrap(layer, **WRAPPED)


def _lines(found: Inspection) -> list[str]:
    lines = list(_steps(found.steps))
    for line in _summary(found):
        # An empty line stays.
        lines += textwrap.wrap(line, **{**WRAPPED, "initial_indent": ""}) or [""]
    return lines


def _summary(found: Inspection) -> list[str]:
    lines = [""]
    for each in found.inputs:
        within = (
            f" within {each['interval'][0]:g} to {each['interval'][1]:g}"
            if each["interval"]
            else ""
        )
        lines.append(f"input {each['name']}: {tuple(each['shape'])}{within}")
    lines.append(f"{found.weights} weights; numbers have {found.scale} fraction bits")
    count = found.truncations
    lines.append(f"truncations: {count['after']} steps, {count['before']} before they were merged")
    shown, limit = found.in_range["steps"], found.in_range["below"]
    if shown < len(found.steps):
        lines.append(
            f"range: {shown} of {len(found.steps)} steps are shown to give numbers below "
            f"{limit:g}, where products are right; for the others only calibration data can show "
            "it (tacit compile --calibrate)"
        )
    for bits in sorted(set(found.weight_scales.values())):
        names = ", ".join(name for name, own in found.weight_scales.items() if own == bits)
        kind = (
            f"weights with {bits} fraction bits"
            if bits
            else "booleans, by which numbers keep a side of zero"
        )
        lines.append(f"{kind}: {names}")
    for cost in found.costs:
        sent = max(cost.bytes_sent_per_party) / 1e6
        lines.append(
            f"{cost.protocol} sharing, {cost.parties} parties: {cost.rounds} rounds, {sent:.3f} MB "
            f"a party "
            "at most, from sharing the input to its result"
        )
    if found.constants:
        shapes = ", ".join(f"{name} {tuple(shape)}" for name, shape in found.constants.items())
        lines.append(f"public tensors: {shapes}")
    lines.append(f"public to all who have the file: {found.public}")
    lines.append(f"BLAKE3: {found.digest}")
    return lines
