"""Sharing of a party's model: its weights become secret tensors."""

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parameter import is_lazy

from tacit import checks, fixed, refusals
from tacit.errors import EncodingError, MisuseError, PrecisionWarning
from tacit.fixed import Scale
from tacit.memory import give_back
from tacit.operators.dispatch.operands import is_secret
from tacit.operators.normalization import FACTOR_SCALE, fold, keep
from tacit.places import take_place
from tacit.sessions import Session, session
from tacit.sharing import grouped
from tacit.sharings import shares
from tacit.tensor import SecretTensor, check_party
from tacit.trace import module_paths

_log = logging.getLogger(__name__)

Module = TypeVar("Module", bound=torch.nn.Module)

#: Relative error of an encoded tensor above which its owner is warned.
MUCH = 0.01

#: Remedy for weights that are too small.
MORE_BITS = (
    "give them more fraction bits, as in share_module(..., scale={name: 24}), or scale them up"
)


@dataclass
class _Entry:
    """A tensor to be shared, and its sharing afterwards."""

    name: str
    value: torch.Tensor
    scale: Scale
    secret: SecretTensor | None = None


def share_module(
    module: Module,
    *,
    owner: int,
    scale: int | Mapping[str, int] | None = None,
    trainable: bool = False,
) -> Module:
    """Secret-shares the weights of party ``owner`` in place, and returns the module.

    Parameters and floating-point buffers become ``SecretTensor``. The names in ``state_dict`` stay
    the same.

    Every party passes a module of the same architecture and dtypes. Only the owner's values are
    used. The other parties learn names, shapes and dtypes. If a weight cannot be shared, every
    party raises an error, and only the owner's message contains values. The module then stays
    unchanged, and the session continues.

    Parameters stay the same Python objects. So an optimiser that was made before has the secret
    parameters, and so has another module that uses them. Their hooks and attributes stay. Their
    gradients are dropped. Parameters that are secret already, because another module uses them too,
    stay as they are. Parameters do not require gradients afterwards, unless ``trainable`` is set.

    Args:
        module: a module with plain weights.
        owner: the number of the party that owns the weights.
        scale: the fraction bits of all weights, or a mapping from names in ``state_dict`` to
            fraction bits; the same in every party. Other weights have the session's fraction bits.
            Small weights need more. The product of a weight at scale s and data at the session's
            scale of 16 is right below 2^(46 − s).
        trainable: whether parameters that required gradients still do. Parameters of two or more
            dimensions, which data are multiplied by, then have four fraction bits more, as
            gradients do, unless ``scale`` names them. Calling ``requires_grad_()`` afterwards makes
            all parameters trainable at their present scale.

    Returns:
        The same module.

    Raises:
        EncodingError: a weight is NaN, infinite or too large; the message names it.
        MisuseError: architectures or scales differ between parties; the message names the first
            tensor that differs. Or all weights are secret already.

    Warns:
        PrecisionWarning: weights are so small that their encoding changes them by more than one
            per cent. Only the owner gets this warning, which names the weights.
    """
    return share_weights_of(module, owner, scale, trainable=trainable, remedy=MORE_BITS)


@module_paths.step("share_module")
def share_weights_of(
    module: Module,
    owner: int,
    scale: int | Mapping[str, int] | None,
    *,
    trainable: bool,
    remedy: str,
) -> Module:
    """Shares a module as :func:`share_module` does.

    Args:
        module: a module with plain weights.
        owner: the number of the party that owns the weights.
        scale: as for :func:`share_module`.
        trainable: as for :func:`share_module`.
        remedy: the end of the warning about weights that are too small.
    """
    current = session()
    check_party(current, owner, "owner")
    _check_kind(module, owner)
    _check_values(module)
    wanting = {
        id(parameter) for parameter in module.parameters() if parameter.requires_grad and trainable
    }
    tensors = {id(tensor): tensor for tensor in module.state_dict(keep_vars=True).values()}
    floating = [(name, tensor) for name, tensor in _floating(module) if id(tensor) in tensors]
    if not floating and is_secret(*tensors.values()):
        raise MisuseError("this module is shared already")
    scales = _scales(current, floating, wanting, scale)
    entries = {id(tensor): _Entry(name, tensor.detach(), scales[name]) for name, tensor in floating}
    with torch.no_grad():
        normalizations = list(_normalizations(module))
    folded = [
        (
            _Entry(f"{name} (folded factor)", factor, FACTOR_SCALE),
            _Entry(f"{name} (folded offset)", offset, current.scale),
        )
        for name, _, factor, offset in normalizations
    ]
    everything = [*entries.values(), *(entry for pair in folded for entry in pair)]
    _compare(current, owner, everything, partial(_check, everything, len(entries), remedy))
    _share(current, owner, everything)
    _log.debug("party %d: %d tensors of party %d are shared", current.party, len(everything), owner)
    _replace(module, entries, wanting)
    for (_, part, _, _), (factor, offset) in zip(normalizations, folded, strict=True):
        statistics = (part.weight, part.bias, part.running_mean, part.running_var)
        assert factor.secret is not None
        assert offset.secret is not None
        keep(statistics, part.eps, factor.secret, offset.secret)  # type: ignore[arg-type]
    return module


