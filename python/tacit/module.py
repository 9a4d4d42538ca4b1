"""How a party's model becomes secret."""

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

#: What encoding may lose of a tensor, relative to it, before its owner is warned.
MUCH = 0.01

#: What the owner can do about it.
MORE_BITS = (
    "give them more fraction bits, as in share_module(..., scale={name: 24}), or scale them up"
)


@dataclass
class _Entry:
    """A tensor to be shared, and where its sharing goes."""

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
    """Makes ``owner``'s weights secret, in place: parameters and floating-point buffers become
    ``SecretTensor``; the names in ``state_dict`` stay. Returns the module.

    Parameters stay the objects that they are: an optimiser that was made before has the secret
    ones, and so has another module that uses them. Their hooks and attributes stay, their gradients
    do not. Parameters that are secret already, since another module uses them too, are left as they
    are.

    Every party passes a module of the same architecture and dtypes; only the values of the owner
    count. The other parties learn names and shapes. Where a weight cannot be shared, every party
    raises, the others without any value; the module stays as it is, and the session goes on.
    Parameters do not require gradients afterwards, unless they are trainable.

    Args:
        module: an ordinary module.
        owner: the party whose weights they are.
        scale: fraction bits of all weights, or of those that are named as in ``state_dict``, the
            same in every party; those of the session if not given. Small weights want more: a
            product of a weight at scale s with data at the session's 16 is right below 2^(46 − s).
        trainable: whether parameters that required gradients still do. Those of two dimensions and
            more, which data are multiplied by, then have four fraction bits more unless ``scale``
            says how many: as many as gradients. ``requires_grad_()`` afterwards makes all
            parameters trainable at the scale that they have.

    Raises:
        EncodingError: a weight is NaN, infinite or too large; the message names it.
        MisuseError: architectures or scales differ; the message names the first tensor that does.
            Or all weights are secret already.

    Warns:
        PrecisionWarning: in the owner alone, names weights that are so small that their encoding
            loses more than a hundredth of them.
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
    """As :func:`share_module`; what is to be done about weights that are too small is told in those
    words."""
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
    """By name, the scale of each tensor: as chosen, or else by its kind."""
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
    """The session's scale. Factors that are trained have the scale of gradients: what rounding
    changes in a small weight decides in each layer which units of a ReLU are on, and an error in
    few of these is a great one in the gradient; and steps are small. What is added, such as a bias,
    would bring its bits to all results, and range is lost by that."""
    return fixed.of_gradients(current.scale) if is_trained and tensor.dim() > 1 else current.scale


def _check(entries: list[_Entry], count: int, remedy: str) -> None:
    """Raises where a tensor cannot be encoded, before anything is sent; and tells the owner, whose
    process this is, which of the first ``count`` are too small for their scale. Words are let go
    one tensor after
    another: those of all are twice as large as the model."""
    small = []
    for at, entry in enumerate(entries):
        words = _encoded(entry)
        # What is added, such as a bias, is exact enough wherever results are.
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
    """Raises where it is no module, and says what is to be passed."""
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
    """Raises where a tensor has no values yet."""
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
    """Plain parameters and buffers with fractions, each once, by its first name."""
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
    """Holds this party's architecture against the owner's, whose weights were checked."""
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
    """Shares all tensors, small ones together; each has a storage of its own then, so that a write
    to one makes nothing of another forgotten."""
    for group in grouped([entry.value.numel() for entry in entries]):
        _share_together(current, owner, entries[group])
        # Words, shares and messages of a group are larger than most of what is computed with them.
        give_back()


def _share_together(current: Session, owner: int, entries: list[_Entry]) -> None:
    sizes = [entry.value.numel() for entry in entries]

    def words() -> torch.Tensor | None:
        return torch.cat([_encoded(each) for each in entries]) if current.party == owner else None

    # The words are let go before there are two of each share.
    parts = shares.share(current, words(), owner, (sum(sizes),))
    pieces = zip(*(torch.split(part, sizes) for part in parts), strict=True)
    for entry, piece in zip(entries, pieces, strict=True):
        own = tuple(part.reshape(entry.value.shape).clone() for part in piece)
        current.storages.add(own[0])
        if entry.value.dtype.is_floating_point:
            checks.known(current, own, fixed.ENCODED)
        entry.secret = SecretTensor(own, entry.scale, current, entry.value.dtype).numbered()


def _replace(module: torch.nn.Module, entries: dict[int, _Entry], wanting: set[int]) -> None:
    """Puts the sharings where the plain tensors were; a tensor with two places keeps both.
    Parameters stay the same objects. Buffers, which nobody trains, do not: a constant of the
    program may be one."""
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
                # Its interpreter has the tensor below the object, which stays what it was.
                part._parameters[name] = secret[id(plain)]
            else:
                take_place(plain, secret.pop(id(plain)))
        for name, buffer in list(part._buffers.items()):
            if buffer is not None and (entry := entries.get(id(buffer))) is not None:
                part._buffers[name] = entry.secret
