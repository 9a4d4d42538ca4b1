"""Recurrent layers, step by step over a sequence of known length. The inputs of all steps are
multiplied by the weights at once."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tacit.compilation.importers.onnx.operators.activation import named
from tacit.compilation.importers.onnx.problems import NotImportedError
from tacit.compilation.importers.onnx.table import Node, implements

#: Greatest length of a sequence: each step is unrolled.
MOST_STEPS = 1 << 12

State = tuple[torch.Tensor, ...]


class Layer:
    """Common part of ONNX's three recurrent layers; one direction is run at a time."""

    def __init__(
        self, node: Node, x: torch.Tensor, weight: torch.Tensor, recurrent: torch.Tensor
    ) -> None:
        self.node, self.weight, self.recurrent = node, weight, recurrent
        self.by_batch = node.flag("layout")
        self.x = x.transpose(0, 1) if self.by_batch else x
        self.steps, self.batch = self.x.shape[0], self.x.shape[1]
        self.hidden = recurrent.shape[2]
        if self.steps > MOST_STEPS:
            raise NotImportedError(f"it has {self.steps} steps", f"up to {MOST_STEPS} are imported")
        self.clip = node.number("clip", 0.0)
        self.directions = {
            "forward": [False],
            "reverse": [True],
            "bidirectional": [False, True],
        }.get(node.text("direction", "forward"), [])
        if len(self.directions) != weight.shape[0]:
            raise ValueError(f"its weights are for {weight.shape[0]} directions")

    def functions(
        self, direction: int, defaults: list[str]
    ) -> list[Callable[[torch.Tensor], torch.Tensor]]:
        """Returns the activations of a direction, with their inputs clipped if the file says so."""
        names = self.node.words("activations") or defaults * len(self.directions)
        count = len(defaults)
        alphas, betas = (
            self.node.numbers(f"activation_{each}") or [] for each in ("alpha", "beta")
        )
        found = []
        for at in range(direction * count, (direction + 1) * count):
            function = named(
                names[at],
                alphas[at] if at < len(alphas) else None,
                betas[at] if at < len(betas) else None,
            )
            found.append(self._clipped(function) if self.clip else function)
        return found

    def _clipped(
        self, function: Callable[[torch.Tensor], torch.Tensor]
    ) -> Callable[[torch.Tensor], torch.Tensor]:
        return lambda x: function(torch.clamp(x, -self.clip, self.clip))

    def initial(self, given: torch.Tensor | None, direction: int) -> torch.Tensor:
        """Returns the state before the first step: zero if none is given."""
        if given is None:
            return torch.zeros(self.batch, self.hidden)
        return given[:, direction] if self.by_batch else given[direction]

    def run(
        self,
        lengths: list[int] | None,
        starts: Sequence[State],
        step: Callable[[int], Callable[[torch.Tensor, State], State]],
    ) -> Any:
        """Runs the layer and returns all outputs, and the last state of each direction."""
        outputs, lasts = [], []
        for direction, backwards in enumerate(self.directions):
            gates = torch.matmul(self.x, self.weight[direction].t())
            state, function, found = starts[direction], step(direction), []
            places = range(self.steps)[::-1] if backwards else range(self.steps)
            for at in places:
                new = function(gates[at], state)
                if lengths is None:
                    state, output = new, new[0]
                else:
                    # Steps after the end of a sequence change nothing. Backwards they come first,
                    # and leave the initial state as it was.
                    inside = torch.tensor([[at < length] for length in lengths])
                    state = tuple(
                        torch.where(inside, after, before)
                        for after, before in zip(new, state, strict=True)
                    )
                    output = torch.where(inside, new[0], torch.zeros_like(new[0]))
                found.append(output)
            outputs.append(torch.stack(found[::-1] if backwards else found))
            lasts.append(state)
        every = torch.stack(outputs, 1)
        states = [torch.stack(each, 0) for each in zip(*lasts, strict=True)]
        if self.by_batch:
            every, states = every.permute(2, 0, 1, 3), [each.transpose(0, 1) for each in states]
        return (every, *states)


