"""The README and the pages of docs/: their code runs, their links lead somewhere."""

import re
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest

from commands import Command, tacit

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = sorted(DOCS.rglob("*.md"))

#: What people read first is short.
MOST_BYTES = {"README.md": 9_000, "SECURITY.md": 12_000, "ARCHITECTURE.md": 12_000, "CHANGELOG.md": 9_000}

#: Commands that a page may show and that need nothing but its own files.
RUNS = ("check", "compare", "cost")


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of code of a page."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(code) for _, code in found]


@pytest.mark.parametrize(
    "page", [page for page in (README, *PAGES) if blocks(page, "python")], ids=lambda page: page.stem
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
    for page in (*sorted(ROOT.glob("*.md")), *PAGES):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            assert target.startswith("https://") or (page.parent / target).exists(), (page.name, target)


@pytest.mark.parametrize("name", MOST_BYTES)
def test_what_people_read_first_is_short(name: str) -> None:
    assert len((ROOT / name).read_bytes()) <= MOST_BYTES[name]


@pytest.mark.long
@pytest.mark.skipif(not find_spec("sphinx"), reason="`make docs` installs what makes the site")
def test_the_site_is_made_without_a_warning(tmp_path: Path) -> None:
    """Long: it needs a group of dependencies that no other test does."""
    options = ("--fail-on-warning", "--keep-going", "--quiet")
    made = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(DOCS), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    made_pages = {page.relative_to(tmp_path).with_suffix("") for page in tmp_path.rglob("*.html")}
    written = {page.relative_to(DOCS).with_suffix("") for page in PAGES}
    assert made_pages - written == {Path("genindex"), Path("py-modindex"), Path("search")}
    assert written <= made_pages
    for name in ("tacit.share", "tacit.SecretTensor.reveal", "tacit.federated.Client.submit"):
        assert f'id="{name}"' in "".join(page.read_text() for page in tmp_path.rglob("reference/*.html")), name
    search = (tmp_path / "searchindex.js").read_text()
    assert "reveal" in search
    assert "hospitals" in search
