"""What tacit logs, by Python's ``logging``.

Each module logs under its own name, such as ``tacit.sessions``. Nothing is shown unless a program
sets handlers up, or ``TACIT_LOG`` names a level. At INFO sessions, rounds and files begin and end;
at WARNING something ended early; at DEBUG are the steps between. Records hold parties, counts,
files and kinds of errors. They hold no value of a program, and no message of its exceptions: both
may be secret."""

import logging
import os
import sys

#: Names the least level that is shown on standard error, in every process of tacit's.
VARIABLE = "TACIT_LOG"

LEVELS = ("debug", "info", "warning", "error")

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def show() -> None:
    """Shows what ``TACIT_LOG`` asks for. Where it names no level, that is said, and nothing is
    shown: others may wait for this party."""
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