def _scales(
    current: Session,
    floating: list[tuple[str, torch.Tensor]],
    wanting: set[int],
    chosen: int | Mapping[str, int] | None,
) -> dict[str, Scale]:
    """Returns the scale of each tensor by name: the chosen one, or else one by its kind."""
    if chosen is not None and not isinstance(chosen, Mapping):
        return dict.fromkeys((name for name, _ in floating), fixed.scale_of(chosen))
    scales = {name: _by_kind(current, tensor, id(tensor) in wanting) for name, tensor in floating}
    chosen = chosen or {}
    if unknown := sorted(set(chosen) - set(scales)):
        raise MisuseError(
            f"scale names {unknown[0]!r}, which the module does not have; it has "
            f"{', '.join(scales)}"
        )
    return scales | {name: fixed.scale_of(bits) for name, bits in chosen.items()}


def _by_kind(current: Session, tensor: torch.Tensor, is_trained: bool) -> Scale:
    """Returns the scale of a tensor: that of gradients for trained factors, else the session's.

    The rounding error of a small weight decides in each layer which units of a ReLU are active, and
    an error in a few of these is a large error of the gradient. Also, optimiser steps are small. So
    trained factors get more bits. A summand, such as a bias, would bring its bits to all results,
    which would lose range."""
    return fixed.of_gradients(current.scale) if is_trained and tensor.dim() > 1 else current.scale


def _check(entries: list[_Entry], count: int, remedy: str) -> None:
    """Checks in the owner's process that all tensors can be encoded, before anything is sent.

    Warns the owner of tensors among the first ``count`` that are too small for their scale. The
    words of one tensor are freed before the next: all words are twice as large as the model."""
    small = []
    for at, entry in enumerate(entries):
        words = _encoded(entry)
        # A summand, such as a bias, is as exact as the results are.
        if at < count and entry.value.dim() > 1:
            loss = fixed.lost(entry.value.reshape(-1), words, entry.scale)
            if loss > MUCH:
                small.append(f"{entry.name} ({loss:.1%})")
    if small:
        warnings.warn(
            f"some weights are so small that encoding them changes them noticeably: "
            f"{', '.join(small)}; "
            f"{remedy}",
            PrecisionWarning,
            stacklevel=8,
        )


def _check_kind(module: Any, owner: int) -> None:
    """Raises a MisuseError if the argument is not a module; the message says what to pass."""
    if isinstance(module, torch.nn.Module):
        return
    if module is None:
        raise MisuseError(
            "share_module(None): every party passes a module of the same architecture, of which "
            f"party {owner}'s weights alone count: tacit.share_module(Net(), owner={owner}), in "
            f"every party"
        )
    if isinstance(module, torch.Tensor):
        what, instead = "a tensor", "tacit.share(tensor, owner=...) shares a tensor"
    elif isinstance(module, type):
        what, instead = f"the class {module.__name__}", f"make one: {module.__name__}(...)"
    elif isinstance(module, list | tuple):
        what, instead = (
            f"a {type(module).__name__}",
            "torch.nn.ModuleList makes one of several modules",
        )
    elif isinstance(module, Mapping):
        what, instead = (
            "a dict",
            "load the weights into a module, module.load_state_dict(weights), and share that",
        )
    else:
        what, instead = f"a {type(module).__name__}", "pass the module itself"
    raise MisuseError(f"share_module() takes a torch.nn.Module, not {what}; {instead}")


def _check_values(module: torch.nn.Module) -> None:
    """Raises a MisuseError if a tensor has no values yet."""
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if is_lazy(tensor):
            raise MisuseError(
                f"{name} has no shape before the module's first call: call it with a plain example "
                f"first"
            )
        if tensor.device.type == "meta":
            raise MisuseError(
                f"{name} is on the device meta and has no values: load them before it is shared"
            )


