"""Secret random samples that no party knows or can bias.

    noise = tacit.random.laplace(total.shape, scale=1 / epsilon)
    (total + noise).reveal()

The parties draw samples together. Each party contributes bits from its operating system's entropy,
and the samples stay secret as shared data do (``sampling`` has the security argument;
``distributions`` says how each distribution is made and how far its tails reach). PyTorch's seeds
have no effect on them.

Fractions have the session's fraction bits, and are rounded down to them. Arguments are public
unless stated otherwise.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch

from tacit import fixed
from tacit.errors import MisuseError
from tacit.fixed import WHOLE, Scale
from tacit.randomness import distributions, sampling
from tacit.randomness.shuffling import shuffle
from tacit.sessions import Session, session
from tacit.sharings import shares, tracing
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

Shape = int | Sequence[int]

#: Scale of the sort keys of a choice without replacement.
KEYS = Scale(24)


def uniform(
    shape: Shape, low: float = 0.0, high: float = 1.0, *, dtype: torch.dtype | None = None
) -> SecretTensor:
    """Draws secret samples from the uniform distribution on [low, high).

    Samples have 2^16 steps at 16 fraction bits. Unless high − low is a whole number, rounding may
    give ``high`` itself.

    Args:
        shape: sizes of the result, or one size.
        low: the least value; public.
        high: the upper end, exclusive; public.
        dtype: a floating-point dtype; PyTorch's default if not given.

    Returns:
        A secret tensor of the given shape.

    Raises:
        MisuseError: ``low`` is greater than ``high``, a size is negative, or the dtype is not
            floating-point.
    """
    current, sizes = _begun("uniform", shape, low, high)
    if not low <= high:
        raise MisuseError(f"uniform() from {low} to {high}: the first must not be greater")
    return _moved(
        current, distributions.uniform(current, sizes, current.scale.bits), dtype, low, high - low
    )


def normal(
    shape: Shape, mean: float = 0.0, std: float = 1.0, *, dtype: torch.dtype | None = None
) -> SecretTensor:
    """Draws secret samples from the normal distribution.

    The distribution function is right to 2^-15. Samples are within eight standard deviations of the
    mean. Probabilities beyond six standard deviations are not reliable.

    Args:
        shape: sizes of the result, or one size.
        mean: the mean; public.
        std: the standard deviation, 0 or more; public.
        dtype: a floating-point dtype; PyTorch's default if not given.

    Returns:
        A secret tensor of the given shape.

    Raises:
        MisuseError: ``std`` is negative or not finite, a size is negative, or the dtype is not
            floating-point.
    """
    current, sizes = _begun("normal", shape, mean, std)
    _check_positive("normal", "std", std, zero=True)
    return _moved(
        current, distributions.normal(current, sizes, current.scale.bits), dtype, mean, std
    )


def exponential(
    shape: Shape, rate: float = 1.0, *, dtype: torch.dtype | None = None
) -> SecretTensor:
    """Draws secret samples from the exponential distribution with mean 1/rate.

    Samples are at most 32 times the mean.

    Args:
        shape: sizes of the result, or one size.
        rate: the inverse of the mean, positive; public.
        dtype: a floating-point dtype; PyTorch's default if not given.

    Returns:
        A secret tensor of the given shape.

    Raises:
        MisuseError: ``rate`` is not positive, a size is negative, or the dtype is not
            floating-point.
    """
    current, sizes = _begun("exponential", shape, rate)
    _check_positive("exponential", "rate", rate)
    words = distributions.exponential(current, sizes, current.scale.bits)
    return _moved(current, words, dtype, 0.0, 1 / rate)


def laplace(
    shape: Shape, loc: float = 0.0, scale: float = 1.0, *, dtype: torch.dtype | None = None
) -> SecretTensor:
    """Draws secret samples from the Laplace distribution.

    The density is exp(−|x − loc|/scale)/(2·scale). Samples are within 32 times the scale of
    ``loc``.

    Args:
        shape: sizes of the result, or one size.
        loc: the mean and median; public.
        scale: the mean distance from ``loc``, 0 or more; public.
        dtype: a floating-point dtype; PyTorch's default if not given.

    Returns:
        A secret tensor of the given shape.

    Raises:
        MisuseError: ``scale`` is negative or not finite, a size is negative, or the dtype is not
            floating-point.
    """
    current, sizes = _begun("laplace", shape, loc, scale)
    _check_positive("laplace", "scale", scale, zero=True)
    words = distributions.exponential(current, sizes, current.scale.bits, signed=True)
    return _moved(current, words, dtype, loc, scale)


def rademacher(shape: Shape, *, dtype: torch.dtype | None = None) -> SecretTensor:
    """Draws secret samples that are −1 or 1, each with probability ½.

    Args:
        shape: sizes of the result, or one size.
        dtype: any numeric dtype; PyTorch's default if not given.

    Returns:
        A secret tensor of the given shape.

    Raises:
        MisuseError: a size is negative.
    """
    current, sizes = _begun("rademacher", shape)
    words = sampling.number(current, sampling.bits(current, (1, *sizes)))
    dtype = dtype or torch.get_default_dtype()
    scale = fixed.of_dtype(current.scale, dtype)
    ones = SecretTensor(
        tuple(word << scale.bits for word in words), scale, current, dtype
    ).numbered()
    return 2 * ones - 1


def bernoulli(
    probability: float | torch.Tensor | SecretTensor, shape: Shape | None = None
) -> SecretTensor:
    """Draws secret booleans that are true with a given probability.

    A public probability is exact to 2^-32, and a secret one to its fraction bits.

    Args:
        probability: a number from 0 to 1, or a public or secret tensor of such numbers.
        shape: sizes of the result, to which public probabilities are broadcast. If not given, the
            result has their shape. With secret probabilities it must not be given.

    Returns:
        A secret boolean tensor.

    Raises:
        MisuseError: a public probability is less than 0 or greater than 1, or does not broadcast to
            ``shape``; or a shape is given with secret probabilities.
    """
    if isinstance(probability, SecretTensor):
        if shape is not None:
            raise MisuseError(
                "bernoulli() of secret probabilities has their shape: pass no shape, and expand() "
                "them"
            )
        current, sizes = _begun("bernoulli", probability.shape)
        drawn = distributions.uniform(current, sizes, probability._scale.bits)
        uniform = SecretTensor(drawn, probability._scale, current, probability.dtype)
        return uniform.numbered() < probability
    known = torch.as_tensor(probability, dtype=torch.float64)
    current, sizes = _begun("bernoulli", known.shape if shape is None else shape, known)
    if not bool(((known >= 0) & (known <= 1)).all()):
        raise MisuseError("bernoulli() takes probabilities from 0 to 1")
    try:
        known = known.expand(sizes)
    except RuntimeError:
        raise MisuseError(
            f"probabilities of shape {tuple(known.shape)} for samples of {sizes}"
        ) from None
    return SecretTensor(
        sampling.happens(current, known, sizes), WHOLE, current, torch.bool
    ).numbered()


def choice(
    weights: torch.Tensor | SecretTensor | Sequence[float],
    shape: Shape = (),
    *,
    replacement: bool = True,
) -> SecretTensor:
    """Draws secret indices, each with a probability proportional to its weight.

    Probabilities are exact to 2^-32 for public weights, and to 2^-16 for secret ones.

    Args:
        weights: weights of shape [n], none of them negative: public, or secret fractions.
        shape: sizes of the result. Without replacement, the number of different indices, which are
            returned in the order in which they were drawn.
        replacement: whether an index may be drawn again. Without replacement, weights must be
            public, and may differ by a factor of at most 2^10.

    Returns:
        A secret int64 tensor of indices from 0 to n − 1.

    Raises:
        MisuseError: the weights are not as described, or more different indices are requested than
            have a positive weight.
    """
    if isinstance(weights, SecretTensor):
        return _choice_by_secret(weights, shape, replacement)
    known = torch.as_tensor(weights, dtype=torch.float64)
    current, sizes = _begun("choice", shape, known, replacement)
    if (
        known.dim() != 1
        or not known.numel()
        or not bool((known >= 0).all())
        or not 0 < known.sum() < math.inf
    ):
        raise MisuseError(
            "choice() takes one row of weights, none of them negative, and not all zero"
        )
    if not replacement:
        return _choice_of_different(current, known, sizes)
    found = distributions.indices(current, known, sizes)
    return SecretTensor(found, WHOLE, current, torch.int64).numbered()


def _choice_of_different(
    current: Session, weights: torch.Tensor, sizes: tuple[int, ...]
) -> SecretTensor:
    """Returns the indices of the least of independent exponential samples, with weights as rates.

    The order of these samples is a weighted choice (P. Efraimidis, P. Spirakis 2006)."""
    candidates = weights.nonzero().squeeze(1)
    count, greatest = torch.Size(sizes).numel(), float(weights.max())
    least = float(weights[candidates].min())
    if len(sizes) > 1 or not 1 <= count <= candidates.numel():
        raise MisuseError(
            f"choice() of {candidates.numel()} without replacement takes a number from 1 to that"
        )
    if greatest > 2**10 * least:
        raise MisuseError(
            "choice() without replacement takes weights that differ by a factor of at most 2^10"
        )
    with current.using(scale=KEYS):
        clocks = exponential(candidates.numel()) * (least / weights[candidates])
        winners: Any = clocks.topk(count, largest=False).indices
    if candidates.numel() == weights.numel():
        return winners
    # Maps indices among the candidates to indices among all weights.
    chosen: SecretTensor = (
        winners.unsqueeze(-1) == torch.arange(candidates.numel())
    ).long() @ candidates
    return chosen


def _choice_by_secret(weights: SecretTensor, shape: Shape, replacement: bool) -> SecretTensor:
    if not replacement:
        raise MisuseError(
            "choice() by secret weights is only with replacement: draw one index after the other"
        )
    if weights.dim() != 1 or not weights.numel() or not weights.dtype.is_floating_point:
        raise MisuseError("choice() by secret weights takes one row of floating-point weights")
    sizes = _begun("choice", shape, replacement)[1]
    found: Any = weights.detach().multinomial(math.prod(sizes), replacement=True)
    return found.reshape(sizes)


def permutation(n: int) -> SecretTensor:
    """Returns the numbers from 0 to n − 1 in a secret random order.

    Takes the rounds of ``tacit.shuffle``.

    Args:
        n: how many numbers.

    Returns:
        A secret int64 tensor of shape [n].

    Raises:
        MisuseError: ``n`` is negative.
    """
    current, _ = _begun("permutation", n)
    in_order = shares.trivial(current, torch.arange(n))
    return shuffle(SecretTensor(in_order, WHOLE, current, torch.int64).numbered())


def _begun(what: str, shape: Shape, *public: Any) -> tuple[Session, tuple[int, ...]]:
    """Returns the session and the sizes, after noting the call for comparison among all parties."""
    tracing.refuse("drawing")
    current = session()
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(size < 0 for size in sizes):
        raise MisuseError(f"{what}() of shape {sizes}")
    current.core.note(repr(["tacit.random", what, sizes]).encode())
    for value in public:
        data = torch.as_tensor(value, dtype=torch.float64).contiguous().reshape(-1)
        current.core.note_public(f"tacit.random.{what}", data.view(torch.uint8).numpy())
    return current, sizes


def _check_positive(what: str, name: str, value: float, *, zero: bool = False) -> None:
    if not (0 < value < math.inf or (zero and value == 0)):
        raise MisuseError(f"{what}() with {name}={value}: it must be positive")


def _moved(
    current: Session, words: Parts, dtype: torch.dtype | None, start: float, factor: float
) -> SecretTensor:
    """Returns start + factor·x as a secret tensor of a floating-point dtype."""
    dtype = dtype or torch.get_default_dtype()
    if not dtype.is_floating_point:
        raise MisuseError(f"random fractions of dtype {dtype}: take one of a floating-point dtype")
    x = SecretTensor(words, current.scale, current, dtype).numbered()
    if factor != 1:
        x = x * factor
    return x + start if start else x
