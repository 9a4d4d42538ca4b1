"""Affine maps: layers, and sums of layers, as passes see them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from tacit.compilation.digits import Reach
from tacit.compilation.graph import Draft, Node, takes
from tacit.operators.dispatch import custom_ops  # noqa: F401

aten = torch.ops.aten

#: Layers that an affine map may consist of.
LAYERS = (aten.conv2d.default, aten.linear.default, torch.ops.tacit.affine.default)


@dataclass
class AffineMap:
    """Affine map Σ x·weight + Σ bias + Σ addends."""

    x: list[Node]
    weight: list[Node]
    bias: list[Node]
    addends: list[Node]
    geometry: list[int]
    layer: str

    @staticmethod
    def of(draft: Draft, node: Any) -> "AffineMap | None":
        """Returns what a node computes, if it is a layer with weights of the owner, or a sum with
        such a layer."""
        if not isinstance(node, fx.Node) or node.op != "call_function" or node.kwargs:
            return None
        if node.target is aten.add.Tensor:
            return _sum(draft, node)
        if node.target in (
            torch.ops.tacit.affine.default,
            torch.ops.tacit.rectified_affine.default,
        ):
            operands: Any = node.args
            x, weight, bias, addends, geometry = operands
            biases = [] if bias is None else [bias]
            made = AffineMap(list(x), list(weight), biases, list(addends), list(geometry), "")
        elif node.target in LAYERS:
            x, weight, *rest = node.args
            bias = rest[0] if rest else None
            geometry = [] if node.target is aten.linear.default else _steps(rest[1:])
            made = AffineMap([x], [weight], [] if bias is None else [bias], [], geometry, "")
        else:
            return None
        made.layer = node.meta.get("layer", "")
        return made if made._is_known(draft) else None

    @property
    def rank(self) -> int:
        """Number of dimensions of the weights: two for linear layers, four for convolutions of
        images."""
        return len(self.weight[0].meta["value"].shape)

    def _is_known(self, draft: Draft) -> bool:
        """Returns whether the weights are the owner's, and all shapes are as an affine map needs
        them."""
        weights = [draft.weight(each) for each in (*self.weight, *self.bias)]
        if any(each is None for each in weights):
            return False
        channels = self.weight[0].meta["value"].shape[:1]
        return (
            self.rank in (2, 4)
            and (self.rank == 2 or all(len(each.meta["value"].shape) == 4 for each in self.x))
            and all(each.meta["value"].shape == channels for each in self.bias)
            and all(map(_is_fraction, self.x))
        )

    def most_bits(self, draft: Draft) -> int:
        """Returns how many fraction bits the sum has in addition to those of numbers."""
        return draft.bits_of(*self.weight)

    def is_in_range(self, draft: Draft, reach: Callable[[], Reach], node: Node) -> bool:
        """Returns whether the sum stays in range with the fraction bits of its most exact layer, as
        the layers do separately."""
        most = self.most_bits(draft)
        is_alike = not self.addends and all(draft.bits_of(each) == most for each in self.weight)
        if is_alike or most <= draft.scale.bits:
            return True
        if not reach().allows(draft, node, most):
            return False
        known = reach().of(node)
        with_more = [each.name for each in self.weight if each.name in draft.weight_scales]
        draft.reaches.update((name, known) for name in with_more if known is not None)
        return True

    def beside(self, other: "AffineMap") -> "AffineMap":
        """Returns the sum of both maps."""
        return AffineMap(
            self.x + other.x,
            self.weight + other.weight,
            self.bias + other.bias,
            self.addends + other.addends,
            self.geometry + other.geometry,
            self.layer or other.layer,
        )

    def call(self, draft: Draft, before: Node, *, rectified: bool) -> Node:
        """Inserts a node that computes the map before another node."""
        bias = self.bias[0] if self.bias else None
        if len(self.bias) > 1:
            values = [draft.weights[each.name] for each in self.bias]
            bias = draft.add_weight(f"{self.bias[0].name}_sum", torch.stack(values).sum(0))
        target = (
            torch.ops.tacit.rectified_affine.default
            if rectified
            else torch.ops.tacit.affine.default
        )
        with draft.graph.inserting_before(before):
            made = draft.graph.call_function(
                target, (self.x, self.weight, bias, self.addends, self.geometry)
            )
        made.meta = {"layer": self.layer}
        return made


def _sum(draft: Draft, node: Node) -> AffineMap | None:
    left, right = node.args[:2]
    shape = node.meta["value"].shape
    if len(node.args) != 2 or left is right:
        return None
    maps: list[AffineMap] = []
    addends: list[Node] = []
    for each in (left, right):
        if (
            not isinstance(each, fx.Node)
            or each.meta["value"].shape != shape
            or not _is_fraction(each)
        ):
            return None
        inner = AffineMap.of(draft, each) if takes(each, aten.add.Tensor, *LAYERS) else None
        if inner is None or (maps and maps[0].rank != inner.rank):
            addends.append(each)
        else:
            maps.append(inner)
    if not maps:
        return None
    made = maps[0] if len(maps) == 1 else maps[0].beside(maps[1])
    made.addends = made.addends + addends
    return made


def _is_fraction(node: Node) -> bool:
    return bool(node.meta["value"].dtype.is_floating_point)


def _steps(args: Sequence[Any]) -> list[int]:
    """Returns the numbers that a convolution is called with: stride, padding, dilation, groups."""
    given = [*args, *[None] * (4 - len(args))]
    pairs = [
        list(each or default) * (1 if len(each or default) == 2 else 2)
        for each, default in zip(given[:3], ([1], [0], [1]), strict=True)
    ]
    return [*pairs[0], *pairs[1], *pairs[2], given[3] or 1]
