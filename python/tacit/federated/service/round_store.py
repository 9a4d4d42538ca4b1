"""The file with the latest round that a server has seen. No round number is used again after a
restart.

The file keeps five more counts:

- *Base.* If only clients know the model, the round that made it. It is written before any client
  learns that round's result. So servers that start again do not repeat what clients have learned.
- *Spent.* If there is noise, the number of rounds that have spent a part of the budget. An account
  that was lost, or put back to an earlier state, has fewer. So no account begins again at an ε of
  0.
- *Ended.* The number of rounds that have ended, with or without a result. Servers that start again
  do the rest.
- *Log.* If the bound follows a quantile, the logarithm of the next round's bound over the first
  one: see ``rounds.adaptive``.
- *Common.* The number of rounds whose end all three servers are known to have seen, because the
  servers ended in order. A server that was killed may lack the last of those that ended here.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tacit import checksums
from tacit.atomic_write import write
from tacit.errors import DeviationError, setup_error
from tacit.federated.privacy.account import MOST_ROUNDS, Account
from tacit.federated.rounds.adaptive import MOST_LOG, ZERO

#: The kind of the file, for its checksum.
KIND = "round"

#: The remedy to begin from the start. Without restarting them, clients that were in later rounds
#: than the first would wait until the rounds get as far again.
ANEW = (
    "at all three servers remove server-N.round, the file that --out names and the .next beside "
    "it; keep the accounts; and start the clients' programs again"
)

#: The remedy for a file that is damaged.
REMEDY = (
    "put it back as it was, or copy another server's, which differs by no more than a round that "
    f"was going on; or, to begin anew, {ANEW}"
)

#: The most rounds that a server may have seen beyond another one.
AHEAD = 1 << 20


class Known(NamedTuple):
    """The counts in a server's file."""

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
    #: The logarithm of the bound, plus ``adaptive.ZERO``; 0 for the first bound.
    log: int = 0

    def text(self) -> str:
        """Returns the file's first line. Zeros at its end are left out."""
        words = [str(each) for each in self]
        while len(words) > 1 and words[-1] == "0":
            words.pop()
        return " ".join(words) + "\n"


class Latest:
    """A server's file of the latest round."""

    def __init__(self, path: Path) -> None:
        """Reads the file, if it exists.

        Raises:
            SetupError: it cannot be read, or is damaged.
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
        log: int | None = None,
    ) -> None:
        """Writes what is known from now on, before it is sent to anyone.

        Raises:
            SetupError: the file cannot be written.
        """
        spent = self.known.spent if account is None else account.rounds
        ended = self.known.ended if ended is None else ended
        log = self.known.log if log is None else log
        self._write(Known(number, base, spent, ended, self.known.common, log))

    def end(self, ended: int) -> None:
        """Writes that all three servers ended in order, so that each has seen the end of these
        rounds.

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
        """Raises the latest round to ``number``, as a model that outlasted this file shows."""
        self.known = self.known._replace(number=max(self.known.number, number))

    def to_bytes(self, account: Account | None = None) -> bytes:
        """Returns what this server announces to the others."""
        spent = 0 if account is None else account.rounds
        return self.known._replace(spent=spent, ended=0, common=0).text().encode()

    def agreed(self, told: Sequence[bytes], bases: Sequence[int] | None = None) -> Known:
        """Returns what the servers agree on: the number of the next round, the base, and the spent
        rounds.

        The number is one more than any server has seen. A server that ended within a round has not
        kept that round as the base. Then no client has its result, for that takes all three
        servers, so the least base counts. But what one server has spent in a round is spent, so the
        greatest count of spent rounds counts.

        Args:
            told: what the servers announced, by number.
            bases: the bases that this server takes for possible, if it knows them: see
                :meth:`~tacit.federated.service.part_store.Parts.bases`. A server that announced a
                lower one would put the clients' model back.

        Raises:
            PeerError: a server's announcement is not valid, or it has lost what it knew.
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
        if bases is not None and base not in bases and base < self.known.base:
            server = [each.base for each in known].index(base)
            raise DeviationError.of(
                server,
                f"announced that clients have the result of round {base}, and they have that of "
                f"round {self.known.base}: put its file server-{server}.round back",
                "server",
            )
        # In the middle, so that no server alone moves it beyond what both others have.
        return Known(number, base, spent, log=sorted(each.log for each in known)[1])


def to_bytes(known: Known) -> bytes:
    """Returns the content of the file."""
    return checksums.filled(f"{known.text()}{checksums.field(KIND)}\n".encode(), KIND)


def check_same(told: Sequence[bytes], own: bytes) -> None:
    """Checks that all servers announced the same after a round in which all of them took part.

    Raises:
        PeerError: a server announced something else.
    """
    for server, text in enumerate(told):
        if text != own:
            raise DeviationError.of(
                server,
                "announced another round, base, account or bound than all three servers had at "
                "the end of the round before",
                "server",
            )


def _check_alone(agrees: Sequence[bool], announced: str) -> None:
    """Checks that no server announced something that neither of the others knows.

    If one did, the error names it: two servers are less likely to be wrong than one.

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
    is_right &= known.log == 0 or abs(known.log - ZERO) <= MOST_LOG
    return known if is_right and known.common <= known.ended else None
