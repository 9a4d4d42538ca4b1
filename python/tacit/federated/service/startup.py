"""What a server prepares before it connects to the others: its account, and shared parameters."""

import json

from tacit import _core
from tacit.errors import SetupError, setup_error
from tacit.federated.privacy.account import Account, epsilons
from tacit.federated.rounds.settings import mechanism_of
from tacit.federated.rounds.steps import Round
from tacit.federated.service.config import Federation
from tacit.federated.service.part_store import Parts
from tacit.federated.service.round_store import Latest


def common_configuration(federation: Federation, rules: Round) -> bytes:
    """Returns what must be the same at all servers and is not part of the terms, as bytes.

    Messages carry its hash. Line ends of certificates do not count.
    """
    entries = {
        "name": federation.name,
        "steps": [type(step).__qualname__ for step in rules.steps],
        "seconds": federation.seconds,
        "clients": federation.clients,
        "certificates": [each.split() for each in federation.certificates_of_clients()],
        "authority": (federation.authority_text() or "").split(),
        "delta": federation.delta,
        "budget": federation.budget,
    }
    return json.dumps(entries, sort_keys=True).encode()


def latest_of(federation: Federation, number: int) -> Latest:
    """Opens the file with the latest round that a server has seen, next to the configuration."""
    return Latest(federation.path.parent / f"server-{number}.round")


def parts_of(federation: Federation, number: int) -> Parts | None:
    """Opens the file with a server's part of the last result, next to the configuration.

    ``None`` if servers know the result, or a coordinator has it: it repeats a round that failed.
    """
    settings = federation.settings
    if settings.result_to != "clients" or settings.coordinator is not None:
        return None
    return Parts(federation.path.parent / f"server-{number}.part", number)


def account_of(federation: Federation, number: int) -> Account | None:
    """Opens a server's account, next to the configuration; ``None`` if there is no noise."""
    settings = federation.settings
    if settings.noise is None or settings.sigma is None:
        return None
    mechanism = mechanism_of(settings, federation.delta)
    account = Account(
        federation.path.parent / f"server-{number}.account", mechanism, federation.budget
    )
    # Computes the ε after the next round, so that a mechanism that cannot be accounted for is
    # reported before connecting.
    epsilons(mechanism, account.rounds + 1)
    return account


def intake_of(
    federation: Federation,
    number: int,
    listener: _core.Listener,
    key: str,
    attestation: "_core.Attestation | None",
) -> _core.Intake:
    """Opens the intake of a server, for the clients that its file names or an authority admits.

    Raises:
        SetupError: a certificate, or the list of revoked ones, is wrong.
    """
    authority = federation.authority_text()
    intake = _core.Intake(
        listener,
        federation.name,
        federation.certificates_of_servers(),
        number,
        key,
        federation.certificates_of_clients(),
        attestation,
        None if authority is None else (authority, federation.clients),
    )
    revoke(intake, federation)
    return intake


def revoke(intake: _core.Intake, federation: Federation) -> None:
    """Reads the list of revoked certificates again, so that it counts from now on.

    Raises:
        SetupError: it cannot be read, or is not the authority's.
    """
    if federation.revoked is None:
        return
    try:
        intake.revoke(federation.revoked_text())
    except SetupError as error:
        raise setup_error(f"{federation.revoked}: {str(error).removeprefix('setup: ')}") from None
