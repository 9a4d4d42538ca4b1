"""Reports as one HTML page that contains its plots."""

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tacit.atomic_write import write
from tacit.errors import cause, setup_error

STYLE = """body { font: 15px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { padding: .2em .8em; text-align: right; border-bottom: 1px solid #ddd; }
img { max-width: 100%; }"""


@dataclass(frozen=True)
class Table:
    """A table of a report."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def write_page(
    path: Path, title: str, words: Sequence[str], tables: Sequence[Table], plots: Sequence[Path]
) -> Path:
    """Writes the page and returns its path.

    Raises:
        SetupError: it cannot be written.
    """
    parts = [f"<h1>{html.escape(title)}</h1>", *(f"<p>{html.escape(text)}</p>" for text in words)]
    parts += map(_table, tables)
    try:
        for plot in plots:
            data = base64.b64encode(plot.read_bytes()).decode()
            parts.append(f'<img alt="{html.escape(plot.stem)}" src="data:image/png;base64,{data}">')
    except OSError as error:
        raise setup_error(f"cannot read {plot}: {cause(error)}") from None
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style>'
    body = "\n".join(parts)
    write(path, f"<!doctype html><html lang=en><head>{head}</head>\n<body>{body}</body></html>\n")
    return path


def _table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(text)}</th>" for text in table.headings)
    rows = ["".join(f"<td>{html.escape(text)}</td>" for text in row) for row in table.rows]
    body = "".join(f"<tr>{row}</tr>\n" for row in rows)
    return f"<h2>{html.escape(table.title)}</h2>\n<table><tr>{head}</tr>\n{body}</table>"


def folder(path: Path) -> Path:
    """Makes a folder, if it does not exist.

    Raises:
        SetupError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise setup_error(f"cannot make {path}: {cause(error)}") from None
    return path
