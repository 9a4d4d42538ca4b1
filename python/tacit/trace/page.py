"""What was recorded, as one page that needs nothing else: no network, no other file."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from tacit import atomic_write
from tacit.trace.spans import recording


def page(traces: Sequence[dict[str, Any]]) -> str:
    """The page of what some parties recorded of a session."""
    # Nothing in the data may end the script that it stands in.
    data = json.dumps(list(traces)).replace("<", "\\u003c")
    template = files("tacit.trace").joinpath("page.html").read_text(encoding="utf-8")
    return template.replace("/*traces*/[]", data)


def write(path: str | Path, traces: Sequence[dict[str, Any]]) -> None:
    """Writes the page.

    Raises:
        SetupError: the file cannot be written.
    """
    atomic_write.write(path, page(traces))


@contextmanager
def report(path: str | Path) -> Iterator[None]:
    """Within it, what this party does is recorded; at the end it is written there as a page: time,
    bytes, rounds and waiting of each layer, as a flame chart. It shows no values.

    Parties of one machine each write a file of their own, so let the path differ between them;
    ``tacit.launch(..., report=path)`` makes one page of all.

    Args:
        path: of the page, HTML.
    """
    with recording() as trace:
        yield
    write(path, [trace.finished()])
