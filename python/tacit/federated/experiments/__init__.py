"""Experiments, each a report with tables and plots: ``tacit federated
experiment NAME --out DIR``."""

from collections.abc import Callable
from pathlib import Path

from tacit.federated.experiments import accuracy, attacks, cost, privacy

#: By name: each takes a console, which it tells how far it is, a folder, and options by name, and
#: returns its report's path.
EXPERIMENTS: dict[str, Callable[..., Path]] = {
    "accuracy": accuracy.run,
    "attacks": attacks.run,
    "privacy": privacy.run,
    "cost": cost.run,
}
