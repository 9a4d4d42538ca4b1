"""Files that tacit writes: they are written completely or not at all, and damage is detected."""

import contextlib
import os
import re
import resource
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tacit
from commands import tacit as command
from tacit import _core, atomic_write, checksums, cli
from tacit.checkpoint import files
from tacit.checkpoint.files import CheckpointFile
from tacit.commands import arrays, correlations
from tacit.commands.options import write_json
from tacit.commands.run import _write_demand
from tacit.errors import SetupError, TacitError
from tacit.federated.privacy.account import Account, Mechanism
from tacit.federated.service import model_store
from tacit.federated.service.model_store import Kept, Models
from tacit.federated.service.part_store import Part, Parts
from tacit.federated.service.round_store import Latest
from tacit.federated.simulation.page import write_page
from tacit.trace import page

#: Size limit of files, in bytes, which is too small for each writer's file.
LITTLE = 60

MECHANISM = Mechanism.of(1.0)

COMPILED = tacit.compile(torch.nn.Linear(3, 2).eval(), torch.zeros(1, 3))


@dataclass(frozen=True)
class Kind:
    """A file that tacit writes."""

    name: str
    write: Callable[[Path], Any]
    #: Reads the file again, if tacit reads it, and returns its content for comparisons.
    read: Callable[[Path], Any] | None = None


def saved(folder: Path) -> None:
    tensors = {"module.weight": torch.arange(40.0)}
    public = {
        "identifier": "a",
        "step": 1,
        "protocol": "replicated",
        "parties": 3,
        "optimizer": None,
        "flags": [],
        "depends": {},
        "tensors": {"module.weight": ["float32", [40], None]},
    }
    files.write(folder, CheckpointFile(public, 0, tensors))


def model(path: Path) -> None:
    models = Models(path)
    models.begin(models.settled or Kept.of({"w": torch.arange(9.0)}))
    models.pend(1, 1, torch.arange(9.0))
    models.settle()


def latest(path: Path) -> None:
    Latest(path).keep(5, 1, None, 3)


def part(path: Path) -> None:
    parts = Parts(path, 0)
    parts.pend(Part(5, "a tag", [0, 1], {1: "late"}, np.arange(64, dtype=np.uint8)))
    parts.begin(5)


def kept_part(path: Path) -> Any:
    found = Parts(path, 0).of(5)
    return None if found is None else (*found[:4], found.content.tobytes())


def account(path: Path) -> None:
    Account(path, MECHANISM).spend()


KINDS = {
    kind.name: kind
    for kind in (
        Kind("model.tacit", COMPILED[0].save, lambda path: tacit.load_program(path).digest),
        Kind("model.weights", COMPILED[1].save, lambda path: tacit.load_weights(path).program),
        Kind(
            "step-000000001-party-0.safetensors",
            lambda path: saved(path.parent),
            lambda path: files.read(path, 0).public,
        ),
        Kind(
            "demand.txt",
            lambda path: _write_demand(path, "tacit 1\n" + 20 * "job 3\n"),
            correlations.recorded,
        ),
        Kind("server-0.account", account, lambda path: Account(path, MECHANISM).rounds),
        Kind("server-0.round", latest, lambda path: Latest(path).known),
        Kind("server-0.part", part, kept_part),
        Kind("model.pt", model, lambda path: Models(path).settled.digest),  # type: ignore[union-attr]
        Kind("result.npy", lambda path: arrays.write(path, torch.arange(40.0))),
        Kind("report.json", lambda path: write_json(path, {"many": 40 * ["words"]})),
        Kind("report.html", lambda path: page.write(path, [])),
        Kind("federated.html", lambda path: write_page(path, "a page", 40 * ["words"], [], [])),
    )
}
READ = [name for name, kind in KINDS.items() if kind.read is not None]


