"""Runs PyTorch's own operator database on secret tensors."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, TypeVar

import torch
from torch.testing._internal import common_utils
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo import core
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

import tacit

# PyTorch looks for the running unittest.TestCase with every list of samples. There is none, and the
# search through the stack and all modules takes longer than the operator.
for module in (common_utils, core):
    module.extract_test_fn = lambda: None

#: Samples of each operator that are tested.
SAMPLES = 12

#: The maximum count of elements in the inputs of a sample. Larger inputs take time and show nothing
#: new.
LARGEST = 20_000

#: Tolerances for values. The values in PyTorch's samples lie between −9 and 9.
ABSOLUTE, RELATIVE = 4e-3, 1e-3

#: The fraction bits that inputs are rounded to.
ENCODED = 13

#: Bounds on the results that are compared, as operators' docstrings state them near poles.
LARGEST_RESULT = {"tan": 2.0**5, "polygamma": 2.0**24, "special.polygamma": 2.0**24}


def _of_eigen(leaves: list[Any]) -> list[Any]:
    values, vectors = leaves
    whole = (vectors * values.unsqueeze(-2)) @ vectors.mT
    return [values, whole, vectors.mT @ vectors, vectors.abs()]


def _of_singular(leaves: list[Any]) -> list[Any]:
    left, values, right = leaves
    count = values.shape[-1]
    columns, rows = left[..., :count], right[..., :count, :]
    grams = left.mT @ left, right @ right.mT
    return [values, (columns * values.unsqueeze(-2)) @ rows, *grams, columns.abs(), rows.abs()]


#: Functions of results that are determined up to signs, or up to a choice among vectors, which give
#: what is determined.
DETERMINED: dict[str, Callable[[list[Any]], list[Any]]] = {
    "linalg.eigh": _of_eigen,
    "linalg.svd": _of_singular,
    "svd": lambda leaves: _of_singular([*leaves[:2], leaves[2].mT]),
}


@dataclass(frozen=True)
class Sample:
    """One call of an operator, whose input is secret.

    If ``all_secret`` is true, the other fractions are secret too.
    """

    name: str
    variant: str
    at: int
    input: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    all_secret: bool


def operators() -> list[tuple[str, str]]:
    """Returns the name and variant of every operator in the database that takes float32."""
    return sorted({(op.name, op.variant_test_name) for op in op_db if torch.float32 in op.dtypes})


def find(name: str, variant: str) -> Any:
    """Returns an entry of the database."""
    return next(op for op in op_db if (op.name, op.variant_test_name) == (name, variant))


def samples(name: str, variant: str) -> list[Sample]:
    """Returns calls with a secret input alone, and calls in which all fractions are secret."""
    torch.manual_seed(7)
    found: list[Sample] = []
    empty: list[Sample] = []
    for at, sample in enumerate(find(name, variant).sample_inputs("cpu", torch.float32)):
        leaves = [
            leaf for leaf in pytree.tree_leaves(sample.input) if isinstance(leaf, torch.Tensor)
        ]
        others = [
            leaf
            for leaf in pytree.tree_leaves((sample.args, sample.kwargs))
            if isinstance(leaf, torch.Tensor)
        ]
        if not leaves or sum(leaf.numel() for leaf in leaves + others) > LARGEST:
            continue
        for leaf in leaves + others:
            _round(leaf)
        which = found if all(leaf.numel() for leaf in leaves + others) else empty
        which.append(Sample(name, variant, at, sample.input, sample.args, sample.kwargs, False))
        if any(leaf.is_floating_point() for leaf in others):
            which.append(Sample(name, variant, at, sample.input, sample.args, sample.kwargs, True))
        if len(found) >= SAMPLES:
            break
    return with_few(empty, found, SAMPLES)


Kind = TypeVar("Kind")


def with_few(empty: list[Kind], found: list[Kind], most: int) -> list[Kind]:
    """Returns at most ``most`` samples, few of which have no elements.

    An operator that does nothing right would pass on empty samples alone.
    """
    few = empty[: max(2, most - len(found))]
    return [*found[: most - len(few)], *few]


def _round(leaf: torch.Tensor) -> None:
    """Rounds fractions in place to numbers that every scale can encode.

    The tests are about operators, not about the rounding of their inputs, which some operators
    magnify.
    """
    if leaf.dtype in (torch.float32, torch.float64) and leaf.layout == torch.strided:
        # Round the whole storage, since a view may have elements twice.
        memory = torch.empty(0, dtype=leaf.dtype).set_(leaf.untyped_storage())
        memory.copy_((memory * 2.0**ENCODED).round() * 2.0**-ENCODED)


def _shared(value: Any, also_integers: bool, scales: Iterator[int | None]) -> Any:
    def share(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor) and (also_integers or leaf.is_floating_point()):
            # Sparse tensors cannot be shared, and the test is about the operator.
            leaf = leaf if leaf.layout == torch.strided else leaf.to_dense()
            # The owner alone would refuse a value that cannot be encoded. All parties encode here,
            # so that none of them waits for the owner.
            tacit.fixed.encode(leaf, tacit.fixed.of_dtype(tacit.fixed.DEFAULT, leaf.dtype))
            return tacit.share(leaf, owner=0, scale=next(scales))
        return leaf

    return pytree.tree_map(share, value)


def call(sample: Sample, scales: Iterator[int | None]) -> list[Any]:
    """Runs in a party. Returns the leaves of the result, revealed."""
    first = _shared(sample.input, True, scales)
    args, kwargs = sample.args, sample.kwargs
    if sample.all_secret:
        args, kwargs = _shared(args, False, scales), _shared(kwargs, False, scales)
    result = find(sample.name, sample.variant).op(first, *args, **kwargs)
    return [
        leaf.reveal() if isinstance(leaf, tacit.SecretTensor) else leaf
        for leaf in pytree.tree_leaves(result)
    ]


def attempt(all_samples: list[Sample], scales: Sequence[int | None] = (None,)) -> list[Any]:
    """Runs in a party. Returns the result of each sample, or the error.

    Shared tensors take the given scales in turn.
    """
    outcomes: list[Any] = []
    in_turn = cycle(scales)
    for sample in all_samples:
        try:
            outcomes.append(call(sample, in_turn))
        except tacit.MisuseError as error:
            outcomes.append(error)
        except Exception as error:
            outcomes.append(RuntimeError(f"{type(error).__name__}: {error}"))
    return outcomes


class Draws(TorchDispatchMode):
    """A mode that records whether plain operators draw random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.happened = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        before = torch.get_rng_state()
        result = func(*args, **(kwargs or {}))
        self.happened |= not torch.equal(before, torch.get_rng_state())
        return result


