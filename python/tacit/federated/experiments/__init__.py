"""Experiments, each a report with tables and plots: ``tacit federated experiment NAME --out
DIR``."""

from collections.abc import Callable
from pathlib import Path

from tacit.federated.experiments import accuracy, attacks, cost, network, privacy

#: The experiments by name. Each takes a console, on which it reports its progress, a folder, and
#: options by name, and returns its report's path.
EXPERIMENTS: dict[str, Callable[..., Path]] = {
    "accuracy": accuracy.run,
    "attacks": attacks.run,
    "privacy": privacy.run,
    "cost": cost.run,
    "network": network.run,
}
