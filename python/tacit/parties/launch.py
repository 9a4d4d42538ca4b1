"""Runs all parties on this machine: as threads with in-memory links, or as processes with TLS."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle

from tacit import _core
from tacit.errors import DesyncError, MisuseError, PeerError, TacitError
from tacit.libraries import find_libraries
from tacit.parties import processes, shutdown
from tacit.parties.network import imitated
from tacit.parties.pickling import pickled
from tacit.parties.warmup import prepare
from tacit.providers import (
    DEFAULT,
    DEFAULT_DEVICE,
    DEFAULT_SOURCE,
    DEVICES,
    consumes,
    has_dealer,
    quoted,
)
from tacit.randomness.generators import divert, own_generator
from tacit.refusals import refuser
from tacit.sessions import checked as in_checks
from tacit.sessions import running
from tacit.trace.page import write
from tacit.trace.spans import recorded

_log = logging.getLogger(__name__)

#: Longest wait for one message, in seconds.
TIMEOUT = 60.0

#: Longest wait for one message of a rehearsal, in seconds: making correlations may take long.
PATIENCE = 1800.0


@dataclass
class Outcome:
    """A party's result or error, and when it ended."""

    value: Any = None
    error: BaseException | None = None
    at: float = 0.0


def launch(
    fn: Callable[..., Any],
    *args: Any,
    parties: int = 3,
    protocol: str = DEFAULT,
    source: str | None = None,
    transport: str = "memory",
    timeout: float = TIMEOUT,
    threads: int | None = None,
    report: str | Path | None = None,
    network: str | None = None,
    checked: bool = False,
    attestation: str | None = None,
    device: str | Sequence[str] = DEFAULT_DEVICE,
) -> list[Any]:
    """Runs ``fn(*args)`` once in every party on this machine, and returns all results.

    Every party gets its own copy of ``fn`` and ``args``, as on a separate machine, and its own
    PyTorch random generator. (``tacit.public_random`` makes random numbers that are the same in all
    parties.) Parties that are threads share global state of the process, such as that of
    ``numpy.random.rand`` and of Python's ``random``.

    Args:
        fn: the program, the same in every party. In it, ``tacit.session().party`` is the number of
            the party.
        args: the arguments of the program, the same in every party.
        parties: the number of parties. The protocol must support it.
        protocol: "replicated" (three parties, no two of which collude), "replicated-malicious" (the
            same, and what a party that cheats sends is found before anything is revealed),
            "additive" (two or more parties, of which all but one may collude), or "plain" (no
            secrecy, for tests).
        source: the source of the correlations that "additive" consumes: "ot" (the default:
            oblivious transfer between the parties, without anyone else), "he" (the same, but matrix
            products by homomorphic encryption, which is much faster for models) or "dealer" (one
            more thread or process, which sees only shapes and counts and must not collude with any
            party; faster).
        transport: "memory" runs parties as threads of this process. "tcp" runs them as processes
            that communicate over TCP on the loopback interface, with TLS 1.3 and certificates made
            for this run.
        timeout: the longest wait for one message, in seconds.
        threads: the number of threads of each process's kernels. With "tcp", the default is an
            equal part of the cores.
        report: a path at which to write a page with the time, bytes and rounds of each party.
        network: a network that the links imitate: "lan" (a round trip of 1 ms, 1000 Mbit/s), "wan"
            (40 ms, 100 Mbit/s), or "RTT,MBIT", milliseconds of a round trip and megabits a second
            that each party can send. A message arrives as a whole. By default, links are as fast as
            this machine.
        checked: whether to compute everything in checked mode, as in :func:`tacit.checked`.
        attestation: "simulated" makes all parties, and a dealer, show each other evidence of the
            program that they run before anything is shared, and sign all messages. Simulated
            evidence proves nothing: it is for trials. It needs transport "tcp".
        device: what products of matrices and convolutions are evaluated on: "cpu", "cuda" (an
            NVIDIA card) or "simulated" (a stand-in for the card, slow, for tests). One name for
            all parties and a dealer, or a list with one for each party, and perhaps one more for
            a dealer, which otherwise uses its processor. All devices compute the same words.

    Returns:
        The result of ``fn`` in each party, in the order of party numbers.

    Raises:
        MisuseError: the protocol does not support that number of parties, or that source; there is
            no such network, attestation or device; or parties that are threads are to attest.
        SetupError: this machine lacks a device.
        DeviceError: a device failed, such as a card without enough memory.
        Exception: the first exception of any party, which ends all parties. Its message names the
            party.
    """
    if checked:
        fn, args = in_checked_mode, (fn, *args)
    if report is not None:
        fn, args = recorded, (fn, *args)
    between, devices = imitated(network), by_member(device, parties, has_dealer(source))
    _log.info("launching %d parties: %s sharing, transport %s", parties, protocol, transport)
    if attestation is not None and transport == "memory":
        raise MisuseError(
            'parties that are threads of one process cannot attest: give transport="tcp", which '
            "runs them as processes"
        )
    if transport == "memory":
        find_libraries()
        cores = _core.Session.in_memory(
            parties, protocol, timeout, threads, source, between, devices=devices
        )
        outcomes = _in_threads(fn, args, cores, timeout)
    elif transport == "tcp":
        outcomes = [
            Outcome(*result)
            for result in processes.run(
                fn,
                args,
                parties,
                (protocol, source),
                timeout,
                threads,
                between,
                attestation,
                devices,
            )
        ]
    else:
        raise MisuseError(f'unknown transport {transport!r}; known are "memory" and "tcp"')
    values = _values(outcomes, parties)
    _log.info("all %d parties ended", parties)
    if report is not None:
        write(report, [trace for _, trace in values])
        values = [value for value, _ in values]
    return values


