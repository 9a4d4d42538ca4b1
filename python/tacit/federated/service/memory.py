"""Memory of clients' vectors, for those of the next round.

Vectors of gigabytes go back to the system when a round is over, and every page of the next round's
is cleared
before it is written: that took a server longer than all it did with them.
"""

from collections.abc import Sequence
from math import prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch.multiprocessing.reductions import StorageWeakRef

from tacit.sessions import Session
from tacit.sharings import shares

#: Fewest words of a component that are worth keeping: 8 MiB.
LEAST = 1 << 20


class Memory:
    """What one server's last round lay in. In between it holds that round's components, which say
    nothing by themselves; they are overwritten."""

    def __init__(self) -> None:
        self._arrays: list[NDArray[np.int64]] = []
        #: Of what was handed out last: a storage lives as long as any view of it does.
        self._users: list[StorageWeakRef] = []

    def take(self, session: Session, shape: Sequence[int]) -> shares.Parts:
        """Components of that shape, with anything in them. They lie where the last ones did, if
        these have room for them and not far more, and nobody holds any part of these any more: a
        round's own step or an aggregator may."""
        words = prod(shape)
        if words < LEAST:
            return shares.empty_words(session, shape)[0]
        fits = all(words <= array.size <= 2 * words for array in self._arrays)
        is_free = all(user.expired() for user in self._users)  # type: ignore[no-untyped-call]
        if not (self._arrays and fits and is_free):
            # Before there is more, so that both never are at once.
            self._arrays = []
            self._arrays = [np.empty(words, np.int64) for _ in range(session.core.parts)]
        parts = tuple(torch.from_numpy(array[:words]).view(tuple(shape)) for array in self._arrays)
        self._users = [StorageWeakRef(part.untyped_storage()) for part in parts]  # type: ignore[no-untyped-call]
        return parts
