"""Samples that no party knows or biases, as secret tensors.

    noise = tacit.random.laplace(total.shape, scale=1 / epsilon)
    (total + noise).reveal()

The parties draw them together: each contributes bits of its operating system's entropy, and they
stay secret as what is shared does (``sampling`` has the argument; ``distributions`` how each is
made and how far its tails reach). PyTorch's seeds do not count for them.

Fractions have the session's fraction bits and are rounded down to them. Arguments are public unless
it says otherwise.
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

#: Fraction bits of the keys by which a choice without replacement is sorted.
KEYS = Scale(24)


def uniform(
    shape: Shape, low: float = 0.0, high: float = 1.0, *, dtype: torch.dtype | None = None
) -> SecretTensor:
    """Uniform from ``low`` to before ``high``, in 2^16 steps at 16 fraction bits. Unless high − low
    is a whole number rounding may reach ``high``.

    Args:
        shape: sizes of the result, or one size.
        low: the least value; public.
        high: the end, which is not reached; public.
        dtype: a floating-point dtype; PyTorch's default if not given.

    Raises:
        MisuseError: ``low`` is greater than ``high``, the shape is none, or the dtype has no
            fractions.
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
    """Normal; the distribution function is right to 2^-15, up to six standard deviations from the
    mean.

    Args:
        shape: sizes of the result, or one size.
        mean: the mean; public.
        std: the standard deviation, 0 or more; public.
        dtype: a floating-point dtype; PyTorch's default if not given.

    Raises:
        MisuseError: ``std`` is negative or not finite, the shape is none, or the dtype has no
            fractions.
    """
    current, sizes = _begun("normal", shape, mean, std)
    _check_positive("normal", "std", std, zero=True)
    return _moved(
        current, distributions.normal(current, sizes, current.scale.bits), dtype, mean, std
    )


def exponential(
    shape: Shape, rate: float = 1.0, *, dtype: torch.dtype | None = None
) -> SecretTensor:
    """Exponential, of mean 1/rate, up to 32 times that.

    Args:
        shape: sizes of the result, or one size.
        rate: the inverse of the mean, positive; public.
        dtype: a floating-point dtype; PyTorch's default if not given.

    Raises:
        MisuseError: ``rate`` is not positive, the shape is none, or the dtype has no fractions.
    """
    current, sizes = _begun("exponential", shape, rate)
    _check_positive("exponential", "rate", rate)
    words = distributions.exponential(current, sizes, current.scale.bits)
    return _moved(current, words, dtype, 0.0, 1 / rate)


def laplace(
    shape: Shape, loc: float = 0.0, scale: float = 1.0, *, dtype: torch.dtype | None = None
) -> SecretTensor:
    """Laplace's, of density exp(−|x − loc|/scale)/(2·scale), up to 32 times the scale.

    Args:
        shape: sizes of the result, or one size.
        loc: the mean and median; public.
        scale: the mean distance from ``loc``, 0 or more; public.
        dtype: a floating-point dtype; PyTorch's default if not given.

    Raises:
        MisuseError: ``scale`` is negative or not finite, the shape is none, or the dtype has no
            fractions.
    """
    current, sizes = _begun("laplace", shape, loc, scale)
    _check_positive("laplace", "scale", scale, zero=True)
    words = distributions.exponential(current, sizes, current.scale.bits, signed=True)
    return _moved(current, words, dtype, loc, scale)


def rademacher(shape: Shape, *, dtype: torch.dtype | None = None) -> SecretTensor:
    """−1 or 1, each with probability ½.

    Args:
        shape: sizes of the result, or one size.
        dtype: any dtype of numbers; PyTorch's default if not given.

    Raises:
        MisuseError: the shape is none.
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
    """Secret booleans that are true with a probability: a public one to 2^-32, a secret one to its
    fraction bits.

    Args:
        probability: from 0 to 1: a number, or a tensor, public or secret.
        shape: sizes of the result, to which public probabilities are broadcast; theirs if not
            given. Secret probabilities have the shape of the result already.

    Raises:
        MisuseError: a public probability is outside of 0 to 1, or does not broadcast to ``shape``;
            or a shape is given beside secret probabilities.
    """
    if isinstance(probability, SecretTensor):
        if shape is not None:
            raise MisuseError("bernoulli() of secret probabilities has their shape: expand() them")
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
    """Secret indices, each with a probability in proportion to its weight: to 2^-32 for public
    ones, to 2^-16 for secret ones.

    Args:
        weights: one row [n] of weights, none of them negative; public, or secret fractions.
        shape: sizes of the result; without replacement a number: so many different indices, in the
            order in which they were drawn.
        replacement: whether an index may be drawn again. Without it weights are public, and differ
            by a factor of at most 2^10.

    Raises:
        MisuseError: the weights are no such row, or more different indices are asked for than have
            a weight.
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
    """The indices that win a race of exponential clocks, of which each runs as fast as its weight
    says (P. Efraimidis, P. Spirakis 2006)."""
    candidates = weights.nonzero().squeeze(1)
    count, greatest = torch.Size(sizes).numel(), float(weights.max())
    least = float(weights[candidates].min())
    if len(sizes) > 1 or not 1 <= count <= candidates.numel():
        raise MisuseError(
            f"choice() of {candidates.numel()} without replacement takes a number up to that"
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
    # From places among the candidates to places among all.
    chosen: SecretTensor = (
        winners.unsqueeze(-1) == torch.arange(candidates.numel())
    ).long() @ candidates
    return chosen


def _choice_by_secret(weights: SecretTensor, shape: Shape, replacement: bool) -> SecretTensor:
    if not replacement:
        raise MisuseError(
            "choice() by secret weights is with replacement; draw one after the other"
        )
    if weights.dim() != 1 or not weights.numel() or not weights.dtype.is_floating_point:
        raise MisuseError("choice() takes one row of weights, of fractions")
    sizes = _begun("choice", shape, replacement)[1]
    found: Any = weights.detach().multinomial(math.prod(sizes), replacement=True)
    return found.reshape(sizes)


def permutation(n: int) -> SecretTensor:
    """The numbers from 0 to before n in a secret order, int64 of shape [n]; rounds as
    ``tacit.shuffle``.

    Args:
        n: how many.

    Raises:
        MisuseError: ``n`` is negative.
    """
    current, _ = _begun("permutation", n)
    in_order = shares.trivial(current, torch.arange(n))
    return shuffle(SecretTensor(in_order, WHOLE, current, torch.int64).numbered())


def _begun(what: str, shape: Shape, *public: Any) -> tuple[Session, tuple[int, ...]]:
    """The session, which compares what is drawn in all parties, and the sizes."""
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
        raise MisuseError(f"{what}() with {name}={value}: it is positive")


def _moved(
    current: Session, words: Parts, dtype: torch.dtype | None, start: float, factor: float
) -> SecretTensor:
    """start + factor·x."""
    dtype = dtype or torch.get_default_dtype()
    if not dtype.is_floating_point:
        raise MisuseError(f"random fractions of dtype {dtype}: take one of a floating-point dtype")
    x = SecretTensor(words, current.scale, current, dtype).numbered()
    if factor != 1:
        x = x * factor
    return x + start if start else x
