"""Saving and resuming of training.

Every party keeps its shares in its own file. A session that resumes shares the values again."""

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

#: Bytes of the identifier of a checkpoint.
IDENTIFIER = 16


def save_checkpoint(
    path: str | os.PathLike[str],
    module: torch.nn.Module,
    optimizer: Optimizer | None = None,
    *,
    step: int,
) -> None:
    """Saves a module, and the state of its optimiser, after a training step.

    Each party writes its own share of each secret into a file in the folder ``path``. A share alone
    reveals nothing. Only the party's user may read the file. Parties with a common file system may
    use the same folder. Files are written atomically. The files of the last two saved steps are
    kept, and older files are removed only after every party has written its new one. Takes a few
    rounds, whatever the size.

    Args:
        path: a folder, which is created if it does not exist.
        module: the module whose parameters and buffers are saved, secret and plain.
        optimizer: the optimiser whose state is saved, if any.
        step: the number of training steps that were made, the same in every party.

    Raises:
        MisuseError: the parties save different steps or modules, and nothing was written. Or
            another party cannot write its file, and earlier checkpoints are unchanged.
        SetupError: the folder or the file cannot be written. Earlier checkpoints are unchanged.
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
    with task.keep_error():
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
    """Restores a module and its optimiser from a checkpoint of ``save_checkpoint``.

    All secrets are shared again, so the shares of this session are independent of those in the
    files. If the module's parameters are plain, they become secret as by ``share_module``, also in
    the optimiser. Parameters that require gradients still do afterwards. Files are not trusted:
    they are checked before their contents are used.

    Args:
        path: the folder, as for ``save_checkpoint``.
        module: a module of the saved architecture.
        optimizer: an optimiser of the saved class, on this module's parameters, if and only if one
            was saved.
        step: the step to restore; the latest that all parties have, if not given.

    Returns:
        The restored step.

    Raises:
        MisuseError: a file is missing, cut, or of another version, party, protocol or number of
            parties; the parties' files are of different steps or sessions; the module has other
            tensors; or the optimiser has another class or other parameters in its groups. Neither
            the module nor the optimiser is changed in any party, and the session continues.
    """
    current = session()
    chosen = _choose(current, find(Path(path), current.party), step, path)
    task = Task()
    with task.keep_error():
        file = _own_file(current, chosen)
    told_by_all(current, task, "to load its part of the checkpoint")
    public = file.public
    _compare(
        current, public, "has a checkpoint of", "give every party its own file of one and the same"
    )
    # These checks have the same outcome in all parties, so they need no message: either all parties
    # raise, or none.
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
    """Reads a party's file, and checks it against the session.

    Raises:
        MisuseError: the file is another party's or of another kind of session, or is damaged.
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
    """Reveals the ``state_dict`` of a module, such as one that was trained in secret.

    Takes one round, and one for each boolean tensor.

    Args:
        module: the module whose parameters and buffers are revealed. Plain ones are returned as
            they are.
        to: the number of the party that learns the values; every party if not given.

    Returns:
        The plain ``state_dict`` in each party that learns it, and ``None`` in the others.

    Raises:
        MisuseError: ``to`` is not a party's number.
        RangeError: a comparison that a tensor depends on was out of range. Only the parties that
            would learn the values raise this.
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
    # All openings are carried out even if one fails at a receiver, since the other parties do not
    # know of the failure.
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
    """Opens a value; records the layers that failed and returns ``None`` on a RangeError."""
    try:
        return open_()
    except RangeError as error:
        failed += error.layers
        return None


# Saving
# -------------------------------------------------------------------------------------


def _collected(
    current: Session, module: torch.nn.Module, optimizer: Optimizer | None
) -> tuple[dict[str, torch.Tensor], Any]:
    """Returns all tensors by name, and the optimiser's entry.

    The entry has its class, its parameters, and its state with names instead of tensors."""
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
    """Converts a state to JSON, and puts its tensors into the dictionary."""
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
    """Converts a state back from JSON, with tensors from the dictionary."""
    match tree:
        case {"tensor": str(name)}:
            return tensors[name]
        case {"items": [*items]}:
            return {key: _filled(value, tensors) for key, value in items}
        case {"list": [*values]}:
            return [_filled(value, tensors) for value in values]
    return tree


def _flags_of(tensors: Mapping[str, torch.Tensor]) -> tuple[list[_core.Flag], dict[str, str]]:
    """Returns all flags that secret tensors depend on, and for each such tensor its own set."""
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
    """Returns this party's additive share of a secret, or a plain tensor.

    The parties' shares add up to the secret, or XOR to it for booleans."""
    own = tensor._parts[0] if isinstance(tensor, SecretTensor) else tensor.detach()
    return own.clone(memory_format=torch.contiguous_format)


# Agreement among the parties
# ---------------------------------------------------------------------------------


def _compare(current: Session, public: dict[str, Any], what: str, remedy: str) -> None:
    """Checks the public part of a checkpoint against party 0's, and waits until all have."""
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
    """Waits until every party has come to this point."""
    for party in range(current.parties):
        current.core.broadcast(party, b"written" if party == current.party else None)


def _choose(current: Session, have: Mapping[int, Path], step: int | None, path: Any) -> Path:
    """Returns the file of the given step, or of the latest step that all parties have.

    Parties may have files of one step from different sessions, if a session that had resumed was
    killed while it saved. Then the latest earlier step is taken for which all files are from one
    session. If there is none, the comparison that follows raises an error."""
    mine = [[number, identifier_of(file)] for number, file in sorted(have.items())]
    common, mixed = set(have), set()
    first: dict[int, str] = {}
    for party in range(current.parties):
        payload = json.dumps(mine).encode() if party == current.party else None
        theirs = _identifiers(announcement(current.core.broadcast(party, payload), party), party)
        common &= set(theirs)
        # Reading a file without an identifier will report what is wrong with it.
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
    """Parses the steps that a party announced, with the identifiers of their files."""
    found: dict[int, str | None] = {}
    for each in announced if isinstance(announced, list) else [None]:
        match each:
            case [int(number), str() | None as name] if type(number) is int:
                found[number] = name
            case _:
                raise DeviationError.of(party, "announced something that is not a list of steps")
    return found


# Restoring
# ----------------------------------------------------------------------------------


def _restored(current: Session, file: CheckpointFile) -> dict[str, torch.Tensor]:
    """Restores all tensors. Secrets are shared again from each party's share, in groups."""
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
    """Makes each tensor depend on the flags that it was saved with.

    The bits of the flags are removed from the restored tensors."""
    if (bits := restored.pop(FLAGS, None)) is None:
        return
    assert isinstance(bits, SecretTensor), "its kind was looked at"
    flags = shares.flags_of_bits(current, bits._parts, public["flags"])
    for name, written in public["depends"].items():
        tensor = restored[name]
        assert isinstance(tensor, SecretTensor), "its kind was looked at"
        tensor.depends(union(flags[at] for at in read_set(written, len(flags))))


def _shared_anew(current: Session, own: Tensors, is_bits: bool) -> shares.Parts:
    """Shares the sum of the parties' words again.

    Under the plain reference protocol, party 0 has the whole value."""
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
    """Puts restored tensors into a module and into the optimiser's groups.

    A tensor of the saved kind is updated in place. A plain tensor that is secret in the file is
    replaced by a secret one."""
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
