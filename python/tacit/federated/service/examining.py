"""The checks of ``tacit doctor`` for a federation.

They cover its file, certificates and keys, what a server keeps, and who can be reached. Servers are
parties to each other, and are examined as such."""

import json
import socket
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tacit import _core
from tacit.errors import SetupError, TacitError, cause
from tacit.federated.rounds.settings import mechanism_of
from tacit.federated.service.attesting import rules_of
from tacit.federated.service.config import Federation, certificate_in
from tacit.federated.service.startup import account_of, latest_of

#: Seconds for checks that connect to no one.
LITTLE = 0.1


class Found(NamedTuple):
    """The result of one check, with a remedy if it failed."""

    check: str
    ok: bool
    detail: str
    remedy: str = ""


class Member(NamedTuple):
    """A party of the session in which something is examined."""

    address: str
    certificate: Path
    key: Path | None = None


def examine(config: str, server: int | None, client: int | None, wait: float) -> list[Found]:
    """Runs all checks of a federation's file, and those of one of its members if one is given.

    Args:
        config: path of the federation's file.
        server: the number of the server as which it is run, if any.
        client: the number of the client as which it is run, if any.
        wait: seconds in which that member tries to reach the others.

    Raises:
        MisuseError: there is no such server or client.
    """
    try:
        federation = Federation.read(config)
    except TacitError as error:
        return [
            Found(
                "configuration", False, str(error), "correct it; docs/federated.md has an example"
            )
        ]
    found = [Found("configuration", True, _summary(federation)), *_attestation(federation)]
    if server is not None:
        federation.server(server)
    servers = [
        (f"server {at}", each.certificate, each.key) for at, each in enumerate(federation.servers)
    ]
    # Servers need no certificate of a client that an authority admits.
    pinned = [] if federation.authority is not None else range(federation.clients)
    clients = [
        (f"client {at}", certificate, certificate.with_suffix(".key"))
        for at in ([client] if client is not None and pinned else pinned)
        for certificate in [federation.certificate_of(at)]
    ]
    own = (
        None
        if server is None and client is None
        else f"client {client}"
        if server is None
        else f"server {server}"
    )
    with tempfile.TemporaryDirectory() as folder:
        _core.write_certificates(["examined-by"], folder)
        other = Path(folder) / "examined-by.pem"
        for name, certificate, key in [*servers, *clients]:
            found += _files(name, certificate, key if key.exists() or name == own else None, other)
        if federation.authority is not None:
            found += _admission(federation, server, client)
        if server is not None:
            found += _as_server(federation, server, wait)
    if client is not None:
        found += [_reached(at, each.clients, wait) for at, each in enumerate(federation.servers)]
    return found


def _summary(federation: Federation) -> str:
    settings = federation.settings
    noise = (
        ""
        if settings.sigma is None
        else f", noise of {mechanism_of(settings, federation.delta).noise_to_server:g}"
    )
    return (
        f"{federation.name}: {federation.clients} clients, {settings.aggregator}{noise}; "
        f"{federation.seconds:g} s for what clients hand in, timeout {federation.timeout:g} s"
    )


def _attestation(federation: Federation) -> list[Found]:
    """Checks that the policy names the program of the servers."""
    if federation.attestation is None:
        return []
    try:
        rules = rules_of(federation)
        kind = _core.Attestation.of_server(federation.attestation, rules).kind
    except TacitError as error:
        remedy = "if servers have steps of their own, ignore this; else correct programs"
        return [Found("program", False, str(error), remedy)]
    return [
        Found("program", True, "the policy names these rules"),
        Found("threat model", True, _core.attestation_model(kind)),
    ]


def _files(name: str, certificate: Path, key: Path | None, other: Path) -> list[Found]:
    """Checks a member's certificate, and its key if that is here."""
    check = f"certificate of {name}"
    try:
        certificate_in(certificate, name)
    except SetupError as error:
        detail, _, remedy = str(error).partition("; ")
        return [Found(check, False, detail.removeprefix("setup: "), remedy)]
    here = Member("127.0.0.1:1", other, other.with_suffix(".key"))
    checks = _session([here, Member("127.0.0.1:2", certificate.absolute())], None, LITTLE)
    dates = checks["certificate of party 1"]
    if not dates.ok:
        return [Found(check, False, f"{certificate}: {dates.detail}", _federated(dates.remedy))]
    found = [Found(check, True, dates.detail)]
    if key is not None:
        members = [
            Member("127.0.0.1:1", certificate.absolute(), key.absolute()),
            Member("127.0.0.1:2", other),
        ]
        fits = _session(members, None, LITTLE)["key of party 0"]
        detail = fits.detail if fits.ok else f"{key}: {_unnamed(fits.detail)}"
        found.append(Found(f"key of {name}", fits.ok, detail, _federated(fits.remedy)))
    return found


