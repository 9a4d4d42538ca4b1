"""What servers tell clients of a round, who sign it: the settings that their halves of the steps
need."""

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from tacit.errors import MisuseError, PeerError, peer_error
from tacit.federated.rounds import width
from tacit.federated.rounds.settings import Settings
from tacit.federated.rounds.states import DIGITS


@dataclass(frozen=True)
class Terms:
    """What a round is about."""

    settings: Settings
    #: Values of the model.
    parameters: int
    #: Of the federation: the sum of what as many send has room in a word.
    clients: int
    #: The round whose result the model is, which only clients have; 0 for a model that servers
    #: tell.
    base: int = 0
    #: What stands for the names and shapes of the model's tensors, see ``states``; nothing where it
    #: has none.
    layout: str = ""

    @property
    def numbers(self) -> int:
        """What a client sends: its vector and its weight."""
        return self.parameters + 1

    @property
    def words(self) -> int:
        """Of 64 bits, in which they travel."""
        return width.words(self.settings.word_bits, self.numbers)

    def to_bytes(self) -> bytes:
        """The same at every server, byte for byte."""
        return json.dumps(
            {**vars(self), "settings": asdict(self.settings)}, sort_keys=True
        ).encode()

    @staticmethod
    def from_bytes(told: bytes) -> "Terms":
        """Of what all three servers told alike.

        Raises:
            PeerError: it is not what servers of this release tell.
        """
        try:
            entries = json.loads(told)
            terms = Terms(**{**entries, "settings": Settings(**entries["settings"])})
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise _unreadable() from None
        if not all(_is(getattr(terms.settings, each.name), each.type) for each in fields(Settings)):
            raise _unreadable()
        numbers = terms.parameters, terms.base, terms.clients
        if not all(type(number) is int for number in numbers) or not (
            1 <= terms.parameters < 2**27 and terms.base >= 0 and terms.clients >= 1
        ):
            raise _unreadable()
        if not isinstance(terms.layout, str) or len(terms.layout) % DIGITS:
            raise _unreadable()
        return terms


def _is(given: object, kind: Any) -> bool:
    """Whether a value is of a field's kind; whole numbers are fractions, too, and truth is none."""
    if isinstance(given, bool):
        return kind is bool
    return isinstance(given, kind) or (isinstance(given, int) and isinstance(1.0, kind))


def _unreadable() -> PeerError:
    return peer_error(
        "the servers told what is no round of this release; install the same release of tacit "
        "everywhere"
    )


def check_size(parameters: int) -> None:
    """Whether a model of so many values can be learned.

    Raises:
        MisuseError: it has none, or too many.
    """
    if not 1 <= parameters < 2**27:
        raise MisuseError(f"a model of {parameters} values; it has 1 to {2**27 - 1}")
