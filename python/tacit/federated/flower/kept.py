"""What a strategy of Flower has learned, in a file, so that a server that was killed continues.

The file has the model after the last round, its number, and the arrays that the inner strategy
keeps from round to round, such as the moments of ``FedAdam``."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from flwr.app import Array, ArrayRecord
from flwr.serverapp.strategy import Strategy

from tacit import checksums
from tacit.atomic_write import write
from tacit.errors import SetupError, printable, setup_error
from tacit.federated.service.archive import archived

#: The kind of the file, for its checksum.
KIND = "strategy"

#: Kinds of attributes of a strategy that are kept: arrays by name, a list of them, or a model.
BY_NAME, LISTED, MODEL = "by name", "listed", "model"

#: Words of the remedy if a file does not belong to a strategy.
OTHER = "give another file, or remove it to begin with round 1"


class Learned(NamedTuple):
    """What a file has."""

    #: The number of rounds that have ended.
    ended: int
    model: ArrayRecord


class Kept:
    """The file of a strategy."""

    def __init__(self, path: str | Path, federation: str) -> None:
        """Reads nothing yet.

        Args:
            path: of the file, which is made after the first round.
            federation: its name.
        """
        self._path, self._federation = Path(path), federation

    def write(self, ended: int, model: ArrayRecord, inner: Strategy) -> None:
        """Replaces the file, which is complete and on the disk when this returns.

        Raises:
            SetupError: it cannot be written.
        """
        content = {
            "federation": self._federation,
            "strategy": type(inner).__name__,
            "ended": ended,
            "model": _tensors(model),
            "state": {name: kept for name, value in vars(inner).items() if (kept := _kept(value))},
        }
        write(self._path, archived(content, {}, KIND), "the strategy's state")

    def read(self, initial: ArrayRecord, inner: Strategy) -> Learned | None:
        """Gives the inner strategy what it kept; returns the model, or ``None`` without a file.

        Raises:
            SetupError: the file cannot be read, or is of another federation, strategy or model.
        """
        read = checksums.bytes_of(self._path, KIND)
        if read is None:
            return None
        file, reason = read
        if reason is not None:
            raise self._wrong(f"is not read: {reason}")
        try:
            content = torch.load(io.BytesIO(file), weights_only=True)
        except Exception as error:
            raise self._wrong(f"is not what a strategy keeps ({type(error).__name__})") from None
        try:
            owners = content["federation"], content["strategy"]
            ended, model, state = content["ended"], content["model"], content["state"]
            restored = {name: _restored(*each) for name, each in state.items()}
            found = ArrayRecord({name: Array(each.numpy()) for name, each in model.items()})
            if type(ended) is not int or ended < 1:
                raise ValueError
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError):
            raise self._wrong("is not what a strategy keeps") from None
        if owners != (self._federation, type(inner).__name__):
            raise self._wrong(
                f"is of {printable(owners[1])} in the federation {printable(owners[0])!r}"
            )
        if _shapes(found) != _shapes(initial):
            raise self._wrong("is of a model of other names, shapes or kinds")
        unknown = set(restored) - set(vars(inner))
        if unknown:
            first = printable(min(map(str, unknown)))
            raise self._wrong(f"has {first}, which {type(inner).__name__} does not have")
        for name, value in restored.items():
            setattr(inner, name, value)
        return Learned(ended, found)

    def _wrong(self, what: str) -> SetupError:
        return setup_error(f"the strategy's state {self._path} {what}: {OTHER}")


def _tensors(arrays: Mapping[str, Array]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(np.array(each.numpy())) for name, each in arrays.items()}


def _shapes(model: ArrayRecord) -> list[tuple[str, tuple[int, ...], str]]:
    return [(name, tuple(each.shape), each.dtype) for name, each in model.items()]


def _kept(value: Any) -> tuple[str, Any] | None:
    """Returns an attribute of a strategy as it is kept; ``None`` if it is no arrays."""
    if isinstance(value, ArrayRecord):
        return MODEL, _tensors(value)
    if isinstance(value, dict) and value and _are_arrays(value.values()):
        return BY_NAME, {name: torch.from_numpy(np.array(each)) for name, each in value.items()}
    if isinstance(value, list) and value and _are_arrays(value):
        return LISTED, [torch.from_numpy(np.array(each)) for each in value]
    return None


def _are_arrays(values: Any) -> bool:
    return all(isinstance(each, np.ndarray | np.generic) for each in values)


def _restored(kind: str, values: Any) -> Any:
    if kind == LISTED:
        return [each.numpy() for each in values]
    arrays = {name: each.numpy() for name, each in values.items()}
    if kind == MODEL:
        return ArrayRecord({name: Array(each) for name, each in arrays.items()})
    if kind != BY_NAME:
        raise ValueError(kind)
    return arrays
