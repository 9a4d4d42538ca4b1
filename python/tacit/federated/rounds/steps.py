"""A round as a list of steps, each with a client's half, a secret half and a plain reference.

    round_ = Round.of(Settings(aggregator="fedavg", norm=5.0))
    vector, weight = round_.client(update, count)           # at a client, as tensors
    outcome = round_.secret(submitted)                      # at every server, in a session
    outcome = round_.plain(clients, vectors, weights)       # the reference, on plain tensors

Both halves go through the steps in order. (apple/pfl-research composes its rounds of steps, too.) A
user's own step is a ``Step``; ``Client`` and ``Server`` take the function that makes the list as
``rounds``.

Vectors travel in units of the bound on their norm, with 22 fraction bits, so that values computed
from them have a known size. The result is multiplied by the bound once it is plain. Weights are
fractions of the greatest weight that counts.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import torch

from tacit import checks, fixed
from tacit.errors import MisuseError, RangeError
from tacit.federated import validation
from tacit.federated.aggregators import Aggregator, Quotient, aggregator
from tacit.federated.privacy.account import Account
from tacit.federated.privacy.noise import DRAWN
from tacit.federated.rounds import width
from tacit.federated.rounds.adaptive import Count
from tacit.federated.rounds.client_update import Outgoing, Update
from tacit.federated.rounds.clipping import Clip
from tacit.federated.rounds.metrics import Measure
from tacit.federated.rounds.round_state import (
    SERVERS_ROOT,
    Held,
    Outcome,
    RoundError,
    Step,
)
from tacit.federated.rounds.rounding import Rounding
from tacit.federated.rounds.settings import ROOTS, Settings, check, mechanism_of
from tacit.federated.rounds.submission import Submitted
from tacit.federated.validation import VECTOR_BITS
from tacit.sessions import checked, session
from tacit.sharings import shares
from tacit.tensor import SecretTensor

#: The reason in reports if the secret check refuses a client.
TOO_LONG = "norm"


@dataclass(frozen=True)
class Select(Step):
    """A check that enough clients are left."""

    minimum: int = 1
    #: The client that is the root, or ``SERVERS_ROOT``: it is none of them.
    root: int | None = None

    def secret(self, held: Held) -> Held:
        """Raises if there are too few clients. No interaction."""
        held.check_enough(self.minimum, self.root)
        return held


@dataclass(frozen=True)
class Validate(Step):
    """The servers' check of norms against the bound: see ``validation``."""

    bound: str
    minimum: int = 1
    #: Whether vectors come multiplied by their weights, which then limit their norms too.
    is_weighted: bool = False
    #: As of ``Select``.
    root: int | None = None

    def secret(self, held: Held) -> Held:
        """Checks the vectors. Reveals one bit of each client."""
        if self.bound == "none":
            return held
        # A client may send words of any size, which must not end the round. Validation proves that
        # none wraps unnoticed.
        with checks.proved(session()):
            good, held = self._judged(held)
        # Messages carry a hash of these bits, so a server that saw other bits cannot continue.
        session().core.note(json.dumps(good.tolist()).encode())
        return self._passed(held, good)

    def _judged(self, held: Held) -> tuple[torch.Tensor, Held]:
        assert isinstance(held.vectors, SecretTensor)
        assert isinstance(held.weights, SecretTensor)
        if self.bound == "refuse":
            good = validation.within_bound(held.vectors, held.weights, is_weighted=self.is_weighted)
            return good, held
        good, factors, weights = validation.clipped(
            held.vectors, held.weights, is_weighted=self.is_weighted
        )
        return good, replace(held, factors=factors, weights=weights)

    def plain(self, held: Held) -> Held:
        """Checks the plain norms. If they are to be shortened, those up to 56 bounds pass.

        The servers can still compute these.
        """
        if self.bound == "none":
            return held
        norms, parameters = held.vectors.norm(dim=1), held.vectors.shape[1]
        good = (held.weights >= 0) & (held.weights <= 1)
        fits = norms <= held.weights + validation.slack(parameters) / validation.UNIT
        if self.bound == "refuse":
            return self._passed(held, good & (norms <= 1) & (fits if self.is_weighted else True))
        factors = (1.0 - validation.margin(parameters)) / norms.clamp(min=1.0)
        weights = torch.where(fits, held.weights, 1.0) if self.is_weighted else held.weights
        good &= norms <= validation.WIDEST / validation.UNIT
        return self._passed(replace(held, factors=factors, weights=weights), good)

    def _passed(self, held: Held, good: torch.Tensor) -> Held:
        held = held.passed(good, TOO_LONG)
        held.check_enough(self.minimum, self.root)
        return held


