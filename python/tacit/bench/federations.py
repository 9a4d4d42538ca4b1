"""Rounds of federated learning, from numbers at clients to the new model at clients
(``tacit.federated.simulation.measuring``)."""

import os
import statistics
from dataclasses import dataclass, field, replace
from typing import Any

from tacit.bench.settings import Setting
from tacit.federated.service.config import SERVERS
from tacit.federated.simulation import measuring

#: Rules for sums alone. Two sums lie in one word if they fit; those of too many clients do not.
_MEAN = {"bound": "none", "word_bits": 32}
_WIDE_MEAN = {"bound": "none"}


@dataclass(frozen=True)
class Federation(measuring.Federation):
    """One measurement of a federation."""

    rules: measuring.Rules = field(default_factory=lambda: _MEAN)
    only_by_name: bool = True


#: Numbers of parameters of the models of PPPFL (Akhtar 2024), for CIFAR-10.
DENSENET121, VGG11, RESNET18, SIMPLEDLA = 6_956_298, 9_231_114, 11_173_962, 15_142_970

#: Cases by name: means of 16 clients, unless the name says otherwise.
FEDERATIONS = {
    "federated_mean_7690": Federation(7_690, only_by_name=False),
    "federated_mean_30730": Federation(30_730, only_by_name=False),
    "federated_mean_densenet121": Federation(DENSENET121),
    "federated_mean_vgg11": Federation(VGG11),
    "federated_mean_vgg11_100ms": Federation(VGG11, delay=0.1),
    "federated_mean_resnet18": Federation(RESNET18),
    "federated_mean_simpledla": Federation(SIMPLEDLA),
    "federated_mean_vgg11_bound": Federation(VGG11, {"bound": "refuse"}),
    "federated_fltrust_vgg11": Federation(
        VGG11, {"aggregator": "fltrust", "root": 16}, repetitions=1
    ),
    "federated_krum_vgg11": Federation(VGG11, {"aggregator": "krum"}, repetitions=1),
    "federated_median_1e6": Federation(1_000_000, {"aggregator": "median"}, repetitions=1),
    "federated_mean_1e6_of_1000": Federation(1_000_000, _WIDE_MEAN, clients=1000, repetitions=1),
}


def measure(name: str, setting: Setting, threads: int | None = None) -> tuple[dict[str, Any], int]:
    """Returns the entry of a case in the report, and the peak memory of the largest server in
    bytes."""
    case = FEDERATIONS[name]
    rules = {"protocol": setting.protocol, **case.rules}
    case = replace(case, rules=rules, attestation=setting.attestation)
    threads = threads or max(1, (os.cpu_count() or 1) // SERVERS)
    found = measuring.measured(case, threads)
    entry = {
        "name": name,
        "protocol": setting.protocol,
        "parties": SERVERS,
        "clients": case.clients,
        "parameters": case.parameters,
        "seconds_of_delay": case.delay,
        "transport": "tcp",
        "threads": threads,
        "warm_up": 1,
        "repetitions": case.repetitions,
        "seconds_median": statistics.median(found.seconds),
        "seconds_min": min(found.seconds),
        "bytes_up_per_client": found.bytes_up_per_client,
        "bytes_sent_per_party": found.bytes_sent,
        **found.verified,
        "cpu_seconds_per_party": found.cpu_seconds,
        "cpu_seconds_of_clients": found.cpu_seconds_of_clients,
        "memory_per_party": found.memory,
    }
    if setting.attestation is not None:
        entry["attestation"] = setting.attestation
    return entry, max(found.memory)
