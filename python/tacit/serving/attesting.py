"""What the parties of a service attest, to each other and to clients.

The program of a party is this release of tacit with the service's rules: its name, its protocol and
source of correlations, and the content of each model's program. Its digest is of these, so a policy
that names it says which programs may compute on what clients hand in. Weights are their owner's
secret, and no part of it. All parties have the same digest.
"""

import json
from collections.abc import Sequence

from tacit import _core
from tacit.errors import SetupError, setup_error
from tacit.serving.config import Model, Service
from tacit.serving.models import Loaded, digest_of_program


def rules_of(service: Service, programs: Sequence[tuple[Model, str]]) -> bytes:
    """Encodes the rules that a service's parties keep, the same at every party.

    Args:
        service: the configuration.
        programs: its models, each with the digest of its program.
    """
    models = [
        [model.name, model.version, model.owner, model.callable, model.shape, model.dtype, digest]
        for model, digest in programs
    ]
    rules = [service.name, service.protocol, service.source, len(service.parties), models]
    return json.dumps(rules).encode()


def digest_of(service: Service) -> str:
    """Returns the digest of a service's program, as ``programs`` of a policy names it.

    Raises:
        SetupError: a program cannot be read.
    """
    return _core.service_digest(rules_of(service, _programs(service))).hex()


def _programs(service: Service) -> list[tuple[Model, str]]:
    return [(model, digest_of_program(model)) for model in service.models]


def attestation_of(
    service: Service, loaded: Sequence[Loaded] | None = None
) -> "_core.Attestation | None":
    """Returns what a party attests; ``None`` if its file has no table ``[attestation]``.

    Args:
        service: the configuration.
        loaded: the models that the party has read. If not given, their programs are read.

    Raises:
        SetupError: the policy is wrong, or does not name these rules.
    """
    if service.attestation is None:
        return None
    programs = [(each.model, each.digest) for each in loaded or ()]
    rules = rules_of(service, _programs(service) if loaded is None else programs)
    try:
        return _core.Attestation.of_service(service.attestation, rules)
    except SetupError as error:
        said = str(error).removeprefix("setup: ")
        raise setup_error(
            f"{service.path}: {said}; `tacit attest --program {service.path}` prints the digest "
            "that programs of [attestation] must have"
        ) from None


def of_dealer(service: Service) -> "_core.Attestation | None":
    """Returns what the dealer attests; ``None`` if its file has no table ``[attestation]``.

    Raises:
        SetupError: the policy is wrong.
    """
    if service.attestation is None:
        return None
    return _core.Attestation.of_service_dealer(service.attestation)
