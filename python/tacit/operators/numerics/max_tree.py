"""Maxima over windows by a tree of comparisons, with their indices and gradients.

The tree keeps one secret bit for each comparison, which says which operand won. Indices and
gradients are computed from these bits, and only if they are asked for."""

import math
from dataclasses import dataclass
from functools import cached_property

import torch

from tacit import checks
from tacit.modes import outside_trace
from tacit.operators.numerics.compare_words import greater, less
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Comparison, Parts


@dataclass(frozen=True)
class Windows:
    """Windows along one dimension, which counts from the end.

    ``taps`` holds, for each place of a window, the index of the element that each output takes
    there. Its shape is (places, outputs), or (places, rows, outputs) if each row has its own.

    If several windows or places take the same element, the earlier place counts.
    """

    dim: int
    size: int
    taps: torch.Tensor

    @property
    def most(self) -> int:
        """The largest number of outputs whose windows have an element in common."""
        taps = self.taps if self.taps.dim() == 3 else self.taps.unsqueeze(1)
        _, rows, outputs = taps.shape
        is_in = torch.zeros(rows, outputs, self.size, dtype=torch.bool)
        is_in.scatter_(2, taps.permute(1, 2, 0), True)
        return int(is_in.sum(1).max())

    @cached_property
    @outside_trace
    def _slices(self) -> "_Slices | None":
        """The windows as slices, if the indices of each place are evenly spaced.

        Beyond the ends, the first or the last element may be repeated."""
        outputs = self.taps.shape[-1]
        step = int((self.taps[:, 1:] - self.taps[:, :-1]).max()) if outputs > 1 else 1
        middle = outputs // 2
        starts = self.taps[:, middle : middle + 1] - middle * step
        places = starts + torch.arange(outputs) * step
        if step < 1 or not self.taps.equal(places.clamp(0, self.size - 1)):
            return None
        before, after = max(0, -int(places.min())), max(0, int(places.max()) - self.size + 1)
        return _Slices(
            before, after, (starts.flatten() + before).tolist(), step, (outputs - 1) * step + 1
        )

    def taken(self, parts: Parts) -> Parts:
        """Gathers the elements of all windows: (places, ..., outputs, ...) of each component."""
        return tuple(map(self._taken, parts))

    def _taken(self, part: torch.Tensor) -> torch.Tensor:
        if self.taps.dim() == 3:
            return torch.stack([part.gather(self.dim, tap) for tap in self.taps])
        if self._slices is not None:
            return self._slices.taken(part, self.dim)
        places = part.index_select(self.dim, self.taps.flatten())
        return torch.ops.aten.unflatten.int(places, self.dim, self.taps.shape).movedim(
            self.dim - 1, 0
        )

    def scatter_add(self, parts: Parts) -> Parts:
        """Scatters and adds values back to the elements: the adjoint of ``taken``."""
        return tuple(map(self._scatter_add, parts))

    def _scatter_add(self, part: torch.Tensor) -> torch.Tensor:
        shape = list(part.shape[1:])
        shape[self.dim] = self.size
        back = part.new_zeros(shape)
        for tap, given in zip(self.taps, part, strict=True):
            if self.taps.dim() == 3:
                back.scatter_add_(self.dim, tap, given)
            else:
                back.index_add_(self.dim, tap, given)
        return back


@dataclass(frozen=True)
class _Slices:
    """Windows at equal steps, which slices take in a fraction of the time of index_select."""

    before: int
    #: How often the first and the last element are repeated.
    after: int
    #: First index of each place, counted with the repeated elements.
    starts: list[int]
    step: int
    length: int

    def taken(self, part: torch.Tensor, dim: int) -> torch.Tensor:
        size = part.shape[dim]
        if self.before or self.after:
            first, last = part.narrow(dim, 0, 1), part.narrow(dim, size - 1, 1)
            part = torch.cat([*[first] * self.before, part, *[last] * self.after], dim)
        ends = [(start, start + self.length) for start in self.starts]
        return torch.stack([torch.ops.aten.slice(part, dim, *each, self.step) for each in ends])


