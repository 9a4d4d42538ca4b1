"""All parties on this machine: as threads over in-memory links, or as
processes over TCP with TLS."""

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
from tacit.parties import processes, shutdown
from tacit.parties.pickling import pickled
from tacit.parties.warmup import prepare
from tacit.providers import DEFAULT
from tacit.randomness.generators import divert, own_generator
from tacit.refusals import refuser
from tacit.sessions import checked as in_checks
from tacit.sessions import running
from tacit.trace.page import write
from tacit.trace.spans import recorded

_log = logging.getLogger(__name__)

#: Longest wait for one message, in seconds.
TIMEOUT = 60.0


@dataclass
class Outcome:
    """What became of a party."""

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
    delay: float = 0.0,
    checked: bool = False,
) -> list[Any]:
    """Runs ``fn(*args)`` once in every party and returns what each returned.

    Every party gets its own copy of ``fn`` and ``args``, as it would on a machine of its own, and
    draws from its own PyTorch generator (``tacit.public_random`` is for what all shall draw alike).
    Threads share what a process has one of, such as the state of ``numpy.random.rand`` and of
    Python's ``random``.

    Args:
        fn: the program, the same in every party; ``tacit.session()`` says which party it runs in.
        args: its arguments, the same in every party.
        parties: how many; the protocol must have that many.
        protocol: "replicated" (three parties, of whom no two collude), "additive" (two or more
            parties, of whom all but one may collude), or "plain" (no secrecy, for tests).
        source: of the correlations that "additive" consumes: "ot" (the default: oblivious transfer
            between the parties, nobody else is needed), "he" (the same, with products of matrices
            by homomorphic
            encryption: much faster for models) or "dealer" (one more thread or process, which sees
            shapes and counts only and must not collude with any party; faster).
        transport: "memory" runs parties as threads of this process, "tcp" as processes that talk
            over TCP on loopback with TLS 1.3 and certificates made for this run.
        timeout: longest wait for one message, in seconds.
        threads: threads of each process's kernels; with "tcp" by default an equal part of the
            cores.
        report: write there, as a page, what took time, bytes and rounds in each party.
        delay: seconds that each message takes longer, as between distant machines; with "tcp"
            alone.
        checked: whether all is computed in checked mode, as within :func:`tacit.checked`.

    Returns:
        What ``fn`` returned in each party, in the order of their numbers.

    Raises:
        MisuseError: the protocol does not have that many parties, or takes no such source.
        Exception: the first exception of any party, which ends all of them, with the party's name.
    """
    if checked:
        fn, args = in_checked_mode, (fn, *args)
    if report is not None:
        fn, args = recorded, (fn, *args)
    if delay and transport != "tcp":
        raise MisuseError('links take longer with transport="tcp" alone: pass that, or no delay')
    _log.info("launching %d parties: %s sharing, transport %s", parties, protocol, transport)
    if transport == "memory":
        cores = _core.Session.in_memory(parties, protocol, timeout, threads, source)
        outcomes = _in_threads(fn, args, cores, timeout)
    elif transport == "tcp":
        outcomes = [
            Outcome(*result)
            for result in processes.run(
                fn, args, parties, (protocol, source), timeout, threads, delay
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


def in_checked_mode(fn: Callable[..., Any], *args: Any) -> Any:
    """``fn(*args)`` in checked mode."""
    with in_checks():
        return fn(*args)


def in_sessions(cores: list[_core.Session], fn: Callable[..., Any], *args: Any) -> list[Any]:
    """Runs ``fn(*args)`` once in every party of a session of this process, and returns what each
    returned.

    Raises:
        Exception: as :func:`launch`.
    """
    return _values(_in_threads(fn, args, cores, TIMEOUT), len(cores))


def _values(outcomes: list[Outcome], parties: int) -> list[Any]:
    """What the parties returned; raises what ended them."""
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
    # What changes PyTorch for all threads is done before any party begins: kernels are registered,
    # and graphs are traced anew as they are loaded, for which PyTorch traces every thread's
    # modules.
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
            core.abort("whoever launched it was interrupted")
        shutdown.interrupt(workers)
        raise
    return outcomes


def _join(workers: Sequence[threading.Thread], outcomes: Sequence[Outcome], timeout: float) -> None:
    """Waits for all; once one has failed, for the others no longer than the timeout. A thread
    cannot be ended from outside, so one that stalls then is left behind."""
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
    """The party whose error came before the others': of those that blame no other party, and are
    not what all raise for what another one refused, the earliest;
    if there is none, of those that saw the programs differ; or else the earliest of all."""
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
    """The same error, its message beginning with who raised it."""
    if len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (f"{who}: {error.args[0]}",)
    else:
        error.add_note(f"raised in {who}")
    if isinstance(error, TacitError):
        # The message says it all; the rest is tacit's inside.
        error.__suppress_context__ = True
    return error
