"""The settings of a round, on which a federation agrees, and the checks that they fit together."""

import math
from dataclasses import dataclass, replace

from tacit.errors import MisuseError
from tacit.federated.aggregators import AGGREGATORS, ARGUMENTS, Aggregator, described
from tacit.federated.messages import counted
from tacit.federated.privacy.account import Mechanism
from tacit.federated.privacy.noise import DRAWN, OFF, POWERS, parts
from tacit.federated.rounds import width
from tacit.federated.rounds.adaptive import with_count
from tacit.federated.rounds.selection import Selection
from tacit.federated.validation import VECTOR_BITS
from tacit.providers import DEFAULT, PROTOCOLS

#: What servers may do about norms above the bound.
BOUNDS = ("none", "refuse", "clip")

#: Servers whose update may be the root of FLTrust.
ROOTS = ("server-0", "server-1", "server-2")

#: The most steps of the geometric median's iteration.
MOST_STEPS = 1000

#: The most metrics of a round.
MOST_METRICS = 64

#: Who may learn a round's result.
RECIPIENTS = ("all", "clients")


@dataclass(frozen=True)
class Settings:
    """The settings of a round, on which a federation agrees."""

    #: The servers' protocol: one that serves federations, see ``tacit.providers``.
    protocol: str = DEFAULT
    aggregator: str = "fedavg"
    #: For krum and multi-krum: the largest fraction of the clients that is assumed to attack; a
    #: quarter if not given.
    attackers: float | None = None
    #: For multi-krum: the number of vectors to average; all but the attackers' if not given.
    chosen: int | None = None
    #: For trimmed-mean: the fraction of the clients dropped at each end; a quarter if not given.
    trimmed: float | None = None
    #: For geometric-median: steps of its iteration; depends on the number of clients if not given.
    steps: int | None = None
    #: The bound: the norm that a client's update may have.
    norm: float = 1.0
    #: Adaptive clipping: the fraction of the clients whose updates the bound is to leave as they
    #: are, see ``adaptive``. Then ``norm`` is the bound of the first round.
    quantile: float | None = None
    #: How fast the bound follows that.
    quantile_rate: float = 0.2
    #: With noise: the standard deviation, in clients, of that on the count of such clients.
    quantile_sigma: float | None = None
    #: With noise: the number of clients that are expected to count in a round, of which the
    #: quantile is; ``sampling`` times all that may submit if not given.
    quantile_clients: float | None = None
    #: What the servers do about longer ones: "none", "refuse" or "clip".
    bound: str = "refuse"
    #: The count of examples above which a client's weight no longer grows. Without it weights are
    #: at most 1, and the client refuses a greater one.
    greatest_weight: float | None = None
    #: The least number of clients; a round of fewer has no result. A result hides a client only
    #: among those that count.
    minimum_clients: int = 2
    #: How many clients end a round before its deadline once they have submitted: a count, or a
    #: share of the clients from above 0 to 1.0. All if not given.
    enough: int | float | None = None
    #: Whether, without noise, a round may reveal the update of a single client.
    reveals_single: bool = False
    #: The owner of the root of FLTrust: a client's number, or a server as in ``ROOTS``.
    root: int | str | None = None
    #: How noise is drawn, if any is: "pairs", from the keys of every two servers, or "joint"; see
    #: ``noise``.
    noise: str | None = None
    #: The noise multiplier: standard deviation, in bounds, of the noise that a server does not
    #: know.
    sigma: float | None = None
    #: The divisor of a sum with noise: the expected sum of the weights.
    divisor: float | None = None
    #: The probability with which a client that submits counts. Only the client knows whether it
    #: does: see ``participation``.
    sampling: float = 1.0
    result_to: str = "all"
    #: The client that has the model and submits nothing, as Flower's server does. Servers have no
    #: model then: clients submit updates, and the result of a round is the combined update.
    coordinator: int | None = None
    #: Bits in which numbers travel: 64; 32 if only a sum is computed; or 16 or 8, to which clients
    #: round, see ``width``.
    word_bits: int = width.WHOLE
    #: With 16 or 8 bits: the greatest magnitude that is sent of a value of an update; ``norm`` if
    #: not given. Greater ones are cut off.
    greatest_value: float | None = None
    #: Whether the servers check that what they compute from validated vectors stays in range.
    checked: bool = False
    #: Names of the numbers that each client reports with its submission, such as its accuracy.
    #: Servers learn their means, weighted as updates are.
    metrics: tuple[str, ...] = ()
    #: The greatest magnitude of such a number.
    greatest_metric: float = 1.0
    #: After how many rounds the new model is evaluated: clients report metrics of it, and nothing
    #: else. 0 for never.
    evaluate_every: int = 0
    #: Patterns of the names of the tensors that travel, see ``selection``; all if there are none.
    include: tuple[str, ...] = ()
    #: Patterns of the names of tensors that do not travel: each client keeps its own.
    exclude: tuple[str, ...] = ()

    @property
    def is_sum(self) -> bool:
        """Whether servers need only the sum of the vectors as they come."""
        return self.bound == "none" and described(self.aggregator).is_sum

    @property
    def evaluating(self) -> "Settings":
        """The settings of a round of evaluation: a mean of metrics, whose vectors are empty."""
        return replace(
            self,
            aggregator="fedavg",
            bound="none" if self.bound == "none" else "refuse",
            attackers=None,
            chosen=None,
            trimmed=None,
            steps=None,
            root=None,
            quantile=None,
            checked=False,
            result_to="all",
            include=(),
            exclude=(),
        )

    def enough_of(self, clients: int) -> int:
        """Returns how many of the clients that may submit end a round before its deadline."""
        if self.enough is None:
            return clients
        return self.enough if isinstance(self.enough, int) else math.ceil(self.enough * clients)

    def grid(self, clients: int) -> width.Grid | None:
        """Returns the steps to which clients round; ``None`` if they do not.

        Args:
            clients: the number of the federation's clients.
        """
        if self.word_bits not in width.NARROW:
            return None
        reach = (self.greatest_value or self.norm) / self.norm
        return width.grid(self.word_bits, is_lifted=not self.is_sum, clients=clients, reach=reach)

    @property
    def travelling(self) -> Selection:
        """Which tensors of a model travel."""
        return Selection(self.include, self.exclude)

    @property
    def arguments(self) -> dict[str, float]:
        """The aggregator's settings that are given, by name."""
        found = {name: getattr(self, name) for name in ARGUMENTS}
        return {name: value for name, value in found.items() if value is not None}


