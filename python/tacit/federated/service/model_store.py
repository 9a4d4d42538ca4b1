"""The file in which a server keeps the model, so that restarted servers continue from it.

The file is what ``torch.save`` writes of the parameters. The archive's comment names the
federation, the number of its rounds that had ended, and the last of them.

A server writes the model of a round next to this file first (``.N.next``). Then the servers confirm
the round to each other. After that the new file replaces the old one, and only then do clients hear
of the round:

- If any server has replaced its file, all three have the new model, complete, in one of the two
  files.
- If none has, no client has heard of the round. All three still have the model before it, or the
  initial one if it was the first round.

So whenever servers end, there is a latest model that all three have. ``agreed`` finds it when they
start again. A model counts only if all three have the same one.
"""

import io
import json
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from tacit import _core, atomic_write, checksums
from tacit.errors import DeviationError, MisuseError, SetupError, printable, setup_error
from tacit.federated.messages import counted
from tacit.federated.rounds.selection import EVERYTHING, Selection
from tacit.federated.rounds.states import State, in_a_row, in_form
from tacit.federated.service.archive import archived
from tacit.federated.service.exchange import content_of
from tacit.federated.service.round_store import ANEW

#: The kind of the file, for its checksum.
KIND = "model"

#: Suffix of the name of a model that the other servers may lack.
NEXT = ".next"

#: Characters of a hash that are shown to the user.
SHOWN = 12

#: The most models that a server announces: its file, and the one next to it.
MOST_MODELS = 2


class Kept(NamedTuple):
    """A model, and its place in the federation's rounds."""

    model: State
    #: Rounds of the federation that ended before it.
    ended: int
    #: The last of them; 0 if there is none.
    round: int
    #: The BLAKE3 hash of its values that travel.
    digest: str
    #: Number of these values.
    size: int

    @staticmethod
    def of(
        model: State,
        ended: int = 0,
        number: int = 0,
        *,
        is_by_size: bool = False,
        travelling: Selection = EVERYTHING,
    ) -> "Kept":
        """Makes one with its digest.

        With ``is_by_size`` all models of one size have the same digest: then only the size counts.
        """
        row = in_a_row(model, travelling).to(torch.float32)
        row = torch.zeros_like(row) if is_by_size else row
        return Kept(model, ended, number, _core.blake3(content_of(row).tobytes()), row.numel())


class Models:
    """A server's file, and the one next to it."""

    def __init__(
        self,
        path: Path,
        server: int = 0,
        federation: str = "",
        travelling: Selection = EVERYTHING,
    ) -> None:
        """Reads the files, if they exist.

        Args:
            path: of the file.
            server: the server's number; on one machine all three servers may name the same file.
            federation: the name of the federation whose models these are.
            travelling: which tensors of a model travel. The others stay as they are in the file.

        Raises:
            SetupError: a file cannot be read, is damaged, or is not a model of this federation.
        """
        # If the path is a link, the file that it leads to is replaced, not the link.
        path = path.resolve()
        self.path, self.pending_path = path, path.with_name(f"{path.name}.{server}{NEXT}")
        self.federation, self.travelling = federation, travelling
        self.settled = _read(path, federation, travelling)
        self.pending = _read(self.pending_path, federation, travelling)
        self._form: State | None = None

    @property
    def kept(self) -> list[Kept]:
        """The models that are there, the latest first."""
        found = [each for each in (self.pending, self.settled) if each is not None]
        return sorted(found, key=lambda each: -each.ended)

    def begin(self, chosen: Kept) -> None:
        """Continues with one of the kept models, or with the initial one. Discards the others."""
        if self.pending is not None and chosen is self.pending:
            self.settle()
        self.discard()
        self._form = chosen.model

    def check_room(self) -> None:
        """Checks that the disk has room for the model of the next round.

        Without this check a round would fail too late, after it has cost clients their work, and a
        part of the budget.

        Raises:
            SetupError: the disk is full.
        """
        assert self._form is not None
        size = _bytes_of(self._form)
        atomic_write.check_room(self.path, size, "the model of the next round to")

    def pend(self, ended: int, number: int, row: torch.Tensor) -> None:
        """Writes the model after a round, next to the model before it.

        Raises:
            SetupError: it cannot be written.
        """
        assert self._form is not None
        model = in_form(row, self._form, self.travelling)
        learned = Kept.of(model, ended, number, travelling=self.travelling)
        content = to_bytes(learned, self.federation)
        try:
            atomic_write.write(self.pending_path, content, f"the model of round {number} to")
        except SetupError as error:
            kept = "the model before it" if self.path.exists() else "what servers began from"
            raise setup_error(f"{error}; nothing else was lost, {kept} is as it was") from None

    def settle(self) -> None:
        """Replaces the model before the last round by the one that was written last.

        Raises:
            SetupError: the file cannot be replaced.
        """
        atomic_write.replace(self.pending_path, self.path, "the model to")

    def discard(self) -> None:
        """Removes the model of a round that not all servers confirmed.

        Raises:
            SetupError: it cannot be removed.
        """
        atomic_write.remove(self.pending_path)


def to_bytes(kept: Kept, federation: str = "") -> bytes:
    """Returns the file content for a model of the given federation."""
    about = {"federation": federation, "ended": kept.ended, "round": kept.round}
    return archived(kept.model, about, KIND)


def _bytes_of(form: State) -> int:
    """Returns the bytes of a model's tensors, whether they travel or not."""
    if isinstance(form, torch.Tensor):
        return form.nbytes
    entries = form.state_dict() if isinstance(form, torch.nn.Module) else form
    # Of what does not travel, nothing is asked: it may be no tensor.
    return sum(value.nbytes for value in entries.values() if isinstance(value, torch.Tensor))


