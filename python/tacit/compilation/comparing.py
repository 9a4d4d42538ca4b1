"""Which operators compare, and what a guard is: a width that is less than what is proved to be
needed, and a test that what is compared was within it, whose outcome the receiver of the result
learns."""

from typing import NamedTuple

import torch
from torch import fx

from tacit import fixed
from tacit.operators.dispatch import custom_ops  # noqa: F401

aten = torch.ops.aten

#: They compare with zero alone.
WITH_ZERO = (
    aten.abs.default,
    aten.leaky_relu.default,
    aten.relu.default,
    torch.ops.tacit.one_sided.default,
    torch.ops.tacit.rectified_affine.default,
)

#: Operators whose comparisons decide nothing but what is rectified, or which of two is taken: those
#: that may be guarded.
RECTIFYING = (
    *WITH_ZERO,
    aten.amax.default,
    aten.amin.default,
    aten.clamp.default,
    aten.clamp_min.default,
    aten.hardtanh.default,
    aten.max_pool2d.default,
    aten.maximum.default,
    aten.minimum.default,
    aten.relu6.default,
    torch.ops.tacit.rectified_max_pool2d.default,
)

#: ReLUs: of their comparisons alone low bits may be dropped, by a tolerance. Those of a pooling are
#: not among them, as one loser after another would err, and no comparison with another number than
#: zero. Nor is
#: ``one_sided``: its numbers are those of the model's ReLU, which the tolerance is of, by secret
#: factors.
DROPPING = (aten.relu.default, torch.ops.tacit.rectified_affine.default)

#: Operators that are nothing but comparisons of their operands with each other, with zero and with
#: public numbers, and choices.
COMPARING = (*RECTIFYING, aten.argmax.default, aten.max_pool1d.default, aten.max_pool3d.default)

#: What is sent for each bit of a comparison, as many times what is sent for each that a guard looks
#: at.
BIT = 6


def compares(node: fx.Node) -> bool:
    """Whether a node does."""
    return node.op == "call_function" and node.target in COMPARING


def compared_by(node: fx.Node) -> list[fx.Node]:
    """What it compares; on which side of zero ``one_sided`` keeps numbers is no number."""
    return node.all_input_nodes[: 1 if node.target is torch.ops.tacit.one_sided.default else None]


class Guard(NamedTuple):
    """The width of a comparison where guards are carried out: its own, or those before it."""

    width: int
    """Bits, counted at the default scale as ``comparison_width`` does."""
    reach: int
    """0: proved. Else guarded: so many bits above the width but for two may be reached."""

    @property
    def passes(self) -> float:
        """Magnitudes below this pass, but for a unit."""
        return 2.0 ** (self.width - 3 - fixed.DEFAULT.bits)

    @property
    def most(self) -> float:
        """What passes has this magnitude at most."""
        return 1.5 * 2.0 ** (self.width - 2 - fixed.DEFAULT.bits)

    @property
    def cost(self) -> int:
        """By which one is dearer than another."""
        return BIT * self.width + self.reach