@pytest.mark.parametrize("name", READ)
def test_each_byte_that_changed_is_noticed_with_what_to_do(tmp_path: Path, name: str) -> None:
    kind, path = KINDS[name], tmp_path / name
    assert kind.read is not None
    kind.write(path)
    kind.read(path)
    whole = path.read_bytes()
    step = max(1, len(whole) // 150)
    for place in [*range(0, len(whole), step), len(whole) - 1]:
        path.write_bytes(
            whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :]
        )
        with pytest.raises(TacitError) as refused:
            kind.read(path)
        told = str(refused.value)
        assert name in told
        assert re.search("put (it|a copy of it) back|[Cc]opy|compile|record", told), told
    for length in (0, 1, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(TacitError):
            kind.read(path)
    # The remedy of all these errors: put the whole file back.
    path.write_bytes(whole)
    kind.read(path)


@pytest.mark.parametrize("name", READ)
def test_files_without_a_checksum_are_refused(tmp_path: Path, name: str) -> None:
    """Earlier releases wrote files without a checksum."""
    kind, path = KINDS[name], tmp_path / name
    assert kind.read is not None
    kind.write(path)
    whole = path.read_bytes()
    path.write_bytes(re.sub(rb"tacit-\w+-blake3:[0-9a-f]{64}", b"." * 64, whole))
    with pytest.raises(TacitError):
        kind.read(path)


@contextlib.contextmanager
def no_room() -> Iterator[None]:
    """Limits the size of files inside the ``with`` block, so that writing fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LITTLE, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("is_there", [True, False])
def test_where_there_is_no_room_nothing_is_lost(tmp_path: Path, name: str, is_there: bool) -> None:
    kind, path = KINDS[name], tmp_path / name
    if is_there:
        kind.write(path)
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    with pytest.raises(SetupError) as refused, no_room():
        kind.write(path)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before
    told = str(refused.value)
    assert str(path) in told
    assert re.search("File too large|file too large", told), told
    # The other two are written next to the file first.
    if is_there and name not in ("model.pt", "server-0.part"):
        assert "nothing was lost, the earlier file is as it was" in told
    kind.write(path)


def test_where_there_is_no_room_for_certificates_none_is_there(tmp_path: Path) -> None:
    """Rust writes these files."""
    with pytest.raises(SetupError) as refused, no_room():
        _core.write_certificates(["a", "b"], str(tmp_path))
    assert re.search(
        r"cannot write .*a\.pem: File too large \(mounted at /.*, \d+ bytes are free\); make room "
        "on that disk, or give a path on another one",
        str(refused.value),
    )
    assert not [*tmp_path.iterdir()]
    # Remains of a process that was killed are replaced, and existing files are not overwritten.
    (tmp_path / "b.key.new").write_text("half a")
    _core.write_certificates(["a", "b"], str(tmp_path))
    names = [f"{name}.{ending}" for name in "ab" for ending in ("key", "pem")]
    assert sorted(each.name for each in tmp_path.iterdir()) == names
    assert stat.S_IMODE((tmp_path / "b.key").stat().st_mode) == 0o600
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    with pytest.raises(
        SetupError, match=r"b\.pem: it exists, and is not overwritten; choose another directory"
    ):
        _core.write_certificates(["c", "b"], str(tmp_path))
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


@pytest.mark.parametrize("name", ["server-0.account", "server-0.round", "demand.txt"])
def test_what_was_damaged_is_not_adopted_as_of_an_earlier_release(
    tmp_path: Path, name: str
) -> None:
    """Any byte of the checksum may be damaged, or the end of the file may be missing."""
    kind, path = KINDS[name], tmp_path / name
    kind.write(path)
    whole = path.read_bytes()
    field = re.search(rb"tacit-(\w+)-blake3:[0-9a-f]{64}", whole)
    assert field is not None
    assert kind.read is not None
    of = field[1].decode()
    for place in range(*field.span()):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(SetupError) as refused:
            kind.read(path)
        assert "adopt" not in str(refused.value)
        with pytest.raises(SetupError, match="was damaged"):
            atomic_write.adopt(path, of)
    earlier = re.sub(rb',?\s*("checksum": ")?tacit-\w+-blake3:[0-9a-f]{64}"?', b"", whole)
    for cut in (1, 2, len(earlier) // 2):
        path.write_bytes(earlier[:-cut])
        with pytest.raises(SetupError, match="was damaged"):
            atomic_write.adopt(path, of)
    # A whole file is adopted, as the refusal advises.
    path.write_bytes(earlier)
    with pytest.raises(SetupError, match=rf"adopt\({str(path)!r}, {of!r}\)"):
        kind.read(path)
    atomic_write.adopt(path, of)
    read = kind.read(path)
    path.write_bytes(whole)
    assert kind.read(path) == read
    with pytest.raises(SetupError, match="has a checksum already, which is right"):
        atomic_write.adopt(path, of)


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "full")

    (tmp_path / "file").write_text("before")
    monkeypatch.setattr(atomic_write.os, "fsync", full)
    said = r"cannot write the list .*file: the disk is full \(mounted at /.*, \d+ bytes are free\); nothing was "
    with pytest.raises(
        SetupError, match=said + "lost, .*: make room on that disk, or give a path on another"
    ):
        atomic_write.write(tmp_path / "file", "after", "the list")
    assert (tmp_path / "file").read_text() == "before"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_devices_are_written_to() -> None:
    atomic_write.write("/dev/null", "text")
    with pytest.raises(SetupError, match="cannot write /dev/full: the disk is full"):
        atomic_write.write("/dev/full", "text")
    assert not Path("/dev/null.new").exists()


def test_what_cannot_be_written_is_known_before_a_model_is_compiled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder.tacit").mkdir()
    for place, said in (
        (tmp_path / "nowhere" / "m.tacit", "there is no such folder"),
        (tmp_path / "folder.tacit", "it is a folder; give a file in it"),
    ):
        assert cli.main(["compile", "none.onnx", "-o", str(place)]) == 1
        assert said in capsys.readouterr().err
        assert atomic_write.cannot_write(place) == f"cannot write {place}: {said}"
        assert atomic_write.cannot_write(place / "further" / "m") is not None
    assert atomic_write.cannot_write(tmp_path / "m.tacit") is None
    assert atomic_write.cannot_write("/dev/null") is None


def test_rights_and_links_stay(tmp_path: Path) -> None:
    atomic_write.write(tmp_path / "private", "text", is_private=True)
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o600
    # The mode stays, even if the caller does not ask for it again.
    atomic_write.write(tmp_path / "private", "another")
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o600
    (tmp_path / "link").symlink_to("private")
    atomic_write.write(tmp_path / "link", "the third")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "private").read_text() == "the third"
    before = os.umask(0o027)
    try:
        atomic_write.write(tmp_path / "usual", "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "usual").stat().st_mode) == 0o640


def test_checksums_are_of_pieces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(checksums, "PIECE", 7)
    whole = checksums.filled(f"some text {checksums.field('x')} and more of it".encode(), "x")
    assert checksums.wrong(whole, "x") is None
    assert checksums.wrong(whole, "y") == checksums.MISSING
    for place in range(len(whole)):
        changed = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        assert checksums.wrong(changed, "x") is not None
    # A second checksum in the same file, from any source.
    assert checksums.wrong(whole + whole, "x") == checksums.DAMAGED
    with pytest.raises(tacit.MisuseError, match="2 times 'tacit-x-blake3:'"):
        checksums.filled(2 * checksums.field("x").encode(), "x")
    (tmp_path / "file").write_bytes(whole)
    assert checksums.wrong_with(tmp_path / "file", "x") is None


def test_a_model_is_read_by_torch_alone(tmp_path: Path) -> None:
    """The model's round is in the comment of the archive."""
    (tmp_path / "model.pt").write_bytes(
        model_store.to_bytes(Kept.of({"w": torch.arange(3.0)}, 2, 5))
    )
    assert torch.load(tmp_path / "model.pt", weights_only=True)["w"].tolist() == [0, 1, 2]
    found = Models(tmp_path / "model.pt").settled
    assert found is not None
    assert (found.ended, found.round) == (2, 5)


def test_weights_that_flipped_are_refused_by_the_command(tmp_path: Path) -> None:
    COMPILED[0].save(tmp_path / "model.tacit")
    COMPILED[1].save(tmp_path / "model.weights")
    content = bytearray((tmp_path / "model.weights").read_bytes())
    # Changes the sign of the last number.
    content[-1] ^= 0x80
    (tmp_path / "model.weights").write_bytes(content)
    arrays.write(tmp_path / "x.npy", torch.zeros(1, 3))
    given = ("--weights", tmp_path / "model.weights", "--input", tmp_path / "x.npy")
    ended = command("try", tmp_path / "model.tacit", *given)
    assert ended.returncode == 1, ended
    assert "model.weights holds no weights to rely on: it was damaged" in ended.stderr
    assert "or compile the model anew" in ended.stderr
