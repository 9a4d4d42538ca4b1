"""The process of a party or of the dealer, which ``tacit.parties.processes`` starts."""

import os
import pickle
import threading
import time
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle
import torch

from tacit import _core, logs
from tacit.libraries import find_libraries
from tacit.parties.pickling import pickled
from tacit.sessions import running


def main(receiving: Connection, sending: Connection) -> None:
    """Takes part in one session, and reports the outcome to the parent by pipes."""
    try:
        listener = _core.Listener("127.0.0.1:0")
        sending.send(listener.address)
        task = receiving.recv()
    except (EOFError, BrokenPipeError):
        return  # The parent has given this session up.
    threading.Thread(target=die_with_parent, args=(receiving,), daemon=True).start()
    report(sending, _outcome(listener, *task))


def _outcome(
    listener: _core.Listener,
    party: int,
    addresses: list[str],
    certificates: list[str],
    key: str,
    setting: tuple[str, str | None],
    timeout: float,
    threads: int,
    network: tuple[float, float] | None,
    attested: tuple[str, bytes] | None,
    device: str | None,
    program: bytes | None,
) -> tuple[bool, float, Any]:
    """Runs the program or the dealer; returns success, the time of the end, and the result."""
    torch.set_num_threads(threads)
    protocol, source = setting
    try:
        logs.show()
        value = None
        find_libraries()
        if program is None:
            own = attested and _core.Attestation.of_trial_dealer(*attested)
            _core.deal_local(
                listener,
                addresses,
                certificates,
                key,
                timeout,
                threads,
                network,
                own,
                device,
            )
        else:
            own = attested and _core.Attestation.of_trial(*attested, _core.program_digest(program))
            core = _core.Session.connect_local(
                listener,
                party,
                addresses,
                certificates,
                key,
                protocol,
                timeout,
                threads,
                source,
                network=network,
                attestation=own,
                device=device,
            )
            with running(core):
                fn, args = cloudpickle.loads(program)
                value = fn(*args)
        return True, time.monotonic(), pickled(value, "what the program returned")
    except BaseException as error:
        return False, time.monotonic(), portable(error)


def report(sending: Connection, outcome: tuple[bool, float, Any]) -> None:
    """Sends the outcome to the parent, if the parent still reads.

    The parent may have all that it needs already, and be ending this process."""
    with suppress(BrokenPipeError):
        sending.send(outcome)


def die_with_parent(receiving: Connection) -> None:
    """Ends this process when the other end of its pipe is closed."""
    try:
        receiving.recv()
    except EOFError:
        os._exit(1)


def portable(error: BaseException) -> tuple[Any, str]:
    """Returns the error, or its text if it cannot be pickled, and its traceback."""
    trace = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return f"{type(error).__name__}: {error}", trace
    return error, trace
