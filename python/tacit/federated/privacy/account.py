"""The privacy budget: what a federation has spent, and what it may spend.

The unit of privacy is a client: results are compared with those without that client. Every round
adds Gaussian noise to a sum that one client changes by at most one bound. Two accounts are kept of
the same rounds, at one δ:

- *Against a server.* It sees who takes part, so sampling of clients hides no client from it. It
  knows all of the noise except for the part that it lacks.
- *Against those who see models only.* All the noise counts. Sampling counts too, if clients are
  drawn independently, each with a probability that is the same in all rounds (Poisson sampling).

Both are composed by privacy loss distributions (dp-accounting) and checked against Rényi
divergences, whose bound may only be greater. An ε that hides nothing is reported by Rényi's bound.

If the noise that is drawn is off from a Gaussian, by a total variation of v in each of R rounds,
every event S has P'(S) ≤ P(S) + R·v ≤ e^ε·Q(S) + δ' + R·v ≤ e^ε·Q'(S) + δ' + R·v·(1 + e^ε). So ε is
the least for which δ' and that term together are at most δ. If there is none, ε is infinite:
nothing is proven.

**Accuracy.** The reported ε is never below the exact one. For rounds in which all clients count,
the exact ε is known in closed form. Up to GREATEST the reported ε is at most 0.5% and GRID above
it; beyond that it is at most 5% above it, for δ up to 0.1. For rounds of samples, the reported ε is
at most 0.5% and 5·GRID above what a grid ten times as fine gives, up to an ε of 50.

The account is in a file. Before a round reveals anything, the whole file is written. So a round
that fails has still spent its part. A round that would overspend is refused.
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

#: Step of the grid to which privacy losses are rounded up, if a round spends an ε of at most 1 and
#: all rounds together spend at least 1. The step is relative to a round's ε if that is more than
#: 1, and to the ε of all rounds if that is less than 1, but no less than LEAST.
GRID = 1e-4
LEAST = 1e-2

#: Orders of Rényi divergences; those below 2 are for noise that hides little.
ORDERS = (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, *range(2, 65), 128, 256, 512, 1024)

#: By what factor the ε of privacy loss distributions may be above Rényi's, in addition to GRID:
#: they round losses up.
TOLERANCE = 1.01

#: The ε up to which privacy losses are composed. Beyond it their grid would take too much memory,
#: and either number says that nothing is hidden.
GREATEST = 1000.0

#: Limits of what can be accounted for: lowest, highest, and the meaning. Outside of these, floats
#: cannot distinguish the probabilities.
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

#: The kind of the file, for its checksum.
KIND = "account"

#: The remedy for a file that is damaged: what was spent stays spent.
REMEDY = (
    "put it back as it was, or copy another server's, which is the same; "
    "to remove it forgets what was spent"
)
#: The step by which ε is raised, and the most steps, if noise is off from a Gaussian.
STEP, STEPS = 1e-9, 200

#: The greatest exponent of e, within the range of floats.
EXPONENTS = 700.0

#: The most rounds that can be accounted for.
MOST_ROUNDS = 1_000_000


@dataclass(frozen=True)
class Mechanism:
    """The parameters of a mechanism, the same in every round."""

    #: Standard deviations in bounds, of the noise that a server lacks, and of all the noise.
    noise_to_server: float
    noise_to_others: float
    #: The probability with which a client is drawn.
    sampling: float
    delta: float
    #: The total variation distance of a round's noise from a Gaussian.
    off: float = 0.0

    @staticmethod
    def of(
        sigma: float, parts: int = 3, sampling: float = 1.0, delta: float = 1e-5, off: float = 0.0
    ) -> "Mechanism":
        """Returns the mechanism of noise of ``parts`` parts, each of standard deviation ``sigma``.

        The account assumes that a server lacks one part. One part is noise of which no server knows
        anything.

        Raises:
            MisuseError: a value is not possible.
        """
        _check({"sigma": sigma, "sampling": sampling, "δ": delta, "off": off})
        return Mechanism(sigma, sigma * math.sqrt(parts), sampling, delta, off)


@dataclass(frozen=True)
class Epsilons:
    """The ε that have been spent, at the mechanism's δ."""

    to_server: float
    to_others: float


