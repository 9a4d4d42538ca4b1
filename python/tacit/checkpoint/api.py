"""Training that is saved and resumed: every party keeps its own shares in a file of its own, and a
session that goes on from them shares them anew."""

import json
import logging
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.optim import Optimizer

from tacit import _core, fixed
from tacit.checkpoint.checks import check_module, check_optimizer, class_of, groups_of, kind
from tacit.checkpoint.files import (
    FLAGS,
    CheckpointFile,
    Tensors,
    find,
    identifier_of,
    read,
    read_set,
    remove_older,
    write,
    written_set,
)
from tacit.errors import DeviationError, MisuseError, RangeError
from tacit.fixed import DTYPES, Scale
from tacit.flags import each_of, union
from tacit.refusals import Task, announcement, misuse, told_by_all
from tacit.sessions import Session, session
from tacit.sharing import grouped
from tacit.sharings import shares
from tacit.tensor import SecretTensor, check_party

_log = logging.getLogger(__name__)

#: Bytes of what tells one checkpoint from all others.
IDENTIFIER = 16


def save_checkpoint(
    path: str | os.PathLike[str],
    module: torch.nn.Module,
    optimizer: Optimizer | None = None,
    *,
    step: int,
) -> None:
    """Saves a module, and what its optimiser knows, after that step. A few rounds, whatever their
    size.

    Each party writes its own share of each secret, which tells it nothing alone, into a file in the
    folder ``path``, which nobody but its user may read. Where parties share a file system they may
    name the same folder. The files of the last two steps that were saved stay; a file is there
    wholly or not at all, and older ones go only after every party has written its own.

    Args:
        path: a folder, which is made if it is not there.
        module: whose parameters and buffers are saved, secret and plain.
        optimizer: whose state is saved with them.
        step: how many steps have been made, the same in every party.

    Raises:
        MisuseError: the parties save different steps or modules; nothing was written. Or another
            party cannot write its file; what was saved before is untouched.
        SetupError: the folder or the file cannot be written; what was saved before is untouched.
    """
    current = session()
    if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step < 1 << 62:
        raise MisuseError(f"a step is a whole number from 0, not {step!r}")
    tensors, about = _collected(current, module, optimizer)
    flags, depends = _flags_of(tensors)
    if flags:
        bits = shares.flag_bits(current, flags)
        tensors[FLAGS] = SecretTensor(bits, fixed.WHOLE, current, torch.bool)
    identifier = current.core.broadcast(
        0, os.urandom(IDENTIFIER) if current.party == 0 else None
    ).hex()
    public = {
        "identifier": identifier,
        "step": step,
        "protocol": current.protocol,
        "parties": current.parties,
        "optimizer": about,
        "flags": [flag.label for flag in flags],
        "depends": depends,
        "tensors": {name: kind(tensor) for name, tensor in sorted(tensors.items())},
    }
    _compare(current, public, "saves", "save the same step of the same module in every party")
    file = CheckpointFile(
        public, current.party, {name: _own(each) for name, each in tensors.items()}
    )
    task = Task()
    with task.alone():
        write(Path(path), file)
    told_by_all(current, task, "to save its part of the checkpoint")
    remove_older(Path(path), current.party, step)
    _log.info("party %d saved step %d in %s", current.party, step, path)


def load_checkpoint(
    path: str | os.PathLike[str],
    module: torch.nn.Module,
    optimizer: Optimizer | None = None,
    *,
    step: int | None = None,
) -> int:
    """Goes on from what ``save_checkpoint`` wrote: puts the saved values into a module of the same
    architecture, and into its optimiser, and returns the step.

    All secrets are shared anew, so shares of this session have nothing to do with those in the
    files. A module whose parameters are plain becomes secret as by ``share_module``, in the
    optimiser too; parameters go on to require gradients if they did. Files are taken for what
    anybody may have written: they are checked before anything of them is used.

    Args:
        path: as in ``save_checkpoint``.
        module: of the architecture that was saved.
        optimizer: of the class that was saved, of this module's parameters.
        step: which; the latest that all parties have, if not given.

    Raises:
        MisuseError: a file is missing, cut, of another version, party, protocol or number of
            parties, the parties' files are of different steps or sessions, the module has other
            tensors, or the optimiser is of another class or has other parameters in its groups;
            nothing of both was changed, in any party, and the session goes on.
    """
    current = session()
    chosen = _choose(current, find(Path(path), current.party), step, path)
    task = Task()
    with task.alone():
        file = _own_file(current, chosen)
    told_by_all(current, task, "to load its part of the checkpoint")
    public = file.public
    _compare(
        current, public, "has a checkpoint of", "give every party its own file of one and the same"
    )
    # What is said of secret tensors all parties say alike, so none does before all go on.
    check_module(module, public["tensors"], chosen)
    saved = public["optimizer"]
    check_optimizer(
        optimizer, module, saved, saved and _filled(saved["state"], file.tensors), chosen
    )
    restored = _restored(current, file)
    _carry_flags(current, public, restored)
    _put_into_module(current, module, restored, optimizer)
    if optimizer is not None:
        optimizer.load_state_dict(_filled(saved["state"], restored))
    _log.info("party %d goes on after step %d of %s", current.party, public["step"], chosen)
    return int(public["step"])


