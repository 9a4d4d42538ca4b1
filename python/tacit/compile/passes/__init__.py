"""What makes a program cheaper than its model: each pass a file, which states what it requires, ensures and
saves. The verifier runs after each."""

from collections.abc import Callable

from tacit.compile.draft import Draft, outputs
from tacit.compile.passes.batch_independent import batch_independent
from tacit.compile.passes.common_subexpressions import common_subexpressions
from tacit.compile.passes.fold_normalisation import fold_normalisation
from tacit.compile.passes.fuse_rectify import fuse_rectify
from tacit.compile.passes.fuse_sums import fuse_sums
from tacit.compile.passes.merge_factors import merge_factors
from tacit.compile.passes.normalise import normalise
from tacit.compile.passes.switch_relu_maxpool import switch_relu_maxpool
from tacit.compile.passes.whole_functions import whole_functions
from tacit.compile.passes.whole_layers import whole_layers
from tacit.compile.verify import verify_draft

Pass = Callable[[Draft], None]

#: In the order in which they run. Widths and scales are assigned afterwards, to what is left.
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
    """Runs passes on a draft, in place, and the verifier after each."""
    verify_draft(draft)
    before = [node.meta["value"] for node in outputs(draft.graph)]
    for each in passes:
        each(draft)
        verify_draft(draft)
        assert [node.meta["value"] for node in outputs(draft.graph)] == before, each.__name__
