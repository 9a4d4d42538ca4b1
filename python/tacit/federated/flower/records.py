"""What Flower's messages hold: models as records of arrays, metrics as records of numbers."""

from typing import Any

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, RecordDict

from tacit.errors import MisuseError

#: Where Flower's server says in a message which round it is about, and a reply has its receipt.
RECORD = "tacit"

#: The metric that Flower's strategies weigh replies by.
WEIGHT = "num-examples"


def only(content: RecordDict, what: str) -> ArrayRecord:
    """The model.

    Raises:
        MisuseError: there is none, or more than one.
    """
    records = list(content.array_records.values())
    if len(records) != 1:
        raise MisuseError(f"a {what} with {len(records)} records of arrays; it has one, the model")
    return records[0]


def tensors(arrays: ArrayRecord) -> dict[str, torch.Tensor]:
    """The floating-point arrays, in the order of their names.

    Raises:
        MisuseError: one has no real numbers.
    """
    found = {}
    for name in sorted(arrays):
        values = arrays[name].numpy()
        if values.dtype.kind not in "fiub":
            raise MisuseError(f"the array {name} is of {values.dtype}; real numbers are wanted")
        if values.dtype.kind == "f":
            found[name] = torch.from_numpy(np.array(values))
    return found


def moved(arrays: ArrayRecord, update: torch.Tensor) -> ArrayRecord:
    """The model after an update."""
    found, begin = dict(arrays.items()), 0
    for name, before in tensors(arrays).items():
        part = update[begin : begin + before.numel()].reshape(before.shape)
        begin += before.numel()
        found[name] = Array((before.double() + part.double()).to(before.dtype).numpy())
    return ArrayRecord(found)


def of_kinds(made: ArrayRecord, before: ArrayRecord) -> ArrayRecord:
    """Arrays of the kinds that they had: means are floating-point numbers, also those of integers,
    and a model must not get more to learn by that."""
    kinds = {name: each.numpy().dtype for name, each in before.items()}
    found = {}
    for name, each in made.items():
        values = each.numpy()
        kind = kinds.get(name, values.dtype)
        found[name] = Array(np.asarray(np.round(values) if kind.kind in "iub" else values, kind))
    return ArrayRecord(found)


def as_number(name: str, value: Any) -> float:
    """A metric that is one.

    Raises:
        MisuseError: it is a list.
    """
    if isinstance(value, list):
        raise MisuseError(
            f"the metric {name!r} is a list; a metric that counts or travels is a number"
        )
    return float(value)
