"""Types of the native extension: sessions, programs, federation clients and exceptions.

Arrays are C-contiguous NumPy arrays. crates/py documents each item.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int64]
Bits = NDArray[np.uint8]
Floats = NDArray[np.float32] | NDArray[np.float64]
Names = tuple[int | None, int | None]

class TacitError(Exception): ...
class PeerError(TacitError): ...
class DesyncError(PeerError): ...
class CheatingError(PeerError): ...
class RefusedError(TacitError): ...
class NetworkError(TacitError): ...
class SetupError(TacitError): ...
class MisuseError(TacitError): ...
class StoppedError(MisuseError): ...

def cause(number: int) -> str: ...

class Listener:
    def __init__(self, address: str) -> None: ...
    @property
    def address(self) -> str: ...

class Convolution:
    """Shape of a convolution of images with filters; sizes are (height, width)."""

    def __init__(
        self,
        *,
        batch: int,
        groups: int,
        in_channels: int,
        out_channels: int,
        input: tuple[int, int],  # noqa: A002
        kernel: tuple[int, int],
        stride: tuple[int, int],
        padding: tuple[int, int],
        dilation: tuple[int, int],
    ) -> None: ...

class Expectation: ...

class Residues:
    def __init__(self) -> None: ...

class Kept:
    def __init__(self) -> None: ...
    @property
    def residues(self) -> Residues | None: ...
    @property
    def has_truncated(self) -> bool: ...
    def truncated(self, out: list[Words]) -> None: ...

class Flag:
    @staticmethod
    def promised(label: str) -> Flag: ...
    def abandon(self, cause: str) -> None: ...
    @property
    def label(self) -> str: ...
    @property
    def is_over(self) -> bool: ...

class Session:
    @staticmethod
    def in_memory(
        parties: int,
        protocol: str,
        timeout: float,
        threads: int | None = None,
        source: str | None = None,
        network: tuple[float, float] | None = None,
        zeros: bool = False,
    ) -> list[Session]: ...
    @staticmethod
    def rehearsed(
        config_path: str, threads: int | None = None, source: str | None = None
    ) -> list[Session]: ...
    @staticmethod
    def connect(
        config_path: str,
        party: int,
        protocol: str | None = None,
        timeout: float | None = None,
        threads: int | None = None,
        source: str | None = None,
        record: bool = False,
        checked: bool | None = None,
    ) -> Session: ...
    @staticmethod
    def connect_local(
        listener: Listener,
        party: int,
        addresses: Sequence[str],
        certificates: Sequence[str],
        key: str,
        protocol: str,
        timeout: float,
        threads: int | None = None,
        source: str | None = None,
        servers: bool = False,
        network: tuple[float, float] | None = None,
    ) -> Session: ...
    @property
    def party(self) -> int: ...
    @property
    def parties(self) -> int: ...
    @property
    def words(self) -> tuple[str, str]: ...
    @property
    def protocol(self) -> str: ...
    @property
    def source(self) -> str | None: ...
    @property
    def parts(self) -> int: ...
    @property
    def transport(self) -> str: ...
    @property
    def threat_model(self) -> str: ...
    def broadcast(self, owner: int, payload: bytes | None = None) -> bytes: ...
    def public_coin(self, mine: bytes) -> bytes: ...
    def gather(self, payload: bytes) -> list[bytes]: ...
    def share(self, values: Words | None, owner: int, out: list[Words]) -> None: ...
    def share_bits(self, values: Bits | None, owner: int, out: list[Bits]) -> None: ...
    def trivial(self, values: Words, out: list[Words]) -> None: ...
    def trivial_bits(self, values: Bits, out: list[Bits]) -> None: ...
    def reveal(
        self,
        x: list[Words],
        to: int | None = None,
        out: Words | None = None,
        flags: list[Flag] = [],
    ) -> list[str]: ...
    def reveal_bits(
        self, x: list[Bits], to: int | None = None, out: Bits | None = None, flags: list[Flag] = []
    ) -> list[str]: ...
    def toss(self) -> None: ...
    def tell_flags(self, flags: list[Flag], to: int | None = None) -> list[str]: ...
    def checked(self, x: list[Words], out: list[Words], flags: list[Flag]) -> None: ...
    def flag_bits(self, flags: list[Flag]) -> list[bytes]: ...
    def flag_of(self, label: str, bit: list[Bits]) -> Flag: ...
    def multiply(
        self,
        x: list[Words],
        y: list[Words],
        out: list[Words],
        truncate: int,
        names: Names,
        kept: Kept | None = None,
    ) -> None: ...
    def matmul(
        self,
        x: list[Words],
        y: list[Words],
        out: list[Words],
        batch: int,
        m: int,
        k: int,
        n: int,
        is_transposed: bool,
        truncate: tuple[int, bool],
        names: Names,
        kept: Kept | None = None,
    ) -> None: ...
    def convolution(
        self,
        x: list[Words],
        w: list[Words],
        out: list[Words],
        shape: Convolution,
        truncate: tuple[int, bool],
        names: Names,
        kept: Kept | None = None,
    ) -> None: ...
    def forget(self, name: int) -> None: ...
    def verify(self) -> None: ...
    def verification(self) -> tuple[float, int, int] | None: ...
    def rehearse(self) -> bool: ...
    def expect(self) -> Expectation | None: ...
    def expect_again(self, wanted: Expectation) -> bool: ...
    def expect_no_more(self) -> None: ...
    def truncate(self, x: list[Words], out: list[Words], bits: int) -> None: ...
    def sign(self, x: list[Words], width: int, out: list[Bits]) -> None: ...
    def equal_zero(self, x: list[Words], width: int, out: list[Bits]) -> None: ...
    def low_bits(self, x: list[Words], width: int, out: list[Words]) -> None: ...
    def to_binary(self, x: list[Words], width: int, out: list[Bits]) -> None: ...
    def leading_zeros(self, x: list[Words], width: int, out: list[Bits]) -> None: ...
    def series(
        self, x: list[Words], argument: int, remainders: list[list[int]], out: list[Words]
    ) -> None: ...
    @property
    def guards(self) -> bool: ...
    def relu(
        self,
        x: list[Words],
        width: int,
        out: list[Words],
        reach: int = 0,
        dropped: int = 0,
        below: list[Bits] | None = None,
    ) -> Flag | None: ...
    def maximum(
        self, x: list[Words], y: list[Words], width: int, out: list[Words], reach: int = 0
    ) -> Flag | None: ...
    def affine(
        self,
        terms: list[
            tuple[
                list[Words],
                list[Words],
                Convolution | tuple[tuple[int, int, int, int], bool],
                Names,
            ]
        ],
        addends: list[tuple[list[Words], int]],
        out: list[Words],
        truncate: tuple[int, bool],
        rectified: tuple[int, int, int] | None = None,
        kept: Kept | None = None,
    ) -> Flag | None: ...
    @property
    def checks(self) -> bool: ...
    @property
    def is_checked(self) -> bool: ...
    def settle(
        self,
        tensors: list[tuple[list[Words], Residues | None]],
        claims: list[
            tuple[
                Flag,
                list[
                    tuple[
                        list[
                            tuple[
                                int,
                                int,
                                Convolution | tuple[tuple[int, int, int, int], bool] | None,
                            ]
                        ],
                        list[tuple[int, int]],
                        int,
                        tuple[int, bool],
                        Words | None,
                    ]
                ],
                list[tuple[int, int]],
                list[tuple[int, int]],
            ]
        ],
    ) -> None: ...
    def and_bits(self, x: list[Bits], y: list[Bits], out: list[Bits]) -> None: ...
    def bit_multiply(self, bits: list[Bits], x: list[Words], out: list[Words]) -> None: ...
    def bit_to_ring(self, bits: list[Bits], out: list[Words]) -> None: ...
    def sealed(self, n: int) -> int: ...
    def seal(self, x: list[Words], out: Words) -> None: ...
    def add_noise(self, x: list[Words], variance: int) -> None: ...
    def confirm(self) -> None: ...
    def call(
        self,
        program: Program,
        function: str,
        arrays: list[Given],
        arguments: list[tuple[str, int]],
        result: tuple[int | None, str, int] | None,
        outputs: list[tuple[int, tuple[bool, int | None]]],
        options: tuple[list[str], list[str], int, bool, bool],
    ) -> Told: ...
    def run_program(
        self,
        program: Program,
        arguments: list[str],
        inputs: list[Given],
        outputs: list[tuple[str, int, bool, tuple[bool, int | None]]],
        options: tuple[list[str], list[str], int, bool, bool],
    ) -> Told: ...
    def set_label(self, label: str) -> str: ...
    def note(self, parameters: bytes) -> None: ...
    def note_told(self, told: bytes) -> None: ...
    def note_public(self, label: str, data: Bits | bytes) -> None: ...
    def meter(self) -> dict[str, dict[str, float]]: ...
    def totals(self) -> dict[str, float]: ...
    def demand(self) -> str | None: ...
    def correlations(self) -> tuple[dict[str, float], float]: ...
    def side_by_side(self, works: Sequence[Callable[[], None]]) -> None: ...
    def abort(self, reason: str, blamed: int | None = None) -> None: ...
    def close(self) -> None: ...

def protocols() -> list[tuple[str, str, int, bool, bool, bool]]: ...
def sources() -> list[tuple[str, str, str, str, str]]: ...
def threat_model(protocol: str, parties: int, source: str | None = None) -> str: ...
def refuse(config_path: str, party: int, reason: str, timeout: float) -> None: ...
def examine(
    config_path: str, party: int | None, dealer: bool, timeout: float, servers: bool = False
) -> list[tuple[str, bool, str, str]]: ...
def deal_connected(
    config_path: str, timeout: float | None = None, threads: int | None = None
) -> None: ...
def make_correlations(
    config_path: str,
    party: int,
    demand: str,
    runs: int,
    out: str,
    progress: Callable[[int, int], object],
    source: str | None = None,
    threads: int | None = None,
) -> None: ...
def deal_local(
    listener: Listener,
    addresses: Sequence[str],
    certificates: Sequence[str],
    key: str,
    timeout: float,
    threads: int | None = None,
    network: tuple[float, float] | None = None,
) -> None: ...
def generate_certificate(party: int, days: int = 365) -> tuple[str, str]: ...
def write_certificates(names: Sequence[str], directory: str) -> None: ...
def ring_matmul(a: Words, b: Words, out: Words, batch: int, m: int, k: int, n: int) -> None: ...
def ring_convolution(x: Words, w: Words, out: Words, shape: Convolution) -> None: ...

#: Random projections that ``ring_projections`` computes of each row.
PROJECTIONS: int

def ring_projections(parts: list[Words], size: int, coin: bytes, out: Words) -> None: ...
def greatest_magnitude(words: Words) -> int: ...
def kernels() -> str: ...
def blake3(content: bytes) -> str: ...
def read_private_key(path: str) -> str: ...
def check_certificate(pem: str, what: str, is_client: bool) -> None: ...

class Program:
    def __init__(self, file: bytes) -> None: ...

def riscv_runtime() -> list[tuple[str, str]]: ...
def riscv_digest(content: bytes) -> str: ...
def riscv_measured() -> list[tuple[str, bytes]]: ...

class Given:
    """An array given to a program of the RISC-V machine."""

    def __init__(
        self,
        name: str,
        bytes_each: int,
        floats: bool,
        owner: int | None,
        count: int,
        values: list[int] | None,
        public: bytes | None,
        shares: list[list[int]] | None,
        scale: int,
        range: tuple[float, float] | None,  # noqa: A002 (as the core calls it)
    ) -> None: ...

#: Results of a program for this party. In order: the result or status; the outputs, each with its
#: values or its shares, fraction bits and flags; the number of instructions; the printed bytes; the
#: values that were opened; the waiting times in seconds, by message; and the values that this
#: party was to learn but that left their range.
Told = tuple[
    int | None,
    list[tuple[list[int] | None, list[list[int]] | None, int, list[Flag]]],
    int,
    bytes,
    list[tuple[str, int | None, int]],
    list[tuple[str, float]],
    list[str],
]

class Intake:
    """Intake at which clients submit vectors to one of a federation's servers."""

    def __init__(
        self,
        listener: Listener,
        federation: str,
        servers: Sequence[str],
        server: int,
        key: str,
        clients: Sequence[str],
    ) -> None: ...
    @property
    def address(self) -> str: ...
    def begin(
        self,
        session: Session,
        number: int,
        numbers: int,
        bits: int,
        is_sum: bool,
        terms: bytes,
        model: Bits,
        timeout: float,
        closer: int | None,
    ) -> None: ...
    def wait(self, enough: int, most: float) -> bool: ...
    def is_closed(self) -> bool: ...
    def end(self) -> Submissions: ...
    def missing(self) -> list[int]: ...
    def see_off(self, clients: list[int], most: float) -> None: ...
    def refused(self) -> list[tuple[int | None, str, int]]: ...
    def tell(
        self,
        round: int,  # noqa: A002
        content: Bits | None = None,
        reason: str = "",
        is_part: bool = False,
        own: Mapping[int, str] = {},
    ) -> None: ...

