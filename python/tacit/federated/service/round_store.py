"""The latest round that a server has seen, in a file that outlasts the server: no number comes
again after a restart.

The file keeps four more counts:

- *Base.* If only clients know the model, the round that made it. It is written before any client
  hears what the round came to. So servers that start again do not begin anew what clients have
  learned.
- *Spent.* If there is noise, how many rounds have spent a part of the budget. An account that was
  lost, or put back to an earlier state, has fewer. So no account begins again at an ε of 0.
- *Ended.* How many rounds have ended, whatever they came to. Servers that start again do the rest.
- *Common.* Of how many rounds all three servers are known to have seen the end, as they ended in
  order. A server that was killed may lack the last of those that ended here.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tacit import checksums
from tacit.atomic_write import write
from tacit.errors import DeviationError, setup_error
from tacit.federated.privacy.account import MOST_ROUNDS, Account

#: Of the checksum.
KIND = "round"

#: What to do so that servers begin from the start. Clients that were in later rounds than the first
#: would wait until there are such again.
ANEW = (
    "at all three servers remove server-N.round, the file that --out names and the .next beside "
    "it; keep the accounts; and start the clients' programs again"
)

#: What to do about a file that is not as it was written.
REMEDY = (
    "put it back as it was, or copy another server's, which differs by no more than a round that "
    f"was going on; or, to begin anew, {ANEW}"
)

#: How many more rounds a server may have seen than another one.
AHEAD = 1 << 20


class Known(NamedTuple):
    """What a server's file says."""

    #: The latest round.
    number: int
    #: The round that made the model that clients have; 0 if servers tell the model.
    base: int = 0
    #: Rounds with noise that have spent their part of the budget.
    spent: int = 0
    #: Rounds that have ended.
    ended: int = 0
    #: Rounds whose end all three servers have seen.
    common: int = 0

    def text(self) -> str:
        """The file's first line. Zeros at its end are left out."""
        words = [str(each) for each in self]
        while len(words) > 1 and words[-1] == "0":
            words.pop()
        return " ".join(words) + "\n"


class Latest:
    """A server's file."""

    def __init__(self, path: Path) -> None:
        """Reads the file, if it is there.

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
            raise setup_error(f"{path} holds no number of a round; {REMEDY}")
        self.known = known

    def check(self, account: Account | None) -> None:
        """Checks that an account has all rounds that were spent.

        Raises:
            SetupError: it has fewer.
        """
        if account is not None and account.rounds < self.known.spent:
            raise setup_error(
                f"{account.path} has {account.rounds} rounds, and {self.path} says that "
                f"{self.known.spent} are spent, which stays so: put the account back as it was, "
                "or copy another server's, which is the same"
            )

    def keep(
        self,
        number: int,
        base: int,
        account: Account | None = None,
        ended: int | None = None,
    ) -> None:
        """Writes what is known from now on, before anybody hears of it.

        Raises:
            SetupError: the file cannot be written.
        """
        spent = self.known.spent if account is None else account.rounds
        ended = self.known.ended if ended is None else ended
        self._write(Known(number, base, spent, ended, self.known.common))

    def end(self, ended: int) -> None:
        """Writes that all three servers ended in order: each has seen the end of so many rounds.

        Raises:
            SetupError: the file cannot be written.
        """
        common = min(ended, self.known.ended)
        if self.known.common < common:
            self._write(self.known._replace(common=common))

    def _write(self, known: Known) -> None:
        write(self.path, to_bytes(known), "the latest round to")
        self.known = known

    def count_from(self, number: int) -> None:
        """Has seen that round too: a model says so that outlasted this file."""
        self.known = self.known._replace(number=max(self.known.number, number))

    def to_bytes(self, account: Account | None = None) -> bytes:
        """What this server tells the others."""
        spent = 0 if account is None else account.rounds
        return self.known._replace(spent=spent, ended=0, common=0).text().encode()

    def agreed(self, told: Sequence[bytes]) -> Known:
        """The number of the next round, which is one more than any server has seen; the round that
        made the model that clients have; and how many rounds are spent.

        A server that ended within a round has not kept that round as the base. Then no client has
        its result, for that takes all three servers: so the least base counts. But what one server
        has spent in a round is spent: so the greatest of these counts.

        Raises:
            PeerError: a server announced what cannot be, or has lost what it knew.
        """
        known = []
        for server, text in enumerate(told):
            found = _read(text.decode(errors="replace"))
            if found is None or found.number > self.known.number + AHEAD:
                raise DeviationError.of(
                    server,
                    "announced what is no number of a round, or of one too far ahead",
                    "server",
                )
            known.append(found)
        latest, spent = max(each.base for each in known), max(each.spent for each in known)
        _check_alone(
            [each.number >= latest for each in known],
            f"announced that clients have the result of round {latest}",
        )
        _check_alone(
            [each.spent >= spent - 1 for each in known],
            f"announced an account of {spent} rounds",
        )
        for server, each in enumerate(known):
            if each.number < latest:
                raise DeviationError.of(
                    server,
                    f"has not seen round {latest}, whose result clients have and no server "
                    f"knows: put its file server-{server}.round back, or begin anew: remove "
                    "those of all three servers",
                    "server",
                )
            if each.spent < spent - 1:
                raise DeviationError.of(
                    server,
                    f"has an account of {each.spent} rounds, and {spent} are spent: put its file "
                    f"server-{server}.account back, or copy another server's, which is the same",
                    "server",
                )
        number, base = max(each.number for each in known) + 1, min(each.base for each in known)
        return Known(number, base, spent)


def to_bytes(known: Known) -> bytes:
    """The file."""
    return checksums.filled(f"{known.text()}{checksums.field(KIND)}\n".encode(), KIND)


def _check_alone(agrees: Sequence[bool], announced: str) -> None:
    """Checks that no server announced what neither of the others knows. If one did, it is named:
    two servers are less likely to be wrong than one.

    Args:
        agrees: of each server, whether it knows what was announced.
        announced: what that is, for the error.

    Raises:
        PeerError: only one server knows it.
    """
    if sum(agrees) == 1:
        raise DeviationError.of(
            agrees.index(True),
            f"{announced}, which neither of the others has: if that is right, put theirs back, or "
            "copy its own",
            "server",
        )


def _read(text: str) -> Known | None:
    words = text.split()
    are_counts = all(word.isascii() and word.isdigit() and len(word) < 19 for word in words)
    if not (1 <= len(words) <= len(Known._fields) and are_counts):
        return None
    known = Known(*map(int, words))
    is_right = known.base <= known.number and known.spent <= MOST_ROUNDS
    return known if is_right and known.common <= known.ended else None
