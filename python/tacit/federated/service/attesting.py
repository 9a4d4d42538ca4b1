"""What the servers of a federation attest, to each other and to clients.

The program of a server is this release of tacit with the federation's rules. Its digest is of the
release and of these rules, so a policy that names it says which rules servers keep: for example how
many clients must count, and which noise is added. All three servers have the same digest, also if
one of them runs a program of its own to train a root. Such a program, and the code of a user's own
steps, are vouched for by the image that evidence measures, as tacit itself is.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tacit import _core
from tacit.errors import MisuseError, SetupError, cause, setup_error
from tacit.federated.aggregators import AGGREGATORS, Aggregator
from tacit.federated.privacy.account import Account
from tacit.federated.rounds.round_state import Step
from tacit.federated.rounds.settings import Settings
from tacit.federated.rounds.steps import Combine, Round
from tacit.federated.service.config import Federation

#: The kind of evidence of trials.
SIMULATED = "simulated"


def rules_of(
    federation: Federation, rules: Round | None = None, account: Account | None = None
) -> bytes:
    """Encodes the rules that a federation's servers keep, the same at every server.

    They are the tables ``[round]`` and ``[privacy]``, the number of clients, and the content of a
    user's own aggregator. If a round is not the one that the settings describe, they are also all
    of its steps, in order.

    Args:
        federation: the configuration.
        rules: the round that the server runs; the one that the settings describe if not given.
        account: the server's account, with noise.

    Raises:
        MisuseError: there is no file of the user's own aggregator.
    """
    settings = federation.settings
    entries = {
        "settings": {**vars(settings), "aggregator": _unplaced(settings.aggregator)},
        "aggregator": _content_of(settings.aggregator, rules),
        "seconds": federation.seconds,
        "clients": federation.clients,
        "delta": federation.delta,
        "budget": federation.budget,
        "round": _own_round(federation, rules, account),
    }
    return json.dumps(entries, sort_keys=True).encode()


def digest_of(
    federation: Federation, rules: Round | None = None, account: Account | None = None
) -> str:
    """Returns the digest of a federation's program, as ``programs`` of a policy names it."""
    return _core.federation_digest(rules_of(federation, rules, account)).hex()


def attestation_of(
    federation: Federation, rules: Round, account: Account | None
) -> "_core.Attestation | None":
    """Returns what a server attests; ``None`` if its file has no table ``[attestation]``.

    Raises:
        SetupError: the policy is wrong, or does not name these rules.
    """
    if federation.attestation is None:
        return None
    encoded = rules_of(federation, rules, account)
    try:
        return _core.Attestation.of_server(federation.attestation, encoded)
    except SetupError as error:
        said = str(error).removeprefix("setup: ")
        remedy = (
            f"`tacit attest --program {federation.path}` prints the digest that programs of "
            "[attestation] must have"
            if encoded == rules_of(federation)
            else "this server's round has other steps than its settings describe: if all three "
            "servers mean these, add that digest to programs of [attestation]"
        )
        raise setup_error(f"{federation.path}: {said}; {remedy}") from None


def check_adapted(
    federation: Federation,
    settings: Settings,
    account: Account | None,
    attested: Round,
    adapted: Round,
) -> None:
    """Checks that a round whose bound was adapted is the attested one but for that.

    Args:
        federation: the configuration, with the first bound.
        settings: those of the adapted round.
        account: the server's account, with noise.
        attested: the round with the first bound, of which evidence was made.
        adapted: the new round.

    Raises:
        MisuseError: it has other steps, or its aggregator's file has changed.
    """
    if federation.attestation is None:
        return
    before = _kept(federation, federation.settings, account, attested)
    if before != _kept(federation, settings, account, adapted):
        raise MisuseError(
            "the steps of this round are others than this server attests: the function that makes "
            "rounds, or the file of the aggregator, has changed them; start all servers again"
        )


def _kept(
    federation: Federation, settings: Settings, account: Account | None, rules: Round
) -> tuple[bool, str | None, list[str]]:
    """Returns what stays of a round when its bound is adapted."""
    own = _own_round(replace(federation, settings=settings), rules, account)
    names = [_name_of(type(step)) for step in rules.steps]
    return own is None, _content_of(settings.aggregator, rules), names


def add_trial(config: Path, kind: str) -> None:
    """Adds a table ``[attestation]`` to a file: servers run this release, with these rules.

    Args:
        config: path of the file.
        kind: of the evidence, "simulated".

    Raises:
        MisuseError: another kind, which needs a policy.
        SetupError: the file cannot be written to.
    """
    if kind != SIMULATED:
        raise MisuseError(
            f'attestation {kind!r} is not for servers on one machine: choose "simulated", or set '
            "[attestation] in the federation.toml of servers on their own machines"
        )
    table = {
        "kind": kind,
        "allow_simulated": True,
        "measurements": [_core.simulated_measurement()],
        "programs": [digest_of(Federation.read(config))],
    }
    # JSON's texts, lists and booleans are TOML's.
    entries = [f"{name} = {json.dumps(value)}" for name, value in table.items()]
    try:
        with config.open("a") as file:
            file.write("\n".join(["[attestation]", *entries, ""]))
    except OSError as error:
        raise setup_error(f"cannot write {config}: {cause(error)}") from None


def _own_round(federation: Federation, rules: Round | None, account: Account | None) -> Any:
    """Encodes a round; ``None`` if it is the one that the settings describe."""
    if rules is None:
        return None
    encoded = _encoded(rules)
    usual = Round.of(federation.settings, account, federation.clients)
    return None if encoded == _encoded(usual) else encoded


def _encoded(value: Any) -> Any:
    """Encodes a round or a part of it: types and functions by name, and everything that is set.

    What an account has spent so far is left out, as are values that JSON does not have: they are
    known by their type alone.
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(name): _encoded(each) for name, each in value.items()}
    if isinstance(value, Sequence):
        return [_encoded(each) for each in value]
    if isinstance(value, partial):
        return ["partial", _encoded(value.func), _encoded(value.args), _encoded(value.keywords)]
    if isinstance(value, Account):
        return ["account", _encoded(value.mechanism), value.budget]
    if isinstance(value, Aggregator):
        value = replace(value, name=_unplaced(value.name))
    if is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: getattr(value, each.name) for each in fields(value)}
        return [_name_of(type(value)), _encoded(parts)]
    if isinstance(value, Step):
        return [_name_of(type(value)), _encoded(vars(value))]
    return _name_of(value if hasattr(value, "__qualname__") else type(value))


def _name_of(what: Any) -> str:
    return f"{what.__module__}.{what.__qualname__}"


def _unplaced(aggregator: str) -> str:
    """Returns the name of an aggregator, without the path of a user's own: servers may differ."""
    return aggregator if aggregator in AGGREGATORS else aggregator.rpartition(":")[2]


def _content_of(aggregator: str, rules: Round | None) -> str | None:
    """Returns the digest of the file with a user's own aggregator; ``None`` for tacit's own.

    A round that has loaded the file knows the content that it runs. The file may be another by now.
    """
    if aggregator in AGGREGATORS:
        return None
    for step in () if rules is None else rules.steps:
        if isinstance(step, Combine):
            return step.aggregator.content
    path = Path(aggregator.rpartition(":")[0])
    try:
        return _core.blake3(path.read_bytes())
    except OSError as error:
        raise MisuseError(f"cannot read {path}, the aggregator: {cause(error)}") from None
