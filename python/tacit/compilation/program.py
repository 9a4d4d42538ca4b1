"""Compiled programs: what all parties know of a model. The weights are their owner's
(``weights.py``)."""

from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import fx

from tacit import _core, atomic_write, fixed
from tacit.compilation import execute
from tacit.compilation.format import (
    DAMAGED,
    FORMAT,
    MOST_BYTES,
    MOST_NODES,
    VERSION,
    add_node,
    canonical,
    check_shown,
    dtype_name,
    dtype_of,
    exponents_of,
    interval_of,
    is_name,
    node_text,
    read,
    shape_of,
    shown_name,
    tensor_of,
    tensor_text,
)
from tacit.compilation.graph import Draft, Value, outputs
from tacit.compilation.signature import Input, Owned, Weight
from tacit.compilation.verify import verify
from tacit.errors import MisuseError, cause, printable, setup_error
from tacit.fixed import Scale

#: Greatest number of characters in a message about what is wrong with a program.
MOST_TOLD = 1000

#: Greatest scale of a session's numbers, as given to ``tacit.fraction_bits``.
MOST_SCALE = (fixed.RANGE - 2) // 2


@dataclass(frozen=True)
class Program:
    """A compiled model without its weights: public data, the same in every party.

    ``tacit.compile`` makes a program, and ``load_program`` reads one from a file."""

    graph: fx.Graph = field(repr=False)
    #: Inputs by placeholder, in the order in which they are passed.
    inputs: dict[str, Input]
    weights: dict[str, Weight] = field(repr=False)
    constants: dict[str, torch.Tensor] = field(repr=False)
    #: Fraction bits of the session in which it runs.
    scale: int

    @staticmethod
    def of(draft: Draft) -> "Program":
        """Makes a program of a draft in its present state."""
        inputs = {
            name: Input(
                shown_name(draft.names.get(name, name)),
                example.dtype,
                tuple(example.shape),
                draft.intervals.get(name),
                tuple(draft.exponents.get(name, ())),
            )
            for name, example in draft.examples.items()
        }
        bits = draft.scale.bits
        weights = {
            name: Weight(
                tuple(value.shape),
                draft.weight_scales.get(name, bits) if value.is_floating_point() else 0,
            )
            for name, value in draft.weights.items()
        }
        if (count := len(draft.graph.nodes)) > MOST_NODES:
            raise MisuseError(
                f"the model has {count} inputs, weights, constants and operators, a program "
                f"{MOST_NODES} at "
                "most: compile parts of the model, one after another"
            )
        # The text is read back, so that the program is exactly what its file says.
        made = Program(draft.graph, inputs, weights, draft.constants, bits)
        return Program._read(made.text, "the program")

    @cached_property
    def text(self) -> bytes:
        """Content of the program's file."""
        return canonical(
            {
                "format": FORMAT,
                "version": VERSION,
                "scale": self.scale,
                "inputs": [
                    {
                        "name": node,
                        "shown": each.name,
                        "dtype": dtype_name(each.dtype),
                        "shape": list(each.shape),
                        "interval": list(each.interval) if each.interval else None,
                        "exponents": list(each.exponents),
                    }
                    for node, each in self.inputs.items()
                ],
                "weights": [
                    {"name": name, "shape": list(each.shape), "scale": each.bits}
                    for name, each in self.weights.items()
                ],
                "constants": [
                    {"name": name, **tensor_text(value)} for name, value in self.constants.items()
                ],
                "nodes": [
                    node_text(node) for node in self.graph.nodes if node.op == "call_function"
                ],
                "outputs": [node.name for node in outputs(self.graph)],
            }
        )

    @cached_property
    def digest(self) -> str:
        """BLAKE3 hash of the file, which the parties compare."""
        return _core.blake3(self.text)

    def save(self, path: str | Path) -> None:
        """Writes the program to a file.

        Raises:
            SetupError: the file cannot be written.
        """
        atomic_write.write(path, self.text)

    @staticmethod
    def parsed(text: bytes, what: str) -> "Program":
        """Reads a program from a file's content, which may come from anyone.

        Raises:
            MisuseError: the content is not a program, or not a valid one.
        """
        return Program._read(text, what, f"; {DAMAGED}")

    @staticmethod
    def _read(text: bytes, what: str, remedy: str = "") -> "Program":
        content = read(text, what)
        try:
            program = _Reader(content).program
        except MisuseError as error:
            # The message may quote names of any kind and length.
            raise MisuseError(f"{what}: {printable(error, MOST_TOLD)}{remedy}") from None
        # This compares the checksum too.
        if program.text != text:
            raise MisuseError(f"{what} is not written as tacit compile writes programs{remedy}")
        return program

    def share(
        self, weights: Owned | None = None, *, owner: int = 0, streams: int = 1
    ) -> execute.Bound:
        """Shares the owner's weights in the current session, after checking that all parties have
        the same program.

        Returns an object that is called with inputs. Takes one round in addition to those of
        ``share_module``.

        Args:
            weights: the owner's weights; ``None`` in the other parties.
            streams: how many examples of a batch run side by side, 1 to 64; the same in every
                party. While the messages of one example are in transit, another one is computed.
                Each stream takes the memory of one example.

        Raises:
            SetupError: a party has another program (the error shows both hashes), or another number
                of streams.
            MisuseError: the weights belong to another program, or the owner passes none.
        """
        if weights is None:
            return execute.share_weights(self, None, owner, streams)
        return execute.share_weights(
            self, weights.values, owner, streams, check=partial(weights.check, self)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Program.parsed, (self.text, "the program")

    def __repr__(self) -> str:
        given = ", ".join(f"{each.name} {tuple(each.shape)}" for each in self.inputs.values())
        return f"Program({given}; {len(self.weights)} weights; {self.digest[:16]})"


def load_program(path: str | Path) -> Program:
    """Reads a program from a file.

    Args:
        path: file that ``Program.save`` or ``tacit compile`` wrote.

    Raises:
        SetupError: the file cannot be read.
        MisuseError: the file holds no program of this version, or one that is not valid.
    """
    return Program.parsed(read_program(path), str(path))


def read_program(path: str | Path) -> bytes:
    """Returns the content of a program's file, unchecked.

    Raises:
        SetupError: the file cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            # One byte more than a program has, to detect longer files.
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise setup_error(f"cannot read {path}: {cause(error)}") from None


class _Reader:
    """Builds a program from a file's content."""

    def __init__(self, content: dict[str, Any]) -> None:
        match content:
            case {
                "format": _,
                "version": _,
                "checksum": _,
                "scale": int(scale),
                "inputs": [*inputs],
                "weights": [*weights],
                "constants": [*constants],
                "nodes": [*nodes],
                "outputs": [*returned],
                **rest,
            } if not rest and 1 <= scale <= MOST_SCALE and type(scale) is int:
                pass
            case _:
                raise MisuseError(
                    "a program has inputs, weights, constants, nodes, outputs and a scale, and "
                    "nothing else"
                )
        if not inputs or not returned:
            raise MisuseError(
                f"it has no {'outputs' if inputs else 'inputs'} that are tensors: a program has "
                f"both"
            )
        if (count := len(inputs) + len(weights) + len(constants) + len(nodes)) > MOST_NODES:
            raise MisuseError(f"it has {count} nodes, and a program {MOST_NODES} at most")
        self._graph = fx.Graph()
        self._nodes: dict[str, fx.Node] = {}
        self._given: dict[str, Value] = {}
        read_inputs = dict(map(self._input, inputs))
        read_weights = dict(map(self._weight, weights))
        read_constants = dict(map(self._constant, constants))
        for entry in nodes:
            node = add_node(self._graph, entry, self._nodes, Scale(scale))
            self._nodes[node.name] = node
        if not all(isinstance(name, str) and name in self._nodes for name in returned):
            raise MisuseError("one of its outputs is not a node")
        self._graph.output(tuple(self._nodes[name] for name in returned))
        verify(self._graph, self._given)
        self.program = Program(self._graph, read_inputs, read_weights, read_constants, scale)

    def _placed(self, name: Any, shape: tuple[int, ...], dtype: torch.dtype) -> str:
        if not is_name(name) or name in self._nodes:
            raise MisuseError("every input, weight and constant needs a name of its own")
        node = self._graph.placeholder(name)
        if node.name != name:
            raise MisuseError(f"{name[:80]!r} cannot be the name of a node")
        node.meta = {
            "layer": "",
            "interval": None,
            "width": None,
            "guard": None,
            "dropped": 0,
            "fits": {},
        }
        node.meta["scale"] = None
        self._nodes[name], self._given[name] = node, Value(shape, dtype)
        return name

    def _input(self, entry: Any) -> tuple[str, Input]:
        match entry:
            case {
                "name": name,
                "shown": str(shown),
                "dtype": dtype,
                "shape": shape,
                "interval": interval,
                "exponents": exponents,
                **rest,
            } if not rest:
                check_shown(shown)
                sizes = shape_of(shape)
                scaled = exponents_of(exponents, sizes)
                made = Input(shown, dtype_of(dtype), sizes, interval_of(interval), scaled)
                return self._placed(name, made.shape, made.dtype), made
        raise MisuseError("an input has name, dtype, shape, interval and exponents")

    def _weight(self, entry: Any) -> tuple[str, Weight]:
        match entry:
            case {"name": name, "shape": shape, "scale": int(bits), **rest} if (
                not rest and type(bits) is int and 0 <= bits <= fixed.MOST_FRACTION_BITS
            ):
                made = Weight(shape_of(shape), bits)
                return self._placed(name, made.shape, made.dtype), made
        raise MisuseError(
            f"a weight has name, shape and 1 to {fixed.MOST_FRACTION_BITS} fraction bits, or 0 of "
            f"booleans"
        )

    def _constant(self, entry: Any) -> tuple[str, torch.Tensor]:
        if not isinstance(entry, dict):
            raise MisuseError("a constant has name, dtype, shape and data")
        value = tensor_of({key: field for key, field in entry.items() if key != "name"})
        return self._placed(entry.get("name"), tuple(value.shape), value.dtype), value
