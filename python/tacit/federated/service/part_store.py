"""The file with a server's part of a result that only clients may see.

No server knows such a result, so none could compute it again. A server that is killed after the
round has ended, and before the next one begins, tells its part when it is started again.

A part is an additive share: it is uniformly random, and says nothing about the result without the
part of another server. The file is removed once the next round begins, or once all rounds have
ended.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit import atomic_write, checksums
from tacit.errors import cause, setup_error

#: The kind of the file, for its checksum.
KIND = "part"

#: Bytes of a value of a part.
WORD_BYTES = 8

#: Bytes as an array.
Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]


class Part(NamedTuple):
    """A server's part of a round's result."""

    round: int
    #: The clients that the server waits for, since they submitted.
    clients: list[int]
    #: By client, why its own submission was refused.
    refused: dict[int, str]
    #: The part itself; empty at the server that has none.
    content: Bytes


class Parts:
    """A server's file with its latest part."""

    def __init__(self, path: Path) -> None:
        """Reads the file, if it exists.

        Raises:
            SetupError: it cannot be read, or is damaged.
        """
        self.path = path
        self.kept = _read(path)

    def check_room(self, values: int) -> None:
        """Checks that the disk has room for the part of a round.

        Raises:
            SetupError: the disk is full.
        """
        what = "the result of the next round to"
        atomic_write.check_room(self.path, (values + 1) * WORD_BYTES, what)

    def keep(self, part: Part) -> None:
        """Writes a part, before any client learns of it.

        Raises:
            SetupError: the file cannot be written.
        """
        about = {
            "round": part.round,
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
        atomic_write.write(self.path, write, what, is_private=True)
        self.kept = part

    def remove(self) -> None:
        """Removes the file: no client asks for this part any more.

        Raises:
            SetupError: it cannot be removed.
        """
        atomic_write.remove(self.path)
        self.kept = None


def _read(path: Path) -> Part | None:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise setup_error(f"cannot read {path}: {cause(error)}") from None
    wrong = checksums.wrong(content, KIND)
    if wrong is None:
        head, _, rest = content.partition(b"\n")
        part = _part(head, rest)
        if part is not None:
            return part
        wrong = "it holds no part"
    raise setup_error(
        f"{path} is not taken for this server's part of a result: {wrong}; put it back as it was, "
        "or remove it: then clients that lack the round's result take_up the model that they had "
        "before it, as that of this round"
    )


def _part(head: bytes, content: bytes) -> Part | None:
    try:
        about: Any = json.loads(head)
    except (ValueError, RecursionError):
        return None
    match about:
        case {"round": int(number), "clients": [*clients], "refused": [*refused]} if all(
            isinstance(client, int) for client in clients
        ):
            for entry in refused:
                match entry:
                    case [int(), str()]:
                        continue
                return None
            return Part(number, clients, dict(refused), np.frombuffer(content, np.uint8))
    return None
