"""How the parties agree on what they compute next.

Between two batches every party tells all others one *notice*, in one round. That of party 0 is also
the proposal of a batch: which requests, in which order. In the next round each party tells which of
them wait at it, signed by the same client in the same way. What waits at all is the batch.

A notice is at most two seconds after the last one, so parties that are idle find out soon when one
has died. It also says which requests have waited for long. A party that has ended one of them, and
so never takes it again, says so, and it is refused where it waits: the party there was started
again, and has lost what it answered.

Notices come from other parties, and are checked."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from tacit.errors import DeviationError
from tacit.serving.config import MOST_CLIENTS, MOST_TOGETHER

#: Seconds after which a request that waits is asked about.
OLD = 2.0

#: The most requests that a notice asks or tells about.
MOST_ASKED = 64

#: A request that waits: client, number, hash of its statement.
Row = tuple[int, bytes, bytes]


class Notice(NamedTuple):
    """What a party tells the others between two batches."""

    #: Requests that party 0 proposes; empty in the others.
    batch: tuple[Row, ...] = ()
    #: The model that these name.
    model: bytes = b""
    #: Whether this party leaves after this round, so all end the session.
    leaves: bool = False
    #: A hash of the models that this party has read and is ready to serve.
    wanted: str = ""
    #: Requests that have waited here for long.
    old: tuple[Row, ...] = ()
    #: Requests that others have asked about, and that have ended here.
    ended: tuple[Row, ...] = ()

    def to_bytes(self) -> bytes:
        """Returns the notice as it is sent."""
        content = [
            [_text(row) for row in self.batch],
            self.model.hex(),
            self.leaves,
            self.wanted,
            [_text(row) for row in self.old],
            [_text(row) for row in self.ended],
        ]
        return json.dumps(content, separators=(",", ":")).encode()


def notice_of(party: int, content: bytes) -> Notice:
    """Reads the notice of a party.

    Raises:
        DeviationError: it is none.
    """
    try:
        match json.loads(content):
            case [[*batch], str(model), bool(leaves), str(wanted), [*old], [*ended]] if (
                len(batch) <= MOST_TOGETHER and max(len(old), len(ended)) <= MOST_ASKED
            ):
                rows = [tuple(map(_row, each)) for each in (batch, old, ended)]
                if len({row[:2] for row in rows[0]}) < len(rows[0]):
                    raise ValueError
                return Notice(rows[0], bytes.fromhex(model), leaves, wanted, rows[1], rows[2])
    except (ValueError, RecursionError):
        pass
    raise DeviationError.of(party, "sent a notice between batches that no party sends")


def flags_of(party: int, content: bytes, count: int) -> list[bool]:
    """Reads which requests of a batch wait at a party.

    Raises:
        DeviationError: it does not say that.
    """
    if len(content) != count or not set(content) <= {0, 1}:
        raise DeviationError.of(party, "did not say which requests of a batch wait at it")
    return [bool(each) for each in content]


def _text(row: Row) -> list[Any]:
    client, number, digest = row
    return [client, number.hex(), digest.hex()]


def _row(content: Any) -> Row:
    match content:
        case [int(client), str(number), str(digest)] if 0 <= client < MOST_CLIENTS:
            row = client, bytes.fromhex(number), bytes.fromhex(digest)
            if type(client) is int and (len(row[1]), len(row[2])) == (16, 32):
                return row
    raise ValueError


def digest_of(rows: Sequence[Row]) -> bytes:
    """Returns a text that stands for a batch in all parties."""
    return Notice(batch=tuple(rows)).to_bytes()
