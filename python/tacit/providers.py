"""Protocols and sources of correlations, as the core lists them: nothing else has a list of its
own."""

from typing import NamedTuple

from tacit import _core


class Protocol(NamedTuple):
    """A protocol."""

    name: str
    #: Who takes part, and who may collude.
    summary: str
    #: How many parties there are where nobody says how many.
    usual_parties: int
    #: Whether it consumes correlations, and so has a source.
    consumes: bool
    #: Whether it keeps anything secret.
    is_secret: bool
    #: Whether it serves federations: their clients' vectors, and noise that no party chooses.
    serves_federations: bool


class Source(NamedTuple):
    """A source of correlations."""

    name: str
    #: How they are made, as a title has it, and in a few words more.
    title: str
    summary: str
    #: Besides the parties: nothing (""), a "dealer", or a "file" made ahead.
    needs: str
    #: What it makes by oblivious transfer: nothing (""), "all", or "all but matrices".
    transfers: str

    @property
    def has_dealer(self) -> bool:
        """Whether a dealer is a member of the session."""
        return self.needs == "dealer"

    @property
    def is_live(self) -> bool:
        """Whether correlations are made while the session lasts."""
        return self.needs != "file"


#: By name, the default first.
PROTOCOLS = {row[0]: Protocol(*row) for row in _core.protocols()}
SOURCES = {row[0]: Source(*row) for row in _core.sources()}

#: What is meant where nothing is said.
DEFAULT = next(iter(PROTOCOLS))
DEFAULT_SOURCE = next(iter(SOURCES))

#: The first that consumes correlations.
CONSUMING = next(protocol.name for protocol in PROTOCOLS.values() if protocol.consumes)

#: Keeps no secrets: for trials.
REFERENCE = next(protocol.name for protocol in PROTOCOLS.values() if not protocol.is_secret)

#: Those whose correlations are made while a session lasts, by name.
LIVE = [source.name for source in SOURCES.values() if source.is_live]

#: The one that takes the least time and bytes.
QUICKEST = next(
    source.name for source in SOURCES.values() if source.is_live and not source.transfers
)


def consumes(protocol: str) -> bool:
    """Whether a protocol of that name consumes correlations."""
    return protocol in PROTOCOLS and PROTOCOLS[protocol].consumes


def rehearsed(protocol: str, source: str | None) -> str | None:
    """The source in a rehearsal: what is sent online is the same for every one, and one takes least
    time."""
    return source or QUICKEST if consumes(protocol) else source


def has_dealer(source: str | None) -> bool:
    """Whether a dealer belongs to sessions with that source."""
    return source in SOURCES and SOURCES[source].has_dealer


def transfers_matrices(source: str | None) -> bool:
    """Whether that source makes products of matrices by oblivious transfer,
    which takes gigabytes."""
    return source in SOURCES and SOURCES[source].transfers == "all"


def quoted(names: list[str]) -> str:
    """Names for people: such as "a", "b" or "c"."""
    *first, last = [f'"{name}"' for name in names]
    return f"{', '.join(first)} or {last}" if first else last


def described(providers: list[Protocol] | list[Source]) -> str:
    """What there is to choose from, the default first."""
    told = [f'"{each.name}": {each.summary}' for each in providers]
    told[0] = told[0].replace('":', '" (default):', 1)
    return "; ".join(told)