def mechanism_of(settings: Settings, delta: float, servers: int = len(ROOTS)) -> Mechanism:
    """Returns what the given number of servers account for in each round with noise.

    Raises:
        MisuseError: the settings cannot be accounted for.
    """
    assert settings.noise is not None
    assert settings.sigma is not None
    lacked, sigma, off = parts(settings.noise, servers), settings.sigma, OFF[settings.noise]
    if settings.quantile_sigma is not None:
        sigma, off = with_count(sigma, settings.quantile_sigma), 2 * off
    return Mechanism.of(sigma, lacked, settings.sampling, delta, off)


def check_protocol(name: str) -> None:
    """Checks that the servers of a federation can have a protocol. What the core declares of each
    decides (``tacit.providers``).

    Raises:
        MisuseError: the protocol serves no federation, or there is none of that name.
    """
    serving = [each.name for each in PROTOCOLS.values() if each.serves_federations]
    if name not in serving:
        raise MisuseError(
            f"protocol = {name!r} serves no federation; known are {', '.join(serving)}"
        )


def check(settings: Settings, chosen: Aggregator) -> None:
    """Checks that settings are valid and fit together, for any participants.

    Raises:
        MisuseError: one is not valid, or they do not fit together.
    """
    check_protocol(settings.protocol)
    if settings.bound not in BOUNDS:
        raise MisuseError(f"bound = {settings.bound!r}: known are {', '.join(BOUNDS)}")
    if settings.result_to not in RECIPIENTS:
        raise MisuseError(f"result_to = {settings.result_to!r}: known are {', '.join(RECIPIENTS)}")
    _check_positive(settings, "norm", "greatest_weight", "greatest_value")
    _check_width(settings)
    _check_enough(settings)
    _check_metrics(settings)
    _check_quantile(settings)
    _check_arguments(settings, chosen)
    if settings.minimum_clients < 0:
        raise MisuseError(f"minimum_clients = {settings.minimum_clients}: it is a count of clients")
    if chosen.needs_bound and settings.bound == "none":
        raise MisuseError(
            f'{chosen.name} takes vectors whose norms are validated: bound = "refuse" or "clip"'
        )
    if settings.checked and settings.bound == "none":
        raise MisuseError(
            "checked = true is for vectors whose norms are validated: without that a client that "
            "lies can make the result any number, and no check detects it; "
            'take bound = "refuse" or "clip"'
        )
    if chosen.needs_root and settings.root is None:
        raise MisuseError(
            f"{chosen.name} needs a root: the number of the client that is trusted, or the server, "
            f"one of {', '.join(ROOTS)}"
        )
    if settings.root is not None:
        _check_root(settings, chosen, settings.root)
    if settings.coordinator is not None and settings.coordinator == settings.root:
        raise MisuseError("a root hands in a vector, which the coordinator does not")
    settings.travelling.check()
    check_hides(settings)
    if settings.noise is not None:
        _check_private(settings, chosen)


