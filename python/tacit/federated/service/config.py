"""``federation.toml``: the servers, the clients, and the settings of a round.

    name = "digits"                            # all must have the same
    timeout = 60                               # optional: longest wait for one message, in seconds
    model = "start.pt"                         # optional: the servers' initial parameters

    [[server]]                                 # three of them; the order counts
    address = "alice.example:7400"             # where the other servers reach it
    clients = "alice.example:7500"             # where clients reach it
    listen = "0.0.0.0:7400"                    # optional: where it listens, if elsewhere
    listen_for_clients = "0.0.0.0:7500"        # optional
    certificate = "server-0.pem"               # relative to this file
    key = "server-0.key"                       # optional; only this server needs it; by default
                                               # next to the certificate

    [clients]
    count = 16                                 # clients are numbered from 0
    certificate = "client-{number}.pem"        # optional: the certificate of each client
    authority = "authority.pem"                # optional: clients are those whose certificates this
                                               # authority signed, and at most as many as count
    revoked = "revoked.pem"                    # optional, with an authority: the certificates that
                                               # it revoked; servers read it before each round

    [round]
    seconds = 60                               # the time in which clients may submit
    protocol = "replicated"                    # the servers' protocol; this setting and all others
                                               # are optional: see ``settings``
    aggregator = "fedavg"                      # some take more: attackers, chosen, trimmed, steps
    bound = "refuse"                           # for updates longer than the norm; "clip" clips them
    norm = 3.0
    quantile = 0.5                             # the norm follows this quantile of clients' norms
    quantile_rate = 0.2                        # how fast; with noise, quantile_sigma is needed
    minimum_clients = 2
    enough = 0.75                              # a count or a share of clients that end a round
    word_bits = 64                             # 32 halves the upload of a mean with bound = "none";
                                               # to 16 or 8 clients round
    greatest_value = 3.0                       # with 16 or 8: what an element is cut off at
    checked = false                            # true: servers check that values stay in range
    metrics = ["accuracy"]                     # what each client reports; servers learn the means
    greatest_metric = 1.0                      # the greatest magnitude of these
    evaluate_every = 1                         # after how many rounds clients only report these
    include = ["*lora_*"]                      # names of the tensors that travel; all if not given
    exclude = ["*running_*"]                   # names of tensors that each client keeps for itself

    [attestation]                              # optional: servers must attest, to each other and to
    kind = "tdx"                               # clients; a policy, as in parties.toml

    [privacy]                                  # only with noise and divisor in [round]
    delta = 1e-5
    budget = 8.0                               # optional: the ε against a server that may be spent

Servers need the certificates of all servers and clients, or that of the clients' authority. A
client needs those of the servers and of the authority, and its own with its key.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tacit import _core, config_files
from tacit.config_files import NUMBER, Kinds, Reading, document_in, entries
from tacit.errors import MisuseError, SetupError, cause, setup_error
from tacit.federated.aggregators import described
from tacit.federated.rounds.settings import Settings, check, check_clients, mechanism_of

#: Servers of a federation.
SERVERS = 3

#: Name of the initial parameters next to a file that does not name them.
START = "start.pt"

#: The δ of accounts if a file gives none.
DELTA = 1e-5

#: The most clients of a federation.
MOST_CLIENTS = 4096

#: The most bytes of a certificate, or of a list of them.
LONGEST_TEXT = 1 << 22

_TOP: Kinds = {
    "name": str,
    "timeout": NUMBER,
    "model": str,
    "server": list,
    "clients": dict,
    "round": dict,
    "privacy": dict,
    "attestation": dict,
}
_SERVER: Kinds = {
    "address": str,
    "clients": str,
    "listen": str,
    "listen_for_clients": str,
    "certificate": str,
    "key": str,
}
_CLIENTS: Kinds = {"count": int, "certificate": str, "authority": str, "revoked": str}
_PRIVACY: Kinds = {"delta": NUMBER, "budget": NUMBER}
_KINDS_OF_SETTINGS: dict[str, type | tuple[type, ...]] = {
    "protocol": str,
    "aggregator": str,
    "bound": str,
    "noise": str,
    "result_to": str,
    "chosen": int,
    "steps": int,
    "minimum_clients": int,
    "reveals_single": bool,
    "root": (int, str),
    "coordinator": int,
    "word_bits": int,
    "checked": bool,
    "metrics": (list,),
    "evaluate_every": int,
    "include": (list,),
    "exclude": (list,),
}
_ROUND: Kinds = {
    "seconds": NUMBER,
    **{each.name: _KINDS_OF_SETTINGS.get(each.name, NUMBER) for each in fields(Settings)},
}


@dataclass(frozen=True)
class Server:
    """The entries of a server in the file."""

    address: str
    clients: str
    listen: str
    listen_for_clients: str
    certificate: Path
    key: Path


@dataclass(frozen=True)
class Federation:
    """A checked configuration."""

    path: Path
    name: str
    timeout: float
    servers: tuple[Server, ...]
    clients: int
    seconds: float
    settings: Settings
    delta: float
    budget: float | None
    #: The initial parameters, if the file names them or they are next to it.
    model: Path | None
    #: The text of the table ``[attestation]``, if servers attest.
    attestation: str | None
    #: The certificate of the authority that admits clients, if there is one.
    authority: Path | None
    #: The list of certificates that the authority revoked, if the file names one.
    revoked: Path | None
    _client: str

    @staticmethod
    def read(path: str | Path) -> "Federation":
        """Reads and checks a file.

        Raises:
            SetupError: what is wrong with it, and where.
        """
        path = Path(path)
        document = document_in(path, "the federation's file", "docs/federated.md")
        return _Reading(path).federation(document)

    @property
    def submitting(self) -> int:
        """The number of clients that submit vectors: all but the coordinator."""
        return self.clients - (self.settings.coordinator is not None)

    @property
    def judging(self) -> "_core.Attestation | None":
        """What a client judges the servers' evidence by; ``None`` if servers do not attest.

        Raises:
            SetupError: the table, or a file that it names, is wrong.
        """
        return config_files.judging(self.path, self.attestation, service=False)

    def certificates_of_servers(self) -> list[str]:
        """Reads the servers' certificates as PEM texts, in order."""
        return [
            certificate_in(server.certificate, f"server {number}")
            for number, server in enumerate(self.servers)
        ]

    def certificates_of_clients(self) -> list[str]:
        """Reads the clients' certificates as PEM texts, by number; none if an authority admits
        clients."""
        if self.authority is not None:
            return []
        return [
            certificate_in(self.certificate_of(number), f"client {number}")
            for number in range(self.clients)
        ]

    def certificate_of(self, client: int) -> Path:
        """Returns the path of a client's certificate.

        Raises:
            MisuseError: there is no such client.
        """
        if not isinstance(client, int):
            raise MisuseError(f"the number of a client is a whole number, not {client!r}")
        if not 0 <= client < self.clients:
            raise MisuseError(
                f"client {client} does not exist: the clients are 0 to {self.clients - 1}"
            )
        return self.path.parent / self._client.replace("{number}", str(client))

    def identity_of(self, client: int) -> tuple[str, str]:
        """Reads a client's own certificate and private key, as PEM texts."""
        path = self.certificate_of(client)
        key = _core.read_private_key(str(path.with_suffix(".key")))
        authority = self.authority_text()
        if authority is None:
            return certificate_in(path, f"client {client}"), key
        certificate = text_in(path, f"the certificate of client {client}")
        try:
            _core.check_admission(authority, None, certificate, client)
        except SetupError as error:
            raise setup_error(f"{path}: {str(error).removeprefix('setup: ')}") from None
        return certificate, key

    def authority_text(self) -> str | None:
        """Reads the certificate of the authority that admits clients, as a PEM text.

        Raises:
            SetupError: it cannot be read.
        """
        if self.authority is None:
            return None
        return text_in(self.authority, "the certificate of the clients' authority")

    def revoked_text(self) -> str | None:
        """Reads the list of revoked certificates, as a PEM text.

        Raises:
            SetupError: it cannot be read.
        """
        if self.revoked is None:
            return None
        return text_in(self.revoked, "the list of revoked certificates")

    def server(self, number: int) -> Server:
        """Returns one of the servers.

        Raises:
            MisuseError: there is no such server.
        """
        if not isinstance(number, int):
            raise MisuseError(f"the number of a server is a whole number, not {number!r}")
        if not 0 <= number < SERVERS:
            raise MisuseError(f"server {number} does not exist: the servers are 0 to {SERVERS - 1}")
        return self.servers[number]


