"""The files with a server's part of a result that only clients may see.

No server knows such a result, so none could compute it again. A server that is killed before all
clients have it tells its part when it is started again.

A server writes the part of a round next to the file first (``.next``). Then the servers confirm the
round to each other, and only then do clients hear of it. When the next round begins, the servers
agree which round made the clients' model. The part of that round is kept, and replaces the file.
Every other part is removed. So all three servers have the part of that round, whenever they are
killed. They remove it when all rounds have ended in order.

A part is a share: it is uniformly random, and says nothing about the result without the part of
another server. It may hold more, by which clients compare what servers send.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit import atomic_write, checksums
from tacit.errors import setup_error
from tacit.federated.service.model_store import NEXT

#: The kind of the file, for its checksum.
KIND = "part"

#: Bytes of a value of a part.
WORD_BYTES = 8

#: Bytes as an array.
Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]


class Part(NamedTuple):
    """A server's part of a round's result."""

    round: int
    #: Random, and the same at all three servers: parts of other rounds have another one, even if
    #: the rounds have the same number.
    tag: str
    #: The clients that the server waits for, since they submitted.
    clients: list[int]
    #: By client, why its own submission was refused.
    refused: dict[int, str]
    #: The part itself; empty at a server that has none.
    content: Bytes

    def announcement(self) -> bytes:
        """Returns what all three servers must announce alike, so that they tell their parts."""
        return f"{self.round} {self.tag}".encode()


class Parts:
    """A server's file with a part, and the one next to it."""

    def __init__(self, path: Path, server: int) -> None:
        """Reads the files of a server, if they exist.

        Raises:
            SetupError: a file cannot be read, is damaged, or is another server's.
        """
        self.path, self.pending_path = path, path.with_name(path.name + NEXT)
        self._server = server
        self.settled = _read(self.path, server)
        self.pending = _read(self.pending_path, server)

    def of(self, number: int) -> Part | None:
        """Returns the part of a round, if it is kept."""
        kept = (part for part in (self.pending, self.settled) if part is not None)
        return next((part for part in kept if part.round == number), None)

    def bases(self, counted: int) -> list[int] | None:
        """Returns the rounds that may have made the clients' model, or None if no file tells.

        Args:
            counted: the one that this server has counted as such. A server that was killed in that
                round's end has not counted it: then it is the one before.
        """
        if self.pending is not None and self.pending.round == counted:
            return [counted, 0 if self.settled is None else self.settled.round]
        if self.settled is not None and self.settled.round == counted:
            return [counted]
        return None

    def begin(self, base: int) -> None:
        """Keeps the part of the round that made the clients' model, and removes all others.

        Raises:
            SetupError: a file cannot be replaced or removed.
        """
        if self.pending is not None and self.pending.round == base:
            atomic_write.replace(self.pending_path, self.path, "the result to")
            self.settled = self.pending
        elif self.settled is None or self.settled.round != base:
            atomic_write.remove(self.path)
            self.settled = None
        atomic_write.remove(self.pending_path)
        self.pending = None

    def check_room(self, values: int) -> None:
        """Checks that the disk has room for the part of the next round.

        Raises:
            SetupError: the disk is full.
        """
        what = "the result of the next round to"
        # Besides the values, a part may hold the sum of the weights, and a hash of four words.
        atomic_write.check_room(self.pending_path, (values + 5) * WORD_BYTES, what)

    def pend(self, part: Part) -> None:
        """Writes the part of a round, next to that of the clients' model.

        Raises:
            SetupError: the file cannot be written.
        """
        about = {
            "server": self._server,
            "round": part.round,
            "tag": part.tag,
            "clients": part.clients,
            "refused": list(part.refused.items()),
            "checksum": checksums.field(KIND),
        }

        def write(path: Path) -> None:
            with path.open("wb") as file:
                file.write(json.dumps(about).encode() + b"\n")
                file.write(part.content.data)
            checksums.fill(path, KIND)

        what = f"the result of round {part.round} to"
        atomic_write.write(self.pending_path, write, what, is_private=True)
        self.pending = part

    def remove(self) -> None:
        """Removes the files: no client asks for a part any more.

        Raises:
            SetupError: a file cannot be removed.
        """
        atomic_write.remove(self.pending_path)
        atomic_write.remove(self.path)
        self.pending = self.settled = None


def _read(path: Path, server: int) -> Part | None:
    read = checksums.bytes_of(path, KIND)
    if read is None:
        return None
    content, wrong = read
    if wrong is None:
        head, _, rest = content.partition(b"\n")
        found = _part(head, rest)
        if found is not None and found[0] == server:
            return found[1]
        # Clients would take the part of another server for a lie.
        wrong = "it holds no part" if found is None else f"it is that of server {found[0]}"
    raise setup_error(
        f"{path} is not taken for this server's part of a result: {wrong}; put it back as it was, "
        "or remove it: then clients that lack the round's result take_up the model that they had "
        "before it, as that of this round"
    )


def _part(head: bytes, content: bytes) -> tuple[int, Part] | None:
    """Reads a file's server and part."""
    try:
        about: Any = json.loads(head)
    except (ValueError, RecursionError):
        return None
    match about:
        case {
            "server": int(server),
            "round": int(number),
            "tag": str(tag),
            "clients": [*clients],
            "refused": [*refused],
        } if all(isinstance(client, int) for client in clients):
            for entry in refused:
                match entry:
                    case [int(), str()]:
                        continue
                return None
            values = np.frombuffer(content, np.uint8)
            return server, Part(number, tag, clients, dict(refused), values)
    return None