def by_member(device: str | Sequence[str], parties: int, with_dealer: bool) -> list[str]:
    """Returns the device of each member, from one name for all or a list.

    Raises:
        MisuseError: there is no such device, or the list has another length.
    """
    members = parties + with_dealer
    devices = [device] * members if isinstance(device, str) else list(device)
    if len(devices) not in (parties, members):
        raise MisuseError(
            f"device: {len(devices)} names for {parties} parties: give one name for all parties, or "
            f"a list with one for each"
        )
    for name in devices:
        if name not in DEVICES:
            raise MisuseError(f"unknown device {name!r}; known are {quoted(list(DEVICES))}")
    return devices


def in_checked_mode(fn: Callable[..., Any], *args: Any) -> Any:
    """Calls ``fn(*args)`` in checked mode."""
    with in_checks():
        return fn(*args)


def rehearse(
    fn: Callable[..., Any], *args: Any, parties: int, protocol: str, source: str | None
) -> list[Any]:
    """Runs ``fn(*args)`` once in every party, as threads of this process with a thread of kernels
    each, to find what it costs; returns all results.

    Without a source, additive sharing has its usual source, but zeros replace what that makes. This
    is quick, and what is sent online is the same.

    Raises:
        Exception: as for :func:`launch`.
    """
    zeros = consumes(protocol) and source is None
    cores = _core.Session.in_memory(
        parties, protocol, PATIENCE, 1, DEFAULT_SOURCE if zeros else source, zeros=zeros
    )
    return in_sessions(cores, fn, *args)


def in_sessions(cores: list[_core.Session], fn: Callable[..., Any], *args: Any) -> list[Any]:
    """Runs ``fn(*args)`` once in every party of a session in this process; returns all results.

    Raises:
        Exception: as for :func:`launch`.
    """
    return _values(_in_threads(fn, args, cores, TIMEOUT), len(cores))


def _values(outcomes: list[Outcome], parties: int) -> list[Any]:
    """Returns the parties' results, or raises the error that ended them."""
    blamed = first_cause(
        [outcome.error for outcome in outcomes], [outcome.at for outcome in outcomes]
    )
    if blamed is not None:
        error = outcomes[blamed].error
        assert error is not None
        _log.warning("the run ended by party %d: %s", blamed, type(error).__name__)
        raise named(error, f"party {blamed}" if blamed < parties else "the dealer")
    return [outcome.value for outcome in outcomes[:parties]]


def _in_threads(
    fn: Callable[..., Any], args: tuple[Any, ...], cores: list[_core.Session], timeout: float
) -> list[Outcome]:
    program = pickled((fn, args))
    # Everything that changes PyTorch for all threads is done before any party begins. This includes
    # the registration of kernels, and loading the program: loading a graph traces it again, and
    # PyTorch then traces the modules of every thread.
    prepare()
    divert()
    copies = [cloudpickle.loads(program) for _ in cores]
    outcomes = [Outcome() for _ in cores]

    def party(core: _core.Session, copy: Any, outcome: Outcome) -> None:
        own_fn, own_args = copy
        try:
            with running(core), own_generator():
                outcome.value = own_fn(*own_args)
        except BaseException as error:
            outcome.error = error
        outcome.at = time.monotonic()

    workers = [
        threading.Thread(
            target=copy_context().run,
            args=(party, core, copy, outcome),
            name=f"party {core.party}",
            daemon=True,
        )
        for core, copy, outcome in zip(cores, copies, outcomes, strict=True)
    ]
    for worker in workers:
        worker.start()
    try:
        _join(workers, outcomes, timeout)
    except BaseException:
        for core in cores:
            core.abort("the thread that launched it was interrupted")
        shutdown.interrupt(workers)
        raise
    return outcomes


def _join(workers: Sequence[threading.Thread], outcomes: Sequence[Outcome], timeout: float) -> None:
    """Waits for all parties; after one has failed, for the others no longer than the timeout.

    A thread cannot be ended from outside, so a thread that does not end by then is left behind."""
    deadline = None
    while any(worker.is_alive() for worker in workers):
        if deadline is None and any(outcome.error is not None for outcome in outcomes):
            deadline = time.monotonic() + timeout
        if deadline is not None and time.monotonic() > deadline:
            shutdown.leave_behind(workers)
            return
        for worker in workers:
            worker.join(0.01 if deadline is None else 0.05)


def first_cause(errors: Sequence[BaseException | None], times: Sequence[float]) -> int | None:
    """Returns the party whose error caused the others' errors, or ``None``.

    This is the party with the earliest error among errors that neither blame another party nor
    report another party's refusal. If there is none, it is the earliest among those that saw the
    programs differ, or else the earliest of all."""
    failed = [party for party, error in enumerate(errors) if error is not None]
    of_others = [party for party in failed if refuser(errors[party]) is not None]
    own = [
        party
        for party in failed
        if party not in of_others and not isinstance(errors[party], PeerError)
    ]
    differing = [party for party in failed if isinstance(errors[party], DesyncError)]
    return min(own or differing or failed, key=lambda party: times[party], default=None)


def named(error: BaseException, who: str) -> BaseException:
    """Puts the name of the party that raised an error before its message."""
    if len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (f"{who}: {error.args[0]}",)
    else:
        error.add_note(f"raised in {who}")
    if isinstance(error, TacitError):
        # The message is complete. The context would only show tacit's internals.
        error.__suppress_context__ = True
    return error