def _own_file(current: Session, chosen: Path) -> CheckpointFile:
    """A party's file, held against the session.

    Raises:
        MisuseError: it is another one's, or damaged.
    """
    try:
        file = read(chosen, current.party)
    except MisuseError as error:
        raise misuse("file", str(error)) from None
    for name, value in {"parties": current.parties, "protocol": current.protocol}.items():
        if file.public[name] != value:
            raise misuse(
                "file",
                f"{chosen} was saved with {name} {file.public[name]!r}, and this session has "
                f"{value!r}; "
                "resume as it was saved",
            )
    return file


def reveal_module(
    module: torch.nn.Module, *, to: int | None = None
) -> dict[str, torch.Tensor] | None:
    """The plain ``state_dict`` of a module, such as one that was trained in secret, in every party
    or in party ``to`` alone; ``None`` in the others. One round, and one for each boolean tensor.

    Args:
        module: whose parameters and buffers are revealed; plain ones are taken as they are.
        to: the number of the party that learns them; every party if not given.

    Raises:
        MisuseError: ``to`` is no party's number.
        RangeError: where it would be learnt, if a comparison that a tensor depends on left its
            range.
    """
    current = session()
    check_party(current, to, "receiver")
    state: dict[str, torch.Tensor] = dict(module.state_dict())
    secrets = {name: each for name, each in state.items() if isinstance(each, SecretTensor)}
    numbers = [each for each in secrets.values() if each.dtype != torch.bool]
    words, known = [each._parts for each in numbers], union(each.flags for each in numbers)
    together = tuple(
        torch.cat([part.reshape(-1) for part in same]) for same in zip(*words, strict=True)
    )
    # All openings are carried out, whatever a receiver is told of one: the others know nothing of
    # that.
    failed: list[str] = []
    opened: torch.Tensor | None = torch.empty(0, dtype=torch.int64)
    if together:
        opened = _attempted(lambda: shares.reveal(current, together, to, known), failed)
    for name, secret in secrets.items():
        if secret.dtype == torch.bool:
            value = _attempted(partial(secret.reveal, to=to), failed)
        elif opened is not None:
            value = fixed.decode(opened[: secret.numel()], secret._scale, secret.dtype).reshape(
                secret.shape
            )
            opened = opened[secret.numel() :]
        if opened is not None and value is not None:
            state[name] = value
    if failed:
        raise RangeError.of(list(dict.fromkeys(failed)))
    return None if opened is None else state


def _attempted(open_: Callable[[], torch.Tensor | None], failed: list[str]) -> torch.Tensor | None:
    """What is opened, if it is; what failed is noted."""
    try:
        return open_()
    except RangeError as error:
        failed += error.layers
        return None


# What is saved
# -------------------------------------------------------------------------------------


def _collected(
    current: Session, module: torch.nn.Module, optimizer: Optimizer | None
) -> tuple[dict[str, torch.Tensor], Any]:
    """All tensors by name; of the optimiser its class, its parameters, and its state with names in
    the places of tensors."""
    tensors = {f"module.{name}": tensor for name, tensor in module.state_dict().items()}
    about = None
    if optimizer is not None:
        state = _named(optimizer.state_dict(), "optimizer", tensors)
        about = {
            "class": class_of(optimizer),
            "groups": groups_of(optimizer, module),
            "state": state,
        }
    for name, tensor in tensors.items():
        if isinstance(tensor, SecretTensor) and tensor._session is not current:
            raise MisuseError(f"{name} belongs to another session than this one")
    return tensors, about


