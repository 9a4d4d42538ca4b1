"""The terms of a round: what servers tell clients, and clients sign.

They contain the settings that the clients' halves of the steps need."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from tacit.errors import MisuseError, PeerError, peer_error
from tacit.federated.rounds import width
from tacit.federated.rounds.settings import Settings
from tacit.federated.rounds.states import DIGITS


@dataclass(frozen=True)
class Terms:
    """The terms of one round."""

    settings: Settings
    #: The number of the model's values.
    parameters: int
    #: The number of the federation's clients: the sum of their words must not overflow.
    clients: int
    #: The round whose result the model is, if only clients have it; 0 if servers send the model.
    base: int = 0
    #: Stands for the names and shapes of the model's tensors, see ``states``; empty if they have
    #: none.
    layout: str = ""
    #: The round's bound, if it follows a quantile; else that of the settings.
    norm: float | None = None
    #: Whether clients report metrics of the model, and nothing else.
    is_evaluation: bool = False

    @property
    def rules(self) -> Settings:
        """The settings of this round, with its bound."""
        settings = self.settings if self.norm is None else replace(self.settings, norm=self.norm)
        return settings.evaluating if self.is_evaluation else settings

    @property
    def values(self) -> int:
        """The number of values in a client's vector; an evaluation has a single one, which is 0."""
        return 1 if self.is_evaluation else self.parameters

    @property
    def numbers(self) -> int:
        """The number of values that a client sends: its vector, its metrics and its weight."""
        return self.values + len(self.settings.metrics) + 1

    @property
    def words(self) -> int:
        """The number of words of 64 bits in which these travel."""
        return width.words(self.settings.word_bits, self.numbers)

    @property
    def taken_as(self) -> tuple[int, int]:
        """How many numbers the intake takes of a client, and their bits. Vectors that are not only
        added up are taken as words."""
        if self.rules.is_sum:
            return self.numbers, self.settings.word_bits
        return self.words, width.WHOLE

    @property
    def step(self) -> float:
        """The difference of neighbouring values that clients round to; 0 if they do not."""
        grid = self.rules.grid(self.clients)
        return 0.0 if grid is None else self.rules.norm / grid.steps

    def check_words(self) -> None:
        """Checks that a model is large enough for servers that convert numbers to words.

        Raises:
            MisuseError: all its numbers fit one word.
        """
        grid = self.settings.grid(self.clients)
        if grid is not None and grid.is_lifted and self.words < 2:
            raise MisuseError(
                f"word_bits = {self.settings.word_bits} for a model of {self.parameters} values, "
                "which are less than two words of 64 bits: take word_bits = 64"
            )

    def to_bytes(self) -> bytes:
        """Encodes the terms, byte for byte the same at every server."""
        return json.dumps(
            {**vars(self), "settings": asdict(self.settings)}, sort_keys=True
        ).encode()

    @staticmethod
    def from_bytes(told: bytes) -> "Terms":
        """Decodes the terms that all three servers sent alike.

        Raises:
            PeerError: they are not terms of this release.
        """
        try:
            entries = json.loads(told)
            terms = Terms(**{**entries, "settings": _settings(entries["settings"])})
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise _unreadable() from None
        if not all(_is(getattr(terms.settings, each.name), each.type) for each in fields(Settings)):
            raise _unreadable()
        numbers = terms.parameters, terms.base, terms.clients
        if not all(type(number) is int for number in numbers) or not (
            1 <= terms.parameters < 2**27 and terms.base >= 0 and terms.clients >= 1
        ):
            raise _unreadable()
        if terms.norm is not None and not (type(terms.norm) is float and 0 < terms.norm < math.inf):
            raise _unreadable()
        if type(terms.is_evaluation) is not bool:
            raise _unreadable()
        if not isinstance(terms.layout, str) or len(terms.layout) % DIGITS:
            raise _unreadable()
        return terms


def _settings(entries: Mapping[str, Any]) -> Settings:
    """Returns settings. JSON has lists where they have tuples."""
    lists = {name: tuple(each) for name, each in entries.items() if isinstance(each, list)}
    return Settings(**{**entries, **lists})


def _is(given: object, kind: Any) -> bool:
    """Tells whether a value is of a field's type. An integer is valid as a float; a bool is not."""
    if kind == tuple[str, ...]:
        return isinstance(given, tuple) and all(isinstance(each, str) for each in given)
    if isinstance(given, bool):
        return kind is bool
    return isinstance(given, kind) or (isinstance(given, int) and isinstance(1.0, kind))


def _unreadable() -> PeerError:
    return peer_error(
        "the servers sent terms that are not of this release; install the same release of tacit "
        "everywhere"
    )


def check_size(parameters: int) -> None:
    """Checks that a model of the given number of values can be trained.

    Raises:
        MisuseError: it has none, or too many.
    """
    if not 1 <= parameters < 2**27:
        raise MisuseError(f"a model of {parameters} values; it has 1 to {2**27 - 1}")