def text_of(
    name: str,
    addresses: Sequence[tuple[str, str]],
    clients: int,
    settings: Settings,
    *,
    seconds: float = 60.0,
    timeout: float = 60.0,
    privacy: Mapping[str, float] | None = None,
) -> str:
    """Returns the text of a file that :meth:`Federation.read` takes.

    Its certificates are next to it, as ``tacit federated certificates`` makes them.

    Args:
        name: of the federation.
        addresses: of each server: where the other servers reach it, and where clients do.
        clients: their number.
        settings: of the rounds.
        seconds: the time in which clients may submit.
        timeout: longest wait for one message, in seconds.
        privacy: the table of that name.
    """
    lines = [*entries({"name": name, "timeout": timeout})]
    for number, (address, for_clients) in enumerate(addresses):
        server = {"address": address, "clients": for_clients, "certificate": f"server-{number}.pem"}
        lines += ["[[server]]", *entries(server)]
    lines += ["[clients]", *entries({"count": clients})]
    lines += ["[round]", *entries({"seconds": seconds, **vars(settings)})]
    if privacy is not None:
        lines += ["[privacy]", *entries(privacy)]
    return "\n".join(lines) + "\n"


class _Reading(Reading):
    """A file while it is read and checked."""

    def federation(self, document: dict[str, Any]) -> Federation:
        top = self.table("the file", document, _TOP, ("name", "server", "clients"))
        servers = tuple(self.server(number, each) for number, each in enumerate(top["server"]))
        if len(servers) != SERVERS:
            raise self.wrong(f"{len(servers)} [[server]] tables; a federation has {SERVERS}")
        clients = self.table("[clients]", top["clients"], _CLIENTS, ("count",))
        if not 1 <= clients["count"] <= MOST_CLIENTS:
            raise self.wrong(
                f"[clients]: count = {clients['count']}; a federation has 1 to {MOST_CLIENTS}"
            )
        certificate = clients.get("certificate", "client-{number}.pem")
        if clients["count"] > 1 and "{number}" not in certificate:
            raise self.wrong(
                '[clients]: certificate holds "{number}", which stands for each client\'s'
            )
        if "revoked" in clients and "authority" not in clients:
            raise self.wrong("[clients]: revoked without authority, whose certificates it lists")
        rounds = dict(self.table("[round]", top.get("round", {}), _ROUND))
        if "authority" in clients and isinstance(rounds.get("enough"), float):
            raise self.wrong(
                f"[round]: enough = {rounds['enough']}, a share, with an authority, whose clients "
                "join and leave: it is a count of clients, such as 12"
            )
        privacy = self.table("[privacy]", top.get("privacy", {}), _PRIVACY)
        seconds = rounds.pop("seconds", 60.0)
        self.duration("[round]: seconds", seconds)
        timeout = top.get("timeout", 60.0)
        self.duration("timeout", timeout)
        settings = self.settings(rounds, clients["count"])
        self.privacy("privacy" in top, privacy, settings)
        federation = Federation(
            path=self.path,
            name=top["name"],
            timeout=float(timeout),
            servers=servers,
            clients=clients["count"],
            seconds=float(seconds),
            settings=settings,
            delta=privacy.get("delta", DELTA),
            budget=privacy.get("budget"),
            model=self.model(top.get("model")),
            attestation=self.attestation(top.get("attestation")),
            authority=self.beside(clients.get("authority")),
            revoked=self.beside(clients.get("revoked")),
            _client=certificate,
        )
        # A policy that is wrong is found before anything is connected.
        _ = federation.judging
        return federation

    def privacy(self, is_wanted: bool, privacy: dict[str, Any], settings: Settings) -> None:
        """Checks that the account has what it needs, and that no unused guarantee is stated."""
        if is_wanted and settings.noise is None:
            raise self.wrong("[privacy] without noise in [round]: nothing would be hidden by it")
        budget = privacy.get("budget")
        if budget is not None and not 0 < budget < math.inf:
            raise self.wrong(
                f"[privacy]: budget = {budget}; it is an ε above 0, of all rounds together"
            )
        if settings.noise is None or settings.sigma is None:
            return
        try:
            mechanism_of(settings, privacy.get("delta", DELTA))
        except MisuseError as error:
            where = "[privacy]" if str(error).startswith("δ") else "[round]"
            raise self.wrong(f"{where}: {error}") from None

    def settings(self, rounds: dict[str, Any], clients: int) -> Settings:
        """Returns the settings of a round, after checking that they are possible and hide
        clients."""
        lists = {name: tuple(each) for name, each in rounds.items() if isinstance(each, list)}
        settings = Settings(**{**rounds, **lists})
        try:
            chosen = described(settings.aggregator)
            check(settings, chosen)
            check_clients(settings, chosen, clients)
        except MisuseError as error:
            raise self.wrong(f"[round]: {error}") from None
        return settings

    def server(self, number: int, found: Any) -> Server:
        table = self.table(
            f"[[server]] {number}", found, _SERVER, ("address", "clients", "certificate")
        )
        for name in ("address", "clients", "listen", "listen_for_clients"):
            if name in table:
                self.address(f"[[server]] {number}: {name}", table[name])
        certificate = self.path.parent / table["certificate"]
        return Server(
            address=table["address"],
            clients=table["clients"],
            listen=table.get("listen", table["address"]),
            listen_for_clients=table.get("listen_for_clients", table["clients"]),
            certificate=certificate,
            key=self.path.parent / table["key"]
            if "key" in table
            else certificate.with_suffix(".key"),
        )

    def beside(self, named: str | None) -> Path | None:
        """Returns the path of a file that is named relative to this one."""
        return None if named is None else self.path.parent / named

    def model(self, named: str | None) -> Path | None:
        """Returns the path of the initial parameters, if there is one; only servers need them."""
        if named is not None:
            return self.path.parent / named
        beside = self.path.parent / START
        return beside if beside.exists() else None


def text_in(path: Path, what: str) -> str:
    """Reads a short text, which an error calls ``what``.

    Raises:
        SetupError: it cannot be read, or is no text.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LONGEST_TEXT + 1)
        if len(content) <= LONGEST_TEXT:
            return content.decode()
        reason = f"it has more than {LONGEST_TEXT} bytes"
    except OSError as error:
        reason = cause(error)
    except UnicodeDecodeError:
        reason = "it is no text"
    raise setup_error(f"cannot read {path}, {what}: {reason}")


def certificate_in(path: Path, whose: str) -> str:
    """Reads the certificate of a server or a client as a PEM text, and checks it as links do.

    Its dates are not checked.

    Raises:
        SetupError: it cannot be read, or is of a kind that every peer refuses.
    """
    return config_files.certificate_in(
        path, whose, "tacit federated certificates", is_client=whose.startswith("client")
    )
