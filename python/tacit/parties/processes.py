"""Parties as processes on this machine.

The parent makes a key and a certificate for each party, starts its process (``spawn``) and
communicates with it over two pipes. So keys are never on a disk or a command line. A child ends
when its parent ends.
"""

import logging
import os
import pickle
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from typing import Any

from tacit import _core
from tacit.errors import MisuseError, PeerError, peer_error, setup_error
from tacit.parties import spawn
from tacit.parties.pickling import pickled
from tacit.providers import has_dealer

_log = logging.getLogger(__name__)

#: The kind of evidence that needs no hardware, and proves nothing.
SIMULATED = "simulated"

#: Seconds for the interpreter and its imports to start, on a loaded machine.
START = 120.0

#: Seconds after the timeout by which a party must have noticed that another one failed.
GRACE = 5.0

Result = tuple[Any, BaseException | None, float]


class Child:
    """The process of a party or of the dealer, as its parent sees it."""

    def __init__(
        self, party: int, name: str, threads: int, entry: str = "tacit.parties.worker"
    ) -> None:
        self.party = party
        self.name = name
        self.result: Result | None = None
        environment = os.environ | {
            "OMP_NUM_THREADS": str(threads),
            "RAYON_NUM_THREADS": str(threads),
        }
        self.process = spawn.start(entry, environment)

    def send(self, message: Any) -> None:
        """Sends a message to the process.

        Raises:
            PeerError: the process has ended; the message says how.
        """
        try:
            self.process.sending.send(message)
        except OSError:
            raise peer_error(f"{self.name}: its process {self.process.ending()}") from None

    def receive(self) -> Any:
        """Receives the next message of the process.

        Raises:
            PeerError: the process has ended; the message says how.
        """
        try:
            return self.process.receiving.recv()
        except EOFError:
            raise peer_error(f"its process {self.process.ending()}") from None


def run(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    parties: int,
    setting: tuple[str, str | None],
    timeout: float,
    threads: int | None,
    network: tuple[float, float] | None = None,
    attestation: str | None = None,
    devices: Sequence[str | None] = (),
) -> list[Result]:
    """Runs ``fn(*args)`` in a process for each party.

    Args:
        fn: the program.
        args: its arguments.
        parties: the number of parties.
        setting: the protocol and the source of correlations.
        timeout: the longest wait for one message, in seconds.
        threads: the number of threads of each process's kernels.
        network: round trip in seconds and bytes a second that links imitate.
        attestation: the kind of evidence that the parties and a dealer show each other.
        devices: what each member evaluates products on, a dealer last; those that it does not name
            use their processor.

    Returns:
        Value, error and time of each party, and last those of a dealer.
    """
    if not 2 <= parties <= 64:
        raise MisuseError(f"a session has 2 to 64 parties, not {parties}")
    protocol, source = setting
    _core.threat_model(protocol, parties, source)
    program = pickled((fn, args))
    if attestation not in (None, SIMULATED):
        raise MisuseError(
            f'attestation {attestation!r} is not for parties on one machine: choose "simulated", or '
            "set [attestation] in the parties.toml of parties on their own machines"
        )
    attested = attestation and (attestation, _core.program_digest(program))
    threads = threads or max(1, (os.cpu_count() or 1) // parties)
    names = [f"party {party}" for party in range(parties)] + ["the dealer"] * has_dealer(source)
    identities = [_core.generate_certificate(party, 7) for party in range(len(names))]
    certificates = [certificate for certificate, _ in identities]
    children: list[Child] = []
    try:
        for party, name in enumerate(names):
            children.append(Child(party, name, threads))
        addresses = [begun(child) for child in children]
        for child, address in zip(children, addresses, strict=True):
            _log.debug("%s listens at %s", child.name, address)
        for child in children:
            key = identities[child.party][1]
            own = program if child.party < parties else None
            links = (child.party, addresses, certificates, key, setting, timeout, threads, network)
            device = devices[child.party] if child.party < len(devices) else None
            child.send((*links, attested, device, own))
        return _collect(children, timeout)
    finally:
        for child in children:
            child.process.end()


def begun(child: Child) -> Any:
    """Receives the first message of a process, which is its address.

    Raises:
        SetupError: the process did not start.
    """
    if not child.process.receiving.poll(START):
        raise setup_error(f"{child.name} did not start within {START:.0f} s")
    try:
        return child.receive()
    except PeerError as error:
        raise setup_error(f"{child.name}: {error}") from None


def _collect(children: list[Child], timeout: float) -> list[Result]:
    """Waits for all results; after a party has failed, at most for the timeout."""
    deadline = None
    while waiting := [child for child in children if child.result is None]:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready = wait([child.process.receiving for child in waiting], left)
        for child in waiting:
            if child.process.receiving in ready:
                child.result = _result(child)
                if child.result[1] is not None and deadline is None:
                    deadline = time.monotonic() + timeout + GRACE
        if not ready and deadline is not None:
            for child in waiting:
                _log.warning("%s did not end within the timeout and was killed", child.name)
                error = peer_error("its process did not end within the timeout and was killed")
                child.result = (None, error, time.monotonic())
    return [child.result for child in children if child.result is not None]


def _result(child: Child) -> Result:
    try:
        succeeded, at, payload = child.receive()
        if succeeded:
            return _loaded(payload, at)
        error, trace = payload
        if not isinstance(error, BaseException):
            error = RuntimeError(str(error))
        error.add_note(trace)
        return None, error, at
    except PeerError as error:
        # Time 0.0 puts this error before all others, which are its consequences.
        return None, error, 0.0


def _loaded(payload: bytes, at: float) -> Result:
    try:
        return pickle.loads(payload), None, at
    except Exception as error:
        error.add_note("when its result was read")
        return None, error, at
