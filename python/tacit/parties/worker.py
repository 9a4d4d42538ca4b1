"""A party's or the dealer's process, which ``tacit.parties.processes`` starts."""

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
from tacit.parties.pickling import pickled
from tacit.sessions import running


def main(receiving: Connection, sending: Connection) -> None:
    """Takes part in one session, and reports. The pipes' other ends are the parent's."""
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
    program: bytes | None,
) -> tuple[bool, float, Any]:
    """Whether it succeeded, when it ended, and with what."""
    torch.set_num_threads(threads)
    protocol, source = setting
    try:
        logs.show()
        value = None
        if program is None:
            _core.deal_local(listener, addresses, certificates, key, timeout, threads)
        else:
            core = _core.Session.connect_local(
                listener, party, addresses, certificates, key, protocol, timeout, threads, source
            )
            with running(core):
                fn, args = cloudpickle.loads(program)
                value = fn(*args)
        return True, time.monotonic(), pickled(value, "what the program returned")
    except BaseException as error:
        return False, time.monotonic(), portable(error)


def report(sending: Connection, outcome: tuple[bool, float, Any]) -> None:
    """Tells the parent, if it still listens: it may have all that it wants,
    and end this process."""
    with suppress(BrokenPipeError):
        sending.send(outcome)


def die_with_parent(receiving: Connection) -> None:
    """Ends this process when the other end of its pipe is closed."""
    try:
        receiving.recv()
    except EOFError:
        os._exit(1)


def portable(error: BaseException) -> tuple[Any, str]:
    """The error, or its text where it cannot be sent, and where it was raised."""
    trace = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return f"{type(error).__name__}: {error}", trace
    return error, trace
