"""Conversions: clients' submissions to a server's secret tensors, and results to bytes."""

import numpy as np
import torch

from tacit import _core, buffers, checks, fixed
from tacit.federated.rounds import width
from tacit.federated.rounds.client_update import Update
from tacit.federated.rounds.round_state import SERVERS_ROOT
from tacit.federated.rounds.settings import ROOTS
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
    reported: shares.Parts
    weights: shares.Parts
    grid, values, metrics = terms.rules.grid(terms.clients), terms.values, None
    if terms.rules.is_sum:
        rows = memory.take(session, (1, terms.numbers))
        submissions.sum(
            session.core, terms.settings.word_bits, [buffers.array(row) for row in rows]
        )
        reported = tuple(row[:, :-1] for row in rows)
        weights = tuple(row[:, -1] for row in rows)
    elif grid is not None:
        return lifted(session, submissions, clients, terms, grid)
    else:
        has_root = isinstance(terms.rules.root, str)
        count = len(clients) + has_root
        reported = memory.take(session, (count, terms.numbers - 1))
        weights, _ = shares.empty_words(session, (count,))
        handed_in = [
            [buffers.array(part[: len(clients)]) for part in each] for each in (reported, weights)
        ]
        submissions.vectors(session.core, *handed_in)
        if has_root:
            _share_root(session, ROOTS.index(terms.rules.root), root, reported, weights)
            clients = [*clients, SERVERS_ROOT]
    scale = width.scale(terms.settings.word_bits)
    vectors = reported
    if terms.settings.metrics:
        vectors = tuple(part[:, :values].contiguous() for part in reported)
        metrics = SecretTensor(
            tuple(part[:, values:].contiguous() for part in reported), scale, session, torch.float32
        )
    both = (SecretTensor(each, scale, session, torch.float32) for each in (vectors, weights))
    return Submitted(clients, *both)._replace(metrics=metrics)


def lifted(
    session: Session,
    submissions: _core.Submissions,
    clients: list[int],
    terms: Terms,
    grid: width.Grid,
) -> Submitted:
    """Returns clients' numbers of 16 or 8 bits as words of 22 fraction bits: see ``width``.

    About ten rounds, in which each server sends about 1,090 bits for each number with 16 bits, and
    540 with 8.
    """
    count, bits = len(clients), terms.settings.word_bits
    rows, _ = shares.empty_words(session, (count, terms.words - 1))
    last, _ = shares.empty_words(session, (count,))
    submissions.vectors(
        session.core, *([buffers.array(part) for part in each] for each in (rows, last))
    )
    numbers = tuple(
        _numbers(torch.cat([row, end.unsqueeze(1)], 1), bits)[:, : terms.numbers].contiguous()
        for row, end in zip(rows, last, strict=True)
    )
    # The low bits of a number that is moved to be positive are that number, whatever was sent.
    half = shares.trivial(session, torch.full((count, terms.numbers), 1 << (bits - 1)))
    with checks.proved(session):
        found = shares.low_bits(session, shares.add(numbers, half), bits)
    signed = [part - least for part, least in zip(found, half, strict=True)]
    scale, words = fixed.Scale(VECTOR_BITS), []
    values = [part[:, :-1] for part in signed], [part[:, -1] for part in signed]
    for numbers_of, factor in zip(values, grid.factors, strict=True):
        parts = tuple((part * factor).contiguous() for part in numbers_of)
        words.append(SecretTensor(parts, scale, session, torch.float32))
    return Submitted(clients, *words)


def _numbers(words: torch.Tensor, bits: int) -> torch.Tensor:
    """Returns the numbers in words [clients, words], the lowest first, as int64."""
    kind = torch.int16 if bits == 16 else torch.int8
    return words.contiguous().view(kind).to(torch.int64)


def _share_root(
    session: Session, owner: int, root: Update | None, vectors: shares.Parts, weights: shares.Parts
) -> None:
    """Shares the trusted server's vector and weight into the last rows. One round."""
    words = None
    if root is not None:
        metrics = torch.zeros(vectors[0].shape[1] - len(root.vector), dtype=torch.float64)
        weight = torch.tensor([root.weight], dtype=torch.float64)
        both = torch.cat([root.vector, metrics, weight])
        words = fixed.encode(both, fixed.Scale(VECTOR_BITS))
    shared = shares.share(session, words, owner, (vectors[0].shape[1] + 1,))
    for part, rows, counts in zip(shared, vectors, weights, strict=True):
        rows[-1], counts[-1] = part[:-1], part[-1]


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
