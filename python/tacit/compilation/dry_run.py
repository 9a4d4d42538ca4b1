"""Dry run of a program on zeros.

The cost of a run, and the correlations that it takes, follow from shapes alone."""

import torch

from tacit import _core
from tacit.compilation.execute import revealed, share_weights
from tacit.compilation.program import Program
from tacit.compilation.streams import batch
from tacit.meter import Reading
from tacit.parties.launch import in_sessions
from tacit.sessions import session

#: Parties that own the weights and the inputs.
WEIGHTS_OWNER, INPUT_OWNER = 0, 1


def demand(
    program: Program, cores: list[_core.Session], receivers: int, count: int = 1, streams: int = 1
) -> str:
    """Returns, as text, the correlations that a run asks of their source.

    The run shares weights and inputs, carries the program out, and reveals the result to
    ``receivers`` parties, one after another.

    Args:
        cores: all parties of a session that keeps nothing secret (``_core.Session.rehearsed``).
        count: number of examples, which are distributed over ``streams`` streams.
    """
    demands: list[str] = in_sessions(cores, _asked, program, receivers, count, streams)
    return demands[0]


def _asked(program: Program, receivers: int, count: int, streams: int) -> str:
    metered(program, receivers, count, streams)
    asked = session().demand
    assert asked is not None
    return asked


def metered(program: Program, receivers: int = 1, count: int = 1, streams: int = 1) -> Reading:
    """Returns the cost of a run of ``count`` examples in the current session, without the sharing
    of the weights."""
    current = session()
    zeros = None
    if current.party == WEIGHTS_OWNER:
        zeros = {
            name: torch.zeros(weight.shape, dtype=weight.dtype)
            for name, weight in program.weights.items()
        }
    bound = share_weights(program, zeros, WEIGHTS_OWNER, streams)
    before = current.meter.total
    given = []
    for name, each in program.inputs.items():
        low, high = each.interval or (0.0, 0.0)
        number = min(max(0.0, low), high)
        shape = batch(each, count)
        own = torch.full(shape, number, dtype=each.dtype) if current.party == INPUT_OWNER else None
        given.append(bound.given(own, owner=INPUT_OWNER, name=name, count=count))
    results = bound(*given)
    for receiver in range(1, receivers + 1):
        for result in results if isinstance(results, tuple) else (results,):
            revealed(result, receiver % current.parties)
    return current.meter.total - before
