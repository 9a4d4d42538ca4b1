"""The latest round that a server has seen, in a file that outlasts it: numbers do not come again after a
restart. And, where only clients know the model, the round that made it: it is kept before any client is told
what the round came to, so that servers which start again do not begin anew what clients have learned. And,
where there is noise, how many rounds were spent: an account that was lost or put back to an earlier state is
noticed by it, and by the other servers', so that none begins again at an ε of 0.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tacit.errors import DeviationError, MisuseError, SetupError
from tacit.federated.account import MOST_ROUNDS, Account
from tacit.federated.lasting import write

#: How many rounds a server may have seen more than another one.
AHEAD = 1 << 20


class Known(NamedTuple):
    """What a server's file says."""

    #: The latest round.
    number: int
    #: Which round made the model that clients have; 0 for one that servers tell.
    base: int = 0
    #: Rounds with noise whose part of a budget is spent.
    spent: int = 0

    def text(self) -> str:
        """As in the file; what is 0 at its end is left out."""
        words = [str(each) for each in self]
        while len(words) > 1 and words[-1] == "0":
            words.pop()
        return " ".join(words) + "\n"


class Latest:
    """A server's file."""

    def __init__(self, path: Path) -> None:
        """Goes on with the file, if it is there.

        Raises:
            MisuseError: it holds something else.
        """
        self._path = path
        known = _read(path.read_text()) if path.exists() else Known(0)
        if known is None:
            raise MisuseError(f"{path} holds no number of a round; put the latest one there")
        self.known = known

    def check(self, account: Account | None) -> None:
        """Whether an account has all that was spent.

        Raises:
            SetupError: it has less.
        """
        if account is not None and account.rounds < self.known.spent:
            raise SetupError(
                f"{account.path} has {account.rounds} rounds, and {self._path} says that {self.known.spent} "
                "are spent, which stays so: put the account back as it was, or copy another server's, which "
                "is the same"
            )

    def keep(self, number: int, base: int, account: Account | None = None) -> None:
        """What is known from here on, before anybody hears of it.

        Raises:
            SetupError: the file cannot be written.
        """
        known = Known(number, base, self.known.spent if account is None else account.rounds)
        write(self._path, known.text(), "the latest round to")
        self.known = known

    def to_bytes(self, account: Account | None = None) -> bytes:
        """What the other servers are told."""
        return self.known._replace(spent=0 if account is None else account.rounds).text().encode()

    def agreed(self, told: Sequence[bytes]) -> Known:
        """The number of the next round, one more than any server has seen, which round made the model that
        clients have, and how many are spent. A server that ended in the middle of a round has not kept that
        one, and then no client has its result, which all three tell: the least counts. What it has not
        spent in that round counts as spent.

        Raises:
            PeerError: a server told something else, or has lost what it knew.
        """
        known = []
        for server, text in enumerate(told):
            found = _read(text.decode(errors="replace"))
            if found is None or found.number > self.known.number + AHEAD:
                raise DeviationError.of(
                    server, "announced what is no number of a round, or of one too far ahead", "server"
                )
            known.append(found)
        latest, spent = max(each.base for each in known), max(each.spent for each in known)
        for server, each in enumerate(known):
            if each.number < latest:
                raise DeviationError.of(
                    server,
                    f"has not seen round {latest}, whose result clients have and no server knows: put its "
                    f"file server-{server}.round back, or begin anew and remove those of all three servers",
                    "server",
                )
            if each.spent < spent - 1:
                raise DeviationError.of(
                    server,
                    f"has an account of {each.spent} rounds, and {spent} are spent: put its file "
                    f"server-{server}.account back, or copy another server's, which is the same",
                    "server",
                )
        return Known(max(each.number for each in known) + 1, min(each.base for each in known), spent)


def _read(text: str) -> Known | None:
    words = text.split()
    if not (
        1 <= len(words) <= 3 and all(word.isascii() and word.isdigit() and len(word) < 19 for word in words)
    ):
        return None
    known = Known(*map(int, words))
    return known if known.base <= known.number and known.spent <= MOST_ROUNDS else None
