"""Fuses sums of layers into affine maps.

Requires: a normalised draft, after ``fold_normalisation``. Ensures: a sum of convolutions of
images, of any geometry, or of linear layers, each of them used only there, is one affine map
together with all other summands. Saves: all truncations except one, their messages for each
element, and their rounds."""

from functools import cache

import torch

from tacit.compilation.affine_maps import AffineMap
from tacit.compilation.digits import Reach
from tacit.compilation.graph import Draft, calls


def fuse_sums(draft: Draft) -> None:
    """Fuses sums of layers into affine maps, in place."""
    reach = cache(lambda: Reach(draft))
    # The outermost sum comes first: it includes the others.
    for node in reversed(list(calls(draft.graph, torch.ops.aten.add.Tensor))):
        found = AffineMap.of(draft, node) if node.users else None
        if found is not None and len(found.x) > 1 and found.is_in_range(draft, reach, node):
            made = found.call(draft, node, rectified=False)
            made.meta["value"] = node.meta["value"]
            node.replace_all_uses_with(made)
            draft.drop_dead()
