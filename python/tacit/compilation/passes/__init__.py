"""Passes that make a program cheaper than its model.

Each pass is a file, which states what the pass requires, ensures and saves. The verifier runs after
each pass."""

from collections.abc import Callable

from tacit.compilation.graph import Draft, outputs
from tacit.compilation.passes.batch_independent import batch_independent
from tacit.compilation.passes.common_subexpressions import common_subexpressions
from tacit.compilation.passes.fold_normalisation import fold_normalisation
from tacit.compilation.passes.fuse_rectify import fuse_rectify
from tacit.compilation.passes.fuse_sums import fuse_sums
from tacit.compilation.passes.merge_factors import merge_factors
from tacit.compilation.passes.normalise import normalise
from tacit.compilation.passes.switch_relu_maxpool import switch_relu_maxpool
from tacit.compilation.passes.whole_functions import whole_functions
from tacit.compilation.passes.whole_layers import whole_layers
from tacit.compilation.verify import verify_draft

Pass = Callable[[Draft], None]

#: Passes in the order in which they run. Scales and widths are assigned afterwards, to the
#: resulting graph.
PASSES: tuple[Pass, ...] = (
    normalise,
    common_subexpressions,
    whole_functions,
    whole_layers,
    fold_normalisation,
    merge_factors,
    switch_relu_maxpool,
    fuse_sums,
    batch_independent,
    fuse_rectify,
    normalise,
)


def improve(draft: Draft, passes: tuple[Pass, ...] = PASSES) -> None:
    """Runs passes on a draft, in place, and the verifier before the first and after each."""
    verify_draft(draft)
    before = [node.meta["value"] for node in outputs(draft.graph)]
    for each in passes:
        each(draft)
        verify_draft(draft)
        assert [node.meta["value"] for node in outputs(draft.graph)] == before, each.__name__