def epsilons(mechanism: Mechanism, rounds: int) -> Epsilons:
    """Computes both ε after the given number of rounds."""
    return Epsilons(
        epsilon(mechanism.noise_to_server, 1.0, rounds, mechanism.delta, mechanism.off),
        epsilon(
            mechanism.noise_to_others, mechanism.sampling, rounds, mechanism.delta, mechanism.off
        ),
    )


@lru_cache(maxsize=4096)
def epsilon(noise: float, sampling: float, rounds: int, delta: float, off: float = 0.0) -> float:
    """Computes the ε of rounds of the Gaussian mechanism of sensitivity 1 on a Poisson sample.

    Neighbouring inputs differ by one client that is added or removed.

    Args:
        noise: standard deviation.
        sampling: the probability with which a client is drawn.
        rounds: the number of rounds.
        delta: the δ.
        off: the total variation distance of a round's noise from a Gaussian.

    Returns:
        ε; infinite if ``off`` leaves nothing of δ.

    Raises:
        MisuseError: a value cannot be accounted for.
        SetupError: dp-accounting is not installed, or its two methods contradict each other.
    """
    _check({"noise": noise, "sampling": sampling, "δ": delta, "off": off})
    if not 0 <= rounds <= MOST_ROUNDS:
        raise MisuseError(
            f"an account holds at most {MOST_ROUNDS} rounds: begin a new account with a new δ for "
            "those to come, and add up both ε and both δ"
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
        # Many Gaussians give as much information as one, on their sum.
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
            f"the two accounting methods contradict each other: ε is {by_losses} by privacy loss "
            f"distributions, and by Rényi divergences {by_renyi}"
        )
    return _raised_epsilon(
        lambda left: float(accountant.get_epsilon(left)), by_losses, delta, off * rounds
    )


def _raised_epsilon(
    needed: Callable[[float], float], found: float, delta: float, off: float
) -> float:
    """Finds the least ε, up to STEP, that is enough at the δ which off·(1 + e^ε) leaves.

    Searches from below. If no ε is enough, the result is infinite.

    Args:
        needed: gives the ε that is needed at a δ.
        found: the ε at which to begin.
        delta: the whole δ.
        off: the total variation distance of all rounds' noise from Gaussians.
    """
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
    """Suppresses dp-accounting's warnings of orders whose series do not converge.

    dp-accounting leaves these orders out. The bound of the remaining orders is correct, if greater.
    """

    def is_other(record: logging.LogRecord) -> bool:
        return "Excluding this order" not in record.getMessage()

    logger = logging.getLogger("absl")
    logger.addFilter(is_other)
    try:
        yield
    finally:
        logger.removeFilter(is_other)


def _check(values: Mapping[str, float]) -> None:
    """Checks that all values are within their limits."""
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
    """The privacy that has been spent, in a durable file."""

    def __init__(self, path: Path, mechanism: Mechanism, budget: float | None = None) -> None:
        """Opens the account. Continues with the file if it exists.

        Args:
            path: of the file; every server has its own.
            mechanism: of all rounds.
            budget: the ε against a server that may be spent; no limit if not given.

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
        """Checks that the budget allows one more round.

        Raises:
            MisuseError: it would overspend.
        """
        if self.budget is not None:
            self._check(self.budget, epsilons(self.mechanism, self.rounds + 1))

    def spend(self) -> None:
        """Counts one more round, and writes the file.

        Raises:
            MisuseError: it would overspend; then nothing is counted.
            SetupError: the file cannot be written.
        """
        self.check_next()
        self._keep(self.rounds + 1)

    def catch_up(self, rounds: int) -> None:
        """Raises the count to that of other accounts of the same rounds, if theirs is greater.

        A round that any account has spent is spent.

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
    """Returns the content of the file."""
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
            raise setup_error(
                f"{path} is not an account: it has no mechanism and no rounds; {REMEDY}"
            )
    if not 0 <= rounds <= MOST_ROUNDS:
        raise setup_error(
            f"{path} is not an account: its rounds are not a count from 0 to {MOST_ROUNDS}; "
            f"{REMEDY}"
        )
    # A file without this entry is from a release that did not know it, and its noise is the same.
    if {"off": mechanism.off, **kept} != asdict(mechanism):
        raise setup_error(
            f"{path} is the account of {kept}, not of {asdict(mechanism)}: a federation keeps its "
            f"noise. Put its settings back, or, for a new federation, begin in another folder"
        )
    return rounds
