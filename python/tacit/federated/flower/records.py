"""The content of Flower's messages: models as records of arrays, metrics as records of numbers."""

from typing import Any

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, RecordDict

from tacit.errors import MisuseError
from tacit.federated.rounds.selection import EVERYTHING, Selection

#: The key of the round's number in a message of Flower's server, and of the receipt in a reply.
RECORD = "tacit"

#: The metric by which Flower's strategies weight replies.
WEIGHT = "num-examples"


def only(content: RecordDict, what: str) -> ArrayRecord:
    """Returns the record of the model.

    Raises:
        MisuseError: there is none, or more than one.
    """
    records = list(content.array_records.values())
    if len(records) != 1:
        raise MisuseError(f"a {what} with {len(records)} records of arrays; it has one, the model")
    return records[0]


def tensors(arrays: ArrayRecord, travelling: Selection = EVERYTHING) -> dict[str, torch.Tensor]:
    """Returns the floating-point arrays that travel, in the order of their names.

    Raises:
        MisuseError: one does not contain real numbers, or a pattern matches no name.
    """
    travelling.check_names(arrays)
    found = {}
    for name in filter(travelling.takes, sorted(arrays)):
        values = arrays[name].numpy()
        if values.dtype.kind not in "fiub":
            raise MisuseError(f"the array {name} is of {values.dtype}; real numbers are wanted")
        if values.dtype.kind == "f":
            found[name] = torch.from_numpy(np.array(values))
    return found


def moved(
    arrays: ArrayRecord, update: torch.Tensor, travelling: Selection = EVERYTHING
) -> ArrayRecord:
    """Returns the model after an update of the arrays that travel."""
    found, begin = dict(arrays.items()), 0
    for name, before in tensors(arrays, travelling).items():
        part = update[begin : begin + before.numel()].reshape(before.shape)
        begin += before.numel()
        found[name] = Array((before.double() + part.double()).to(before.dtype).numpy())
    return ArrayRecord(found)


def of_kinds(made: ArrayRecord, before: ArrayRecord) -> ArrayRecord:
    """Converts arrays back to the dtypes that they had before.

    Means are floating-point numbers, even those of integers. Without the conversion a model would
    get more values to learn.
    """
    kinds = {name: each.numpy().dtype for name, each in before.items()}
    found = {}
    for name, each in made.items():
        values = each.numpy()
        kind = kinds.get(name, values.dtype)
        found[name] = Array(np.asarray(np.round(values) if kind.kind in "iub" else values, kind))
    return ArrayRecord(found)


def as_number(name: str, value: Any) -> float:
    """Returns a metric as a number.

    Raises:
        MisuseError: it is a list.
    """
    if isinstance(value, list):
        raise MisuseError(
            f"the metric {name!r} is a list; a metric that counts or travels is a number"
        )
    return float(value)
