"""``service.toml``: the parties, the clients and the models of a service.

    name = "digits"                            # all must have the same
    protocol = "replicated"                    # optional
    source = "ot"                              # optional, of correlations, with "additive"
    timeout = 20                               # optional: longest wait for one message, in seconds

    [[party]]                                  # as many as the protocol takes; the order counts
    address = "alice.example:7400"             # where the other parties reach it
    clients = "alice.example:7500"             # where clients reach it
    listen = "0.0.0.0:7400"                    # optional: where it listens, if elsewhere
    listen_for_clients = "0.0.0.0:7500"        # optional
    status = "127.0.0.1:9400"                  # optional: its page of health and metrics
    certificate = "party-0.pem"                # relative to this file
    key = "party-0.key"                        # optional; only this party needs it; by default next
                                               # to the certificate

    [dealer]                                   # only with source = "dealer"
    address = "dealer.example:7400"
    certificate = "dealer.pem"

    [[client]]
    name = "app"
    certificate = "client-app.pem"
    key = "client-app.key"                     # optional; only this client needs it
    per_minute = 6000                          # optional: requests a minute
    waiting = 64                               # optional: requests that wait at a time

    [[model]]
    name = "lenet"
    version = "1"                              # optional; several may stand here. Clients that name
                                               # no version get the last one
    program = "lenet.tacit"                    # or "FILE.py:CALLABLE", which returns a module
    owner = 0                                  # the party that has the weights
    weights = "lenet.pt"                       # only the owner needs this file
    shape = [1, 1, 28, 28]                     # of one request; not for a compiled program,
    dtype = "float32"                          # which says both itself

    [limits]                                   # optional, as are its entries
    queue = 256                                # requests that wait at a time, of all clients
    batch = 16                                 # requests of one model that are computed together
    wait = 2                                   # milliseconds that a batch waits for each further
                                               # one; ten times that in all, and at most ten times
                                               # that or 500 for clients that were answered just now
    deadline = 30                              # seconds after which a waiting request is refused
    ahead = 1                                  # requests of a compiled program, for which the
                                               # parties have correlations made while nothing runs

    [attestation]                              # optional: parties must attest, to each other and to
                                               # clients; see docs/attestation.md

Parties need the certificates of all parties and clients. A client needs those of the parties, and
its own with its key.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tacit import _core, config_files
from tacit.config_files import NUMBER, Kinds, Reading, document_in, entries
from tacit.errors import MisuseError, TacitError
from tacit.providers import DEFAULT, LIVE, PROTOCOLS

#: The most parties, clients and models of a service.
MOST_PARTIES, MOST_CLIENTS, MOST_MODELS = 64, 1024, 64

#: The most requests that may wait at a party, or be computed together.
MOST_WAITING, MOST_TOGETHER = 65_536, 64

#: The most requests of a client a minute.
MOST_A_MINUTE = 10_000_000

#: The most numbers of one request.
MOST_NUMBERS = 1 << 24

#: The dtypes of inputs.
DTYPES = ("float16", "bfloat16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64")

#: The suffix of a compiled program.
COMPILED = ".tacit"

#: The source of correlations that is a member of its own.
DEALER = "dealer"

#: A name of a client or model, or a version: no character that paths or logs treat specially.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")

#: The command that makes keys and certificates of a service.
MADE_BY = "tacit init service"

_TOP: Kinds = {
    "name": str,
    "protocol": str,
    "source": str,
    "timeout": NUMBER,
    "party": list,
    "dealer": dict,
    "client": list,
    "model": list,
    "limits": dict,
    "attestation": dict,
}
_PARTY: Kinds = {
    "address": str,
    "clients": str,
    "listen": str,
    "listen_for_clients": str,
    "status": str,
    "certificate": str,
    "key": str,
}
_DEALER: Kinds = {"address": str, "listen": str, "certificate": str, "key": str}
_CLIENT: Kinds = {
    "name": str,
    "certificate": str,
    "key": str,
    "per_minute": int,
    "waiting": int,
}
_MODEL: Kinds = {
    "name": str,
    "version": str,
    "program": str,
    "owner": int,
    "weights": str,
    "shape": (list, tuple),
    "dtype": str,
}
_LIMITS: Kinds = {
    "queue": int,
    "batch": int,
    "wait": NUMBER,
    "deadline": NUMBER,
    "ahead": int,
}


@dataclass(frozen=True)
class Member:
    """A party or the dealer: where it is reached and listens, and its certificate and key."""

    address: str
    listen: str
    certificate: Path
    key: Path


@dataclass(frozen=True)
class Party(Member):
    """A party, which clients reach too."""

    clients: str
    listen_for_clients: str
    #: Where it shows its health and metrics, if it does.
    status: str | None


@dataclass(frozen=True)
class Customer:
    """A client, as the file describes it: its name, its certificate, and what it may ask for."""

    name: str
    certificate: Path
    key: Path
    #: Requests a minute.
    per_minute: int
    #: Requests that wait at a time.
    waiting: int


@dataclass(frozen=True)
class Model:
    """A version of a model."""

    name: str
    version: str
    #: A compiled program, or a file of Python.
    program: Path
    #: The name of what returns the module, in a file of Python.
    callable: str | None
    owner: int
    weights: Path | None
    #: The shape and dtype of one request; ``None`` for a compiled program, which says both.
    shape: tuple[int, ...] | None
    dtype: str | None

    @property
    def label(self) -> str:
        """Its name and version, as errors and logs show them."""
        return f"{self.name} {self.version}"


@dataclass(frozen=True)
class Limits:
    """Bounds of the queue and of batches."""

    queue: int = 256
    batch: int = 16
    #: Milliseconds.
    wait: float = 2.0
    #: Seconds.
    deadline: float = 30.0
    #: Requests whose correlations are made while nothing runs.
    ahead: int = 1


@dataclass(frozen=True)
class Service:
    """A checked configuration."""

    path: Path
    name: str
    protocol: str
    source: str | None
    timeout: float
    parties: tuple[Party, ...]
    dealer: Member | None
    clients: tuple[Customer, ...]
    models: tuple[Model, ...]
    limits: Limits
    #: The text of the table ``[attestation]``, if parties attest.
    attestation: str | None

    @staticmethod
    def read(path: str | Path) -> "Service":
        """Reads and checks a file.

        Raises:
            SetupError: what is wrong with it, and where.
        """
        path = Path(path)
        document = document_in(path, "the service's file", "docs/service.md")
        return _Reading(path).service(document)

    @property
    def members(self) -> tuple[Member, ...]:
        """The members of its sessions: the parties, then the dealer if there is one."""
        return (*self.parties, *([] if self.dealer is None else [self.dealer]))

    def party(self, number: int) -> Party:
        """Returns one of the parties.

        Raises:
            MisuseError: there is no such party.
        """
        if not isinstance(number, int) or not 0 <= number < len(self.parties):
            last = len(self.parties) - 1
            raise MisuseError(f"party {number} does not exist: the parties are 0 to {last}")
        return self.parties[number]

    def client(self, name: str | None) -> tuple[int, Customer]:
        """Returns the number and the entries of a client; without a name those of the first.

        Raises:
            MisuseError: there is no such client.
        """
        for number, client in enumerate(self.clients):
            if name is None or client.name == name:
                return number, client
        known = ", ".join(client.name for client in self.clients)
        raise MisuseError(f"{self.path} has no client {name!r}; it has {known}")

    @property
    def judging(self) -> "_core.Attestation | None":
        """What a client judges the parties' evidence by; ``None`` if parties do not attest.

        Raises:
            SetupError: the table, or a file that it names, is wrong.
        """
        return config_files.judging(self.path, self.attestation, service=True)

    def certificates_of_members(self) -> list[str]:
        """Reads the certificates of parties and dealer as PEM texts, in order."""
        names = [*(f"party {at}" for at in range(len(self.parties))), "the dealer"]
        return [
            config_files.certificate_in(member.certificate, name, MADE_BY, is_client=False)
            for member, name in zip(self.members, names, strict=False)
        ]

    def certificates_of_parties(self) -> list[str]:
        """Reads the parties' certificates as PEM texts, in order."""
        return self.certificates_of_members()[: len(self.parties)]

    def certificates_of_clients(self) -> list[str]:
        """Reads the clients' certificates as PEM texts, in order."""
        return [self.certificate_of(client) for client in self.clients]

    def certificate_of(self, client: Customer) -> str:
        """Reads a client's certificate as a PEM text."""
        return config_files.certificate_in(
            client.certificate, f"client {client.name}", MADE_BY, is_client=True
        )


