"""A parser of options that names what a mistyped command, option or choice is nearest to."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """As argparse's, for the command line and all its commands."""

    #: The words in which an option may be mistyped.
    _words: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Reads the words of one command. A word that is left over is refused here, where the
        options of the command are known."""
        self._words = sys.argv[1:] if args is None else args
        parsed, others = super().parse_known_args(args, namespace)
        if others:
            self._words = others
            self.error(f"unrecognized arguments: {' '.join(others)}")
        return parsed, others

    def error(self, message: str) -> NoReturn:
        """Ends with the message, and the nearest option for each that this
        command does not have."""
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
    """A question that names the known word that is most like this one, if any is."""
    from difflib import get_close_matches

    found = get_close_matches(word, list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""
