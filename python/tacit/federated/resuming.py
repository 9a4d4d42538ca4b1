"""The model of a server, in a file that outlasts it, so that servers that start again go on where they were.

The file is what ``torch.save`` writes of the parameters, and its comment says how many rounds of the
federation had ended, and which was the last. A round's model is first written beside it (``.N.next``), before
the servers confirm the round to each other, and takes the file's place after that, before any client hears of
it:

- where any server has given a model its place, all three have it, whole, in one of the two files;
- where no server has, no client has heard of the round, and the one before is still there at all three, or
  before the first round what they begin from.

So there always is a latest model that all three have, whenever they were ended: ``agreed`` finds it when they
start again. A model counts only where all three have the same.
"""

import io
import json
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from tacit import _core, checksums, lasting
from tacit.errors import DeviationError, SetupError, cause
from tacit.federated.exchange import content_of
from tacit.federated.naming import counted
from tacit.federated.states import State, in_a_row, in_form

#: Of the checksum.
KIND = "model"

#: What ends the name of a model that not all servers are known to have.
NEXT = ".next"

#: Characters of a hash that are shown.
SHOWN = 12

#: Models that a server may tell of: its file, and the one beside it.
MOST_MODELS = 2


class Kept(NamedTuple):
    """A model, and what is known of it."""

    model: State
    #: Rounds of the federation that ended before it.
    ended: int
    #: The last of them; 0 where there is none.
    round: int
    #: Of the values.
    digest: str

    @staticmethod
    def of(model: State, ended: int = 0, number: int = 0, *, is_alike: bool = False) -> "Kept":
        """With its digest; if it is alike, that of all models of its size, which is all that counts then."""
        row = in_a_row(model).to(torch.float32)
        row = torch.zeros_like(row) if is_alike else row
        return Kept(model, ended, number, _core.blake3(content_of(row).tobytes()))


class Models:
    """A server's file, and the one beside it."""

    def __init__(self, path: Path, server: int = 0) -> None:
        """Reads what is there.

        Args:
            server: whose it is; on one machine all three may name one file.

        Raises:
            SetupError: one of them is damaged, or says of no round.
        """
        # Where a link leads: a file takes another one's place there.
        path = path.resolve()
        self.path, self.beside = path, path.with_name(f"{path.name}.{server}{NEXT}")
        self.settled = _read(path)
        self.pending = _read(self.beside)
        self._form: State | None = None

    @property
    def kept(self) -> list[Kept]:
        """What is there, the latest first."""
        found = [each for each in (self.pending, self.settled) if each is not None]
        return sorted(found, key=lambda each: -each.ended)

    def begin(self, chosen: Kept) -> None:
        """Goes on with one of those that are there, or with the start: it alone stays."""
        if self.pending is not None and chosen is self.pending:
            self.settle()
        self.discard()
        self._form = chosen.model

    def pend(self, ended: int, number: int, row: torch.Tensor) -> None:
        """Writes what a round came to, beside the model that was there before.

        Raises:
            SetupError: it cannot be written.
        """
        assert self._form is not None
        content = to_bytes(Kept.of(in_form(row, self._form), ended, number))
        lasting.write(self.beside, content, f"the model of round {number} to")

    def settle(self) -> None:
        """Gives what was written last the place of the model before it.

        Raises:
            SetupError: that cannot be.
        """
        lasting.replace(self.beside, self.path, "the model to")

    def discard(self) -> None:
        """Removes what no round came to in the end.

        Raises:
            SetupError: that cannot be.
        """
        try:
            self.beside.unlink(missing_ok=True)
        except OSError as error:
            raise SetupError(f"cannot remove {self.beside}: {cause(error)}") from None


def to_bytes(kept: Kept) -> bytes:
    """The file of a model."""
    content = io.BytesIO()
    torch.save(kept.model, content)
    archive = content.getvalue()
    about = {"ended": kept.ended, "round": kept.round, "checksum": checksums.field(KIND)}
    comment = json.dumps(about).encode()
    # A zip archive ends with the length of its comment, of two bytes, and the comment.
    if archive[-2:] != bytes(2):
        raise SetupError("this release of PyTorch writes files in another way: install one that tacit names")
    return checksums.filled(archive[:-2] + len(comment).to_bytes(2, "little") + comment, KIND)


