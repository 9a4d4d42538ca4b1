"""Memory of clients' vectors, reused in the next round.

Without reuse, gigabytes of vectors go back to the system when a round is over. Then every page of
the next round's vectors is cleared before it is written. Clearing took a server longer than
everything it computed with the vectors.
"""

from collections.abc import Sequence
from math import prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch.multiprocessing.reductions import StorageWeakRef

from tacit.sessions import Session
from tacit.sharings import shares

#: The fewest words of a component that are worth keeping: 8 MiB.
LEAST = 1 << 20


class Memory:
    """The memory of one server's last round.

    Between rounds it holds that round's components, which reveal nothing on their own. The next
    round overwrites them.
    """

    def __init__(self) -> None:
        self._arrays: list[NDArray[np.int64]] = []
        #: Storages handed out last; each lives as long as any view of it does.
        self._users: list[StorageWeakRef] = []

    def take(self, session: Session, shape: Sequence[int]) -> shares.Parts:
        """Returns uninitialized components of the given shape.

        They are in the memory of the last ones if that has room for them, is not far too large, and
        nobody holds any part of it. A round's own step or an aggregator may still hold a part.
        """
        words = prod(shape)
        if words < LEAST:
            return shares.empty_words(session, shape)[0]
        fits = all(words <= array.size <= 2 * words for array in self._arrays)
        is_free = all(user.expired() for user in self._users)  # type: ignore[no-untyped-call]
        if not (self._arrays and fits and is_free):
            # Frees the old memory first, so that both never exist at once.
            self._arrays = []
            self._arrays = [np.empty(words, np.int64) for _ in range(session.core.parts)]
        parts = tuple(torch.from_numpy(array[:words]).view(tuple(shape)) for array in self._arrays)
        self._users = [StorageWeakRef(part.untyped_storage()) for part in parts]  # type: ignore[no-untyped-call]
        return parts
