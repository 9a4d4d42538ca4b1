"""Calibration data: inputs like those of later runs, cut into batches of the program's shape."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from tacit.compilation.comparing import COMPARING, compared_by
from tacit.compilation.graph import Draft, Interval, Node, calls, plain
from tacit.errors import MisuseError

#: How far inputs may lie outside the range of the calibration data, as a fraction of its span.
BEYOND = 0.25

#: Greatest number of elements that are used of all inputs together; the rest is left out.
MOST_ELEMENTS = 1 << 26


class Batches(NamedTuple):
    """Calibration data, cut into batches."""

    #: Inputs of each batch by placeholder, of the shapes that the program takes.
    inputs: Sequence[dict[str, torch.Tensor]]
    labels: torch.Tensor | None

    def scaled(self, exponents: Mapping[str, Sequence[int]]) -> "Batches":
        """Returns the batches with the columns of their inputs scaled by powers of two."""
        scaled = [
            {
                name: torch.ldexp(each, torch.tensor(exponents[name]))
                if name in exponents
                else each
                for name, each in batch.items()
            }
            for batch in self.inputs
        ]
        return self._replace(inputs=scaled)


def batches(draft: Draft, calibrate: Any, labels: Any) -> Batches:
    """Cuts calibration data into batches; a last batch that is not full is left out.

    Raises:
        MisuseError: there are no data, or they do not have the shapes that the model takes.
    """
    tensors = calibrate if isinstance(calibrate, tuple | list) else (calibrate,)
    if isinstance(calibrate, Mapping):
        shown = [draft.names.get(name, name) for name in draft.examples]
        if set(shown) != set(calibrate):
            raise MisuseError(
                f"calibration data of {', '.join(map(str, calibrate))}; the model takes "
                f"{', '.join(shown)}"
            )
        tensors = [calibrate[name] for name in shown]
    tensors = [
        torch.from_numpy(values) if isinstance(values, np.ndarray) else values for values in tensors
    ]
    if not all(isinstance(values, torch.Tensor) for values in tensors):
        raise MisuseError("calibration data are tensors; torch.as_tensor makes them")
    if len(tensors) != len(draft.examples):
        raise MisuseError(
            f"calibration data of {len(tensors)} inputs, the model takes {len(draft.examples)}: "
            f"give one "
            "tensor or --calibrate FILE for each, in order"
        )
    given = dict(zip(draft.examples, tensors, strict=True))
    count = min(_count(draft, name, values) for name, values in given.items())
    sizes = sum(example.numel() for example in draft.examples.values())
    count = min(count, max(1, MOST_ELEMENTS // max(1, sizes)))
    cut = [
        {
            name: values[at * _rows(draft, name) : (at + 1) * _rows(draft, name)].to(
                draft.examples[name].dtype
            )
            for name, values in given.items()
        }
        for at in range(count)
    ]
    return Batches(
        cut,
        _labels(labels, count * _rows(draft, next(iter(given))), len(next(iter(given.values())))),
    )


def _rows(draft: Draft, name: str) -> int:
    return max(1, draft.examples[name].shape[0])


def _count(draft: Draft, name: str, values: torch.Tensor) -> int:
    """Returns the number of full batches in the calibration data of an input."""
    example = draft.examples[name]
    shown = draft.names.get(name, name)
    if values.dim() != example.dim() or not example.dim() or values.shape[1:] != example.shape[1:]:
        raise MisuseError(
            f"calibration data of shape {tuple(values.shape)} for the input {shown}, which is "
            f"{tuple(example.shape)}: the number of rows may differ, all other sizes must not"
        )
    if len(values) < example.shape[0]:
        raise MisuseError(
            f"calibration data of {len(values)} rows; the model takes {example.shape[0]} at once: "
            f"give "
            "as many or more"
        )
    if values.is_floating_point() != example.is_floating_point():
        raise MisuseError(
            f"the calibration data of the input {shown} are {values.dtype}, the model takes "
            f"{example.dtype}: convert them to the dtype that inputs of the program will have"
        )
    if values.is_floating_point() and not bool(values.isfinite().all()):
        raise MisuseError(
            f"the calibration data of the input {shown} hold NaN or infinity: leave those rows out"
        )
    return len(values) // max(1, example.shape[0])


def _labels(labels: Any, used: int, rows: int) -> torch.Tensor | None:
    if labels is None:
        return None
    made = torch.as_tensor(labels)
    if made.dim() != 1 or made.is_floating_point() or len(made) != rows:
        raise MisuseError(
            f"labels of shape {tuple(made.shape)} for {rows} rows of calibration data: a class for "
            f"each, "
            "as int64"
        )
    return made[:used]


def promised(given: Batches) -> dict[str, Interval]:
    """Returns the interval that each input will have to lie in."""
    found = {}
    for name, first in given.inputs[0].items():
        if not first.is_floating_point():
            continue
        ends = [batch[name].aminmax() for batch in given.inputs]
        low, high = min(float(end.min) for end in ends), max(float(end.max) for end in ends)
        span = (high - low) or 1.0
        found[name] = low - BEYOND * span, high + BEYOND * span
    return found


def observed(draft: Draft, given: Batches) -> dict[str, Interval]:
    """Returns the interval of what each node compares, as observed in the plain model."""
    found: dict[str, Interval] = {}
    copy, comparing = _split(draft)

    def look(node: Node, value: Any) -> None:
        names = comparing.get(node)
        if not names or not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return
        if value.numel():
            low, high = (float(end) for end in value.aminmax())
            for name in names:
                known = found.get(name, (low, high))
                found[name] = min(low, known[0]), max(high, known[1])

    for batch in given.inputs:
        plain(copy, batch, look)
    return found


def _split(draft: Draft) -> tuple[Draft, dict[Node, list[str]]]:
    """Copies a draft and splits all fused ReLUs from their layers.

    Returns:
        The copy, and for each of its nodes the names of the nodes that compare its result.
    """
    copy = draft.copy()
    comparing: dict[Node, list[str]] = defaultdict(list)
    for node in calls(copy.graph, *COMPARING):
        if node.target is torch.ops.tacit.rectified_affine.default:
            with copy.graph.inserting_after(node):
                relu = copy.graph.call_function(torch.ops.aten.relu.default, ())
            node.replace_all_uses_with(relu)
            node.target, relu.args = torch.ops.tacit.affine.default, (node,)
            comparing[node].append(node.name)
        else:
            for source in compared_by(node):
                comparing[source].append(node.name)
    return copy, comparing
