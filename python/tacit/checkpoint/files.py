"""A party's checkpoint file: its shares in the safetensors format, with a manifest in the header.

Files are hostile until they are checked: no entry is trusted because it is in the file."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from tacit import atomic_write, checksums, fixed
from tacit.errors import MisuseError, cause, setup_error
from tacit.fixed import DTYPES
from tacit.sharing import MOST_DIMENSIONS, MOST_ELEMENTS

#: Version of the file format. Other versions are refused.
VERSION = 4

#: Remedy for a file that is not as it was written.
REMEDY = "put a copy of it back, or resume from an earlier step: load_checkpoint(..., step=N)"

#: Number of latest steps whose files are kept.
KEPT = 2

#: Name of the format, and kind of its checksum.
FORMAT, KIND = "tacit checkpoint", "checkpoint"

#: Name of the tensor with the bits of flags that saved tensors depend on.
FLAGS = "flags"

Tensors = Sequence[torch.Tensor]


@dataclass(frozen=True)
class CheckpointFile:
    """A party's part of a checkpoint."""

    #: The part that is the same in all parties' files: identifier, step, protocol, parties,
    #: optimizer, tensors, flags, and for each tensor the flags that it depends on.
    public: dict[str, Any]
    party: int
    tensors: dict[str, torch.Tensor]


def _name(party: int, step: int) -> str:
    return f"step-{step:09d}-party-{party}.safetensors"


def find(folder: Path, party: int) -> dict[int, Path]:
    """Finds a party's files, by step."""
    pattern = re.compile(rf"step-(\d{{9,19}})-party-{party}\.safetensors")
    if not folder.is_dir():
        return {}
    matches = ((pattern.fullmatch(path.name), path) for path in sorted(folder.iterdir()))
    return {int(match[1]): path for match, path in matches if match}


def identifier_of(path: Path) -> str | None:
    """Reads the identifier of a checkpoint from the header of a file.

    Returns ``None`` for a file that ``read`` refuses. Such a file is not skipped for an earlier
    one."""
    if checksums.wrong_with(path, KIND) is not None:
        return None
    try:
        with path.open("rb") as stream:
            length = stream.read(8)
            head = length + stream.read(min(int.from_bytes(length, "little"), path.stat().st_size))
        identifier = _manifest(head, path)["public"]["identifier"]
    except (MisuseError, KeyError, TypeError):
        return None
    return identifier if isinstance(identifier, str) else None


def remove_older(folder: Path, party: int, latest: int) -> None:
    """Removes this party's older files, and files that it had begun to write when it was killed.

    The files of the last ``KEPT`` steps up to ``latest`` stay, and so do files of later steps."""
    files = find(folder, party)
    for step in sorted(step for step in files if step <= latest)[:-KEPT]:
        files[step].unlink(missing_ok=True)
    for unfinished in folder.glob(f"step-*-party-{party}.safetensors{atomic_write.UNFINISHED}"):
        unfinished.unlink(missing_ok=True)


