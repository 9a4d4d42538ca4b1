"""What ``tacit doctor`` examines of a service."""

from collections.abc import Iterator

from tacit import _core
from tacit.errors import TacitError
from tacit.serving.attesting import attestation_of
from tacit.serving.config import Party, Service
from tacit.serving.status import ask_ready

#: A check: what was examined, whether it is right, a detail, and a remedy or nothing.
Found = tuple[str, bool, str, str]

#: Hosts that stand for all addresses of a machine.
_ANY = ("0.0.0.0", "[::]")


def examine(config: str, party: int | None, wait: float) -> list[Found]:
    """Examines a service for one of its parties, or for none of them.

    Args:
        config: path of the service's file.
        party: who examines. Its key is read, and its status page alone is asked.
        wait: seconds for each status page.

    Raises:
        MisuseError: there is no such party.
    """
    try:
        service = Service.read(config)
    except TacitError as error:
        return [(config, False, str(error), "")]
    if party is not None:
        service.party(party)
    models = ", ".join(model.label for model in service.models)
    return [
        (config, True, f"{len(service.parties)} parties, {service.protocol}: {models}", ""),
        *_attestation(service, party),
        *_certificates(service),
        *_keys(service, party),
        *(
            _readiness(number, each, wait)
            for number, each in enumerate(service.parties)
            if party in (None, number)
        ),
    ]


def _attestation(service: Service, party: int | None) -> Iterator[Found]:
    """Checks that the policy names what the parties run, and accepts a party's own machine."""
    if service.attestation is None:
        return
    try:
        attested = attestation_of(service)
        assert attested is not None
    except TacitError as error:
        yield "program", False, str(error), ""
    else:
        yield "program", True, "the policy names these models", ""
        if party is not None:
            yield _machine(attested)
        yield "threat model", True, _core.attestation_model(attested.kind), ""


def _machine(attested: _core.Attestation) -> Found:
    try:
        return "attestation", True, f"{attested.kind}, firmware {attested.examine()}", ""
    except TacitError as error:
        return "attestation", False, str(error), ""


def _certificates(service: Service) -> Iterator[Found]:
    try:
        service.certificates_of_members()
        service.certificates_of_clients()
    except TacitError as error:
        yield "certificates", False, str(error), ""
    else:
        count = len(service.members) + len(service.clients)
        yield "certificates", True, f"all {count} can be read", ""


def _keys(service: Service, party: int | None) -> Iterator[Found]:
    if party is None:
        return
    key = service.party(party).key
    try:
        _core.read_private_key(str(key))
    except TacitError as error:
        yield "key", False, str(error), ""
    else:
        yield "key", True, str(key), ""


def _readiness(number: int, party: Party, wait: float) -> Found:
    """Asks a party's status page whether it is in a session."""
    what = f"party {number}"
    if party.status is None:
        return what, True, "not asked: the file names no status page for it", ""
    host, _, port = party.status.rpartition(":")
    if host in _ANY:
        host = party.address.rpartition(":")[0]
    is_ready, said = ask_ready(f"{host}:{port}", wait)
    if is_ready:
        return what, True, "ready", ""
    return what, False, said, "start it, and read its log"
