"""Requires: normalised; after ``batch_independent``, whose layers are one with their ReLUs.
Ensures: a layer, or a sum with one, that a ReLU alone uses is a rectified affine map with it,
whatever else is added to it (a skip connection). Saves: rounds, as the sign of what is truncated
starts beside the truncation."""

from functools import cache

import torch

from tacit.compilation.graph import Draft, calls, takes
from tacit.compilation.passes.affine_maps import LAYERS, AffineMap
from tacit.compilation.passes.digits import Reach
from tacit.compilation.passes.merge_factors import MOVES

aten = torch.ops.aten


def fuse_rectify(draft: Draft) -> None:
    """Carries the pass out."""
    reach = cache(lambda: Reach(draft))
    for relu in calls(draft.graph, aten.relu.default):
        source = relu.args[0]
        # What moves elements may do so afterwards.
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
