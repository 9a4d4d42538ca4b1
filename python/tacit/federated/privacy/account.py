"""The privacy that a federation has spent, and what it may spend.

The unit is a client: results are compared with those without it. Every round adds Gaussian noise to
a sum that one client changes by one bound at most. Two accounts are kept of the same rounds, at one
δ:

- *against a server*, which sees who takes part, so that chance in choosing clients hides nobody
  from it, and which knows all of the noise but what it lacks;
- *against those who see models only*: all the noise counts, and where clients are drawn
  independently, each with a probability that is the same in all rounds (Poisson sampling), so does
  that.

Both are composed by privacy loss distributions (dp-accounting) and checked by Rényi's divergence,
which may only give more; an ε that hides nothing is told by Rényi's bound.

Where the noise that is drawn is off from a Gaussian, by a total variation of v in each of R rounds,
every event S has P'(S) ≤ P(S) + R·v ≤ e^ε·Q(S) + δ' + R·v ≤ e^ε·Q'(S) + δ' + R·v·(1 + e^ε). So ε is
the least of which δ' and that term together are at most δ, and infinite where there is none: then
nothing is proven.

**How much above.** What is told is never below the exact ε, which for rounds in which all clients
count is
known in a closed form: up to GREATEST it is at most 0.5% and GRID above, beyond that at most 5%,
for δ up to 0.1. For rounds of samples it is at most 0.5% and 5·GRID above what a grid ten times as
fine gives, up to an ε of 50.

The account lies in a file that is written
whole before a round reveals anything: a round that fails has spent its part, and none is free. A
round that would overspend is refused.
"""

import json
import logging
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from tacit import checksums
from tacit.atomic_write import write
from tacit.errors import MisuseError, setup_error

#: Steps of the grid of privacy losses, which are rounded up to it, where a round spends an ε of 1
#: or less; relative to that ε where it is more, and to all rounds' where that is less (but for
#: LEAST).
GRID = 1e-4
LEAST = 1e-2

#: Orders of Rényi's divergence; those below 2 for noise that hides little.
ORDERS = (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, *range(2, 65), 128, 256, 512, 1024)

#: By how much the ε of privacy loss distributions may be above Rényi's, besides GRID: they round
#: losses up.
TOLERANCE = 1.01

#: The ε up to which privacy losses are composed: beyond, their grid takes memory that nobody has,
#: and either number says that nothing is hidden.
GREATEST = 1000.0

#: What can be accounted: from, to, and what it is. Outside of these, floats do not tell chances
#: apart.
LIMITS = {
    "sigma": (1e-4, 1e6, "less noise than that hides nothing, and more drowns every result"),
    "noise": (1e-4, 2e6, "it is sigma, or of several parts of it"),
    "off": (0.0, 1e-3, "it is a small part of what noise is, or none"),
    "sampling": (1e-6, 1.0, "it is the chance with which a client is drawn, 1 if all are"),
    "δ": (
        1e-10,
        1 - 1e-10,
        "it is the chance that ε does not hold: well below one client's part, as 1e-5",
    ),
}

#: Of the checksum of the file.
KIND = "account"

#: What to do about a file that is not as it was written: what was spent stays so.
REMEDY = "put it back as it was, or copy another server's, which is the same; to remove it forgets what was spent"
#: By how much an ε is raised at a time, and how often, where noise is off from a Gaussian.
STEP, STEPS = 1e-9, 200

#: What e is raised to at most, within the range of floats.
EXPONENTS = 700.0

#: Rounds that can be accounted.
MOST_ROUNDS = 1_000_000