def expected(sample: Sample) -> tuple[list[Any], bool]:
    """Returns the leaves of the plain result, and whether random numbers were drawn for it."""
    with Draws() as draws:
        leaves = pytree.tree_leaves(
            find(sample.name, sample.variant).op(sample.input, *sample.args, **sample.kwargs)
        )
    # Some operators write into their input, and the next call would change the result again.
    return [
        leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves
    ], draws.happened


def wrong(sample: Sample, found: list[Any], values: bool = True) -> str | None:
    """Describes what is wrong with the result of a sample, or returns None.

    Only shapes and dtypes are compared if ``values`` is false or the operator draws random numbers.
    """
    plain, drawn = expected(sample)
    determined = DETERMINED.get(sample.name)
    if determined is not None:
        found, plain = determined(found), determined(plain)
    return difference(found, plain, values and not drawn, LARGEST_RESULT.get(sample.name, math.inf))


def _in_domain(mine: torch.Tensor, theirs: torch.Tensor, largest: float) -> torch.Tensor:
    """Replaces infinite, NaN and too large expected values by the found values.

    Fixed point has no such values; the operators' docstrings state the results there.
    """
    return torch.where((theirs <= largest) & (theirs >= -largest) & theirs.isfinite(), theirs, mine)


def difference(
    found: list[Any], plain: list[Any], values: bool = True, largest: float = math.inf
) -> str | None:
    """Describes what is wrong with a result, or returns None.

    Only shapes and dtypes are compared if ``values`` is false.
    """
    if len(found) != len(plain):
        return f"{len(found)} results in the place of {len(plain)}"
    for mine, theirs in zip(found, plain, strict=True):
        if not isinstance(theirs, torch.Tensor):
            if mine != theirs:
                return f"{mine} in the place of {theirs}"
            continue
        if mine.shape != theirs.shape:
            return f"shape {tuple(mine.shape)} in the place of {tuple(theirs.shape)}"
        if mine.dtype != theirs.dtype:
            return f"dtype {mine.dtype} in the place of {theirs.dtype}"
        if theirs.is_complex():
            mine, theirs = torch.view_as_real(mine), torch.view_as_real(theirs)
        theirs = _in_domain(mine, theirs, largest)
        if values and not torch.allclose(
            mine.double(), theirs.double(), RELATIVE, ABSOLUTE, equal_nan=True
        ):
            return f"off by {(mine.double() - theirs.double()).abs().max():.2g}"
    return None