def _check_enough(settings: Settings) -> None:
    enough = settings.enough
    if enough is None:
        return
    if not (enough >= 1 if isinstance(enough, int) else 0 < enough <= 1):
        raise MisuseError(
            f"enough = {enough}: it is a count of clients, such as 12, or a share of them, such as "
            "0.75"
        )
    if isinstance(settings.root, int):
        raise MisuseError(
            f"enough = {enough} with client {settings.root} as root: a round could end before the "
            "root's vector is there, and has no result then: leave enough out, or take a server as "
            "root"
        )
    if settings.noise is not None:
        raise MisuseError(
            f"enough = {enough} with noise: without one client a round waits for another one, so "
            "its sum changes by two vectors, and the account is of one: leave enough out, or noise"
        )


def _check_evaluation(settings: Settings) -> None:
    every = settings.evaluate_every
    if every < 0:
        raise MisuseError(f"evaluate_every = {every}: it is a count of rounds, or 0 for never")
    if every and not settings.metrics:
        raise MisuseError(
            f"evaluate_every = {every} without metrics, which are what an evaluation is of: give "
            'their names, such as metrics = ["accuracy"], or leave evaluate_every out'
        )
    if every and settings.result_to == "clients" and settings.coordinator is None:
        raise MisuseError(
            'evaluate_every with result_to = "clients": a client that is late for a round\'s result '
            "would miss it once an evaluation has one: metrics of each round's submission are of "
            "the model before it; leave evaluate_every out"
        )
    if every not in (0, 1) and settings.coordinator is not None:
        raise MisuseError(
            f"evaluate_every = {every} with a coordinator, which asks for an evaluation after each "
            "round: take 1, or leave it out"
        )


def _check_metrics(settings: Settings) -> None:
    names = settings.metrics
    _check_evaluation(settings)
    _check_positive(settings, "greatest_metric")
    if not all(isinstance(name, str) and name.isidentifier() for name in names):
        raise MisuseError(
            "metrics has a name that is not made of letters, digits and underscores: give names "
            "such as accuracy"
        )
    if len(names) > MOST_METRICS or len(set(names)) < len(names):
        raise MisuseError(f"metrics has {len(names)} names: give at most {MOST_METRICS}, each once")
    if names and settings.noise is not None:
        raise MisuseError(
            "metrics with noise: means of metrics are revealed without noise, so no ε covers them: "
            "leave metrics out, or noise"
        )
    if names and settings.word_bits in width.NARROW:
        raise MisuseError(
            f"metrics with word_bits = {settings.word_bits}: metrics travel as numbers of 64 or 32 "
            "bits: take one of these, or leave metrics out"
        )


