"""Maxima over windows, and which elements won: bits, one for each comparison, from which indices
are computed and along which gradients go back. Nobody who does not ask for either pays for more
than the maxima."""

from dataclasses import dataclass
from functools import cached_property

import torch

from tacit.modes import outside_trace
from tacit.operators.numerics.compare_words import greater, less
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Comparison, Parts


@dataclass(frozen=True)
class Windows:
    """Which elements meet: for each place of a window the index along a dimension (from the end)
    that each output takes there. (places, outputs), or (places, rows, outputs) where each row has
    its own.

    Where several windows or places take the same element, the earlier place is the one that counts.
    """

    dim: int
    size: int
    taps: torch.Tensor

    @property
    def overlap(self) -> bool:
        """Whether an element is in the windows of several outputs."""
        taps = self.taps if self.taps.dim() == 3 else self.taps.unsqueeze(1)
        _, rows, outputs = taps.shape
        is_in = torch.zeros(rows, outputs, self.size, dtype=torch.bool)
        is_in.scatter_(2, taps.permute(1, 2, 0), True)
        return bool((is_in.sum(1) > 1).any())

    @cached_property
    @outside_trace
    def _slices(self) -> "_Slices | None":
        """The same as slices, if the indices of each place are equally far from each other; at the
        ends the first or last element may stand for what lies beyond."""
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
        """(places, ..., outputs, ...) of components."""
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

    def given_back(self, parts: Parts) -> Parts:
        """What is added up at each element: the adjoint of ``taken``."""
        return tuple(map(self._given_back, parts))

    def _given_back(self, part: torch.Tensor) -> torch.Tensor:
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
    """Windows whose steps are equally wide, taken as index_select takes them, in a fraction of the
    time."""

    before: int
    after: int
    """How often the first and the last element are repeated."""
    starts: list[int]
    """Of each place, among all that there are then."""
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
    """Maxima over windows along one dimension after another; among equals the first wins, as in
    PyTorch."""

    def __init__(
        self,
        session: Session,
        x: Parts,
        stages: list[Windows],
        comparison: Comparison,
        *,
        with_zero: bool = False,
    ) -> None:
        """Plays it: for each level such a comparison of differences and a choice, 8 rounds. In the
        last stage zero may be one more candidate of each window. Then, and where comparisons are
        guarded, no indices and no gradients are known."""
        self.session = session
        #: Of what was played for.
        self.shape = x[0].shape
        self._stages: list[tuple[Windows, list[Parts]]] = []
        for windows in stages:
            places, levels = windows.taken(x), []
            is_last = with_zero and windows is stages[-1]
            # Where zero finds no place free it is compared beside the last two, if that is no
            # dearer than comparing all that was played for with it.
            beside = is_last and not comparison.reach and _is_even(places, self.shape)
            if is_last and not beside:
                places = tuple(torch.cat([part, torch.zeros_like(part[:1])]) for part in places)
            while places[0].shape[0] > 1:
                left, right, rest = _neighbours(places)
                if beside and places[0].shape[0] == 2:
                    won = _greatest(session, left, right, comparison)
                elif comparison.reach:
                    won = greater(session, left, right, comparison)
                else:
                    # The left one is the earlier; it loses only when it is less.
                    levels.append(less(session, left, right, comparison.width))
                    won = self._chosen(levels[-1], left, right)
                # Those that have met are not held beside those that go on.
                rest = tuple(part.clone() for part in rest)
                del places, left, right
                places = shares.joined(won, rest)
            x = tuple(part[0] for part in places)
            self._stages.append((windows, levels))
        self.winners = x
        self._positions: Parts = ()

    def _chosen(self, lost: Parts, left: Parts, right: Parts) -> Parts:
        return shares.select(self.session, lost, right, left)

    @property
    def overlaps(self) -> bool:
        """Whether an element is in several windows."""
        return any(windows.overlap for windows, _ in self._stages)

    def of_winners(self, values: Parts) -> Parts:
        """Other values of all elements, at those that won; for each level a choice, two rounds."""
        for windows, levels in self._stages:
            places = windows.taken(values)
            for lost in levels:
                left, right, rest = _neighbours(places)
                places = shares.joined(self._chosen(lost, left, right), rest)
            values = tuple(part[0] for part in places)
        return values

    def given_back(self, values: Parts) -> Parts:
        """Values of outputs, each added to the element that won it; for each level a choice, two
        rounds."""
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
            values = windows.given_back(places)
        return values

    def positions(self, dims: int) -> Parts:
        """The numbers of the winners, among the elements of the last dimensions; computed once."""
        if not self._positions:
            sizes = self.shape[len(self.shape) - dims :]
            numbers = shares.trivial(self.session, torch.arange(sizes.numel()).reshape(sizes))
            everywhere = tuple(part.expand(self.shape) for part in numbers)
            self._positions = self.of_winners(everywhere)
        return self._positions


def _is_even(places: Parts, shape: torch.Size) -> bool:
    """Whether candidates are 2, 4, 8, ..., of at most half as many windows as
    there are elements."""
    count = places[0].shape[0]
    return count > 1 and count & (count - 1) == 0 and 2 * places[0][0].numel() <= shape.numel()


def _greatest(session: Session, left: Parts, right: Parts, comparison: Comparison) -> Parts:
    """The greatest of both and zero: three comparisons side by side, a round more than one of them
    takes."""
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
    """Those that meet, and the last if it meets none."""
    even = places[0].shape[0] // 2 * 2
    left, right = (tuple(part[side:even:2] for part in places) for side in (0, 1))
    return left, right, tuple(part[even:] for part in places)
