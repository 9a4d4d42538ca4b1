"""What keeps a party from taking part, told to those who wait for it."""

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from tacit import _core
from tacit.errors import TacitError

#: Seconds in which the other parties may come up that are to be told why this one does not take
#: part.
WHILE_STARTING = 20.0

#: What is wrong may be in the name of a file, which the others need not know.
ELSEWHERE = "its options or files are wrong; see its own output"

#: The commands that take part in a session with parties on other machines.
COMMANDS = (("run",), ("riscv", "run"))


def tell(config: str, party: int, wrong: str, told: str = ELSEWHERE) -> None:
    """Says here what is wrong, and to the other parties of a configuration that this one does not
    come.

    Raises:
        SetupError: the configuration cannot be read.
        MisuseError: there is no such party in it.
    """
    print(f"tacit: {wrong}; telling the other parties ...", file=sys.stderr)
    _core.refuse(config, party, told, WHILE_STARTING)


def tell_of_usage(arguments: Sequence[str]) -> None:
    """Tells the others of options that cannot be read, where those can that say who they are."""
    if not any(tuple(arguments[: len(command)]) == command for command in COMMANDS):
        return
    parser = _Parser(add_help=False)
    # What a program is told comes last.
    parser.add_argument("--config", action="append")
    parser.add_argument("--party", action="append", type=int)
    try:
        known, _ = parser.parse_known_args(arguments)
        if known.config and known.party:
            tell(known.config[0], known.party[0], "these are no options of this command")
    except _UnreadableError:
        pass
    except TacitError as error:
        print(f"tacit: {error}", file=sys.stderr)


class _UnreadableError(Exception):
    """Nothing is known of a party."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _UnreadableError(message)
