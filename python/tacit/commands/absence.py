"""Messages to waiting parties about what keeps this party from taking part."""

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from tacit import _core
from tacit.errors import TacitError

#: Seconds in which the other parties may start and still be told why this one does not take part.
WHILE_STARTING = 20.0

#: Message to the other parties. Details may be in the name of a file, which they need not know.
ELSEWHERE = "its options or files are wrong; see its own output"

#: The commands that take part in a session with parties on other machines.
COMMANDS = (("run",), ("riscv", "run"))


def report_absence(config: str, party: int, wrong: str, told: str = ELSEWHERE) -> None:
    """Prints what is wrong, and tells the other parties of a configuration that this one does not
    take part.

    Raises:
        SetupError: the configuration cannot be read.
        MisuseError: there is no such party in it.
    """
    print(f"tacit: {wrong}; telling the other parties ...", file=sys.stderr)
    _core.refuse(config, party, told, WHILE_STARTING)


def report_bad_usage(arguments: Sequence[str]) -> None:
    """Tells the other parties about options that cannot be read, if the options say which party
    this is."""
    if not any(tuple(arguments[: len(command)]) == command for command in COMMANDS):
        return
    parser = _Parser(add_help=False)
    # Arguments of the program come last.
    parser.add_argument("--config", action="append")
    parser.add_argument("--party", action="append", type=int)
    try:
        known, _ = parser.parse_known_args(arguments)
        if known.config and known.party:
            report_absence(
                known.config[0], known.party[0], "the options are not those of this command"
            )
    except _UnreadableError:
        pass
    except TacitError as error:
        print(f"tacit: {error}", file=sys.stderr)


class _UnreadableError(Exception):
    """The options do not say which party this is."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _UnreadableError(message)
