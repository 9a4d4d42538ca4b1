"""The command line: ``tacit demo``, ``bench``, ``run``, ``doctor`` and so on.

Each command imports what it needs when it runs, so that commands that only make files or deal
correlations do not load PyTorch."""

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, NoReturn

from tacit import logs
from tacit.commands import COMMANDS
from tacit.commands.absence import report_bad_usage
from tacit.commands.options import check_report
from tacit.commands.parser import Parser
from tacit.doctor import DISTRIBUTION, other
from tacit.errors import TacitError, Terminated

#: Exit status of argparse for options that it cannot parse.
USAGE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status.

    The status is 1 after one of tacit's own errors, which is printed as one message, and 130 or 143
    after an interrupt or a termination signal."""
    # This runs before anything that may fail because of the other package. It is not in ``import
    # tacit``: every import would wait for the look-up, and if the other package was installed last,
    # ``tacit/__init__.py`` is that package's.
    if (found := other()) is not None:
        print(f"tacit: {'; '.join(found)}", file=sys.stderr)
    try:
        parsed = command_line().parse_args(arguments)
    except SystemExit as end:
        if end.code == USAGE:
            report_bad_usage(sys.argv[1:] if arguments is None else arguments)
        raise
    try:
        logs.show()
        # A command that takes part in a session checks the report when it can tell the others.
        if not hasattr(parsed, "tells"):
            check_report(parsed)
        with _terminable():
            parsed.command(parsed)
    except TacitError as error:
        print(f"tacit: {error}", file=sys.stderr)
        return 1
    except Terminated:
        print("tacit: terminated", file=sys.stderr)
        return 128 + signal.SIGTERM
    except KeyboardInterrupt:
        print("tacit: interrupted", file=sys.stderr)
        return 130
    return 0


@contextmanager
def _terminable() -> Iterator[None]:
    """Turns SIGTERM into an exception, as an interrupt is, so that the other parties are told."""
    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(*_: Any) -> NoReturn:
    raise Terminated


def command_line() -> Parser:
    """Builds the parser of all commands."""
    parser = Parser(
        prog="tacit",
        description="Compute together on data that nobody shows: secure multi-party computation.",
    )
    parser.add_argument("--version", action="version", version=f"tacit {version(DISTRIBUTION)}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    # The completion command is generated from the whole parser.
    parser.set_defaults(whole=parser)
    return parser