def _admission(federation: Federation, server: int | None, client: int | None) -> list[Found]:
    """Checks the clients' authority, its list of revoked certificates at a server, and the
    certificate and key of a client."""
    found = []

    def check(name: str, ok: str, check: Callable[[], object]) -> None:
        try:
            check()
            found.append(Found(name, True, ok))
        except SetupError as error:
            detail, _, remedy = str(error).partition("; ")
            found.append(Found(name, False, detail.removeprefix("setup: "), remedy))

    def authority() -> str:
        text = federation.authority_text()
        assert text is not None
        return text

    check(
        "clients' authority",
        f"{federation.authority} can admit clients",
        lambda: _core.check_admission(authority()),
    )
    if server is not None and federation.revoked is not None:
        check(
            "revoked certificates",
            f"{federation.revoked} is the authority's",
            lambda: _core.check_admission(authority(), federation.revoked_text()),
        )
    if client is not None:
        check(
            f"certificate and key of client {client}",
            "the authority admits it",
            lambda: _usable(federation, client),
        )
    return found


def _usable(federation: Federation, client: int) -> None:
    """Raises what is wrong with the certificate or the key of a client that an authority admits."""
    certificate, key = federation.identity_of(client)
    addresses = [server.clients for server in federation.servers]
    servers = federation.certificates_of_servers()
    authority = federation.authority_text()
    _core.Client(federation.name, servers, addresses, client, certificate, key, None, authority)


def _as_server(federation: Federation, number: int, wait: float) -> list[Found]:
    """Checks what a server keeps, where it listens, and which of the other servers it reaches."""
    found = []
    own = federation.server(number)
    for check, file in (("latest round", latest_of), ("account", account_of)):
        try:
            kept = file(federation, number)
            if kept is not None:
                found.append(Found(check, True, f"{kept.path} can be gone on from"))
        except TacitError as error:
            found.append(Found(check, False, str(error)))
    members = [
        Member(
            each.address, each.certificate.absolute(), each.key.absolute() if at == number else None
        )
        for at, each in enumerate(federation.servers)
    ]
    for check, each in _session(
        members,
        number,
        wait,
        own.listen,
        federation.settings.protocol,
        servers=True,
        attestation=federation.attestation,
    ).items():
        if check.startswith(("listening", "attestation", "address", "server", "clock")):
            found.append(Found(check, each.ok, each.detail, _federated(each.remedy)))
    try:
        listener = _core.Listener(own.listen_for_clients)
        found.append(Found("listening for clients", True, f"can, on {listener.address}"))
    except TacitError as error:
        found.append(Found("listening for clients", False, str(error)))
    return found


def _reached(server: int, address: str, wait: float) -> Found:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), max(wait, 0.1)).close()
    except ConnectionRefusedError:
        return Found(
            f"server {server}", True, f"its machine answers; nobody listens at {address} yet"
        )
    except OSError as error:
        return Found(
            f"server {server}",
            False,
            f"nothing answers at {address}: {cause(error)}",
            "check the address, the firewalls and the network between",
        )
    return Found(f"server {server}", True, f"listens at {address}")


def _session(
    members: Sequence[Member],
    own: int | None,
    wait: float,
    listen: str | None = None,
    protocol: str = "additive",
    *,
    servers: bool = False,
    attestation: str | None = None,
) -> dict[str, Found]:
    """Examines a session of these members.

    Returns:
        The results, by name of the check. They call the members servers, or parties.
    """
    lines = [f"protocol = {json.dumps(protocol)}"]
    for at, member in enumerate(members):
        entries = {"address": member.address, "certificate": str(member.certificate)}
        if at == own and listen is not None:
            entries["listen"] = listen
        entries["key"] = str(member.key or member.certificate.with_suffix(".none"))
        lines += [
            "[[party]]",
            *(f"{name} = {json.dumps(value)}" for name, value in entries.items()),
        ]
    if attestation is not None:
        lines += ["[attestation]", attestation]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "parties.toml"
        path.write_text("\n".join(lines))
        return {
            each[0]: Found(*each) for each in _core.examine(str(path), own, False, wait, servers)
        }


def _unnamed(detail: str) -> str:
    """Removes the number that a member has in the session that examines it."""
    return detail.replace("of party 0", "here").replace("of party 1", "here")


def _federated(remedy: str) -> str:
    return remedy.replace("`tacit certificates`", "`tacit federated certificates`")
