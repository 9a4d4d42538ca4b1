"""What the servers of a federation attest, to each other and to clients.

The program of a server is this release of tacit with the federation's rules. Its digest is of the
release and of these rules, so a policy that names it says which rules servers keep: for example how
many clients must count, and which noise is added. All three servers have the same digest, also if
one of them runs a program of its own to train a root. Such a program, and a user's own steps, are
vouched for by the image that evidence measures, as tacit itself is.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from tacit import _core
from tacit.errors import MisuseError, SetupError, cause, setup_error
from tacit.federated.aggregators import AGGREGATORS
from tacit.federated.rounds.round_state import Step
from tacit.federated.rounds.steps import Round
from tacit.federated.service.config import Federation

#: The kind of evidence of trials.
SIMULATED = "simulated"


def rules_of(federation: Federation, steps: Sequence[Step] = ()) -> bytes:
    """Encodes the rules that a federation's servers keep, the same at every server.

    They are the tables ``[round]`` and ``[privacy]``, the number of clients, the content of a
    user's own aggregator, and the names of a user's own steps.

    Args:
        federation: the configuration.
        steps: those of a round; tacit's own do not count, since rules and release determine them.

    Raises:
        MisuseError: there is no file of the user's own aggregator.
    """
    own = [type(step) for step in steps if not type(step).__module__.startswith("tacit.")]
    entries = {
        "settings": vars(federation.settings),
        "aggregator": _content_of(federation.settings.aggregator),
        "seconds": federation.seconds,
        "clients": federation.clients,
        "delta": federation.delta,
        "budget": federation.budget,
        "steps": [step.__qualname__ for step in own],
    }
    return json.dumps(entries, sort_keys=True).encode()


def digest_of(federation: Federation, steps: Sequence[Step] = ()) -> str:
    """Returns the digest of a federation's program, as ``programs`` of a policy names it."""
    return _core.federation_digest(rules_of(federation, steps)).hex()


def attestation_of(federation: Federation, rules: Round) -> "_core.Attestation | None":
    """Returns what a server attests; ``None`` if its file has no table ``[attestation]``.

    Raises:
        SetupError: the policy is wrong, or does not name these rules.
    """
    if federation.attestation is None:
        return None
    encoded = rules_of(federation, rules.steps)
    try:
        return _core.Attestation.of_server(federation.attestation, encoded)
    except SetupError as error:
        said = str(error).removeprefix("setup: ")
        raise setup_error(
            f"{federation.path}: {said}; `tacit attest --program {federation.path}` prints the "
            "digest that programs of [attestation] must have"
        ) from None


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


def _content_of(aggregator: str) -> str | None:
    """Returns the digest of the file with a user's own aggregator; ``None`` for tacit's own."""
    if aggregator in AGGREGATORS:
        return None
    path = Path(aggregator.rpartition(":")[0])
    try:
        return _core.blake3(path.read_bytes())
    except OSError as error:
        raise MisuseError(f"cannot read {path}, the aggregator: {cause(error)}") from None
