"""How a party's model becomes secret."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from tacit import encoding, shares
from tacit.errors import EncodingError, MisuseError
from tacit.operators.normalization import FACTOR_SCALE, Folded, fold
from tacit.session import Session, session
from tacit.sharing import announcement
from tacit.tensor import SecretTensor, check_party

Module = TypeVar("Module", bound=torch.nn.Module)

#: Words that are shared in one message, so that small tensors cost no rounds of their own.
GROUP = 1 << 22


@dataclass
class _Entry:
    """A tensor to be shared, and where its sharing goes."""

    name: str
    value: torch.Tensor
    scale: int
    secret: SecretTensor | None = None


def share_module(module: Module, *, owner: int) -> Module:
    """Makes ``owner``'s weights secret, in place: parameters and floating-point buffers become
    ``SecretTensor``; the names in ``state_dict`` stay. Returns the module.

    Every party passes a module of the same architecture; only the values of the owner count. The other
    parties learn names and shapes. Parameters do not require gradients afterwards.

    Raises:
        EncodingError: a weight is NaN, infinite or too large; the message names it.
        MisuseError: architectures differ; the message names the first tensor that does.
    """
    current = session()
    check_party(current, owner, "owner")
    module.requires_grad_(False)
    tensors = {id(tensor): tensor for tensor in module.state_dict(keep_vars=True).values()}
    if any(isinstance(tensor, SecretTensor) for tensor in tensors.values()):
        raise MisuseError("this module is shared already")
    entries = {
        id(tensor): _Entry(name, tensor, current.scale)
        for name, tensor in _floating(module)
        if id(tensor) in tensors
    }
    normalizations = list(_normalizations(module))
    folded = [
        (
            _Entry(f"{name} (folded factor)", factor, FACTOR_SCALE),
            _Entry(f"{name} (folded offset)", offset, current.scale),
        )
        for name, _, factor, offset in normalizations
    ]
    everything = [*entries.values(), *(entry for pair in folded for entry in pair)]
    words = _encoded(everything) if current.party == owner else None
    _compare(current, owner, everything)
    _share(current, owner, everything, words)
    _replace(module, entries)
    for (_, part, _, _), (factor_entry, offset_entry) in zip(normalizations, folded, strict=True):
        assert factor_entry.secret is not None
        assert offset_entry.secret is not None
        part.running_var._folded = Folded(factor_entry.secret, offset_entry.secret, part.eps)  # type: ignore[union-attr]
    return module


def _floating(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters and buffers with fractions, each once, by its first name."""
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.is_floating_point():
            yield name, tensor


def _normalizations(module: torch.nn.Module) -> Iterator[tuple[str, _BatchNorm, torch.Tensor, torch.Tensor]]:
    for name, part in module.named_modules():
        if isinstance(part, _BatchNorm) and part.running_mean is not None and part.running_var is not None:
            yield name, part, *fold(part.weight, part.bias, part.running_mean, part.running_var, part.eps)


def _encoded(entries: list[_Entry]) -> list[torch.Tensor]:
    words = []
    for entry in entries:
        try:
            words.append(encoding.encode(entry.value, entry.scale).reshape(-1))
        except EncodingError as error:
            raise EncodingError(f"{entry.name}: {error}") from None
    return words


def _compare(current: Session, owner: int, entries: list[_Entry]) -> None:
    """Holds this party's architecture against the owner's."""
    mine = [[entry.name, list(entry.value.shape)] for entry in entries]
    payload = json.dumps(mine).encode() if current.party == owner else None
    theirs = announcement(current.core.broadcast(owner, payload), owner)
    if theirs == mine:
        return
    theirs = theirs if isinstance(theirs, list) else []
    ours, other = next(((a, b) for a, b in zip(mine, theirs, strict=False) if a != b), (None, None))
    if ours is None:
        detail = f"this party's has {len(mine)} tensors, party {owner}'s {len(theirs)}"
    else:
        detail = f"this party's has {ours[0]} of shape {tuple(ours[1])}, party {owner}'s {str(other)[:120]}"
    raise MisuseError(f"the modules differ: {detail}; build the same architecture in every party")


def _share(current: Session, owner: int, entries: list[_Entry], words: list[torch.Tensor] | None) -> None:
    """Shares all tensors, small ones together."""
    start = 0
    while start < len(entries):
        end, size = start + 1, entries[start].value.numel()
        while end < len(entries) and size + entries[end].value.numel() <= GROUP:
            size += entries[end].value.numel()
            end += 1
        group = entries[start:end]
        plain = torch.cat(words[start:end]) if words is not None else None
        parts = shares.share(current, plain, owner, (size,))
        current.lasting.add(parts[0])
        pieces = [torch.split(part, [entry.value.numel() for entry in group]) for part in parts]
        for place, entry in enumerate(group):
            own = tuple(piece[place].reshape(entry.value.shape) for piece in pieces)
            dtype = entry.value.dtype if entry.value.dtype != torch.float64 else torch.get_default_dtype()
            entry.secret = SecretTensor(own, entry.scale, current, dtype)
        start = end


def _replace(module: torch.nn.Module, entries: dict[int, _Entry]) -> None:
    """Puts the sharings where the plain tensors were; a tensor with two places keeps both."""
    made: dict[int, torch.nn.Parameter] = {}
    for part in module.modules():
        for name, tensor in list(part._parameters.items()):
            if (
                tensor is not None
                and (entry := entries.get(id(tensor))) is not None
                and entry.secret is not None
            ):
                parameter = made.setdefault(id(tensor), torch.nn.Parameter(entry.secret, requires_grad=False))
                part._parameters[name] = parameter
        for name, buffer in list(part._buffers.items()):
            if buffer is not None and (entry := entries.get(id(buffer))) is not None:
                part._buffers[name] = entry.secret
