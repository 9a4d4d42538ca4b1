"""The federations of the demonstration and the experiments."""

from collections.abc import Mapping
from pathlib import Path

from tacit.federated.aggregators import AGGREGATORS
from tacit.federated.rounds.settings import Settings
from tacit.federated.simulation.attacks import Attack
from tacit.federated.simulation.federation import Federation
from tacit.federated.simulation.training import Training
from tacit.providers import DEFAULT

#: The bound on an update's norm: about the norm of an honest update in the first rounds.
NORM = 3.0

#: The number of examples above which a client's weight no longer grows.
GREATEST_WEIGHT = 256.0

#: The bound with noise, which is smaller.
NORM_WITH_NOISE = 1.0


def federation(
    *,
    clients: int = 16,
    rounds: int = 20,
    aggregator: str = "fedavg",
    attack: Attack | None = None,
    sigma: float | None = None,
    delta: float = 1e-5,
    data: str = "digits",
    partition: str = "skew:0.9",
    bound: str = "refuse",
    sampling: float = 1.0,
    seed: int = 0,
    arguments: Mapping[str, float] | None = None,
    protocol: str = DEFAULT,
) -> Federation:
    """Makes a federation.

    Clients are weighted by their examples, and equally with noise. A trusted client comes after the
    others. ``arguments`` are an aggregator's own settings.
    """
    if aggregator not in AGGREGATORS and ":" in aggregator:
        # Servers may run in other folders than this one.
        file, _, name = aggregator.rpartition(":")
        aggregator = f"{Path(file).resolve()}:{name}"
    settings = Settings(
        protocol=protocol,
        aggregator=aggregator,
        bound=bound,
        norm=NORM if sigma is None else NORM_WITH_NOISE,
        root=clients if aggregator == "fltrust" else None,
        greatest_weight=GREATEST_WEIGHT if sigma is None else 1.0,
        noise=None if sigma is None else "pairs",
        sigma=sigma,
        divisor=None if sigma is None else sampling * clients,
        minimum_clients=1 if sigma is None else 0,
        # Simulated clients need no protection.
        reveals_single=True,
        **{str(name): value for name, value in (arguments or {}).items()},  # type: ignore[arg-type]
    )
    return Federation(
        data=data,
        partition=partition,
        clients=clients,
        rounds=rounds,
        settings=settings,
        training=Training(),
        attack=attack,
        sampling=sampling,
        delta=delta,
        seed=seed,
    )