def _check_quantile(settings: Settings) -> None:
    _check_positive(settings, "quantile_rate", "quantile_sigma", "quantile_clients")
    if settings.quantile_clients is not None and None in (settings.quantile, settings.noise):
        raise MisuseError(
            "quantile_clients is for a quantile with noise, since without noise servers know how "
            "many clients count: give both, or leave it out"
        )
    if settings.quantile is None:
        if settings.quantile_sigma is not None:
            raise MisuseError(
                "quantile_sigma is of noise on a count for a quantile: give quantile, or leave it "
                "out"
            )
        return
    if not 0 < settings.quantile < 1 or settings.quantile_rate > 1:
        raise MisuseError(
            f"quantile = {settings.quantile:g} at quantile_rate = {settings.quantile_rate:g}: the "
            "one is between 0 and 1, the other at most 1"
        )
    if settings.bound == "none":
        raise MisuseError(
            'a quantile is of norms that servers validate: take bound = "refuse" or "clip"'
        )
    if settings.word_bits in width.NARROW:
        raise MisuseError(
            f"a quantile with word_bits = {settings.word_bits}: rounding changes norms by too much "
            "to tell which are shorter than the bound: take word_bits = 64, or leave quantile out"
        )
    if isinstance(settings.root, str):
        raise MisuseError(
            f"a quantile with root = {settings.root!r}: a server's own vector has the first bound: "
            "take a client as root, or leave quantile out"
        )
    if (settings.noise is None) != (settings.quantile_sigma is None):
        raise MisuseError(
            "with a quantile, noise needs quantile_sigma, which hides a client in the count, and "
            "quantile_sigma needs noise: give both or none"
        )


def _check_width(settings: Settings) -> None:
    is_narrow = settings.word_bits in width.NARROW
    if settings.greatest_value is not None and not is_narrow:
        raise MisuseError(
            f"greatest_value = {settings.greatest_value:g} is for word_bits = 16 or 8, to whose "
            "steps clients round: leave it out, or take one of these"
        )
    if is_narrow and isinstance(settings.root, str):
        raise MisuseError(
            f"word_bits = {settings.word_bits} with root = {settings.root!r}: a server's own vector "
            "does not travel in so few bits: take word_bits = 64, or a client as root"
        )


def _check_arguments(settings: Settings, chosen: Aggregator) -> None:
    for name, value in settings.arguments.items():
        if name not in chosen.takes:
            takers = " and ".join(each.name for each in AGGREGATORS.values() if name in each.takes)
            raise MisuseError(
                f"{name} = {value}: {chosen.name} takes no {name}, {takers} "
                f"{'do' if ' ' in takers else 'does'}; leave it out, or take another aggregator"
            )
    for name in ("attackers", "trimmed"):
        part = getattr(settings, name)
        if part is not None and not 0 <= part < 1 / 2:
            raise MisuseError(
                f"{name} = {part}: it is a part of the clients, from 0 to less than a half"
            )
    if settings.chosen is not None and settings.chosen < 1:
        raise MisuseError(f"chosen = {settings.chosen}: it is how many vectors count, 1 or more")
    if settings.steps is not None and not 1 <= settings.steps <= MOST_STEPS:
        raise MisuseError(f"steps = {settings.steps}: the iteration takes 1 to {MOST_STEPS} steps")


def check_chosen(settings: Settings, clients: int) -> None:
    """Checks that there are at least as many vectors as ``chosen`` selects.

    Raises:
        MisuseError: there are never that many.
    """
    if settings.chosen is not None and settings.chosen > clients:
        raise MisuseError(
            f"chosen = {settings.chosen}, and {counted(clients, 'client')} hand in vectors that "
            f"count: take {clients} at most"
        )


def _check_root(settings: Settings, chosen: Aggregator, root: int | str) -> None:
    if isinstance(root, str) and root not in ROOTS:
        raise MisuseError(f"root = {root!r}: the number of a client, or one of {', '.join(ROOTS)}")
    if not chosen.needs_root:
        raise MisuseError(f"root = {root!r}: {chosen.name} takes no root")
    is_servers = isinstance(root, str)
    if is_servers and (settings.coordinator is not None or settings.result_to == "clients"):
        raise MisuseError(
            f"root = {root!r}: that server learns from the model of each round, which no server "
            f'has with a coordinator or with result_to = "clients"'
        )


