"""A party's or the dealer's process, started by ``tacit.processes``; its arguments are two pipes."""

import os
import pickle
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle


def main() -> None:
    receiving = Connection(int(sys.argv[1]), writable=False)
    sending = Connection(int(sys.argv[2]), readable=False)
    path, party = receiving.recv()
    sys.path[:] = path

    from tacit import _core
    from tacit.session import running

    listener = _core.Listener("127.0.0.1:0")
    sending.send(listener.address)
    addresses, certificates, key, (protocol, source), timeout, threads, program = receiving.recv()
    threading.Thread(target=_die_with_parent, args=(receiving,), daemon=True).start()
    try:
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
        message = (True, time.monotonic(), cloudpickle.dumps(value))
    except BaseException as error:
        message = (False, time.monotonic(), _portable(error))
    sending.send(message)


def _die_with_parent(receiving: Connection) -> None:
    try:
        receiving.recv()
    except EOFError:
        os._exit(1)


def _portable(error: BaseException) -> tuple[Any, str]:
    """The error, or its text where it cannot be sent, and where it was raised."""
    trace = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return f"{type(error).__name__}: {error}", trace
    return error, trace


if __name__ == "__main__":
    main()