def _floating(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Yields plain floating-point parameters and buffers, each once, by its first name."""
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.is_floating_point() and not is_secret(tensor):
            yield name, tensor


def _normalizations(
    module: torch.nn.Module,
) -> Iterator[tuple[str, _BatchNorm, torch.Tensor, torch.Tensor]]:
    for name, part in module.named_modules():
        if (
            isinstance(part, _BatchNorm)
            and part.running_mean is not None
            and part.running_var is not None
        ):
            statistics = part.weight, part.bias, part.running_mean, part.running_var
            if not is_secret(*statistics):
                yield name, part, *fold(*statistics, part.eps)


def _encoded(entry: _Entry) -> torch.Tensor:
    try:
        return fixed.encode(entry.value, entry.scale).reshape(-1)
    except EncodingError as error:
        raise EncodingError.of(error.why, f"{entry.name}: {error}") from None


def _compare(
    current: Session, owner: int, entries: list[_Entry], check: Callable[[], None]
) -> None:
    """Checks this party's architecture against the owner's, after the owner checked its weights."""
    mine = [
        [each.name, list(each.value.shape), each.scale.bits, str(each.value.dtype)]
        for each in entries
    ]

    def described() -> list[Any]:
        check()
        return mine

    theirs = refusals.announced(current, owner, "tacit.share_module of its weights", described)
    if theirs == mine:
        return
    theirs = theirs if isinstance(theirs, list) else []
    ours, other = next(((a, b) for a, b in zip(mine, theirs, strict=False) if a != b), (None, None))
    if ours is None:
        detail = f"this party's has {len(mine)} tensors, party {owner}'s {len(theirs)}"
    else:
        detail = f"this party's has {_described(ours)}, party {owner}'s {_described(other)}"
    raise MisuseError(f"the modules differ: {detail}; build the same architecture in every party")


def _described(entry: Any) -> str:
    match entry:
        case [str(name), [*shape], int(bits), str(dtype)]:
            return f"{name[:80]} of shape {tuple(shape)} and {dtype[:20]} with {bits} fraction bits"
    return "something else"


def _share(current: Session, owner: int, entries: list[_Entry]) -> None:
    """Shares all tensors, small ones in one message.

    Each gets its own storage, so that a write to one does not clear cached facts about another."""
    for group in grouped([entry.value.numel() for entry in entries]):
        _share_together(current, owner, entries[group])
        # Words, shares and messages of a group are larger than most tensors of the computation.
        give_back()


def _share_together(current: Session, owner: int, entries: list[_Entry]) -> None:
    sizes = [entry.value.numel() for entry in entries]

    def words() -> torch.Tensor | None:
        return torch.cat([_encoded(each) for each in entries]) if current.party == owner else None

    # The words are freed before the shares are copied.
    parts = shares.share(current, words(), owner, (sum(sizes),))
    pieces = zip(*(torch.split(part, sizes) for part in parts), strict=True)
    for entry, piece in zip(entries, pieces, strict=True):
        own = tuple(part.reshape(entry.value.shape).clone() for part in piece)
        current.storages.add(own[0])
        if entry.value.dtype.is_floating_point:
            checks.known(current, own, fixed.ENCODED)
        entry.secret = SecretTensor(own, entry.scale, current, entry.value.dtype).numbered()


def _replace(module: torch.nn.Module, entries: dict[int, _Entry], wanting: set[int]) -> None:
    """Replaces the plain tensors of a module by their sharings.

    A tensor that is used in two places stays one tensor. Parameters stay the same objects. Buffers,
    which are not trained, become new objects: the plain buffer may be a constant of the program."""
    secret: dict[int, torch.nn.Parameter] = {}
    for parameter in module.parameters():
        if (entry := entries.get(id(parameter))) is not None and entry.secret is not None:
            secret[id(parameter)] = torch.nn.Parameter(entry.secret, id(parameter) in wanting)
        elif not is_secret(parameter):
            parameter.requires_grad_(False)
    for part in module.modules():
        for name, plain in list(part._parameters.items()):
            if plain is None or id(plain) not in secret:
                continue
            if isinstance(part, torch.jit.ScriptModule):
                # TorchScript's interpreter holds the C++ tensor, so the object is replaced instead.
                part._parameters[name] = secret[id(plain)]
            else:
                take_place(plain, secret.pop(id(plain)))
        for name, buffer in list(part._buffers.items()):
            if buffer is not None and (entry := entries.get(id(buffer))) is not None:
                part._buffers[name] = entry.secret
