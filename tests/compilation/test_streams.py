"""Batches over streams give the results of one example after another, with equal bytes and fewer
rounds."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import tacit
from models import Residual, normalised
from tacit.compilation import try_model
from tacit.compilation.streams import side_by_side
from tacit.compilation.try_model import tried
from tacit.errors import MisuseError, PeerError, RangeError, SetupError
from tacit.parties.launch import launch
from tacit.providers import REFERENCE

#: Images for examples of two rows each.
IMAGES = torch.rand(10, 3, 8, 8, generator=torch.Generator().manual_seed(1))
COMPILED = tacit.compile(normalised(Residual()), IMAGES[:2], calibrate=IMAGES)

#: The number of examples, and of streams that process them in parallel.
COUNT, STREAMS = 5, 3

SETTINGS = [
    ("replicated", 3, None),
    ("additive", 2, "dealer"),
    ("additive", 3, "dealer"),
    ("additive", 2, "ot"),
    ("additive", 2, "he"),
]


def classified(streams: int, images: torch.Tensor = IMAGES) -> tuple[torch.Tensor, tacit.Reading]:
    """Returns a program's result on a batch, and its cost without sharing and revealing."""
    program, weights = COMPILED
    current = tacit.session()
    bound = program.share(weights if current.party == 0 else None, owner=0, streams=streams)
    x = bound.given(images if current.party == 1 else None, owner=1, count=COUNT)
    before = current.meter.total
    result = bound(x)
    spent = current.meter.total - before
    return result.reveal(), spent


@pytest.mark.parametrize(("protocol", "parties", "source"), SETTINGS)
def test_streams_give_the_same_for_the_same_bytes_in_fewer_rounds(
    protocol: str, parties: int, source: str | None
) -> None:
    setting: dict[str, Any] = {"parties": parties, "protocol": protocol, "source": source}
    alone, together, all_together = (
        tacit.launch(classified, streams, **setting) for streams in (1, STREAMS, COUNT + 2)
    )
    (result, first), (of_streams, less), (_, least) = (
        found[0] for found in (alone, together, all_together)
    )
    with torch.no_grad():
        plain = normalised(Residual())(IMAGES)
    for found in (result, of_streams):
        assert float((found - plain).square().sum() / plain.square().sum()) < 1e-3
    # Truncations round at random, each by up to one unit.
    torch.testing.assert_close(of_streams, result, rtol=0, atol=2**-8)
    for one, several in zip(alone, together, strict=True):
        assert one[1].payload_bytes == several[1].payload_bytes
        assert (one[1].bytes_sent, one[1].frames) == (several[1].bytes_sent, several[1].frames)
    # The rounds of the longest chain: 5 examples in sequence; 3 in parallel and then 2; all in
    # parallel.
    per_example = first.rounds / COUNT
    if parties == 2:
        assert (less.rounds, least.rounds) == (2 * per_example, per_example)
    else:
        # With few numbers among three parties, some messages wait for no other message. In turns
        # all of them wait.
        assert less.rounds <= 2 * least.rounds
        assert least.rounds < 1.2 * per_example


def test_under_the_reference_it_is_the_same_bit_for_bit() -> None:
    alone, together = (
        tacit.launch(classified, streams, parties=2, protocol=REFERENCE)[0][0]
        for streams in (1, STREAMS)
    )
    assert torch.equal(alone, together)


def test_readings_stand_under_the_layers_that_they_are_of() -> None:
    def labels(streams: int) -> dict[str, int]:
        classified(streams)
        return {label: reading.bytes_sent for label, reading in tacit.session().meter.items()}

    alone, together = (tacit.launch(labels, streams)[2] for streams in (1, STREAMS))
    del alone[""], together[""]
    assert alone == together


def test_a_trial_of_a_batch_runs_both_programs_over_streams() -> None:
    program, weights = COMPILED
    for protocol, parties, source in SETTINGS[:2]:
        alone, together = (
            tried(
                program,
                weights,
                [IMAGES[:4]],
                parties=parties,
                protocol=protocol,
                source=source,
                transport="memory",
                streams=streams,
            )
            for streams in (1, 2)
        )
        assert together.compiled.normalised_squared_error < 1e-3
        assert together.eager.normalised_squared_error < 1e-4
        assert together.compiled.rounds < 0.7 * alone.compiled.rounds
        assert together.eager.rounds < 0.7 * alone.eager.rounds


def test_what_pytorch_imports_late_is_not_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # PyTorch would import it when it joins the examples of a batch.
    (tmp_path / "imported_late.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(try_model, "LATE", ("imported_late",))
    begun = []

    def launched(*given: Any, **setting: Any) -> Any:
        begun.append("imported_late" in sys.modules)
        return launch(*given, **setting)

    monkeypatch.setattr(try_model, "launch", launched)
    x = torch.zeros(2, 4)
    program, weights = tacit.compile(nn.ReLU().eval(), x[:1])
    try_model.tried(program, weights, [x], parties=2, protocol=REFERENCE, transport="memory")
    assert begun == [True, True]


def test_plain_inputs_and_several_results_are_taken_apart_and_put_together() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 3)

        def forward(
            self, left: torch.Tensor, right: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor]:
            return self.linear(left) * right, right * 2

    module = normalised(Both())
    left, right = torch.rand(3, 4), torch.rand(3, 3)
    program, weights = tacit.compile(module, (left[:1], right[:1]))

    def run() -> list[torch.Tensor]:
        bound = program.share(weights, owner=2, streams=2)
        found = bound(bound.given(left, owner=0, name="left", count=3), right)
        return [x.reveal() if isinstance(x, tacit.SecretTensor) else x for x in found]

    with torch.no_grad():
        plain = module(left, right)
    for result, expected in zip(tacit.launch(run)[0], plain, strict=True):
        torch.testing.assert_close(result, expected, rtol=0, atol=1e-3)


