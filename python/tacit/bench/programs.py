"""Benchmarks of compiled programs (crates/riscv/programs): sharing their inputs, running, opening
their outputs.

The inputs belong to two parties. All parties announce the lengths of their own inputs at once,
which takes a round."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

import tacit
from tacit import _core
from tacit.bench.cases import Case, Work
from tacit.riscv import Program

#: Lengths of the lists that are intersected.
LISTS = (10, 100, 1000)

#: Bytes of a hundred blocks of Ascon, the last one with its padding, and of one block of associated
#: data.
HUNDRED_BLOCKS, ONE_BLOCK = 799, 7


def _program(name: str) -> Program:
    return Program(dict(_core.riscv_measured())[name], name)


def _own(party: int, values: NDArray[np.generic]) -> tuple[int, NDArray[np.generic] | None]:
    return party, values if tacit.session().party == party else None


def _intersection(name: str, count: int, open_branches: tuple[str, ...] = ()) -> Work:
    program = _program(name)
    a, b = (np.arange(1, count + 1, dtype=np.uint64) * np.uint64(step) for step in (2, 3))
    return lambda: program.run(
        secret={"a": _own(0, a), "b": _own(1, b)}, output={"common": 1}, open_branches=open_branches
    )


def _hash(messages: int = 1) -> Work:
    program, message = _program("ascon"), np.arange(messages * HUNDRED_BLOCKS).astype(np.uint8)
    told, secret = ["hash", str(messages)], {"message": _own(0, message)}
    return lambda: program.run(told, secret=secret, output={"out": "all"})


def _sealed() -> Work:
    program, message = _program("ascon"), np.arange(HUNDRED_BLOCKS).astype(np.uint8)
    data, key, nonce = (np.arange(count, dtype=np.uint8) for count in (ONE_BLOCK, 16, 16))
    secret = {"message": _own(0, message), "key": _own(1, key)}
    return lambda: program.run(
        secret=secret, public={"data": data, "nonce": nonce}, output={"out": "all"}
    )


def _block() -> Work:
    program, key = _program("aes"), np.arange(16, dtype=np.uint8)
    secret = {"blocks": _own(0, key), "key": _own(1, key)}
    return lambda: program.run(secret=secret, output={"sealed": "all"})


def _network() -> Work:
    program, sizes = _program("net"), (784, 128, 10)
    draw = np.random.default_rng(1)
    x, first, second = (
        draw.integers(-(1 << 12), 1 << 12, count, np.int32)
        for count in (sizes[0], (sizes[0] + 1) * sizes[1], (sizes[1] + 1) * sizes[2])
    )
    secret = {"input": _own(1, x), "first": _own(0, first), "second": _own(0, second)}
    return lambda: program.run([*map(str, sizes)], secret=secret, output={"output": 1})


def _on_arrays(function: str, count: int, kind: str = "u8") -> Work:
    program, draw = _program("figures"), np.random.default_rng(1)
    x, y = (draw.integers(1, np.iinfo(kind).max, count, np.dtype(kind)) for _ in range(2))
    arrays = {"x": _own(0, x), "y": _own(1, y)}
    left = {"z": np.zeros(count, kind)}
    arguments = ["x", "y", "z", "len:x"]
    return lambda: program.call(
        function, arguments, secret=arrays, public=left, result=None, output={"z": "all"}
    )


def _public() -> Work:
    program = _program("arrays")
    return lambda: program.call("fibonacci", [28])


def _case(prepare: Callable[[], Work], repetitions: int = 5, only_by_name: bool = False) -> Case:
    return Case(prepare, repetitions, only_by_name=only_by_name)


PROGRAMS: dict[str, Case] = {
    **{f"psi_{count}": _case(partial(_intersection, "psi", count)) for count in LISTS},
    # Each number of one list is compared with each of the other: a thousand each takes minutes.
    **{
        f"psi_loops_{count}": _case(
            partial(_intersection, "psi_loops", count), 3, count == max(LISTS)
        )
        for count in LISTS
    },
    # The algorithm is that of the clear: comparisons are opened, so each round depends on the one
    # before.
    **{
        f"psi_merge_{count}": _case(partial(_intersection, "psi_merge", count, ("merge",)), 3)
        for count in LISTS
    },
    "ascon_hash_100": _case(_hash, 3),
    "ascon_hash_100_of_64": _case(partial(_hash, 64), 1),
    "ascon_sealed_100": _case(_sealed, 3),
    "aes_block": _case(_block),
    "products_1e4": _case(partial(_on_arrays, "products", 10_000)),
    "vector_products_1e4": _case(partial(_on_arrays, "vector_products", 10_000)),
    "products_100": _case(partial(_on_arrays, "products", 100)),
    "products_100_10ms": Case(partial(_on_arrays, "products", 100), network="20,10000"),
    "to_bits_100": _case(partial(_on_arrays, "bits", 100)),
    "to_numbers_100": _case(partial(_on_arrays, "numbers", 100)),
    "net_784_128_10": _case(_network, 3),
    "quotients_1000": _case(partial(_on_arrays, "quotients", 1000), 3),
    "short_quotients_1000": _case(partial(_on_arrays, "short_quotients", 1000, "i4"), 3),
    "public_code": _case(_public),
}