@dataclass(frozen=True)
class Combine(Step):
    """The aggregator's step."""

    aggregator: Aggregator
    #: The root's owner, if the aggregator needs a root: a client's number, or a server.
    root: int | str | None = None
    #: The least number of clients without the root, which ``Validate`` has checked, too; at least
    #: one is always needed.
    minimum: int = 1

    def client(self, outgoing: Outgoing) -> Outgoing:
        """Multiplies the vector by its weight, if the aggregator is a weighted sum."""
        return outgoing.by(outgoing.weight) if self.aggregator.is_sum else outgoing

    def secret(self, held: Held) -> Held:
        """Combines the vectors with the aggregator."""
        if held.factors is not None:
            held = self._shortened(held, held.factors)
        root, held = self._root(held)
        self.aggregator.check_count(len(held.clients))
        return replace(held, combined=self.aggregator.of(held.vectors, held.weights, *root))

    def _shortened(self, held: Held, factors: torch.Tensor) -> Held:
        """Applies the factors that shorten vectors: by one product if only the sum counts."""
        if self.aggregator.is_sum:
            return replace(held, vectors=factors.unsqueeze(0) @ held.vectors, factors=None)
        return replace(held, vectors=factors.unsqueeze(1) * held.vectors, factors=None)

    def _root(self, held: Held) -> tuple[list[torch.Tensor], Held]:
        if not self.aggregator.needs_root:
            return [], held
        number = _number_of(self.root)
        if number not in held.clients:
            raise RoundError(
                f"the vector of {self.root}, who is trusted, does not count in this round",
                held.refused,
            )
        row = held.clients.index(number)
        others = [other for other in range(len(held.clients)) if other != row]
        root, held = held.vectors[row], held.only(others)
        held.check_enough(max(1, self.minimum))
        return [root], held


@dataclass(frozen=True)
class Noise(Step):
    """Gaussian noise on a sum of vectors.

    The sum is divided by a public number afterwards, so that neither the number of clients nor the
    sum of their weights is revealed.
    """

    #: "pairs" or "joint".
    how: str
    #: Standard deviation, in bounds, of the noise that a server does not know.
    deviation: float

    def secret(self, held: Held) -> Held:
        """Adds the noise. See ``noise``."""
        total = _numerator(held)
        assert isinstance(total, SecretTensor)
        return replace(held, combined=DRAWN[self.how](total, self.deviation))

    def plain(self, held: Held) -> Held:
        """Returns the sum without noise."""
        return replace(held, combined=_numerator(held))


def _numerator(held: Held) -> torch.Tensor:
    assert isinstance(held.combined, Quotient)
    return held.combined.numerator


@dataclass(frozen=True)
class Spend(Step):
    """The privacy account, before anything is revealed.

    The account is written first, so that a round that fails afterwards is still counted.
    """

    account: Account

    def secret(self, held: Held) -> Held:
        """Counts the round; raises if that would overspend the budget."""
        self.account.spend()
        return held

    def plain(self, held: Held) -> Held:
        """Does nothing: the reference has no account."""
        return held


@dataclass(frozen=True)
class Reveal(Step):
    """The opening of a round's one vector, and with it of the divisor if that is secret."""

    #: "all", or "clients": then the servers keep the result secret.
    to: str = "all"

    def secret(self, held: Held) -> Held:
        """Reveals the result. One round, or none.

        Raises:
            RoundError: in checked mode, a computed value left its range.
        """
        joined = _joined(held)
        assert isinstance(joined, SecretTensor)
        try:
            if self.to == "all":
                return replace(held, combined=joined.reveal())
            # Clients get no flags: servers verify them before any result is sealed.
            zeros = tuple(torch.zeros(1, dtype=torch.int64) for _ in joined._parts)
            shares.reveal(session(), zeros, None, joined.flags)
        except RangeError as failed:
            raise RoundError(str(failed), held.refused) from None
        return replace(held, combined=joined)

    def plain(self, held: Held) -> Held:
        """Joins the numerator and the divisor; everything is plain already."""
        return replace(held, combined=_joined(held))


