"""Operators that compare, and guards of their comparisons.

A guard is a comparison width that is less than what is proved to be needed, and a test that the
compared numbers were within it. The receiver of the result learns the outcome of the test."""

from typing import NamedTuple

import torch
from torch import fx

from tacit import fixed
from tacit.operators.dispatch import custom_ops  # noqa: F401

aten = torch.ops.aten

#: Operators that compare with zero alone.
WITH_ZERO = (
    aten.abs.default,
    aten.leaky_relu.default,
    aten.relu.default,
    torch.ops.tacit.one_sided.default,
    torch.ops.tacit.rectified_affine.default,
)

#: Operators that may be guarded: their comparisons decide nothing except what is rectified, or
#: which of two numbers is taken.
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

#: ReLUs, the only operators whose comparisons may drop low bits, by a tolerance. Poolings are not
#: among them, because the errors of successive comparisons would add up. Comparisons with numbers
#: other than zero are not among them either. Nor is ``one_sided``: its numbers are those of the
#: model's ReLU, for which the tolerance is stated, multiplied by secret factors.
DROPPING = (aten.relu.default, torch.ops.tacit.rectified_affine.default)

#: Operators that compare with a number, with those that compare with a tensor.
OF_NUMBERS = {
    aten.eq.Scalar: aten.eq.Tensor,
    aten.ge.Scalar: aten.ge.Tensor,
    aten.gt.Scalar: aten.gt.Tensor,
    aten.le.Scalar: aten.le.Tensor,
    aten.lt.Scalar: aten.lt.Tensor,
    aten.ne.Scalar: aten.ne.Tensor,
}

#: Comparisons of two tensors.
BETWEEN_TENSORS = tuple(OF_NUMBERS.values())

#: Operators that consist of comparisons of their operands with each other, with zero and with
#: public numbers, and of selections by the outcomes.
COMPARING = (
    *RECTIFYING,
    aten.argmax.default,
    aten.ge.Scalar,
    aten.ge.Tensor,
    aten.gt.Scalar,
    aten.gt.Tensor,
    aten.le.Scalar,
    aten.le.Tensor,
    aten.lt.Scalar,
    aten.lt.Tensor,
    aten.max_pool1d.default,
    aten.max_pool3d.default,
)

#: Bytes sent for each bit of a comparison, relative to the bytes sent for each bit that a guard
#: tests.
BIT = 6


def compares(node: fx.Node) -> bool:
    """Returns whether a node calls an operator that compares."""
    return node.op == "call_function" and node.target in COMPARING


def compared_by(node: fx.Node) -> list[fx.Node]:
    """Returns the nodes whose results a node compares.

    The second operand of ``one_sided`` says which side of zero is kept. It is not compared."""
    return node.all_input_nodes[: 1 if node.target is torch.ops.tacit.one_sided.default else None]


class Guard(NamedTuple):
    """Width of a comparison in runs with guards: guarded itself, or proved if earlier guards
    hold."""

    #: Bits, counted at the default scale as ``comparison_width`` does.
    width: int
    #: 0 if the width is proved. Otherwise the comparison is guarded, and numbers may reach this
    #: many bits above the lowest ``width`` − 2.
    reach: int

    @property
    def passes(self) -> float:
        """Magnitude below which numbers pass the guard, to within one unit."""
        return 2.0 ** (self.width - 3 - fixed.DEFAULT.bits)

    @property
    def most(self) -> float:
        """Greatest magnitude of a number that passes the guard."""
        return 1.5 * 2.0 ** (self.width - 2 - fixed.DEFAULT.bits)

    @property
    def cost(self) -> int:
        """Cost by which guards are compared with each other."""
        return BIT * self.width + self.reach
