"""The description of a service's models, which each party gives its clients.

A request names the BLAKE3 hash of one entry, so it is bound to the program, the version, and the
scales of all numbers. What a client reads comes from a party, and is checked."""

import json
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from tacit import _core, fixed
from tacit.compilation.check_inputs import check_interval
from tacit.compilation.signature import MOST_EXPONENT, Input
from tacit.errors import PeerError
from tacit.serving.config import MOST_MODELS, MOST_NUMBERS

#: The longest description, in bytes.
LONGEST = 1 << 20

#: The most inputs or outputs of a model.
MOST_TENSORS = 64

#: Words after the outputs: 1, or 0 if a check in the range of numbers failed.
MARKER = 1


class Tensor(NamedTuple):
    """An input or an output of a model, for one request."""

    name: str
    #: As PyTorch calls it: "float32".
    dtype: str
    shape: tuple[int, ...]
    #: Fraction bits; 0 for integers.
    scale: int
    #: The numbers for which a program was compiled, if it was for some.
    interval: tuple[float, float] | None = None
    exponents: tuple[int, ...] = ()

    @property
    def numbers(self) -> int:
        """The number of its elements."""
        return math.prod(self.shape)

    def encoded(self, values: torch.Tensor) -> torch.Tensor:
        """Encodes an input of one request as a row of words.

        Raises:
            EncodingError: a value is NaN, infinite or too large.
            MisuseError: a value is outside of the interval that the model takes.
        """
        dtype = fixed.DTYPES[self.dtype]
        wanted = Input(self.name, dtype, self.shape, self.interval, self.exponents)
        check_interval(wanted, values)
        scale = fixed.Scale(self.scale) if dtype.is_floating_point else fixed.WHOLE
        return fixed.encode(wanted.scaled(values), scale).reshape(-1)

    def decoded(self, words: torch.Tensor) -> torch.Tensor:
        """Decodes the words of an output of one request."""
        dtype = fixed.DTYPES[self.dtype]
        scale = fixed.Scale(self.scale) if dtype.is_floating_point else fixed.WHOLE
        return fixed.decode(words.reshape(self.shape), scale, dtype)


class Described(NamedTuple):
    """A version of a model, as a party describes it."""

    name: str
    version: str
    #: The hash of the program.
    program: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]

    @property
    def entry(self) -> bytes:
        """The text that stands for it."""
        content = {
            **self._asdict(),
            "inputs": [each._asdict() for each in self.inputs],
            "outputs": [each._asdict() for each in self.outputs],
        }
        return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()

    @property
    def digest(self) -> bytes:
        """The hash that requests name, in 32 bytes."""
        return _digest_of(self)

    @property
    def given(self) -> int:
        """The number of words of a request."""
        return sum(each.numbers for each in self.inputs)

    @property
    def returned(self) -> int:
        """The number of words of a result."""
        return sum(each.numbers for each in self.outputs) + MARKER


@lru_cache(MOST_MODELS)
def _digest_of(described: Described) -> bytes:
    # A client needs it for each request.
    return bytes.fromhex(_core.blake3(described.entry))


def description_of(models: Sequence[Described]) -> bytes:
    """Returns the description of models, in their order."""
    return b"\n".join(each.entry for each in models)


def described_in(description: bytes) -> tuple[Described, ...]:
    """Reads a description.

    Raises:
        PeerError: it describes no models.
    """
    try:
        found = tuple(
            _described(json.loads(entry)) for entry in description.split(b"\n", MOST_MODELS)
        )
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError, OverflowError):
        found = ()
    if not found or len(description) > LONGEST:
        raise PeerError(
            "the parties describe no models that this client can read: run the same release of "
            "tacit at all parties and clients"
        )
    return found


def _described(content: Any) -> Described:
    if set(content) != set(Described._fields):
        raise ValueError
    for key in ("name", "version", "program"):
        if not isinstance(content[key], str) or not content[key].isprintable():
            raise ValueError
    inputs, outputs = (
        tuple(_tensor(**each) for each in content[key][:MOST_TENSORS])
        for key in ("inputs", "outputs")
    )
    if not inputs or not outputs:
        raise ValueError
    return Described(content["name"], content["version"], content["program"], inputs, outputs)


def _tensor(name: str, dtype: str, shape: Any, scale: int, interval: Any, exponents: Any) -> Tensor:
    is_right = (
        isinstance(name, str)
        and name.isprintable()
        and dtype in fixed.DTYPES
        and all(type(size) is int and 0 < size <= MOST_NUMBERS for size in shape)
        and math.prod(shape) <= MOST_NUMBERS
        and type(scale) is int
        and (1 if fixed.DTYPES[dtype].is_floating_point else 0) <= scale <= fixed.MOST_FRACTION_BITS
        and all(type(each) is int and abs(each) <= MOST_EXPONENT for each in exponents)
    )
    if not is_right:
        raise ValueError
    if interval is not None:
        low, high = map(float, interval)
        interval = low, high
    return Tensor(name, dtype, tuple(shape), scale, interval, tuple(exponents))
