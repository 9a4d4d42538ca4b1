"""Parser of options that suggests the nearest command, option or choice for a mistyped one."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """Parser of the command line and of all its commands."""

    #: Words in which an option may be mistyped.
    _words: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parses the words of one command.

        A word that is left over is refused here, where the options of the command are known."""
        self._words = sys.argv[1:] if args is None else args
        parsed, others = super().parse_known_args(args, namespace)
        if others:
            self._words = others
            self.error(f"unrecognized arguments: {' '.join(others)}")
        return parsed, others

    def error(self, message: str) -> NoReturn:
        """Exits with the message, and with the nearest option for each option that this command
        does not have."""
        options = [option for option in self._option_string_actions if option.startswith("--")]
        for word in self._words:
            name = word.partition("=")[0]
            if name == "--":
                break
            if name.startswith("--") and not any(option.startswith(name) for option in options):
                message += _nearest(name, options)
        super().error(message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += _nearest(str(value), map(str, action.choices or ()))
            raise


def _nearest(word: str, known: Iterable[str]) -> str:
    """Returns a question that suggests the most similar known word; empty if there is none."""
    from difflib import get_close_matches

    found = get_close_matches(word, list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""