def _joined(held: Held) -> torch.Tensor:
    combined = held.combined
    assert combined is not None
    return combined.row() if isinstance(combined, Quotient) else combined


@dataclass(frozen=True)
class Round:
    """A list of steps, and the unit by which their result is multiplied."""

    steps: Sequence[Step]
    unit: float
    #: Bits in which numbers travel.
    word_bits: int = width.WHOLE
    #: Whether computed values are checked to stay in range.
    is_checked: bool = False
    #: Whether servers convert numbers of a few bits to words before the steps.
    is_lifted: bool = False

    @staticmethod
    def of(
        settings: Settings,
        account: Account | None = None,
        clients: int | None = None,
        servers: int = len(ROOTS),
    ) -> "Round":
        """Returns the round that settings describe.

        Its steps are select, clip, validate, measure, combine, round, noise, account, reveal, in
        this order. If the bound follows a quantile: account and count before combine.

        Args:
            settings: the settings.
            account: the servers' account, with noise.
            clients: the number of the federation's clients; needed if numbers travel in fewer than
                64 bits, or if the bound follows a quantile.
            servers: the number of servers that draw noise.

        Raises:
            MisuseError: settings do not fit together, the account is of other noise than theirs, or
                the number of clients is needed.
        """
        chosen = aggregator(settings.aggregator)
        check(settings, chosen)
        _check_account(settings, account, servers)
        clients = _known(clients, settings)
        chosen = chosen.having(**settings.arguments)
        # With noise a round of no clients has a result, the noise alone, and so does not reveal
        # that no client counted. Without noise a round needs a vector.
        minimum = max(settings.minimum_clients, 1 if settings.noise is None else 0)
        has_bound, root = settings.bound != "none", _number_of(settings.root)
        width.check(settings.word_bits, chosen, has_bound, clients)
        grid = settings.grid(clients)
        limit = width.limit(width.WHOLE if grid else settings.word_bits, clients)
        weight_steps = None if grid is None else grid.weight_steps
        steps: list[Step] = [
            Select(minimum, root),
            Clip(settings.norm, settings.greatest_weight, has_bound, limit, weight_steps),
            Validate(settings.bound, minimum, chosen.is_sum, root),
            *_measure(settings, minimum),
            *_count(settings, chosen, clients, account),
            Combine(chosen, settings.root, minimum),
        ]
        unit = settings.norm
        if grid is not None:
            steps.append(Rounding(grid, has_bound, chosen.is_sum))
            if not grid.is_lifted:
                # A sum of steps over a sum of the weights' steps.
                unit *= grid.weight_steps / grid.steps
        if settings.noise is not None:
            assert settings.sigma is not None
            assert settings.divisor is not None
            assert account is not None
            steps.append(Noise(settings.noise, settings.sigma))
            if settings.quantile is None:
                steps.append(Spend(account))
            unit /= settings.divisor
        steps.append(Reveal(settings.result_to))
        is_lifted = grid is not None and grid.is_lifted
        return Round(steps, unit, settings.word_bits, settings.checked, is_lifted)

    def sent(self, outgoing: Outgoing) -> Outgoing:
        """Returns what a client sends of its change and its count of examples."""
        for step in self.steps:
            made = step.client(outgoing)
            # A later step may return a new object, without these.
            outgoing = replace(
                made,
                shortened=min(made.shortened, outgoing.shortened),
                cut=max(made.cut, outgoing.cut),
                by_rounding=min(made.by_rounding, outgoing.by_rounding),
            )
        return outgoing

    def client(self, vector: torch.Tensor, weight: float = 1.0) -> Update:
        """Returns what a client sends of a vector [parameters], as tensors."""
        return self.sent(Outgoing.of(Update(vector, weight))).update()

    def secret(self, submitted: Submitted) -> Outcome:
        """Combines the submitted vectors, at every server.

        Raises:
            MisuseError: the vectors have another scale than clients send, or are too many.
            RoundError: too few clients count, or the root does not.
        """
        scale = width.scale(self.word_bits, is_lifted=self.is_lifted)
        if {submitted.vectors._scale, submitted.weights._scale} != {scale}:
            raise MisuseError(f"clients' vectors and weights have {scale.bits} fraction bits")
        held = Held(
            tuple(submitted.clients),
            submitted.vectors,
            submitted.weights,
            metrics=submitted.metrics,
        )
        mode = checked() if self.is_checked else nullcontext()
        with session().using(scale=fixed.Scale(VECTOR_BITS)), mode:
            for step in self.steps:
                held = step.secret(held)
        return self._outcome(held, submitted.vectors.shape[1])

    def plain(
        self, clients: Sequence[int], vectors: torch.Tensor, weights: torch.Tensor
    ) -> Outcome:
        """Runs the reference on plain vectors and weights as clients send them, without noise."""
        held = Held(tuple(clients), vectors, weights)
        for step in self.steps:
            held = step.plain(held)
        return self._outcome(held, vectors.shape[1])

    def _outcome(self, held: Held, parameters: int) -> Outcome:
        combined = held.combined
        assert isinstance(combined, torch.Tensor)
        is_sealed = isinstance(combined, SecretTensor)
        return Outcome(
            vector=None if is_sealed else self.opened(combined, parameters, held.refused),
            sealed=combined if is_sealed else None,
            accepted=held.clients,
            refused=held.refused,
            means=held.means,
            fraction=held.fraction,
        )

    def opened(
        self, revealed: torch.Tensor, parameters: int, refused: Mapping[int, str] | None = None
    ) -> torch.Tensor:
        """Returns the combined update, computed from the revealed row by each party that sees it.

        Raises:
            RoundError: the weights do not add up to more than 0; with the clients that were
                refused.
        """
        if len(revealed) > parameters:
            if not bool(revealed[-1] > 0):
                raise RoundError(
                    f"the weights of those who count add up to {float(revealed[-1]):g}, so "
                    "there is no mean of theirs",
                    refused,
                )
            return Quotient(revealed[:-1], revealed[-1]).divided().mul_(self.unit)
        return revealed * self.unit


