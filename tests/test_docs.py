"""The pages of docs/: their code runs, their links lead somewhere."""

import re
import textwrap
from pathlib import Path

import pytest

from commands import Command, tacit

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = sorted(DOCS.glob("*.md"))

#: Commands that a page may show and that need nothing but its own files.
RUNS = ("check", "compare", "cost")


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of code of a page."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(code) for _, code in found]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.stem
)
def test_a_pages_code_runs(page: Path, tmp_path: Path) -> None:
    """In order, as one program; a block that begins with a file's name is that file."""
    program = []
    for code in blocks(page, "python"):
        name = re.match(r"# (\w+\.py)\n", code)
        if name:
            (tmp_path / name[1]).write_text(code)
        else:
            program.append(code)
    (tmp_path / "page.py").write_text("\n\n".join(program))
    running = Command("page.py", folder=tmp_path, entry="pages")
    for line in "".join(blocks(page, "sh")).splitlines():
        words = line.split("#")[0].split()
        if words[:1] == ["tacit"] and words[1] in RUNS:
            done = tacit(*words[1:], folder=tmp_path)
            assert done.returncode == 0, (line, done.stdout, done.stderr)
    code, _, errors = running.ended()
    assert code == 0, errors


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            assert target.startswith("https://") or (DOCS / target).exists(), (page.name, target)
