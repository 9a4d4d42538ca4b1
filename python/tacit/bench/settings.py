"""Settings of a measurement: the protocol, the number of parties, and the source of
correlations."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tacit
from tacit.providers import (
    CONSUMING,
    DEFAULT,
    DEFAULT_DEVICE,
    DEFAULT_SOURCE,
    LIVE,
    PROTOCOLS,
    QUICKEST,
    SOURCES,
    consumes,
    has_dealer,
)

#: Number of parties with a dealer that are measured in addition to two. More parties add little for
#: those that wait for nobody.
MANY = 3

#: The transport between the parties.
TRANSPORT = "tcp"


@dataclass(frozen=True)
class Setting:
    """Setting of a measurement: options of ``tacit.launch``."""

    protocol: str = DEFAULT
    parties: int = PROTOCOLS[DEFAULT].usual_parties
    source: str | None = None
    attestation: str | None = None
    device: str = DEFAULT_DEVICE
    transport: str = TRANSPORT

    @staticmethod
    def of(protocol: str | None, parties: int | None, source: str | None) -> "Setting":
        """Completes a setting of which parts are missing.

        The default protocol is for its own number of parties alone. If another number is given, the
        default is the protocol for any number."""
        if protocol is None:
            protocol = DEFAULT if parties in (None, PROTOCOLS[DEFAULT].usual_parties) else CONSUMING
        parties = parties or PROTOCOLS[protocol].usual_parties
        return Setting(
            protocol, parties, source or DEFAULT_SOURCE if consumes(protocol) else source
        )

    @property
    def members(self) -> int:
        """Number of processes: the parties, and the dealer if there is one."""
        return self.parties + has_dealer(self.source)

    @property
    def entry(self) -> dict[str, Any]:
        """What a report has of the setting in each of its entries."""
        return {
            "protocol": self.protocol,
            "parties": self.parties,
            "source": self.source,
            "transport": self.transport,
            "device": self.device,
        }

    def threads(self, wanted: int | None) -> int:
        """Returns the number of threads of each process: its share of this machine if not given."""
        processes = 1 if self.transport == "memory" else self.members
        return wanted or max(1, (os.cpu_count() or 1) // processes)

    def launch(
        self,
        work: Callable[..., Any],
        *given: Any,
        threads: int,
        timeout: float,
        network: str | None = None,
    ) -> list[Any]:
        """Runs each party's part in a session of this setting, and returns what the parties tell.

        Args:
            work: a party's part.
            given: its arguments.
            threads: the number of threads of each party.
            timeout: the longest wait for one message, in seconds.
            network: a network that links imitate, as ``tacit.launch`` takes it.
        """
        return tacit.launch(
            work,
            *given,
            parties=self.parties,
            protocol=self.protocol,
            source=self.source,
            transport=self.transport,
            timeout=timeout,
            threads=threads,
            network=network,
            attestation=self.attestation,
            device=self.device,
        )

    @property
    def title(self) -> str:
        """Title of the setting in reports."""
        source = f", {SOURCES[self.source].title}" if self.source else ""
        attested = f", attested ({self.attestation})" if self.attestation else ""
        on = f", on {self.device}" if self.device != DEFAULT_DEVICE else ""
        return f"{self.parties} parties, {self.protocol} sharing{source}{attested}{on}"


#: Settings that ``tacit bench`` measures by default.
SETTINGS = (
    Setting(),
    *(Setting(CONSUMING, PROTOCOLS[CONSUMING].usual_parties, source) for source in LIVE),
    *(Setting(CONSUMING, MANY, source) for source in LIVE if has_dealer(source)),
)

#: Settings that ``tacit bench --riscv`` measures: the whole cost, the online cost, and three
#: parties.
SETTINGS_OF_PROGRAMS = (
    Setting.of(CONSUMING, None, None),
    Setting.of(CONSUMING, None, QUICKEST),
    Setting(),
)
