"""Protocols, sources of correlations and devices, from the core's lists; there are no others."""

from typing import NamedTuple

from tacit import _core


class Protocol(NamedTuple):
    """A protocol of multi-party computation."""

    name: str
    #: The parties, and how many may collude.
    summary: str
    #: Default number of parties.
    usual_parties: int
    #: Whether it consumes correlations, and so has a source.
    consumes: bool
    #: Whether it keeps values secret.
    is_secret: bool
    #: Whether it serves federations: it takes clients' vectors, and adds noise that no party chose.
    serves_federations: bool


class Source(NamedTuple):
    """A source of correlations."""

    name: str
    #: How correlations are made, as a title.
    title: str
    #: How correlations are made, in a few words more.
    summary: str
    #: Needs in addition to the parties: nothing (""), a "dealer", or a "file" made ahead.
    needs: str
    #: Correlations made by oblivious transfer: none (""), "all", or "all but matrices".
    transfers: str

    @property
    def has_dealer(self) -> bool:
        """Whether a dealer is a member of the session."""
        return self.needs == "dealer"

    @property
    def is_live(self) -> bool:
        """Whether correlations are made while the session lasts."""
        return self.needs != "file"


class Device(NamedTuple):
    """What a party evaluates products on."""

    name: str
    #: What it is, in a few words.
    summary: str


#: All protocols, sources and devices by name, the default first.
PROTOCOLS = {row[0]: Protocol(*row) for row in _core.protocols()}
SOURCES = {row[0]: Source(*row) for row in _core.sources()}
DEVICES = {row[0]: Device(*row) for row in _core.devices()}

#: Default protocol, default source and default device.
DEFAULT = next(iter(PROTOCOLS))
DEFAULT_SOURCE = next(iter(SOURCES))
DEFAULT_DEVICE = next(iter(DEVICES))

#: First protocol that consumes correlations.
CONSUMING = next(protocol.name for protocol in PROTOCOLS.values() if protocol.consumes)

#: The reference protocol, which keeps no secrets, for trial runs.
REFERENCE = next(protocol.name for protocol in PROTOCOLS.values() if not protocol.is_secret)

#: Names of sources that make correlations during the session.
LIVE = [source.name for source in SOURCES.values() if source.is_live]

#: Name of the source that takes the least time and bytes.
QUICKEST = next(
    source.name for source in SOURCES.values() if source.is_live and not source.transfers
)


def consumes(protocol: str) -> bool:
    """Whether a protocol of that name consumes correlations."""
    return protocol in PROTOCOLS and PROTOCOLS[protocol].consumes


def has_dealer(source: str | None) -> bool:
    """Whether a dealer belongs to sessions with that source."""
    return source in SOURCES and SOURCES[source].has_dealer


def transfers_matrices(source: str | None) -> bool:
    """Whether a source makes matrix products by oblivious transfer, which takes gigabytes."""
    return source in SOURCES and SOURCES[source].transfers == "all"


def quoted(names: list[str]) -> str:
    """Joins names in quotes for messages: "a", "b" or "c"."""
    *first, last = [f'"{name}"' for name in names]
    return f"{', '.join(first)} or {last}" if first else last


def described(providers: list[Protocol] | list[Source] | list[Device]) -> str:
    """Describes the available protocols, sources or devices, the default first."""
    told = [f'"{each.name}": {each.summary}' for each in providers]
    told[0] = told[0].replace('":', '" (default):', 1)
    return "; ".join(told)
