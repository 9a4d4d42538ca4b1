"""Fuses ReLUs with the layers before them.

Requires: a normalised draft, after ``batch_independent``, which joins layers together with their
ReLUs. Ensures: a layer that only a ReLU uses, or a sum with such a layer and any other summands (a
skip connection), is one rectified affine map with its ReLU. Saves: rounds, because the sign of the
number is computed while the number is truncated."""

from functools import cache

import torch

from tacit.compilation.affine_maps import LAYERS, AffineMap
from tacit.compilation.digits import Reach
from tacit.compilation.graph import Draft, calls, takes
from tacit.compilation.passes.merge_factors import MOVES

aten = torch.ops.aten


def fuse_rectify(draft: Draft) -> None:
    """Fuses ReLUs with the layers before them, in place."""
    reach = cache(lambda: Reach(draft))
    for relu in calls(draft.graph, aten.relu.default):
        source = relu.args[0]
        # Operators that move elements may do so after the ReLU instead.
        while takes(source, *MOVES):
            source = source.args[0]
        found = AffineMap.of(draft, source) if takes(source, aten.add.Tensor, *LAYERS) else None
        if found is None or not found.is_in_range(draft, reach, source):
            continue
        made = found.call(draft, source, rectified=True)
        made.meta["value"] = source.meta["value"]
        source.replace_all_uses_with(made)
        relu.replace_all_uses_with(relu.args[0])
        draft.drop_dead()