@implements("RNN", known=(4,), folds=False)
def recurrent(
    node: Node,
    x: torch.Tensor,
    weight: torch.Tensor,
    again: torch.Tensor,
    bias: torch.Tensor | None = None,
    lengths: list[int] | None = None,
    first: torch.Tensor | None = None,
) -> Any:
    """Recurrent layer h' = f(Wx + Rh + b)."""
    layer = Layer(node, x, weight, again)

    def of(direction: int) -> Callable[[torch.Tensor, State], State]:
        function = layer.functions(direction, ["Tanh"])[0]
        added = _both(bias, direction)

        def step(gates: torch.Tensor, state: State) -> State:
            return (function(gates + torch.matmul(state[0], again[direction].t()) + added),)

        return step

    starts = [(layer.initial(first, at),) for at in range(len(layer.directions))]
    return layer.run(lengths, starts, of)


def _both(bias: torch.Tensor | None, direction: int) -> Any:
    """Returns the sum of the two biases of a layer."""
    if bias is None:
        return 0.0
    one, other = bias[direction].chunk(2)
    return one + other


@implements("LSTM", known=(4,), folds=False)
def long_short_term_memory(
    node: Node,
    x: torch.Tensor,
    weight: torch.Tensor,
    again: torch.Tensor,
    bias: torch.Tensor | None = None,
    lengths: list[int] | None = None,
    first: torch.Tensor | None = None,
    cell: torch.Tensor | None = None,
    peep: torch.Tensor | None = None,
) -> Any:
    """LSTM with gates in the order input, output, forget, cell; peepholes read the cell."""
    layer = Layer(node, x, weight, again)
    if node.flag("input_forget"):
        raise NotImportedError(
            "it couples input and forget gates", "export it without input_forget"
        )

    def of(direction: int) -> Callable[[torch.Tensor, State], State]:
        gate, candidate, output = layer.functions(direction, ["Sigmoid", "Tanh", "Tanh"])
        added = _both(bias, direction)
        eyes = None if peep is None else peep[direction].chunk(3)

        def step(gates: torch.Tensor, state: State) -> State:
            h, c = state
            i, o, f, g = (gates + torch.matmul(h, again[direction].t()) + added).chunk(4, -1)
            if eyes is not None:
                i, f = i + eyes[0] * c, f + eyes[2] * c
            c = gate(f) * c + gate(i) * candidate(g)
            o = o if eyes is None else o + eyes[1] * c
            return gate(o) * output(c), c

        return step

    starts = [
        (layer.initial(first, at), layer.initial(cell, at)) for at in range(len(layer.directions))
    ]
    return layer.run(lengths, starts, of)


@implements("GRU", known=(4,), folds=False)
def gated_recurrent_unit(
    node: Node,
    x: torch.Tensor,
    weight: torch.Tensor,
    again: torch.Tensor,
    bias: torch.Tensor | None = None,
    lengths: list[int] | None = None,
    first: torch.Tensor | None = None,
) -> Any:
    """GRU with gates in the order update, reset, hidden; the reset is applied before the product,
    or after it."""
    layer = Layer(node, x, weight, again)
    after = node.flag("linear_before_reset")

    def of(direction: int) -> Callable[[torch.Tensor, State], State]:
        gate, candidate = layer.functions(direction, ["Sigmoid", "Tanh"])
        own, other = (0.0, 0.0) if bias is None else bias[direction].chunk(2)
        size = layer.hidden
        matrix = again[direction]

        def step(gates: torch.Tensor, state: State) -> State:
            h = state[0]
            gates = gates + own
            if after:
                turned = torch.matmul(h, matrix.t()) + other
                z, r = gate(gates[:, : 2 * size] + turned[:, : 2 * size]).chunk(2, -1)
                new = candidate(gates[:, 2 * size :] + r * turned[:, 2 * size :])
            else:
                rest = 0.0 if isinstance(other, float) else other[2 * size :]
                both = 0.0 if isinstance(other, float) else other[: 2 * size]
                z, r = gate(
                    gates[:, : 2 * size] + torch.matmul(h, matrix[: 2 * size].t()) + both
                ).chunk(2, -1)
                new = candidate(
                    gates[:, 2 * size :] + torch.matmul(r * h, matrix[2 * size :].t()) + rest
                )
            return (new + z * (h - new),)

        return step

    starts = [(layer.initial(first, at),) for at in range(len(layer.directions))]
    return layer.run(lengths, starts, of)
