"""What a server has before it meets the others: its account, and what all must have alike."""

import json

from tacit.federated.privacy.account import Account, epsilons
from tacit.federated.rounds.settings import mechanism_of
from tacit.federated.rounds.steps import Round
from tacit.federated.service.config import Federation
from tacit.federated.service.round_store import Latest


def alike(federation: Federation, rules: Round) -> bytes:
    """What servers must have alike and no terms say; messages carry its hash. Line ends of
    certificates do not count."""
    entries = {
        "name": federation.name,
        "steps": [type(step).__qualname__ for step in rules.steps],
        "seconds": federation.seconds,
        "clients": federation.clients,
        "certificates": [each.split() for each in federation.certificates_of_clients()],
        "delta": federation.delta,
        "budget": federation.budget,
    }
    return json.dumps(entries, sort_keys=True).encode()


def latest_of(federation: Federation, number: int) -> Latest:
    """The latest round that a server has seen; beside the configuration."""
    return Latest(federation.path.parent / f"server-{number}.round")


def account_of(federation: Federation, number: int) -> Account | None:
    """What is spent, where there is noise; beside the configuration."""
    settings = federation.settings
    if settings.noise is None or settings.sigma is None:
        return None
    mechanism = mechanism_of(settings, federation.delta)
    account = Account(
        federation.path.parent / f"server-{number}.account", mechanism, federation.budget
    )
    # What the next round makes of it: that it can be told is known before anybody is met.
    epsilons(mechanism, account.rounds + 1)
    return account
