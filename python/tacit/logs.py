"""Logging by Python's ``logging``.

Each module logs under its own name, such as ``tacit.sessions``. Nothing is shown unless a program
sets up handlers, or ``TACIT_LOG`` names a level. INFO has the begin and the end of sessions, rounds
and files. WARNING has what ended early. DEBUG has the steps in between. Records contain parties,
counts, files and types of errors. They never contain a value of a program or a message of its
exceptions, since both may be secret.

``TACIT_LOG_FORMAT=json`` makes each record a line of JSON, for programs that collect logs."""

import json
import logging
import os
import sys
import time

#: Environment variable with the least level that every process of tacit shows on standard error.
VARIABLE = "TACIT_LOG"

#: Environment variable with the form of the lines: ``text``, which is usual, or ``json``.
FORMAT_VARIABLE = "TACIT_LOG_FORMAT"

FORMATS = ("text", "json")

LEVELS = ("debug", "info", "warning", "error")

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class JsonFormatter(logging.Formatter):
    """Makes a record a line of JSON: ``time`` in UTC, ``level``, ``logger`` and ``message``.

    What a module gives as ``extra={"fields": {...}}`` stands beside these."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entries = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        return json.dumps({**getattr(record, "fields", {}), **entries}, ensure_ascii=False)


def show() -> None:
    """Sets up the logging that ``TACIT_LOG`` and ``TACIT_LOG_FORMAT`` ask for.

    If one has a value that it cannot have, this is reported, and nothing is logged, or text is. It
    is no error, since other parties may wait for this one."""
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
        handler.setFormatter(_formatter())
        logger.addHandler(handler)
    logger.setLevel(level.upper())


def _formatter() -> logging.Formatter:
    form = os.environ.get(FORMAT_VARIABLE, "") or FORMATS[0]
    if form.lower() not in FORMATS:
        print(
            f"tacit: {FORMAT_VARIABLE} is {form!r}, so logs are text: set it to "
            f"{' or '.join(FORMATS)}",
            file=sys.stderr,
        )
    return JsonFormatter() if form.lower() == "json" else logging.Formatter(FORMAT)