class Tournament:
    """Maxima over windows along one dimension after another.

    Among equal elements the first wins, as in PyTorch."""

    def __init__(
        self,
        session: Session,
        x: Parts,
        stages: list[Windows],
        comparison: Comparison,
        *,
        with_zero: bool = False,
    ) -> None:
        """Computes the maxima.

        Each level of the tree takes one comparison of differences and one selection: 8 rounds.

        Args:
            comparison: how differences are compared. If it is guarded, there are no indices and no
                gradients.
            with_zero: zero is one more candidate of each window in the last stage. Then, too, there
                are no indices and no gradients.
        """
        self.session = session
        #: Shape of the input.
        self.shape = x[0].shape
        self._stages: list[tuple[Windows, list[Parts]]] = []
        for windows in stages:
            places, levels = windows.taken(x), []
            checks.inherit(session, places, x)
            is_last = with_zero and windows is stages[-1]
            # If the tree has no free place for zero, zero is compared in one batch with the last
            # two candidates. This must not take more than comparing the whole input with zero.
            joins_last = is_last and not comparison.reach and _is_full_tree(places, self.shape)
            if is_last and not joins_last:
                with_zeros = (torch.cat([part, torch.zeros_like(part[:1])]) for part in places)
                places = tuple(with_zeros)
                checks.inherit(session, places, x)
            while places[0].shape[0] > 1:
                left, right, rest = _neighbours(places)
                if joins_last and places[0].shape[0] == 2:
                    won = _greatest(session, left, right, comparison)
                elif comparison.reach:
                    won = greater(session, left, right, comparison)
                else:
                    # The left one is the earlier. It loses only if it is less.
                    levels.append(less(session, left, right, comparison.width))
                    won = self._chosen(levels[-1], left, right)
                # Frees the compared candidates: ``rest`` must not be a view of them.
                rest = tuple(part.clone() for part in rest)
                del places, left, right
                places = shares.joined(won, rest)
                checks.inherit(session, places, x)
            x = tuple(part[0] for part in places)
            self._stages.append((windows, levels))
        self.winners = x
        self._positions: Parts = ()

    def _chosen(self, lost: Parts, left: Parts, right: Parts) -> Parts:
        return shares.select(self.session, lost, right, left)

    @property
    def most(self) -> int:
        """A bound on the number of windows that have an element in common."""
        return math.prod(windows.most for windows, _ in self._stages)

    def of_winners(self, values: Parts) -> Parts:
        """Selects other values of all elements at the winners.

        Each level takes one selection: two rounds."""
        for windows, levels in self._stages:
            places = windows.taken(values)
            for lost in levels:
                left, right, rest = _neighbours(places)
                places = shares.joined(self._chosen(lost, left, right), rest)
            values = tuple(part[0] for part in places)
        return values

    def scatter_add(self, values: Parts) -> Parts:
        """Adds a value of each output to the element that won it.

        Each level takes one selection: two rounds."""
        for windows, levels in reversed(self._stages):
            places = tuple(part.unsqueeze(0) for part in values)
            for lost in reversed(levels):
                won, rest = (
                    tuple(part[half] for part in places)
                    for half in (slice(len(lost[0])), slice(len(lost[0]), None))
                )
                right = shares.bit_multiply(self.session, lost, won)
                left = shares.subtract(won, right)
                pairs = zip(left, right, strict=True)
                places = shares.joined(
                    tuple(torch.stack(pair, 1).flatten(0, 1) for pair in pairs), rest
                )
            values = windows.scatter_add(places)
        return values

    def positions(self, dims: int) -> Parts:
        """Returns the flat indices of the winners within the last ``dims`` dimensions.

        They are computed once."""
        if not self._positions:
            sizes = self.shape[len(self.shape) - dims :]
            numbers = shares.trivial(self.session, torch.arange(sizes.numel()).reshape(sizes))
            everywhere = tuple(part.expand(self.shape) for part in numbers)
            self._positions = self.of_winners(everywhere)
        return self._positions


def _is_full_tree(places: Parts, shape: torch.Size) -> bool:
    """Whether each window has 2, 4, 8, ... candidates, with at most one window for two elements."""
    count = places[0].shape[0]
    return count > 1 and count & (count - 1) == 0 and 2 * places[0][0].numel() <= shape.numel()


def _greatest(session: Session, left: Parts, right: Parts, comparison: Comparison) -> Parts:
    """Returns the maximum of both and zero.

    The three comparisons run in one batch, and take a round more than one of them."""
    zeros = tuple(torch.zeros_like(part) for part in left)
    signs = less(
        session,
        shares.stacked(left, left, right),
        shares.stacked(right, zeros, zeros),
        comparison.width,
    )
    lost, *negative = shares.unstacked(signs)
    won = shares.stacked(shares.complement(session, lost), lost)
    taken = shares.and_bits(session, won, shares.complement(session, shares.stacked(*negative)))
    first, second = shares.unstacked(
        shares.bit_multiply(session, taken, shares.stacked(left, right))
    )
    return shares.add(first, second)


def _neighbours(places: Parts) -> tuple[Parts, Parts, Parts]:
    """Returns the left and right candidates of all pairs, and the last one if it has no pair."""
    even = places[0].shape[0] // 2 * 2
    left, right = (tuple(part[side:even:2] for part in places) for side in (0, 1))
    return left, right, tuple(part[even:] for part in places)
