"""A recording as one self-contained HTML page, without other files or network access."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from tacit import atomic_write
from tacit.trace.spans import recording


def page(traces: Sequence[dict[str, Any]]) -> str:
    """Returns the page of what some parties of a session recorded."""
    # Data must not end the script element that holds them.
    data = json.dumps(list(traces)).replace("<", "\\u003c")
    template = files("tacit.trace").joinpath("page.html").read_text(encoding="utf-8")
    return template.replace("/*traces*/[]", data)


def write(path: str | Path, traces: Sequence[dict[str, Any]]) -> None:
    """Writes the page to a file.

    Raises:
        SetupError: the file cannot be written.
    """
    atomic_write.write(path, page(traces))


@contextmanager
def report(path: str | Path) -> Iterator[None]:
    """Records what this party does in the context, and writes it as a page at the end.

    The page shows time, bytes, rounds and waiting of each layer, as a flame chart. It shows no
    values.

    Parties of one machine each write their own file, so the path must differ between them.
    ``tacit.launch(..., report=path)`` makes one page of all parties.

    Args:
        path: file of the page, HTML.
    """
    with recording() as trace:
        yield
    write(path, [trace.finished()])