def _named(value: Any, name: str, tensors: dict[str, torch.Tensor]) -> Any:
    """A state as JSON has it; tensors go into the dictionary."""
    if isinstance(value, torch.Tensor):
        tensors[name] = value
        return {"tensor": name}
    if isinstance(value, Mapping):
        return {
            "items": [[key, _named(each, f"{name}.{key}", tensors)] for key, each in value.items()]
        }
    if isinstance(value, list | tuple):
        return {"list": [_named(each, f"{name}.{at}", tensors) for at, each in enumerate(value)]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise MisuseError(
        f"{name} of the optimizer is a {type(value).__name__}, which a checkpoint cannot hold"
    )


def _filled(tree: Any, tensors: Mapping[str, torch.Tensor]) -> Any:
    """The state again."""
    match tree:
        case {"tensor": str(name)}:
            return tensors[name]
        case {"items": [*items]}:
            return {key: _filled(value, tensors) for key, value in items}
        case {"list": [*values]}:
            return [_filled(value, tensors) for value in values]
    return tree


def _flags_of(tensors: Mapping[str, torch.Tensor]) -> tuple[list[_core.Flag], dict[str, str]]:
    """All flags that secret tensors depend on, and which of them each does that depends on any."""
    each = {
        name: each_of(tensor.flags)
        for name, tensor in tensors.items()
        if isinstance(tensor, SecretTensor)
    }
    flags = {id(flag): flag for of_one in each.values() for flag in of_one}
    places = {known: at for at, known in enumerate(flags)}
    depends = {
        name: written_set([places[id(flag)] for flag in of_one], len(flags))
        for name, of_one in each.items()
        if of_one
    }
    return list(flags.values()), depends


def _own(tensor: torch.Tensor) -> torch.Tensor:
    """What this party holds alone of a secret: the parties' add up to it (or XOR to it, of
    booleans)."""
    own = tensor._parts[0] if isinstance(tensor, SecretTensor) else tensor.detach()
    return own.clone(memory_format=torch.contiguous_format)


# Among the parties
# ---------------------------------------------------------------------------------


def _compare(current: Session, public: dict[str, Any], what: str, remedy: str) -> None:
    """Holds what is no secret of a checkpoint against party 0's; goes on once all parties have."""
    payload = json.dumps(public).encode() if current.party == 0 else None
    theirs = announcement(current.core.broadcast(0, payload), 0)
    mine = json.loads(json.dumps(public))
    if theirs == mine:
        _wait_for_all(current)
        return
    theirs = theirs if isinstance(theirs, dict) else {}
    name = next(name for name in mine if theirs.get(name) != mine[name])
    detail = f"other {name}"
    if name in ("step", "identifier", "protocol", "parties"):
        detail = f"{name} {mine[name]!r}, party 0 {str(theirs.get(name))[:80]!r}"
    raise MisuseError(f"party {current.party} {what} {detail}; {remedy}")


def _wait_for_all(current: Session) -> None:
    """Until every party has come as far as this."""
    for party in range(current.parties):
        current.core.broadcast(party, b"written" if party == current.party else None)


def _choose(current: Session, have: Mapping[int, Path], step: int | None, path: Any) -> Path:
    """The file of that step, or of the latest that all parties have. Where parties have files of
    one step from different sessions, as when one that had resumed was killed while it saved, an
    earlier one that all have of one session is taken; if there is none, what is compared next
    refuses."""
    mine = [[number, identifier_of(file)] for number, file in sorted(have.items())]
    common, mixed = set(have), set()
    first: dict[int, str] = {}
    for party in range(current.parties):
        payload = json.dumps(mine).encode() if party == current.party else None
        theirs = _identifiers(announcement(current.core.broadcast(party, payload), party), party)
        common &= set(theirs)
        # Of a file without one, reading it says what is wrong.
        known = {number: name for number, name in theirs.items() if name is not None}
        mixed |= {
            number for number, name in known.items() if first.setdefault(number, name) != name
        }
    if step is None and common:
        return have[max(common - mixed or common)]
    if step is not None and step in common:
        return have[step]
    wanted = "a step that all parties have" if step is None else f"step {step} of all parties"
    raise MisuseError(
        f"{path} has no checkpoint of {wanted}; party {current.party} has {sorted(have)}"
    )


def _identifiers(announced: Any, party: int) -> dict[int, str | None]:
    """By step what a party has."""
    found: dict[int, str | None] = {}
    for each in announced if isinstance(announced, list) else [None]:
        match each:
            case [int(number), str() | None as name] if type(number) is int:
                found[number] = name
            case _:
                raise DeviationError.of(party, "announced what are no steps")
    return found


# What is restored
# ----------------------------------------------------------------------------------


def _restored(current: Session, file: CheckpointFile) -> dict[str, torch.Tensor]:
    """All tensors; secrets from each party's share of them, shared anew, in groups."""
    kinds: dict[str, Any] = file.public["tensors"]
    tensors = {name: file.tensors[name] for name, kind in kinds.items() if kind[2] is None}
    secrets = [name for name, kind in kinds.items() if kind[2] is not None]
    for is_bits in (False, True):
        names = [name for name in secrets if (kinds[name][0] == "bool") == is_bits]
        sizes = [file.tensors[name].numel() for name in names]
        for group in grouped(sizes):
            parts = _shared_anew(current, [file.tensors[name] for name in names[group]], is_bits)
            pieces = zip(*(torch.split(part, sizes[group]) for part in parts), strict=True)
            for name, piece in zip(names[group], pieces, strict=True):
                dtype, shape, bits = kinds[name]
                own = tuple(part.reshape(shape).clone() for part in piece)
                tensors[name] = SecretTensor(own, Scale(bits), current, DTYPES[dtype]).numbered()
    return tensors


def _carry_flags(
    current: Session, public: Mapping[str, Any], restored: dict[str, torch.Tensor]
) -> None:
    """Has each tensor depend on the flags that it was saved with, whose bits are none of the
    tensors."""
    if (bits := restored.pop(FLAGS, None)) is None:
        return
    assert isinstance(bits, SecretTensor), "its kind was looked at"
    flags = shares.flags_of_bits(current, bits._parts, public["flags"])
    for name, written in public["depends"].items():
        tensor = restored[name]
        assert isinstance(tensor, SecretTensor), "its kind was looked at"
        tensor.depends(union(flags[at] for at in read_set(written, len(flags))))


def _shared_anew(current: Session, own: Tensors, is_bits: bool) -> shares.Parts:
    """What the parties' words add up to, shared by all of them; under the reference party 0 has it
    all."""
    words = torch.cat([tensor.reshape(-1) for tensor in own])
    share = shares.share_bits if is_bits else shares.share
    owners = range(1 if current.is_plain else current.parties)
    parts = [
        share(current, words if owner == current.party else None, owner, words.shape)
        for owner in owners
    ]
    total = parts[0]
    for other in parts[1:]:
        total = (shares.xor if is_bits else shares.add)(total, other)
    return total


def _put_into_module(
    current: Session,
    module: torch.nn.Module,
    tensors: Mapping[str, torch.Tensor],
    optimizer: Optimizer | None,
) -> None:
    """In place where a tensor is of the saved kind already; a plain one that is secret in the file
    gets a secret one in its place, in the optimiser's groups too."""
    made: dict[int, torch.Tensor] = {}
    for prefix, part in module.named_modules(remove_duplicate=False):
        for places in (part._parameters, part._buffers):
            for own_name, tensor in list(places.items()):
                name = "module." + (f"{prefix}.{own_name}" if prefix else own_name)
                if tensor is None or name not in tensors:
                    continue
                if id(tensor) not in made:
                    made[id(tensor)] = _renewed(current, tensor, tensors[name])
                places[own_name] = made[id(tensor)]
    for group in optimizer.param_groups if optimizer is not None else ():
        group["params"] = [made.get(id(parameter), parameter) for parameter in group["params"]]


def _renewed(current: Session, tensor: torch.Tensor, value: torch.Tensor) -> Any:
    if isinstance(value, SecretTensor):
        current.storages.add(value._parts[0])
        if isinstance(tensor, SecretTensor):
            tensor.data = value
            return tensor
        is_parameter = isinstance(tensor, torch.nn.Parameter)
        return torch.nn.Parameter(value, tensor.requires_grad) if is_parameter else value
    with torch.no_grad():
        return tensor.copy_(value) if isinstance(tensor, torch.nn.Parameter) else value.clone()
