"""Under what a case is measured: the protocol, the number of parties, where correlations come from."""

from dataclasses import dataclass

#: Sources of correlations, for people.
SOURCES = {
    None: "",
    "ot": ", oblivious transfer",
    "he": ", homomorphic encryption and oblivious transfer",
    "dealer": " and a dealer",
}


@dataclass(frozen=True)
class Setting:
    """Options of ``tacit.launch``."""

    protocol: str = "replicated"
    parties: int = 3
    source: str | None = None

    @staticmethod
    def of(protocol: str | None, parties: int | None, source: str | None) -> "Setting":
        """What is meant where some of it was not said: three parties, or two by additive sharing, whose
        correlations then come by oblivious transfer."""
        protocol = protocol or "replicated"
        if protocol == "additive":
            return Setting(protocol, parties or 2, source or "ot")
        return Setting(protocol, parties or 3, source)

    @property
    def members(self) -> int:
        """Processes: the parties, and the dealer if there is one."""
        return self.parties + (self.source == "dealer")

    @property
    def title(self) -> str:
        """For people."""
        source = SOURCES[self.source]
        return f"{self.parties} parties, {self.protocol} sharing{source}"


#: What ``tacit bench`` measures when nothing is said.
SETTINGS = (
    Setting(),
    Setting("additive", 2, "ot"),
    Setting("additive", 2, "he"),
    Setting("additive", 2, "dealer"),
    Setting("additive", 3, "dealer"),
)

#: What ``tacit bench --riscv`` measures: in all, online, and three parties.
SETTINGS_OF_PROGRAMS = (Setting("additive", 2, "ot"), Setting("additive", 2, "dealer"), Setting())