def check_hides(settings: Settings) -> None:
    """Checks that the settings state how a client is hidden in what a round reveals.

    Raises:
        MisuseError: a client is not hidden, and the settings do not permit that.
    """
    if settings.noise is not None and settings.noise not in DRAWN:
        raise MisuseError(f"noise = {settings.noise!r}: known are {', '.join(DRAWN)}")
    if (settings.noise is None) != (settings.sigma is None):
        raise MisuseError(
            'noise = "pairs" or "joint" says how it is drawn, sigma how much, in bounds: give both '
            "or none"
        )
    if settings.noise is None and settings.divisor is not None:
        raise MisuseError(
            "a divisor divides a sum with noise, and there is no noise: leave it out, or give noise"
        )
    if settings.noise is None and settings.sampling != 1:
        raise MisuseError(
            f"sampling = {settings.sampling}: sampling alone hides no client; it needs noise and a "
            f"divisor"
        )
    if settings.noise is None and settings.minimum_clients < 2 and not settings.reveals_single:
        raise MisuseError(
            f"minimum_clients = {settings.minimum_clients} without noise: a round of one client "
            "reveals its update; take 2 or more, or say reveals_single = true"
        )


def _check_private(settings: Settings, chosen: Aggregator) -> None:
    if chosen.sensitivity is None:
        raise MisuseError(
            f"{chosen.name} with noise: by how much one client changes its result is not proven, "
            f"so no noise can be said to hide it; take fedavg"
        )
    if settings.bound == "none":
        raise MisuseError(
            'noise hides a client whose norm is validated: bound = "refuse" or "clip"'
        )
    if settings.divisor is None:
        raise MisuseError(
            "noise without a divisor: give what the sum is divided by, divisor = the expected sum "
            "of the weights, which is public then"
        )
    _check_positive(settings, "sigma", "divisor")
    _check_drawn(settings, "sigma", "bounds")
    _check_drawn(settings, "quantile_sigma", "clients")


def _check_drawn(settings: Settings, name: str, unit: str) -> None:
    """Checks that noise of the given standard deviation, if it is given, can be drawn."""
    assert settings.noise is not None
    sigma = getattr(settings, name)
    lowest, highest = (2.0 ** (power - VECTOR_BITS) for power in POWERS[settings.noise])
    if sigma is not None and not lowest <= sigma < highest:
        raise MisuseError(
            f'{name} = {sigma:g}: noise = "{settings.noise}" is drawn of standard deviations from '
            f"{lowest:.3g} to below {highest:g} {unit}"
        )


def _check_positive(settings: Settings, *names: str) -> None:
    """Checks that those of the settings that are given are positive and finite."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and not 0 < value < math.inf:
            raise MisuseError(f"{name} = {value}: it is a finite number above 0")


def check_clients(settings: Settings, chosen: Aggregator, clients: int) -> None:
    """Checks that rounds are possible in a federation of the given number of clients.

    Raises:
        MisuseError: the coordinator or the root is not a client's number, there are too few or too
            many clients, or ``enough`` are more than there are, or too few for a round.
    """
    for name in ("coordinator", "root"):
        number = getattr(settings, name)
        if isinstance(number, int) and not 0 <= number < clients:
            raise MisuseError(f"{name} = {number}; the clients are 0 to {clients - 1}")
    is_clients = chosen.needs_root and isinstance(settings.root, int)
    counting = clients - is_clients - (settings.coordinator is not None)
    chosen.check_count(counting)
    check_chosen(settings, counting)
    width.check(settings.word_bits, chosen, settings.bound != "none", clients)
    least, enough = max(1, settings.minimum_clients), settings.enough_of(counting)
    if settings.enough is not None and not least <= enough <= counting:
        raise MisuseError(
            f"enough = {settings.enough}, which is {counted(enough, 'client')} of {counting}: it is "
            f"from {least}, which a round needs, to {counting}"
        )
    if least > counting:
        others = [
            name for name in ("coordinator", "root") if isinstance(getattr(settings, name), int)
        ]
        excluded = f" besides the {' and the '.join(others)}" if others else ""
        raise MisuseError(
            f"minimum_clients = {settings.minimum_clients}, and a round needs {least}: {counting} "
            f"of {counted(clients, 'client')} hand in vectors that count{excluded}, so every round "
            f"would come to nothing"
        )