@dataclass(frozen=True)
class Mechanism:
    """What is the same in every round."""

    #: Standard deviation of the noise in bounds: what a server lacks of it, and all of it.
    noise_to_server: float
    noise_to_others: float
    #: The probability with which a client is drawn.
    sampling: float
    delta: float
    #: By how much the noise of a round is off from a Gaussian, in total variation.
    off: float = 0.0

    @staticmethod
    def of(
        sigma: float, parts: int = 3, sampling: float = 1.0, delta: float = 1e-5, off: float = 0.0
    ) -> "Mechanism":
        """Noise of ``parts`` of that standard deviation each, of which a server counts as lacking
        one; one part is noise of which no server knows anything.

        Raises:
            MisuseError: a value that cannot be.
        """
        _check({"sigma": sigma, "sampling": sampling, "δ": delta, "off": off})
        return Mechanism(sigma, sigma * math.sqrt(parts), sampling, delta, off)


@dataclass(frozen=True)
class Epsilons:
    """What has been spent, at the mechanism's δ."""

    to_server: float
    to_others: float


def epsilons(mechanism: Mechanism, rounds: int) -> Epsilons:
    """Both ε after so many rounds."""
    return Epsilons(
        epsilon(mechanism.noise_to_server, 1.0, rounds, mechanism.delta, mechanism.off),
        epsilon(
            mechanism.noise_to_others, mechanism.sampling, rounds, mechanism.delta, mechanism.off
        ),
    )


@lru_cache(maxsize=4096)
def epsilon(noise: float, sampling: float, rounds: int, delta: float, off: float = 0.0) -> float:
    """The ε of so many rounds of the Gaussian mechanism of sensitivity 1 on a Poisson sample, at a
    δ; clients come or leave. Infinite where noise that is off by so much, in total variation,
    leaves nothing of δ.

    Raises:
        MisuseError: what cannot be accounted.
        SetupError: dp-accounting is not installed, or its two ways contradict each other.
    """
    _check({"noise": noise, "sampling": sampling, "δ": delta, "off": off})
    if not 0 <= rounds <= MOST_ROUNDS:
        raise MisuseError(
            f"a mechanism of {MOST_ROUNDS} rounds and no more can be accounted: begin a new "
            f"account with a "
            "new δ for those to come, and add up both ε and both δ"
        )
    if not rounds:
        return 0.0
    try:
        import dp_accounting
        from dp_accounting import pld, rdp
    except ImportError:
        raise setup_error("noise needs dp-accounting: pip install 'tacit-mpc[federated]'") from None
    if sampling < 1:
        event = dp_accounting.PoissonSampledDpEvent(sampling, dp_accounting.GaussianDpEvent(noise))
    else:
        # Many Gaussians are one: on the sum of what they tell.
        off, event, rounds = (
            off * rounds,
            dp_accounting.GaussianDpEvent(noise / math.sqrt(rounds)),
            1,
        )
    with _quietly():
        by_renyi = float(rdp.RdpAccountant(ORDERS).compose(event, rounds).get_epsilon(delta))
    if by_renyi > GREATEST:
        return math.inf if off else by_renyi
    grid = GRID * max(by_renyi / rounds, min(1.0, max(by_renyi, LEAST)))
    accountant = pld.PLDAccountant(value_discretization_interval=grid).compose(event, rounds)
    by_losses = float(accountant.get_epsilon(delta))
    if not by_losses <= by_renyi * TOLERANCE + GRID:
        raise setup_error(
            f"two ways to account contradict each other: ε of {by_losses} and {by_renyi}"
        )
    return _with_off(
        lambda left: float(accountant.get_epsilon(left)), by_losses, delta, off * rounds
    )


def _with_off(needed: Callable[[float], float], found: float, delta: float, off: float) -> float:
    """The least ε, but for STEP, of which ``needed`` says no more of what of δ is left beside
    off·(1 + e^ε). From below, so that whatever is not reached is infinite."""
    if not off:
        return found
    for _ in range(STEPS):
        found += STEP
        left = delta - off * (1.0 + math.exp(found)) if found < EXPONENTS else 0.0
        if left <= 0:
            break
        least = needed(left)
        if least <= found:
            return found
        found = least
    return math.inf