def write(folder: Path, file: CheckpointFile) -> Path:
    """Writes a party's file atomically and durably. Files of other steps stay.

    Raises:
        SetupError: the file cannot be written. Other files are unchanged.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise setup_error(f"cannot make the folder {folder}: {cause(error)}") from None
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "party": file.party,
        "public": file.public,
    }
    content = save(
        file.tensors, {"manifest": json.dumps(manifest), "checksum": checksums.field(KIND)}
    )
    target = folder / _name(file.party, file.public["step"])
    atomic_write.write(target, checksums.filled(content, KIND), "the checkpoint", is_private=True)
    return target


def read(path: Path, party: int) -> CheckpointFile:
    """Reads a party's file, and checks it.

    Raises:
        MisuseError: the file is not a checkpoint, is cut, is of another version or party, or its
            manifest is invalid.
    """
    content = path.read_bytes()
    damage = checksums.wrong(content, KIND)
    if damage == checksums.DAMAGED:
        _refuse(path, f"{damage}; {REMEDY}")
    manifest = _manifest(content, path)
    if manifest.get("format") != FORMAT:
        _refuse(path, f"it is no checkpoint of tacit; {REMEDY}")
    if manifest.get("version") != VERSION:
        _refuse(
            path,
            f"it is of version {str(manifest.get('version'))[:20]}, and this is version {VERSION}",
        )
    if manifest.get("party") != party:
        _refuse(
            path,
            f"it is the file of party {str(manifest.get('party'))[:20]}, and this is party {party}",
        )
    public: Any = manifest.get("public")
    try:
        is_right = _is_public_part(public)
    except RecursionError:
        is_right = False
    if not is_right:
        _refuse(path, f"its manifest is not as it should be; {REMEDY}")
    if path.name != _name(party, public["step"]):
        _refuse(path, f"it is of step {public['step']}, whatever its name says")
    try:
        tensors = load(content)
    except (SafetensorError, ValueError, KeyError) as error:
        _refuse(path, f"it cannot be read: {str(error)[:80]}; {REMEDY}")
    _check_tensors(path, tensors, public["tensors"])
    if damage is not None:
        _refuse(path, f"{damage}; {REMEDY}")
    return CheckpointFile(public, party, tensors)


def _manifest(content: bytes, path: Path) -> dict[str, Any]:
    """Reads the manifest from the header, which is eight bytes of its length, and then JSON."""
    try:
        length = int.from_bytes(content[:8], "little")
        if not 2 <= length <= len(content) - 8:
            _refuse(path, f"it is cut, or no safetensors file; {REMEDY}")
        manifest = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["manifest"])
    except (ValueError, KeyError, TypeError, RecursionError):
        _refuse(path, f"it has no manifest of a checkpoint; {REMEDY}")
    return manifest if isinstance(manifest, dict) else {}


def _is_public_part(public: Any) -> bool:
    match public:
        case {
            "identifier": str(),
            "step": int(step),
            "protocol": str(),
            "parties": int(),
            "optimizer": about,
            "flags": [*labels],
            "depends": dict(depends),
            "tensors": dict(kinds),
        }:
            bits = ["bool", [len(labels)], 0] if labels else None
            return (
                0 <= step < 1 << 62
                and len(public) == 8
                and all(isinstance(label, str) for label in labels)
                and kinds.get(FLAGS) == bits
                and all(_is_kind(kind) for kind in kinds.values())
                and all(
                    _is_secret(name, kinds) and _is_set(each, len(labels))
                    for name, each in depends.items()
                )
                and (about is None or _is_optimizer(about, kinds))
            )
    return False


def written_set(members: Sequence[int], count: int) -> str:
    """Encodes a set of numbers below ``count`` in hexadecimal.

    Each number is one bit, the lowest bit of a byte first."""
    is_there = np.zeros(count, np.uint8)
    is_there[list(members)] = 1
    return np.packbits(is_there, bitorder="little").tobytes().hex()


def read_set(written: str, count: int) -> list[int]:
    """Decodes the numbers that :func:`written_set` wrote, in ascending order."""
    is_there = np.unpackbits(np.frombuffer(bytes.fromhex(written), np.uint8), bitorder="little")
    members: list[int] = is_there[:count].nonzero()[0].tolist()
    return members


def _is_set(written: Any, count: int) -> bool:
    """Whether a text is the output of :func:`written_set` for a non-empty set below ``count``."""
    if not isinstance(written, str) or not re.fullmatch("(?:[0-9a-f]{2})+", written):
        return False
    members = read_set(written, 4 * len(written))
    return bool(members) and members[-1] < count and written == written_set(members, count)


def _is_secret(name: str, kinds: Mapping[str, Any]) -> bool:
    """Whether the file has a secret tensor of this name that is not the flags."""
    return name in kinds and name != FLAGS and kinds[name][2] is not None


def _is_optimizer(about: Any, kinds: Mapping[str, Any]) -> bool:
    """Whether an optimiser's entry has a class, groups of parameters, and a state."""
    match about:
        case {"class": str(), "groups": [*groups], "state": state} if len(about) == 3:
            return all(isinstance(group, list) for group in groups) and _is_tree(state, kinds)
    return False


def _is_kind(kind: Any) -> bool:
    match kind:
        case [str(dtype), [*sizes], bits] if dtype in DTYPES and len(sizes) <= MOST_DIMENSIONS:
            fractions = DTYPES[dtype].is_floating_point
            right = bits is None or (
                type(bits) is int and 0 <= bits <= (fixed.MOST_FRACTION_BITS * fractions)
            )
            small = all(type(size) is int and 0 <= size <= MOST_ELEMENTS for size in sizes)
            return right and small and torch.Size(sizes).numel() <= MOST_ELEMENTS
    return False


def _is_tree(tree: Any, kinds: Mapping[str, Any]) -> bool:
    """Whether an optimiser's state is valid, and names only tensors of the file."""
    match tree:
        case {"tensor": str(name)}:
            # The flags are not a tensor of an optimiser.
            return name in kinds and name != FLAGS and len(tree) == 1
        case {"items": [*items]}:
            return len(tree) == 1 and all(
                isinstance(item, list)
                and len(item) == 2
                and isinstance(item[0], str | int)
                and _is_tree(item[1], kinds)
                for item in items
            )
        case {"list": [*values]}:
            return len(tree) == 1 and all(_is_tree(value, kinds) for value in values)
    return tree is None or isinstance(tree, bool | int | float | str)


def _check_tensors(
    path: Path, tensors: Mapping[str, torch.Tensor], kinds: Mapping[str, Any]
) -> None:
    if set(tensors) != set(kinds):
        _refuse(path, f"its tensors are not those of its manifest; {REMEDY}")
    for name, tensor in tensors.items():
        dtype, shape, bits = kinds[name]
        expected = DTYPES[dtype]
        if bits is not None:
            expected = torch.uint8 if dtype == "bool" else torch.int64
        if tensor.dtype != expected or list(tensor.shape) != shape:
            _refuse(path, f"{name[:80]} is not as its manifest says; {REMEDY}")


def _refuse(path: Path, why: str) -> NoReturn:
    raise MisuseError(f"{path} is not taken: {why}")