def _count(
    settings: Settings, chosen: Aggregator, clients: int, account: Account | None
) -> list[Step]:
    """Returns the step that counts vectors shorter than the bound, if the bound follows a quantile.

    It reveals the count, so the account comes before it.
    """
    if settings.quantile is None:
        return []
    expected = None
    if account is not None:
        submitting = clients - (settings.coordinator is not None)
        expected = settings.quantile_clients or settings.sampling * submitting
    count = Count(chosen.is_sum, settings.noise, settings.quantile_sigma, expected)
    return [count] if account is None else [Spend(account), count]


def _known(clients: int | None, settings: Settings) -> int:
    """Returns the number of clients; any number if it does not matter.

    Raises:
        MisuseError: it matters and is not given.
    """
    if clients is None and (settings.word_bits != width.WHOLE or settings.quantile is not None):
        raise MisuseError(
            f"rounds of word_bits = {settings.word_bits} and quantile = {settings.quantile} depend "
            "on the number of clients: give Round.of(settings, clients=...)"
        )
    return 1 if clients is None else clients


def _measure(settings: Settings, minimum: int) -> list[Step]:
    """Returns the step that reveals means of metrics, if clients report any."""
    if not settings.metrics:
        return []
    has_bound, root = settings.bound != "none", _number_of(settings.root)
    return [Measure(settings.greatest_metric, has_bound, minimum, root)]


def _number_of(owner: int | str | None) -> int | None:
    """Returns what stands for the owner of the root among the clients of a round."""
    return SERVERS_ROOT if isinstance(owner, str) else owner


def _check_account(settings: Settings, account: Account | None, servers: int) -> None:
    """Checks that an account is of the noise that is added."""
    if settings.noise is None:
        if account is not None:
            raise MisuseError(
                "an account of what is spent goes with noise, and these rounds have none"
            )
        return
    if account is None:
        raise MisuseError("noise goes with an account of what is spent")
    right = mechanism_of(settings, account.mechanism.delta, servers)
    if account.mechanism != right:
        raise MisuseError(
            f"the account is of {account.mechanism}, and these rounds are of {right}: make the "
            f"account of mechanism_of(settings, delta)"
        )


#: Makes a round from settings, an account and the number of clients: ``Round.of``, or a function
#: that inserts a user's own steps.
Rounds = Callable[[Settings, Account | None, int], Round]