@contextmanager
def _quietly() -> Iterator[None]:
    """Without dp-accounting's warnings of orders whose series do not converge, which it leaves out:
    of those that are left the bound is right, if greater."""

    def is_other(record: logging.LogRecord) -> bool:
        return "Excluding this order" not in record.getMessage()

    logger = logging.getLogger("absl")
    logger.addFilter(is_other)
    try:
        yield
    finally:
        logger.removeFilter(is_other)


def _check(values: Mapping[str, float]) -> None:
    """Whether all are within their limits."""
    for name, value in values.items():
        least, most, why = LIMITS[name]
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not least <= value <= most
        ):
            raise MisuseError(
                f"{name} = {value!r} cannot be accounted: from {least:g} to {most:.10g}; {why}"
            )


class Account:
    """What has been spent, in a file that lasts."""

    def __init__(self, path: Path, mechanism: Mechanism, budget: float | None = None) -> None:
        """Goes on with the file, if it is there.

        Args:
            path: of the file; every server has its own.
            mechanism: of all rounds.
            budget: the ε against a server that may be spent; any if not given.

        Raises:
            SetupError: the file cannot be read, or holds the account of another mechanism.
        """
        self.path, self.mechanism, self.budget = path, mechanism, budget
        self.rounds = _read(path, mechanism)

    @property
    def spent(self) -> Epsilons:
        """Both ε so far."""
        return epsilons(self.mechanism, self.rounds)

    def check_next(self) -> None:
        """Whether one more round may be.

        Raises:
            MisuseError: it would overspend.
        """
        if self.budget is not None:
            self._check(self.budget, epsilons(self.mechanism, self.rounds + 1))

    def spend(self) -> None:
        """Counts one more round, in the file too.

        Raises:
            MisuseError: it would overspend; nothing is counted then.
            SetupError: the file cannot be written.
        """
        self.check_next()
        self._keep(self.rounds + 1)

    def catch_up(self, rounds: int) -> None:
        """Has what other accounts of the same rounds have, if that is more: what one has spent is
        spent.

        Raises:
            MisuseError: the next round would overspend then.
            SetupError: the file cannot be written.
        """
        if rounds > self.rounds:
            self._keep(rounds)
            self.check_next()

    def _keep(self, rounds: int) -> None:
        write(self.path, _to_bytes(self.mechanism, rounds), "the account")
        self.rounds = rounds

    def _check(self, budget: float, after: Epsilons) -> None:
        if not after.to_server <= budget:
            raise MisuseError(
                f"round {self.rounds + 1} would spend ε = {after.to_server:.4g} at δ = "
                f"{self.mechanism.delta:g}, and the budget is {budget:g}: no more rounds"
            )


def _to_bytes(mechanism: Mechanism, rounds: int) -> bytes:
    """The file."""
    entries = {"mechanism": asdict(mechanism), "rounds": rounds, "checksum": checksums.field(KIND)}
    return checksums.filled((json.dumps(entries, indent=2) + "\n").encode(), KIND)


def _read(path: Path, mechanism: Mechanism) -> int:
    try:
        entries = json.loads(checksums.text_of(path, KIND, "the account", REMEDY))
    except FileNotFoundError:
        return 0
    except (ValueError, RecursionError):
        entries = None
    match entries:
        case {"mechanism": dict(kept), "rounds": int(rounds)} if type(rounds) is int:
            pass
        case _:
            raise setup_error(f"{path} is no account: it has no mechanism and no rounds; {REMEDY}")
    if not 0 <= rounds <= MOST_ROUNDS:
        raise setup_error(
            f"{path} is no account: its rounds are no count from 0 to {MOST_ROUNDS}; {REMEDY}"
        )
    # What has no such entry is of a release that did not know of it, and of the same noise.
    if {"off": mechanism.off, **kept} != asdict(mechanism):
        raise setup_error(
            f"{path} is the account of {kept}, not of {asdict(mechanism)}: a federation keeps its "
            f"noise. "
            f"Give "
            "its settings back, or, for a new federation, begin in a folder of its own"
        )
    return rounds
