"""Networks between parties, which links on one machine imitate and costs are predicted for."""

import math
from dataclasses import dataclass

from tacit.errors import MisuseError

#: Longest round trip, in milliseconds.
MOST = 60_000.0


@dataclass(frozen=True)
class Network:
    """Network between the parties."""

    #: Seconds for a message there and one back.
    round_trip: float
    #: Bytes a second that a party can send to all others together.
    bandwidth: float

    @staticmethod
    def of(text: str) -> "Network":
        """Returns the network of a name in ``NETWORKS``, or of ``RTT,MBIT``.

        RTT is the round trip in milliseconds, MBIT the bandwidth in megabits a second.

        Raises:
            MisuseError: the text is neither.
        """
        try:
            round_trip, megabits = (float(number) for number in NETWORKS.get(text, text).split(","))
        except ValueError:
            round_trip = megabits = -1.0
        if not (0 <= round_trip <= MOST and 0 < megabits < math.inf):
            raise MisuseError(
                f"{text!r} is no network: write lan, wan, or RTT,MBIT, which are milliseconds of a "
                f"round trip and megabits a second, "
                f"such as 20,100, with at most {MOST / 1e3:g} s of a round trip"
            )
        return Network(round_trip / 1e3, megabits * 1e6 / 8)

    def seconds(self, rounds: int, sent: int) -> float:
        """Returns the seconds that messages take.

        Each round waits for one message to arrive, which takes half a round trip.
        """
        return rounds * self.round_trip / 2 + sent / self.bandwidth

    def __str__(self) -> str:
        return f"{self.round_trip * 1e3:g} ms round trip, {self.bandwidth * 8 / 1e6:g} Mbit/s"


#: Networks by name: within a building, and between two cities.
NETWORKS = {"lan": "1,1000", "wan": "40,100"}


def imitated(network: str | None) -> tuple[float, float] | None:
    """Returns a network as links imitate it: the round trip in seconds, and bytes a second."""
    if network is None:
        return None
    found = Network.of(network)
    return found.round_trip, found.bandwidth
