"""Conversions: clients' submissions to a server's secret tensors, and results to bytes."""

import numpy as np
import torch

from tacit import _core, buffers, fixed
from tacit.federated.aggregators import aggregator
from tacit.federated.rounds import width
from tacit.federated.rounds.client_update import Update
from tacit.federated.rounds.settings import ROOTS, Settings
from tacit.federated.rounds.steps import SERVERS_ROOT
from tacit.federated.rounds.submission import Submitted
from tacit.federated.service.memory import Memory
from tacit.federated.service.terms import Terms
from tacit.federated.validation import VECTOR_BITS
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.tensor import SecretTensor


def taken(
    session: Session,
    submissions: _core.Submissions,
    clients: list[int],
    terms: Terms,
    root: Update | None,
    memory: Memory,
) -> Submitted:
    """Returns the clients' words as secret tensors, in the given memory.

    One round, and one more for a server's own vector, which is in the last row. If only the sum of
    the rows is needed, it replaces them; that takes less memory, and less communication under a
    protocol whose servers may pass on sums.
    """
    vectors: shares.Parts
    weights: shares.Parts
    if is_sum(terms.settings):
        rows = memory.take(session, (1, terms.numbers))
        submissions.sum(
            session.core, terms.settings.word_bits, [buffers.array(row) for row in rows]
        )
        vectors, weights = tuple(row[:, :-1] for row in rows), tuple(row[:, -1] for row in rows)
    else:
        has_root = isinstance(terms.settings.root, str)
        count = len(clients) + has_root
        vectors = memory.take(session, (count, terms.parameters))
        weights, _ = shares.empty_words(session, (count,))
        handed_in = [
            [buffers.array(part[: len(clients)]) for part in each] for each in (vectors, weights)
        ]
        submissions.vectors(session.core, *handed_in)
        if has_root:
            _share_root(session, ROOTS.index(terms.settings.root), root, vectors, weights)
            clients = [*clients, SERVERS_ROOT]
    scale = width.scale(terms.settings.word_bits)
    return Submitted(
        clients,
        *(SecretTensor(each, scale, session, torch.float32) for each in (vectors, weights)),
    )


def _share_root(
    session: Session, owner: int, root: Update | None, vectors: shares.Parts, weights: shares.Parts
) -> None:
    """Shares the trusted server's vector and weight into the last rows. One round."""
    words = None
    if root is not None:
        both = torch.cat([root.vector, torch.tensor([root.weight], dtype=torch.float64)])
        words = fixed.encode(both, fixed.Scale(VECTOR_BITS))
    shared = shares.share(session, words, owner, (vectors[0].shape[1] + 1,))
    for part, rows, counts in zip(shared, vectors, weights, strict=True):
        rows[-1], counts[-1] = part[:-1], part[-1]


def is_sum(settings: Settings) -> bool:
    """Tells whether only the sum of the vectors is needed."""
    return settings.bound == "none" and aggregator(settings.aggregator).is_sum


def part_of(session: Session, sealed: torch.Tensor) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Returns this server's part of a result that only clients may see, as bytes.

    Raises:
        CheatingError: another server cheated; nothing of the result was told.
    """
    assert isinstance(sealed, SecretTensor)
    words = np.empty(session.core.sealed(sealed.numel()), np.int64)
    session.core.seal([buffers.array(part) for part in sealed._parts], words)
    return words.view(np.uint8)


def content_of(model: torch.Tensor) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return model.contiguous().numpy().view(np.uint8)