class Submissions:
    """Submissions that one server has received completely."""

    @property
    def clients(self) -> list[int]: ...
    def agree(self, session: Session) -> list[int]: ...
    def vectors(self, session: Session, out: list[Words], last: list[Words]) -> None: ...
    def sum(self, session: Session, bits: int, out: list[Words]) -> None: ...

def measured(pieces: list[Floats], start: NDArray[np.float32] | None) -> tuple[float, float]: ...
def unseal(protocol: str, parts: list[Words], out: Words) -> int | None: ...

class Client:
    """A client of a federation."""

    def __init__(
        self,
        federation: str,
        servers: Sequence[str],
        addresses: Sequence[str],
        number: int,
        certificate: str,
        key: str,
    ) -> None: ...
    @property
    def traffic(self) -> tuple[int, int]: ...
    def join(self, after: int, timeout: float) -> Task: ...
    def submit(
        self,
        task: Task,
        pieces: list[Floats],
        start: NDArray[np.float32] | None,
        *,
        factor: float,
        limit: float,
        weight: int,
        bits: int,
    ) -> bytes: ...
    def close(self, round: int, timeout: float) -> None: ...  # noqa: A002
    def outcome(self, round: int, timeout: float, into: Bits) -> tuple[list[Content], str]: ...  # noqa: A002

class Content:
    """Content of any size that servers sent."""

    def __len__(self) -> int: ...
    def write(self, out: Bits) -> None: ...

class Task:
    """A round of a federation, as all servers announce it."""

    @property
    def round(self) -> int: ...
    @property
    def words(self) -> int: ...
    @property
    def terms(self) -> bytes: ...
    @property
    def model(self) -> Content: ...
    @property
    def left(self) -> float: ...
