"""A server's view of jointly drawn noise: uniform components, and the noisy result.

The tests include mutations that must be noticed.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from scipy import stats
from views import CLIENTS, Array, watch

import tacit
from tacit.federated.privacy.account import Account
from tacit.federated.privacy.joint import MAGNITUDE, joint
from tacit.federated.rounds.settings import Settings, mechanism_of
from tacit.federated.rounds.steps import Round
from tacit.federated.rounds.submission import Submitted
from tacit.federated.validation import COIN, VECTOR_BITS
from tacit.fixed import Scale
from tacit.randomness import sampling
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

#: Values of a vector, which are drawn in one block; and the deviation of their noise relative to
#: the bound.
SIZE, SIGMA = 8000, 1.5

Bits = Callable[[Session, tuple[int, ...]], Parts]


class View(NamedTuple):
    """A server's view of a round on zeros."""

    #: The bits that it drew itself, [bits, values].
    own: Array
    #: The result, in standard deviations.
    noise: Array
    shown: list[Any]


class Drawing:
    """A core that records the bits that this party hands in."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self.own: list[Array] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._core, name)
        if name != "share_bits":
            return method

        def kept(own: Any, *rest: Any) -> Any:
            if own is not None:
                self.own.append(np.array(own).reshape(-1, SIZE))
            return method(own, *rest)

        return kept


def views(folder: Path) -> list[View]:
    """Returns each server's view of a round with joint noise."""

    def program() -> View:
        session = tacit.session()
        vectors, weights = (
            SecretTensor(
                tuple(torch.zeros(shape, dtype=torch.int64) for _ in range(2)),
                Scale(VECTOR_BITS),
                session,
                torch.float64,
            )
            for shape in ((2, SIZE), (2,))
        )
        drawing = Drawing(session.core)
        session.core = drawing  # type: ignore[assignment]
        watched = watch(components=False)
        settings = Settings(noise="joint", sigma=SIGMA, divisor=2.0)
        round_ = Round.of(
            settings, Account(folder / str(session.party), mechanism_of(settings, 1e-5))
        )
        outcome = round_.secret(Submitted([3, 5], vectors, weights))
        assert outcome.vector is not None
        noise = outcome.vector.double().numpy() * 2.0 / SIGMA
        return View(np.concatenate(drawing.own), noise, watched.shown)

    return tacit.launch(program)


def hides(view: View) -> bool:
    """Returns whether the noise is a Gaussian of the full deviation that is independent of each bit
    that the server drew."""
    if stats.kstest(view.noise, "norm").pvalue < 1e-6:
        return False
    bits = (view.own - 0.5) * 2
    most = 6 / SIZE**0.5
    return all(
        float(np.abs(bits @ ((values - values.mean()) / values.std()) / SIZE).max()) < most
        for values in (view.noise, np.abs(view.noise))
    )


def shows_no_more(view: View) -> bool:
    """Returns whether only the coin, a bit per client, and the result are shown."""
    kinds = [type(each) for each in view.shown] == [bytes, np.ndarray, np.ndarray]
    return kinds and [len(view.shown[0]), *(each.size for each in view.shown[1:])] == [
        COIN,
        2,
        SIZE,
    ]


def test_joint_noise_hides_from_every_server_and_nothing_else_is_shown(tmp_path: Path) -> None:
    for view in views(tmp_path):
        # Magnitudes, thresholds and signs of all digits.
        assert len(view.own) >= 70
        assert hides(view)
        assert shows_no_more(view)


@pytest.mark.parametrize("chooses", range(3))
@pytest.mark.parametrize("what", [1, MAGNITUDE])
def test_noise_that_a_server_chooses_is_noticed(
    what: int, chooses: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Notices, in this server's view, a mutation that lets one server choose bits.

    Signs, or columns of magnitudes, come from one server's bits alone instead of the XOR of all
    servers' bits.
    """
    usual: Bits = sampling.bits

    def mutated(session: Session, shape: tuple[int, ...]) -> Parts:
        if shape[0] != what:
            return usual(session, shape)
        own = torch.randint(2, shape, dtype=torch.uint8) if session.party == chooses else None
        return shares.share_bits(session, own, chooses, shape)

    monkeypatch.setattr(sampling, "bits", mutated)
    assert [not hides(view) for view in views(tmp_path)] == [
        server == chooses for server in range(3)
    ]


def says(mutated: bool = False) -> list[str | None]:
    """Returns for each server the first sign that intermediate components are not uniform.

    The components are of the values that are checked together. A component of zeros is unused: it
    belongs to bits that one party hands in.
    """

    def program() -> str | None:
        total = tacit.share(torch.zeros(CLIENTS), owner=0)
        watched = watch()
        keep = watched.keep
        watched.keep = lambda part: keep(part) if part.any() else None  # type: ignore[method-assign]
        drawn = sampling.bits(tacit.session(), (192, CLIENTS))
        joint(total, SIGMA)
        if mutated:
            # A server's own terms of a product of bits before a mask is added.
            first, second = (part.numpy() for part in drawn)
            keep((first & first) ^ (first & second))
        return watched.taken()[0]

    return tacit.launch(program)


def test_components_of_joint_noise_say_nothing() -> None:
    assert says() == [None] * 3
    assert all(says(mutated=True))


def test_noise_that_is_opened_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notices a mutation that shows the digits' signs to all."""
    usual: Bits = sampling.bits

    def mutated(session: Session, shape: tuple[int, ...]) -> Parts:
        found = usual(session, shape)
        if shape[0] == 1:
            shares.reveal(session, found, None)
        return found

    monkeypatch.setattr(sampling, "bits", mutated)
    assert not any(shows_no_more(view) for view in views(tmp_path))
