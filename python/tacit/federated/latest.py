"""The latest round that a server has seen, in a file that outlasts it: numbers do not come again after a
restart. And, where only clients know the model, the round that made it: it is kept before any client is told
what the round came to, so that servers which start again do not begin anew what clients have learned. And,
where there is noise, how many rounds were spent: an account that was lost or put back to an earlier state is
noticed by it, and by the other servers', so that none begins again at an ε of 0. And how many rounds came to
an end, whatever they came to: servers that start again do those that are left.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tacit import checksums
from tacit.errors import DeviationError, SetupError
from tacit.federated.account import MOST_ROUNDS, Account
from tacit.lasting import write

#: Of the checksum.
KIND = "round"

#: What to do about a file that is not as it was written.
REMEDY = (
    "put it back as it was, or copy another server's, which is the same but for a round that was going "
    "on; or "
    "begin anew: remove server-N.round, and the file that --out names with the .next beside it, at all three "
    "servers, whose accounts stay"
)

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
    #: Rounds that came to an end.
    ended: int = 0

    def text(self) -> str:
        """As in the file's first line; what is 0 at its end is left out."""
        words = [str(each) for each in self]
        while len(words) > 1 and words[-1] == "0":
            words.pop()
        return " ".join(words) + "\n"


class Latest:
    """A server's file."""

    def __init__(self, path: Path) -> None:
        """Goes on with the file, if it is there.

        Raises:
            SetupError: it cannot be read, or was damaged.
        """
        self.path = path
        try:
            text = checksums.text_of(path, KIND, "the latest round", REMEDY)
        except FileNotFoundError:
            text = "0\n"
        known = _read(text.partition("\n")[0])
        if known is None:
            raise SetupError(f"{path} holds no number of a round; {REMEDY}")
        self.known = known

    def check(self, account: Account | None) -> None:
        """Whether an account has all that was spent.

        Raises:
            SetupError: it has less.
        """
        if account is not None and account.rounds < self.known.spent:
            raise SetupError(
                f"{account.path} has {account.rounds} rounds, and {self.path} says that {self.known.spent} "
                "are spent, which stays so: put the account back as it was, or copy another server's, which "
                "is the same"
            )

    def keep(self, number: int, base: int, account: Account | None = None, ended: int | None = None) -> None:
        """What is known from here on, before anybody hears of it.

        Raises:
            SetupError: the file cannot be written.
        """
        spent = self.known.spent if account is None else account.rounds
        known = Known(number, base, spent, self.known.ended if ended is None else ended)
        write(self.path, to_bytes(known), "the latest round to")
        self.known = known

    def to_bytes(self, account: Account | None = None) -> bytes:
        """What the other servers are told."""
        spent = 0 if account is None else account.rounds
        return self.known._replace(spent=spent, ended=0).text().encode()

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
        _check_alone(
            [each.number >= latest for each in known],
            f"announced that clients have the result of round {latest}",
        )
        _check_alone([each.spent >= spent - 1 for each in known], f"announced an account of {spent} rounds")
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


def to_bytes(known: Known) -> bytes:
    """The file."""
    return checksums.filled(f"{known.text()}{checksums.field(KIND)}\n".encode(), KIND)


def _check_alone(agrees: Sequence[bool], announced: str) -> None:
    """Whether what one server announced is beyond what both others know: then that one is named, since
    two are wrong less likely than one.

    Raises:
        PeerError: it is.
    """
    if sum(agrees) == 1:
        raise DeviationError.of(
            agrees.index(True),
            f"{announced}, which neither of the others has: if it is right, put back theirs, or copy its",
            "server",
        )


def _read(text: str) -> Known | None:
    words = text.split()
    if not (
        1 <= len(words) <= 4 and all(word.isascii() and word.isdigit() and len(word) < 19 for word in words)
    ):
        return None
    known = Known(*map(int, words))
    is_right = known.base <= known.number and known.spent <= MOST_ROUNDS
    return known if is_right else None
