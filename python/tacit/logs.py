"""Logging by Python's ``logging``.

Each module logs under its own name, such as ``tacit.sessions``. Nothing is shown unless a program
sets up handlers, or ``TACIT_LOG`` names a level. INFO has the begin and the end of sessions, rounds
and files. WARNING has what ended early. DEBUG has the steps in between. Records contain parties,
counts, files and types of errors. They never contain a value of a program or a message of its
exceptions, since both may be secret."""

import logging
import os
import sys

#: Environment variable with the least level that every process of tacit shows on standard error.
VARIABLE = "TACIT_LOG"

LEVELS = ("debug", "info", "warning", "error")

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def show() -> None:
    """Sets up the logging that ``TACIT_LOG`` asks for.

    If its value is not a level, this is reported and nothing is logged. It is no error, since other
    parties may wait for this one."""
    level = os.environ.get(VARIABLE, "")
    if not level:
        return
    if level.lower() not in LEVELS:
        known = f"{', '.join(LEVELS[:-1])} or {LEVELS[-1]}"
        print(
            f"tacit: {VARIABLE} is {level!r}, so nothing is logged: set it to {known}",
            file=sys.stderr,
        )
        return
    logger = logging.getLogger("tacit")
    if not any(type(handler) is logging.StreamHandler for handler in logger.handlers):
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(FORMAT))
        logger.addHandler(handler)
    logger.setLevel(level.upper())
