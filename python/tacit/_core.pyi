"""The native part: sessions, buffers and exceptions. Arrays are C-contiguous NumPy arrays."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int64]
Bits = NDArray[np.uint8]
Floats = NDArray[np.float32] | NDArray[np.float64]
Names = tuple[int | None, int | None]

class TacitError(Exception): ...
class PeerError(TacitError): ...
class DesyncError(PeerError): ...
class RefusedError(TacitError): ...
class NetworkError(TacitError): ...
class SetupError(TacitError): ...
class MisuseError(TacitError): ...

class Listener:
    def __init__(self, address: str) -> None: ...
    @property
    def address(self) -> str: ...

class Convolution:
    """The shape of a convolution of images with filters; sizes are height before width."""

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

class Session:
    @staticmethod
    def in_memory(
        parties: int,
        protocol: str,
        timeout: float,
        threads: int | None = None,
        source: str | None = None,
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
    ) -> Session: ...
    @property
    def party(self) -> int: ...
    @property
    def parties(self) -> int: ...
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
    def share(self, values: Words | None, owner: int, out: list[Words]) -> None: ...
    def share_bits(self, values: Bits | None, owner: int, out: list[Bits]) -> None: ...
    def trivial(self, values: Words, out: list[Words]) -> None: ...
    def trivial_bits(self, values: Bits, out: list[Bits]) -> None: ...
    def reveal(self, x: list[Words], to: int | None = None, out: Words | None = None) -> None: ...
    def reveal_bits(self, x: list[Bits], to: int | None = None, out: Bits | None = None) -> None: ...
    def multiply(
        self, x: list[Words], y: list[Words], out: list[Words], truncate: int, names: Names
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
        truncate: int,
        names: Names,
    ) -> None: ...
    def convolution(
        self,
        x: list[Words],
        w: list[Words],
        out: list[Words],
        shape: Convolution,
        truncate: int,
        names: Names,
    ) -> None: ...
    def forget(self, name: int) -> None: ...
    def truncate(self, x: list[Words], out: list[Words], bits: int) -> None: ...
    def sign(self, x: list[Words], width: int, out: list[Bits]) -> None: ...
    def equal_zero(self, x: list[Words], width: int, out: list[Bits]) -> None: ...
    def low_bits(self, x: list[Words], width: int, out: list[Words]) -> None: ...
    def to_binary(self, x: list[Words], width: int, out: list[Bits]) -> None: ...
    def leading_zeros(self, x: list[Words], width: int, out: list[Bits]) -> None: ...
    def series(
        self, x: list[Words], argument: int, remainders: list[list[int]], out: list[Words]
    ) -> None: ...
    def relu(self, x: list[Words], width: int, out: list[Words]) -> None: ...
    def maximum(self, x: list[Words], y: list[Words], width: int, out: list[Words]) -> None: ...
    def and_bits(self, x: list[Bits], y: list[Bits], out: list[Bits]) -> None: ...
    def bit_multiply(self, bits: list[Bits], x: list[Words], out: list[Words]) -> None: ...
    def bit_to_ring(self, bits: list[Bits], out: list[Words]) -> None: ...
    def seal(self, x: list[Words], out: list[Words]) -> bool: ...
    def add_noise(self, x: list[Words], variance: int) -> None: ...
    def call(
        self,
        program: Program,
        function: str,
        arrays: list[Given],
        arguments: list[tuple[str, int]],
        reveals: bool,
        to: int | None,
        outputs: list[tuple[int, tuple[bool, int | None]]],
        open_branches: list[str],
        limit: int,
    ) -> Told: ...
    def run_program(
        self,
        program: Program,
        arguments: list[str],
        inputs: list[Given],
        outputs: list[tuple[str, int, tuple[bool, int | None]]],
        open_branches: list[str],
        limit: int,
    ) -> Told: ...
    def set_label(self, label: str) -> str: ...
    def note(self, parameters: bytes) -> None: ...
    def note_public(self, label: str, data: Bits | bytes) -> None: ...
    def meter(self) -> dict[str, dict[str, float]]: ...
    def totals(self) -> dict[str, float]: ...
    def demand(self) -> str | None: ...
    def correlations(self) -> tuple[dict[str, float], float]: ...
    def abort(self, reason: str) -> None: ...
    def close(self) -> None: ...

def threat_model(protocol: str, parties: int, source: str | None = None) -> str: ...
def refuse(config_path: str, party: int, reason: str, timeout: float) -> None: ...
def examine(
    config_path: str, party: int | None, dealer: bool, timeout: float
) -> list[tuple[str, bool, str, str]]: ...
def deal_connected(config_path: str, timeout: float | None = None, threads: int | None = None) -> None: ...
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
) -> None: ...
def generate_certificate(party: int, days: int = 365) -> tuple[str, str]: ...
def write_certificates(names: Sequence[str], directory: str) -> None: ...
def ring_matmul(a: Words, b: Words, out: Words, batch: int, m: int, k: int, n: int) -> None: ...
def ring_convolution(x: Words, w: Words, out: Words, shape: Convolution) -> None: ...
def greatest_magnitude(words: Words) -> int: ...
def kernels() -> str: ...
def read_private_key(path: str) -> str: ...

class Program:
    def __init__(self, file: bytes) -> None: ...

class Given:
    """An array of a program."""

    def __init__(
        self,
        name: str,
        bytes_each: int,
        owner: int | None,
        count: int,
        values: list[int] | None,
        public: bytes | None,
        shares: list[list[int]] | None,
    ) -> None: ...

#: The result or status, outputs (values or shares), instructions, what was printed, what was opened.
Told = tuple[
    int | None,
    list[tuple[list[int] | None, list[list[int]] | None]],
    int,
    bytes,
    list[tuple[str, int | None, int]],
]

class Door:
    """Where clients hand in vectors to one of a federation's servers."""

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
    ) -> None: ...
    def wait(self, enough: int, most: float) -> bool: ...
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
    ) -> None: ...

class Submissions:
    """The submissions that one server has whole."""

    @property
    def clients(self) -> list[int]: ...
    def agree(self, session: Session) -> list[int]: ...
    def vectors(self, session: Session, out: list[Words]) -> None: ...
    def sum(self, session: Session, bits: int, out: list[Words]) -> None: ...

def measured(pieces: list[Floats], start: NDArray[np.float32] | None) -> tuple[float, float]: ...

class Client:
    """One of a federation's clients."""

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
    def outcome(self, round: int, timeout: float) -> list[bytes]: ...  # noqa: A002

class Task:
    """A round as all servers tell of it."""

    @property
    def round(self) -> int: ...
    @property
    def words(self) -> int: ...
    @property
    def terms(self) -> bytes: ...
    @property
    def model(self) -> bytes: ...
    @property
    def left(self) -> float: ...