def _read(path: Path, federation: str, travelling: Selection) -> Kept | None:
    read = checksums.bytes_of(path, KIND)
    if read is None:
        return None
    content, wrong = read
    if wrong is not None:
        raise setup_error(
            f"{path} is not taken for the model to go on from: {wrong}. Copy another server's "
            "file over it: the model is the same. To begin from what this file holds, give it "
            "another name and name it as --model at all three servers. For that, or to begin "
            f"anew, {ANEW}"
        )
    try:
        about = json.loads(zipfile.ZipFile(io.BytesIO(content)).comment)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = torch.load(io.BytesIO(content), weights_only=True)
        kept = Kept.of(model, about["ended"], about["round"], travelling=travelling)
    except MisuseError as error:
        raise setup_error(f"{path}, which --out names: {error}") from None
    except Exception as error:
        raise setup_error(
            f"{path} holds no model of a federation, or this release of PyTorch cannot read it "
            f"({type(error).__name__}): give --out another path"
        ) from None
    # A file without a name is from a release that wrote none; it is accepted for any federation.
    owner = about.get("federation", federation)
    if owner != federation:
        raise setup_error(
            f"{path} has a model of the federation {printable(owner)!r}, and this one is "
            f"{federation!r}: give --out another path; to begin from that model, name it as --model"
        )
    return kept


def announcement(rounds: int, ended: int, kept: Sequence[Kept]) -> bytes:
    """Returns what a server announces to the others when it starts."""
    models = [[each.ended, each.round, each.digest, each.size] for each in kept]
    return json.dumps({"rounds": rounds, "ended": ended, "models": models}).encode()


def agreed(told: Sequence[bytes]) -> tuple[int, str | None]:
    """Returns how many rounds have ended, and the digest of the model after them that all servers
    have.

    The digest is ``None`` if servers are not to know the model, or need none since all rounds have
    ended.

    Raises:
        SetupError: the servers were started for different numbers of rounds, or hold different
            models.
        PeerError: a server's announcement is not valid.
    """
    every = [_announcement(server, text) for server, text in enumerate(told)]
    rounds = [entries["rounds"] for entries in every]
    if len(set(rounds)) > 1:
        names = [f"server {server} with --rounds {count}" for server, count in enumerate(rounds)]
        raise setup_error(
            f"the servers were started for different numbers of rounds: {', '.join(names)}; give "
            "all three the same"
        )
    models = [entries["models"] for entries in every]
    ended = min(entries["ended"] for entries in every)
    is_start = all(before == 0 for each in models for before, *_ in each)
    if not any(models) or (ended >= rounds[0] and is_start):
        return ended, None
    common = set.intersection(
        *({(ended, digest) for ended, _, digest, _ in each} for each in models)
    )
    if common:
        return max(common)
    are_sizes_unlike = len({size for each in models for *_, size in each}) > 1
    held = "; ".join(
        f"server {server} {_described(each, are_sizes_unlike)}"
        for server, each in enumerate(models)
    )
    latest = [max((ended for ended, *_ in each), default=0) for each in models]
    if max(latest) == 0:
        remedy = (
            "give all three the same file to begin from, as --model or as start.pt beside the "
            "configuration, federation.toml"
        )
    else:
        first = latest.index(max(latest))
        remedy = (
            f"copy the file that --out names at server {first}, or one backup of it, over those of "
            "all three, and start them again"
        )
    raise setup_error(f"the servers hold different models: {held}: {remedy}")


def _described(models: Sequence[tuple[int, int, str, int]], with_sizes: bool) -> str:
    said = []
    for ended, number, digest, size in models:
        which = (
            f"that of round {number}, after {counted(ended, 'round')}"
            if ended
            else "one to begin from"
        )
        how_many = f", {size:,} values" if with_sizes else ""
        said.append(f"{which} (BLAKE3 {digest[:SHOWN]}{how_many})")
    return " and ".join(said) or "none"


def _announcement(server: int, text: bytes) -> dict[str, Any]:
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        entries = None
    match entries:
        case {"rounds": int(), "ended": int(), "models": [*models]} if _are_models(models):
            return {**entries, "models": [tuple(each) for each in models]}
    raise DeviationError.of(server, "announced what is no model to begin from", "server")


def _are_models(entries: Sequence[Any]) -> bool:
    return len(entries) <= MOST_MODELS and all(map(_is_model, entries))


def _is_model(entry: Any) -> bool:
    match entry:
        case [int(ended), int(number), str(digest), int(size)]:
            is_digest = len(digest) == checksums.DIGITS and digest.isalnum()
            return min(ended, number, size) >= 0 and is_digest
    return False


def is_first(models: Models | None, ended: int) -> bool:
    """Tells whether no round has ended, so that a server may begin from the initial model.

    The first round's model may be next to the file, but the other servers may lack it.
    """
    return ended == 0 and (models is None or models.settled is None)


def missing(path: Path | None, rounds_file: Path, ended: int) -> SetupError:
    """Returns the error for rounds that have ended while the model after them is missing."""
    where = (
        f"{path}, which has their model, is not there: put it back, or copy another server's, "
        "which is the same"
        if path is not None
        else "without --out no server has kept their model"
    )
    return setup_error(
        f"{rounds_file} says that {counted(ended, 'round')} of this federation ended, and {where}; "
        f"to begin anew, from what --model or start.pt holds, {ANEW}"
    )
