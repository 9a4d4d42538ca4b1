"""Products of words with random weights 0, 1 and -1, modulo 2^64, which every party takes of its own
components.

Words are two halves of 32 bits, and products of these with weights are sums of at most ``AT_ONCE`` whole
numbers below 2^32: double precision has them exactly, and its matrix products take a fraction of the time of
those modulo 2^64.
"""

import numpy as np
import torch

from tacit.shares import Parts

#: Products of each vector.
PROJECTIONS = 40

#: Bytes of the coin that weights are expanded from: the key of Philox.
COIN = 16

#: Coordinates that are multiplied at once.
AT_ONCE = 4096

#: The four weights that a byte stands for, each two bits: 0 with probability ½, 1 and -1 with ¼.
_OF_BYTE = np.array([0.0, 1.0, -1.0, 0.0])[(np.arange(256)[:, None] >> np.array([0, 2, 4, 6])) & 3]

#: Bytes of the weights of a coordinate.
_BYTES = PROJECTIONS // 4


def stream_of(coin: bytes) -> np.random.Philox:
    """What weights are drawn from."""
    return np.random.Philox(key=np.frombuffer(coin, np.uint64))


def weights_of(stream: np.random.Philox, count: int) -> torch.Tensor:
    """The weights of the next coordinates, (count, K); all counts but the last are multiples of four."""
    drawn = stream.random_raw(-(-count * _BYTES // 8)).astype("<u8", copy=False).view(np.uint8)
    return torch.from_numpy(_OF_BYTE.take(drawn[: count * _BYTES], axis=0).reshape(count, PROJECTIONS))


def projections(parts: Parts, coin: bytes) -> Parts:
    """Products modulo 2^64 of rows of words, of each component, with the coin's weights, (rows, K)."""
    rows, size = len(parts) * parts[0].shape[0], parts[0].shape[1]
    total, stream = torch.zeros(rows, PROJECTIONS, dtype=torch.int64), stream_of(coin)
    for start in range(0, size, AT_ONCE):
        piece = torch.cat([part[:, start : start + AT_ONCE] for part in parts]).numpy()
        halves = piece.astype("<i8", copy=False).view("<u4").reshape(rows, -1, 2)
        # The upper half has the word's sign.
        both = np.concatenate([halves[..., 0], halves.view("<i4")[..., 1]], dtype=np.float64)
        products = (torch.from_numpy(both) @ weights_of(stream, piece.shape[1])).long()
        total += products[:rows] + (products[rows:] << 32)
    return tuple(total.view(len(parts), -1, PROJECTIONS))
