"""``tacit bench``: measures what the protocols cost."""

import argparse
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tacit.bench.settings import SETTINGS, SETTINGS_OF_PROGRAMS, Setting
from tacit.commands.options import (
    add_attestation,
    add_device,
    add_json,
    add_network,
    add_setting,
    add_threads,
    chosen_setting,
    output,
    print_threat_model,
    write_json,
)
from tacit.parties.network import NETWORKS

if TYPE_CHECKING:
    from rich.console import Console


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "bench",
        help="measure the protocols between processes",
        description="Measures the protocols between processes: without any option under five "
        "settings, on loopback and with links as slow as those of two networks, "
        "or else under the one that the options name.",
    )
    add_setting(parser)
    parser.add_argument(
        "--only",
        metavar="NAME,..",
        help="measure only these cases, or the cases of these groups; by default all cases that "
        "are in no group. models: bert_base_128, vit_b16_1, text_sentiment_32, wav2letter, "
        "alexnet_training_32, vgg16_training_32; compiled, each next to the same model before "
        "compilation: compiled_logistic_regression, _logistic_regression_argmax, _secureml, "
        "_minionn, _caffe_lenet, _chameleon, _lenet, _squeezenet, _resnet50, _densenet121, "
        "_chest_xray, _retinopathy; "
        "checked, each next to the same work without checks: checked_resnet18_1, "
        "checked_transformer_block, checked_digits_training_32; attested, each by turns with the "
        "same work of parties that do not attest: attested_inner_1e4, _inner_1e5, _add_32, "
        "_multiply_32, _compare_32, _latency_mul_1000, _resnet18, _resnet34, _resnet50, "
        "_resnet101, _resnet152, _resnet200, _densenet121; services, each by turns with the same work "
        "of parties alone: service_lenet, _lenet_16_clients, _compiled_lenet, "
        "_compiled_lenet_16_clients; federations: "
        "federated_mean_vgg11, _vgg11_100ms, _densenet121, _resnet18, _simpledla, "
        "_vgg11_bound, federated_fltrust_vgg11, federated_krum_vgg11, federated_median_1e6, "
        "federated_mean_1e6_of_1000",
    )
    parser.add_argument(
        "--riscv",
        action="store_true",
        help="measure compiled programs instead of operators, with two parties and with three; "
        "psi_loops_1000 is measured only if it is named",
    )
    add_network(parser)
    add_attestation(parser)
    add_device(parser)
    add_threads(parser, "threads of each party; cores / parties if not given")
    add_json(parser)
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    options = (parsed.only, parsed.protocol, parsed.source, parsed.network)
    one = any(options) or parsed.parties is not None
    settings = (
        [chosen_setting(parsed)] if one else SETTINGS_OF_PROGRAMS if parsed.riscv else SETTINGS
    )

    from tacit.bench.rounds import rounds_by_parties
    from tacit.bench.run import chosen
    from tacit.bench.tables import rounds

    settings = [
        replace(each, attestation=parsed.attestation, device=parsed.device) for each in settings
    ]
    console = output()
    names = chosen(parsed.only.split(",") if parsed.only else [], parsed.riscv)
    entries: list[dict[str, Any]] = []
    for setting in settings:
        _measure(console, setting, names, parsed, entries, () if one or parsed.riscv else NETWORKS)
    if not one and not parsed.riscv:
        console.print(rounds(rounds_by_parties()))


def _measure(
    console: "Console",
    setting: Setting,
    names: list[str],
    parsed: argparse.Namespace,
    entries: list[dict[str, Any]],
    networks: Iterable[str],
) -> None:
    """Measures all cases under one setting, and appends their entries. Those that links can be
    slow for are also measured on each of the networks."""
    from tacit.bench.attested import ATTESTED
    from tacit.bench.checked import CHECKED
    from tacit.bench.compiled import COMPILED
    from tacit.bench.federations import FEDERATIONS
    from tacit.bench.run import measure, serves, slows, takes_hours
    from tacit.bench.services import SERVICES
    from tacit.bench.tables import (
        attested_parties,
        checked_mode,
        compiled_models,
        costs,
        rounds_of_federations,
        services,
    )
    from tacit.meter import verification_lines

    print_threat_model(console, setting)
    first, memory = len(entries), []
    if not parsed.only:
        names = [name for name in names if serves(name, setting)]
    for name in names:
        with console.status(f"{name} ..."):
            entry, peak = measure(name, setting, parsed.threads, parsed.network)
            can_be_slow = slows(name) and not takes_hours(name, setting)
            for network in networks if can_be_slow else ():
                slow, _ = measure(name, setting, parsed.threads, network)
                entry[f"seconds_median_{network}"] = slow["seconds_median"]
        console.print(f"{name}: {entry['seconds_median']:.4f} s")
        for line in verification_lines(entry):
            console.print(f"  {line}")
        entries.append(entry)
        memory.append(peak)
        write_json(parsed.json, entries)
    found = list(zip(entries[first:], memory, strict=True))
    for cases, table in (
        (COMPILED, compiled_models),
        (CHECKED, checked_mode),
        (ATTESTED, attested_parties),
        (SERVICES, services),
    ):
        if of_these := [entry for entry, _ in found if entry["name"] in cases]:
            console.print(table(setting, of_these))
    others = {**COMPILED, **CHECKED, **ATTESTED, **SERVICES, **FEDERATIONS}
    measured = [(entry, peak) for entry, peak in found if entry["name"] not in others]
    if measured:
        console.print(costs(setting, *map(list, zip(*measured, strict=True))))
    federated = [entry for entry, _ in found if entry["name"] in FEDERATIONS]
    if federated:
        console.print(rounds_of_federations(federated))