def test_a_guard_that_fails_in_one_example_leaves_no_result_of_any() -> None:
    class Sums(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(1024, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.linear(x)) * 0.5

    module = Sums().eval()
    with torch.no_grad():
        module.linear.weight.fill_(1.0)
    small = torch.ones(3, 1024)
    small[:, 512:] = -1.0
    program, weights = tacit.compile(module, small[:1], calibrate=small + 0.001, margin=4.0)
    large = small.clone()
    large[1] = 1.0

    def run(x: torch.Tensor, streams: int) -> None:
        bound = program.share(weights, owner=0, streams=streams)
        bound(bound.given(x, owner=1, count=3)).reveal()

    tacit.launch(run, small, 3)
    for streams in (1, 3):
        with pytest.raises(RangeError, match="linear"):
            tacit.launch(run, large, streams)


# What is refused
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("streams", [0, -1, 65, 10**9, "4", True, 2.0])
def test_other_numbers_of_streams_are_refused(streams: Any) -> None:
    with pytest.raises(MisuseError, match="streams are 1 to 64"):
        tacit.launch(lambda: COMPILED[0].share(COMPILED[1], owner=0, streams=streams))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda bound: bound(IMAGES[:5]), "5 rows, which is no multiple of the 2"),
        (lambda bound: bound(IMAGES[:1]), r"shape \(1, 3, 8, 8\), the program was compiled for"),
        (lambda bound: bound.given(IMAGES, owner=0), "is 5 examples, not 1"),
        (lambda bound: bound.given(IMAGES, owner=0, count=4), "is 5 examples, not 4"),
        (lambda bound: bound.given(None, owner=0, count=0), "cannot be 0 examples"),
        (lambda bound: bound.given(None, owner=0, count=-2), "cannot be -2 examples"),
        (lambda bound: bound.given(None, owner=0, count=10**9), "cannot be 1000000000 examples"),
        (lambda bound: bound.given(None, owner=0, count="2"), "cannot be '2' examples"),
    ],
)
def test_batches_that_are_none_are_refused(given: Callable[[Any], Any], message: str) -> None:
    program, weights = COMPILED
    with pytest.raises(MisuseError, match=message):
        tacit.launch(lambda: given(program.share(weights, owner=0, streams=2)))


def test_inputs_are_as_many_examples_each_and_results_have_their_rows() -> None:
    class Sum(nn.Module):
        def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
            return (left * right).sum(0)

    program, weights = tacit.compile(Sum().eval(), (torch.rand(2, 3), torch.rand(2, 3)))

    def run(left: torch.Tensor, right: torch.Tensor) -> None:
        program.share(weights, owner=0)(left, right)

    with pytest.raises(MisuseError, match="2 of left, 1 of right"):
        tacit.launch(run, torch.rand(4, 3), torch.rand(2, 3))
    with pytest.raises(MisuseError, match="takes one example at a time"):
        tacit.launch(run, torch.rand(4, 3), torch.rand(4, 3))


def test_parties_with_other_streams_are_told_before_anything_is_shared() -> None:
    program, weights = COMPILED

    def run() -> None:
        party = tacit.session().party
        program.share(weights, owner=0, streams=3 if party == 1 else 2)

        pytest.fail("weights were shared")

    with pytest.raises(
        SetupError, match=r"over 3 streams, party . over 2: give|over 2 streams, party 1 over 3"
    ):
        tacit.launch(run)


# What ends a session
# --------------------------------------------------------------------------------------


def test_what_one_stream_raises_ends_all_in_every_party() -> None:
    def run() -> None:
        current = tacit.session()
        x = tacit.share(torch.ones(3), owner=0)

        def step(at: int, number: int, own: tacit.Session) -> None:
            torch.relu(x.beside(own))
            if (current.party, at, number) == (1, 2, 3):
                raise ValueError("this is what was wrong")

        lanes = [[partial(step, at, number) for number in range(20)] for at in range(3)]
        if current.party == 1:
            side_by_side(current, lanes)
        # The others receive this cause and no other.
        with pytest.raises(PeerError, match=r"party 1.*its program raised ValueError"):
            side_by_side(current, lanes)

    with pytest.raises(ValueError, match="party 1: this is what was wrong"):
        tacit.launch(run, timeout=20)


def test_a_party_that_dies_is_named_at_once() -> None:
    def run() -> None:
        if tacit.session().party == 2:
            threading.Timer(0.3, os._exit, (3,)).start()
        for _ in range(100):
            classified(STREAMS)

    with pytest.raises(PeerError, match="party 2"):
        tacit.launch(run, transport="tcp", timeout=30, network="10,10000")


@pytest.mark.parametrize("streams", [1, STREAMS])
def test_a_signal_ends_streams(streams: int) -> None:
    def run() -> None:
        def rung(*_: object) -> None:
            raise RuntimeError("it rang")

        if tacit.session().party == 1:
            signal.signal(signal.SIGALRM, rung)
            signal.setitimer(signal.ITIMER_REAL, 0.5)
        for _ in range(100):
            classified(streams)

    with pytest.raises(RuntimeError, match="party 1: it rang"):
        tacit.launch(run, transport="tcp", timeout=30, network="40,10000")