def _read(path: Path) -> Kept | None:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SetupError(f"cannot read {path}: {cause(error)}") from None
    wrong = checksums.wrong(content, KIND)
    if wrong is not None:
        raise SetupError(
            f"{path} is not taken for the model to go on from: {wrong}. Copy another server's file, whose "
            "model is the same, over it; or, to begin from what it holds, give it another name, and that "
            "name "
            "as --model; or, to begin anew, remove it. For both, remove server-N.round at all three "
            "servers too"
        )
    try:
        about = json.loads(zipfile.ZipFile(io.BytesIO(content)).comment)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = torch.load(io.BytesIO(content), weights_only=True)
        return Kept.of(model, about["ended"], about["round"])
    except Exception as error:
        raise SetupError(
            f"{path} holds no model of a federation ({type(error).__name__}): give --out another path"
        ) from None


def announcement(rounds: int, ended: int, kept: Sequence[Kept]) -> bytes:
    """What a server tells the others when it starts."""
    models = [[each.ended, each.round, each.digest] for each in kept]
    return json.dumps({"rounds": rounds, "ended": ended, "models": models}).encode()


def agreed(told: Sequence[bytes]) -> tuple[int, str | None]:
    """How many rounds have ended, and the digest of the model after them, which all servers have; none where
    none of them is to know it, or none is needed, since all rounds have ended.

    Raises:
        SetupError: they were started for unlike rounds, or hold different models.
        PeerError: one told what cannot be.
    """
    every = [_told(server, text) for server, text in enumerate(told)]
    rounds = [entries["rounds"] for entries in every]
    if len(set(rounds)) > 1:
        names = ", ".join(f"server {server} with --rounds {count}" for server, count in enumerate(rounds))
        raise SetupError(
            f"the servers were started for unlike numbers of rounds: {names}; give all three one"
        )
    models = [entries["models"] for entries in every]
    ended = min(entries["ended"] for entries in every)
    is_start = all(before == 0 for each in models for before, *_ in each)
    if not any(models) or (ended >= rounds[0] and is_start):
        return ended, None
    common = set.intersection(*({(ended, digest) for ended, _, digest in each} for each in models))
    if common:
        return max(common)
    held = "; ".join(f"server {server} {_described(each)}" for server, each in enumerate(models))
    latest = [max((ended for ended, *_ in each), default=0) for each in models]
    if max(latest) == 0:
        remedy = (
            "give all three the same file to begin from, as --model, or as start.pt beside federation.toml"
        )
    else:
        first = latest.index(max(latest))
        remedy = (
            f"copy the file that --out names at server {first}, or one backup of it, over those of all "
            f"three, "
            "and start them again"
        )
    raise SetupError(f"the servers hold different models: {held}: {remedy}")


def _described(models: Sequence[tuple[int, int, str]]) -> str:
    said = [
        f"that of round {number}, after {counted(ended, 'round')} (BLAKE3 {digest[:SHOWN]})"
        if ended
        else f"one to begin from (BLAKE3 {digest[:SHOWN]})"
        for ended, number, digest in models
    ]
    return " and ".join(said) or "none"


def _told(server: int, text: bytes) -> dict[str, Any]:
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        entries = None
    match entries:
        case {"rounds": int(), "ended": int(), "models": [*models]} if len(models) <= MOST_MODELS and all(
            _is_model(each) for each in models
        ):
            return {**entries, "models": [tuple(each) for each in models]}
    raise DeviationError.of(server, "announced what is no model to begin from", "server")


def _is_model(entry: Any) -> bool:
    match entry:
        case [int(ended), int(number), str(digest)]:
            return ended >= 0 and number >= 0 and len(digest) == checksums.DIGITS and digest.isalnum()
    return False


def is_first(models: Models | None, ended: int) -> bool:
    """Whether no round has ended, so that a server may begin from the start: the first round's model may lie
    beside the file, and not all servers have that."""
    return ended == 0 and (models is None or models.settled is None)


def missing(path: Path | None, rounds_file: Path, ended: int) -> SetupError:
    """The error where rounds have ended and their model is not there."""
    where = (
        f"{path}, which has their model, is not there: put it back, or copy another server's, which is "
        f"the same"
        if path is not None
        else "without --out no server has kept their model"
    )
    return SetupError(
        f"{rounds_file} says that {counted(ended, 'round')} of this federation ended, and {where}; to begin "
        "anew, from what --model or start.pt holds, remove server-N.round at all three servers"
    )
