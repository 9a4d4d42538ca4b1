"""Correlations that the parties of a service have made while nothing runs."""

import torch
from test_serving_guards import MODEL

import tacit
from guarded import COMPILED, with_sum
from tacit.compilation.program import Program
from tacit.compilation.weights import Weights
from tacit.serving.models import Bound, Loaded
from tacit.sharings import shares


def serve(program: Program, weights: Weights) -> list[int]:
    """Announces requests and computes some. Returns the bytes that each announcement adds to those
    in stock."""
    current = tacit.session()
    own = weights if current.party == MODEL.owner else None
    bound = Bound(current, Loaded(MODEL, program.digest, program, own), 2)
    (taken,) = bound.described.inputs
    words = torch.stack([taken.encoded(with_sum(3.0))])
    added = []
    for count, runs in ((0, True), (0, True), (1, False), (1, True), (1, True), (2, False)):
        before = current.core.correlations()[2]
        bound.announce(count)
        added.append(current.core.correlations()[2] - before)
        if runs:
            bound.results(shares.trivial(current, words), 1)
    return added


def test_what_is_announced_is_made_ahead_and_taken_by_the_next_requests() -> None:
    told = tacit.launch(serve, *COMPILED, parties=2, protocol="additive", source="dealer")
    for _, nothing, one, again, next_one, two in told:
        assert nothing == again == 0
        assert one > 0
        # Batches are rounded up to 64.
        assert 0.5 * one <= next_one <= 1.5 * one
        assert two > 1.5 * one
