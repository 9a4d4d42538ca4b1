"""Under what a case is measured: the protocol, the number of parties, where
correlations come from."""

from dataclasses import dataclass

from tacit.providers import (
    CONSUMING,
    DEFAULT,
    DEFAULT_SOURCE,
    LIVE,
    PROTOCOLS,
    QUICKEST,
    SOURCES,
    consumes,
    has_dealer,
)

#: Parties with a dealer who are measured besides two: their number adds little for those who wait
#: for nobody.
MANY = 3


@dataclass(frozen=True)
class Setting:
    """Options of ``tacit.launch``."""

    protocol: str = DEFAULT
    parties: int = PROTOCOLS[DEFAULT].usual_parties
    source: str | None = None

    @staticmethod
    def of(protocol: str | None, parties: int | None, source: str | None) -> "Setting":
        """What is meant where some of it was not said. The usual protocol is for its number of
        parties alone: where another number is said, the one for any number is meant."""
        if protocol is None:
            protocol = DEFAULT if parties in (None, PROTOCOLS[DEFAULT].usual_parties) else CONSUMING
        parties = parties or PROTOCOLS[protocol].usual_parties
        return Setting(
            protocol, parties, source or DEFAULT_SOURCE if consumes(protocol) else source
        )

    @property
    def members(self) -> int:
        """Processes: the parties, and the dealer if there is one."""
        return self.parties + has_dealer(self.source)

    @property
    def title(self) -> str:
        """For people."""
        source = f", {SOURCES[self.source].title}" if self.source else ""
        return f"{self.parties} parties, {self.protocol} sharing{source}"


#: What ``tacit bench`` measures when nothing is said.
SETTINGS = (
    Setting(),
    *(Setting(CONSUMING, PROTOCOLS[CONSUMING].usual_parties, source) for source in LIVE),
    *(Setting(CONSUMING, MANY, source) for source in LIVE if has_dealer(source)),
)

#: What ``tacit bench --riscv`` measures: in all, online, and three parties.
SETTINGS_OF_PROGRAMS = (
    Setting.of(CONSUMING, None, None),
    Setting.of(CONSUMING, None, QUICKEST),
    Setting(),
)
