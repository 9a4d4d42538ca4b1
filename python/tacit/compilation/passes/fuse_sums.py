"""Requires: normalised; after ``fold_normalisation``. Ensures: a sum of convolutions of images, of
whatever geometry, or of linear layers, each of them used there alone, is one affine map, with
whatever else is added.
Saves: all truncations but one, their messages of each element, and their rounds."""

from functools import cache

import torch

from tacit.compilation.graph import Draft, calls
from tacit.compilation.passes.affine_maps import AffineMap
from tacit.compilation.passes.digits import Reach


def fuse_sums(draft: Draft) -> None:
    """Carries the pass out."""
    reach = cache(lambda: Reach(draft))
    # The outermost first: it takes the others with it.
    for node in reversed(list(calls(draft.graph, torch.ops.aten.add.Tensor))):
        found = AffineMap.of(draft, node) if node.users else None
        if found is not None and len(found.x) > 1 and found.is_in_range(draft, reach, node):
            made = found.call(draft, node, rectified=False)
            made.meta["value"] = node.meta["value"]
            node.replace_all_uses_with(made)
            draft.drop_dead()