def text_of(
    name: str,
    parties: Sequence[Mapping[str, Any]],
    clients: Sequence[Mapping[str, Any]],
    models: Sequence[Mapping[str, Any]],
    *,
    limits: Mapping[str, Any] | None = None,
    dealer: Mapping[str, Any] | None = None,
    attestation: Mapping[str, Any] | None = None,
    **top: Any,
) -> str:
    """Returns the text of a file that :meth:`Service.read` takes.

    Args:
        name: of the service.
        parties: the tables ``[[party]]``.
        clients: the tables ``[[client]]``.
        models: the tables ``[[model]]``.
        limits: the table ``[limits]``.
        dealer: the table ``[dealer]``.
        attestation: the table ``[attestation]``.
        top: the entries before all tables, besides the name.
    """
    lines = entries({"name": name, **top})
    for kind, tables in (("party", parties), ("client", clients), ("model", models)):
        for table in tables:
            lines += ["", f"[[{kind}]]", *entries(table)]
    for kind, only in (("dealer", dealer), ("limits", limits), ("attestation", attestation)):
        if only is not None:
            lines += ["", f"[{kind}]", *entries(only)]
    return "\n".join(lines) + "\n"


class _Reading(Reading):
    """A file while it is read and checked."""

    def service(self, document: dict[str, Any]) -> Service:
        top = self.table("the file", document, _TOP, ("name", "party", "client", "model"))
        protocol, source = top.get("protocol", DEFAULT), self.source(top)
        limits = self.limits(self.table("[limits]", top.get("limits", {}), _LIMITS))
        for kind, most in (
            ("party", MOST_PARTIES),
            ("client", MOST_CLIENTS),
            ("model", MOST_MODELS),
        ):
            self.count(f"the number of tables [[{kind}]]", len(top[kind]), most)
        parties = tuple(self.party(at, each) for at, each in enumerate(top["party"]))
        # So no client fills the queue by itself.
        share = max(1, limits.queue // len(top["client"]))
        service = Service(
            path=self.path,
            name=top["name"],
            protocol=protocol,
            source=source,
            timeout=self.duration("timeout", top.get("timeout", 20.0)),
            parties=parties,
            dealer=self.dealer(top.get("dealer"), source),
            clients=tuple(self.client(at, each, share) for at, each in enumerate(top["client"])),
            models=tuple(
                self.model(at, each, len(parties)) for at, each in enumerate(top["model"])
            ),
            limits=limits,
            attestation=self.attestation(top.get("attestation")),
        )
        self.check_protocol(service)
        self.distinct("[[client]]: name", [client.name for client in service.clients])
        self.distinct("[[model]]: name and version", [model.label for model in service.models])
        # A policy that is wrong is found before anything is connected.
        _ = service.judging
        return service

    def source(self, top: dict[str, Any]) -> str | None:
        source: str | None = top.get("source")
        if source is not None and source not in LIVE:
            raise self.wrong(f"source = {source!r}; it is one of {', '.join(LIVE)}")
        return source

    def check_protocol(self, service: Service) -> None:
        """Checks that these parties can run the protocol, and that it serves clients."""
        known = PROTOCOLS.get(service.protocol)
        if known is None or not known.is_secret:
            names = ", ".join(name for name, each in PROTOCOLS.items() if each.is_secret)
            raise self.wrong(f"protocol = {service.protocol!r}; it is one of {names}")
        try:
            _core.threat_model(service.protocol, len(service.parties), service.source)
        except TacitError as error:
            raise self.wrong(str(error)) from None

    def party(self, number: int, found: Any) -> Party:
        where = f"[[party]] {number}"
        table = self.table(where, found, _PARTY, ("address", "clients", "certificate"))
        for name in ("address", "clients", "listen", "listen_for_clients", "status"):
            if name in table:
                self.address(f"{where}: {name}", table[name])
        return Party(
            **self.member(table),
            clients=table["clients"],
            listen_for_clients=table.get("listen_for_clients", table["clients"]),
            status=table.get("status"),
        )

    def dealer(self, found: Any, source: str | None) -> Member | None:
        if found is None:
            if source == DEALER:
                raise self.wrong('source = "dealer" needs a table [dealer]')
            return None
        if source != DEALER:
            raise self.wrong('[dealer] without source = "dealer": nobody would ask it')
        table = self.table("[dealer]", found, _DEALER, ("address", "certificate"))
        for name in ("address", "listen"):
            if name in table:
                self.address(f"[dealer]: {name}", table[name])
        return Member(**self.member(table))

    def member(self, table: dict[str, Any]) -> dict[str, Any]:
        return {
            "address": table["address"],
            "listen": table.get("listen", table["address"]),
            **self.identity(table),
        }

    def identity(self, table: dict[str, Any]) -> dict[str, Path]:
        certificate = self.path.parent / table["certificate"]
        key = self.path.parent / table["key"] if "key" in table else certificate.with_suffix(".key")
        return {"certificate": certificate, "key": key}

    def client(self, number: int, found: Any, share: int) -> Customer:
        where = f"[[client]] {number}"
        table = self.table(where, found, _CLIENT, ("name", "certificate"))
        per_minute = table.get("per_minute", MOST_A_MINUTE)
        waiting = table.get("waiting", share)
        return Customer(
            name=self.name(f"{where}: name", table["name"]),
            per_minute=self.count(f"{where}: per_minute", per_minute, MOST_A_MINUTE),
            waiting=self.count(f"{where}: waiting", waiting, MOST_WAITING),
            **self.identity(table),
        )

    def model(self, number: int, found: Any, parties: int) -> Model:
        where = f"[[model]] {number}"
        table = self.table(where, found, _MODEL, ("name", "program", "owner"))
        program, colon, callable_name = table["program"].rpartition(":")
        if not colon:
            program, callable_name = callable_name, ""
        is_compiled = program.endswith(COMPILED)
        if is_compiled == bool(callable_name):
            raise self.wrong(
                f'{where}: program = {table["program"]!r}; it is a compiled program, "FILE.tacit", '
                'or "FILE.py:CALLABLE"'
            )
        if is_compiled == ("shape" in table or "dtype" in table):
            raise self.wrong(
                f"{where}: shape and dtype are for a program in Python, which needs shape; a "
                "compiled program says both itself"
            )
        weights = table.get("weights")
        return Model(
            name=self.name(f"{where}: name", table["name"]),
            version=self.name(f"{where}: version", table.get("version", "1")),
            program=self.path.parent / program,
            callable=callable_name or None,
            owner=self.count(f"{where}: owner", table["owner"], parties - 1, least=0),
            weights=None if weights is None else self.path.parent / weights,
            shape=None if is_compiled else self.shape(where, table.get("shape")),
            dtype=None if is_compiled else self.dtype(where, table.get("dtype", "float32")),
        )

    def shape(self, where: str, found: Any) -> tuple[int, ...]:
        is_right = isinstance(found, list) and all(type(size) is int and size > 0 for size in found)
        if not is_right or not 1 <= len(found) <= 8 or math.prod(found) > MOST_NUMBERS:
            raise self.wrong(
                f"{where}: shape = {found!r}; it is 1 to 8 whole numbers from 1, of at most "
                f"{MOST_NUMBERS} elements in all, as [1, 1, 28, 28]"
            )
        return tuple(found)

    def dtype(self, where: str, found: str) -> str:
        if found not in DTYPES:
            raise self.wrong(f"{where}: dtype = {found!r}; it is one of {', '.join(DTYPES)}")
        return found

    def limits(self, table: dict[str, Any]) -> Limits:
        made = Limits(**{each.name: table.get(each.name, each.default) for each in fields(Limits)})
        self.count("[limits]: queue", made.queue, MOST_WAITING)
        self.count("[limits]: batch", made.batch, MOST_TOGETHER)
        self.duration("[limits]: deadline", made.deadline)
        self.count("[limits]: ahead", made.ahead, made.batch, least=0)
        if not 0 <= made.wait <= 10_000:
            raise self.wrong(f"[limits]: wait = {made.wait}; it is 0 to 10000 milliseconds")
        return made

    def name(self, what: str, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise self.wrong(
                f"{what} = {name!r}; it is up to 64 letters, digits, dots, hyphens and underscores"
            )
        return name

    def distinct(self, what: str, names: Sequence[str]) -> None:
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise self.wrong(f"{what}: {twice[0]} stands there twice")
