"""The latest round that a server has seen, in a file that outlasts it: numbers do not come again after a
restart. And, where only clients know the model, the round that made it: it is kept before any client is told
what the round came to, so that servers which start again do not begin anew what clients have learned."""

from collections.abc import Sequence
from pathlib import Path

from tacit.errors import DeviationError, MisuseError
from tacit.federated.lasting import write

#: How many rounds a server may have seen more than another one.
AHEAD = 1 << 20


class Latest:
    """A server's file: the latest round, and after it the one that made the model which clients have."""

    def __init__(self, path: Path) -> None:
        """Goes on with the file, if it is there.

        Raises:
            MisuseError: it holds something else.
        """
        self._path = path
        known = _read(path.read_text()) if path.exists() else (0, 0)
        if known is None:
            raise MisuseError(f"{path} holds no number of a round; put the latest one there")
        self.number, self.base = known

    def keep(self, number: int, base: int) -> None:
        """Both, before anybody hears of them.

        Raises:
            SetupError: the file cannot be written.
        """
        write(self._path, _text(number, base), "the latest round to")
        self.number, self.base = number, base

    def to_bytes(self) -> bytes:
        """What the other servers are told."""
        return _text(self.number, self.base).encode()

    def agreed(self, told: Sequence[bytes]) -> tuple[int, int]:
        """The number of the next round, one more than any server has seen, and which round made the model
        that clients have. A server that ended in the middle of a round has not kept that one, and then no
        client has its result, which all three tell: the least counts.

        Raises:
            PeerError: a server told something else, or has lost what it knew.
        """
        known = []
        for server, each in enumerate(told):
            pair = _read(each.decode(errors="replace"))
            if pair is None or pair[0] > self.number + AHEAD:
                raise DeviationError.of(
                    server, "announced what is no number of a round, or of one too far ahead", "server"
                )
            known.append(pair)
        latest = max(base for _, base in known)
        for server, (number, _) in enumerate(known):
            if number < latest:
                raise DeviationError.of(
                    server,
                    f"has not seen round {latest}, whose result clients have and no server knows: put its "
                    f"file server-{server}.round back, or begin anew and remove those of all three servers",
                    "server",
                )
        return max(number for number, _ in known) + 1, min(base for _, base in known)


def _text(number: int, base: int) -> str:
    return f"{number} {base}\n" if base else f"{number}\n"


def _read(text: str) -> tuple[int, int] | None:
    words = text.split()
    if not (
        1 <= len(words) <= 2 and all(word.isascii() and word.isdigit() and len(word) < 19 for word in words)
    ):
        return None
    number, base = int(words[0]), int(words[1]) if len(words) > 1 else 0
    return (number, base) if base <= number else None
