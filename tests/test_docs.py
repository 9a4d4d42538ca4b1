"""The README and the pages of docs/: their code runs and their links work."""

import ast
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest

from commands import Command
from ports import free_addresses
from tacit.federated.service import config

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = sorted(DOCS.rglob("*.md"))

#: Size limits of the documents that users read first.
MOST_BYTES = {
    "README.md": 9_000,
    "SECURITY.md": 12_000,
    "ARCHITECTURE.md": 12_000,
    "CHANGELOG.md": 9_000,
}

#: Commands that run on every page, because they need only the page's files.
RUNS = ("check", "compare", "cost")

#: Pages whose commands all run, in order. Commands of other pages are for other machines.
WHOLE = {*DOCS.glob("tutorials/*.md"), DOCS / "compile.md"}

#: Beginnings of commands that take part in one session. Those of one block run at the same time.
TOGETHER = (["tacit", "run"], ["tacit", "dealer"], ["tacit", "federated", "serve"], ["python"])

#: Stands on a page for a name or a number in a message.
MARK = "…"

#: Compilers for RISC-V. A page needs one of them.
COMPILERS = ("clang-19", "riscv64-linux-gnu-gcc", "riscv64-unknown-elf-gcc")


def blocks(page: Path, language: str) -> list[str]:
    """Returns the blocks of code of a page."""
    found = re.findall(
        rf"^( *)```{language}\n(.*?)^\1```$", page.read_text(), re.MULTILINE | re.DOTALL
    )
    return [textwrap.dedent(code) for _, code in found]


def write_files(page: Path, folder: Path) -> list[str]:
    """Writes the files that a page shows.

    A block that begins with a file's name becomes that file. The rest of the page's Python is one
    program. Addresses are replaced by free ones of this machine.
    """
    program, files = [], {}
    for language in ("python", "toml", "c"):
        for code in blocks(page, language):
            name = re.match(r"(?:#|/\*) (\w+\.(?:py|toml|c))\b", code)
            if name:
                files[name[1]] = code
            elif language == "python":
                program.append(code)
    hosts = sorted(
        {host for code in files.values() for host in re.findall(r"\b[a-z0-9.]+:7\d\d\d\b", code)}
    )
    for name, code in files.items():
        for host, address in zip(hosts, free_addresses(len(hosts)), strict=True):
            code = code.replace(f'"{host}"', f'"{address}"')
        (folder / name).write_text(code)
    return program


def lines(block: str) -> list[list[str]]:
    """Returns the commands of a block, split into words."""
    found = [shlex.split(line, comments=True) for line in block.replace("\\\n", " ").splitlines()]
    return [words for words in found if words]


def started(words: list[str], folder: Path) -> Command:
    """Starts a command of a page."""
    assert words[0] in ("tacit", "python"), words
    if words[0] == "python":
        return Command(*words[1:], folder=folder, entry="pages")
    return Command(*words[1:], folder=folder)


def check_end(words: list[str], command: Command) -> None:
    """Checks that a command ended as it should."""
    code, output, errors = command.ended()
    assert code == 0, (words, output, errors)


def run_block(block: str, folder: Path) -> None:
    """Runs the commands of a block: at the same time if they take part in one session, else in
    turn."""
    commands = lines(block)
    if all(any(words[: len(start)] == start for start in TOGETHER) for words in commands):
        for words, command in [(words, started(words, folder)) for words in commands]:
            check_end(words, command)
    else:
        for words in commands:
            check_end(words, started(words, folder))


@pytest.mark.parametrize(
    "page",
    [page for page in (README, *PAGES) if blocks(page, "python")],
    ids=lambda page: page.stem,
)
def test_a_pages_code_runs(page: Path, tmp_path: Path) -> None:
    """Runs a page's commands in order in an empty folder, then its Python as one program."""
    if blocks(page, "c") and page in WHOLE and not any(map(shutil.which, COMPILERS)):
        pytest.skip("no compiler for RISC-V is here")
    program = write_files(page, tmp_path)
    for block in blocks(page, "sh"):
        if page in WHOLE:
            run_block(block, tmp_path)
            continue
        for words in lines(block):
            if words[0] == "tacit" and words[1] in RUNS:
                check_end(words, started(words, tmp_path))
    (tmp_path / "page.py").write_text("\n\n".join(program))
    check_end(["page.py"], Command("page.py", folder=tmp_path, entry="pages"))


def test_links_lead_somewhere() -> None:
    for page in (*sorted(ROOT.glob("*.md")), *PAGES):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            assert target.startswith("https://") or (page.parent / target).exists(), (
                page.name,
                target,
            )


@pytest.mark.parametrize("name", MOST_BYTES)
def test_what_people_read_first_is_short(name: str) -> None:
    assert len((ROOT / name).read_bytes()) <= MOST_BYTES[name]


@pytest.mark.long
@pytest.mark.skipif(not find_spec("sphinx"), reason="`make docs` installs what makes the site")
def test_the_site_is_made_without_a_warning(tmp_path: Path) -> None:
    """Takes long: it needs a dependency group that no other test uses."""
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
        assert f'id="{name}"' in "".join(
            page.read_text() for page in tmp_path.rglob("reference/*.html")
        ), name
    search = (tmp_path / "searchindex.js").read_text()
    assert "reveal" in search
    assert "hospitals" in search


def literals() -> list[str]:
    """Returns the texts that users may see. A mark replaces each inserted value."""
    found = []
    for source in sorted((ROOT / "python" / "tacit").rglob("*.py")):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.JoinedStr):
                values = [
                    each.value if isinstance(each, ast.Constant) else MARK for each in node.values
                ]
                found.append("".join(map(str, values)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    for source in sorted((ROOT / "crates").rglob("*.rs")):
        for text in re.findall(r'"((?:[^"\\]|\\.)*)"', source.read_text(), re.DOTALL):
            plain = re.sub(r"\\\n\s*", "", text).replace('\\"', '"')
            found.append(re.sub(r"\{[^{}]*\}", MARK, plain))
    return found


def test_quoted_messages_are_those_of_the_source() -> None:
    """The source has a text that contains the quoted message, with its marks."""
    quoted = re.findall(r"^### `(.+)`$", (DOCS / "troubleshooting.md").read_text(), re.MULTILINE)
    known = literals()
    assert len(quoted) >= 20
    assert [message for message in quoted if not any(message in text for text in known)] == []


def test_the_page_of_configurations_names_every_key() -> None:
    """This covers the keys of a session, as the core reads them, and of a federation."""
    written = (ROOT / "crates" / "net" / "src" / "config" / "mod.rs").read_text()
    read = {
        key
        for structure in re.findall(r"struct (?:Document|Party) \{(.*?)\n\}", written, re.DOTALL)
        for key in re.findall(r"^    (\w+):", structure, re.MULTILINE)
    }
    tables = (config._TOP, config._SERVER, config._CLIENTS, config._PRIVACY, config._ROUND)
    page = (DOCS / "reference" / "configuration.md").read_text()
    named = set(re.findall(r"`\[*(\w+)\]*`", page))
    assert len(read) >= 10
    assert sorted({*read, *(key for table in tables for key in table)} - named) == []


def test_pictures_are_what_their_script_draws() -> None:
    """Each picture is also on some page."""
    drawing = runpy.run_path(str(DOCS / "_extensions" / "pictures.py"))
    pages = "".join(page.read_text() for page in PAGES)
    for name, draw in drawing["PICTURES"].items():
        assert (DOCS / name).read_text() == draw(), name
        assert f"{name})" in pages
