"""A federation's servers by their name: to the session that they are the parties of, server 1 is party 1. And
how many there are of something."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tacit.errors import TacitError

#: A party, or parties, and neither a third one nor a file such as parties.toml or party-0.pem.
_PARTY = re.compile(r"(?<!third )(?<![-./\w])part(y|ies)(?![-./]?\w*\.\w|[-/\w])")

#: Whoever says it.
_SELF = re.compile(r"\bthis party\b")


def of_servers(text: str, own: str = "server") -> str:
    """A message of the session of a federation's servers, as it is meant there; ``own`` is who says it."""
    text = _SELF.sub(f"this {own}", text)
    return _PARTY.sub(lambda found: "server" if found[1] == "y" else "servers", text)


def counted(count: int, name: str) -> str:
    """As "1 client", or "2 clients"."""
    return f"{count} {name}" + ("" if count == 1 else "s")


@contextmanager
def naming_servers(own: str = "server") -> Iterator[None]:
    """Within it, and in what it decorates, errors speak of servers, and of this party as what it is."""
    try:
        yield
    except TacitError as error:
        error.args = tuple(of_servers(part, own) if isinstance(part, str) else part for part in error.args)
        raise
