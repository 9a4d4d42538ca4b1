"""The published package: its name, its metadata, and its coexistence with the other package of
the name ``tacit``."""

import email
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from email.message import Message
from importlib.metadata import version
from pathlib import Path

import pytest

import tacit
from commands import Command

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BIN = Path(sys.executable).parent

#: Commands that a user runs after the installation, in an empty folder.
FIRST = """
import tacit, torch

def program():
    x = tacit.share(torch.tensor([1.5, -2.0]) if tacit.session().party == 0 else None, owner=0)
    return x.relu().reveal().tolist()

assert tacit.launch(program) == [[1.5, 0.0]] * 3
print(tacit.__version__, tacit.__file__)
"""


def check(metadata: Message) -> None:
    """Checks that the metadata of a wheel are this project's."""
    assert metadata["Name"] == "tacit-mpc"
    assert metadata["Version"] == version("tacit-mpc") == tacit.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert metadata["Author"] == "The tacit authors"
    assert {"mpc", "pytorch"} <= set(metadata["Keywords"].split(","))
    assert metadata["Requires-Python"] == ">=3.11"
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    assert set(metadata.get_all("Provides-Extra", [])) == {
        "demo",
        "federated",
        "onnx",
        "service",
        "sklearn",
        "tensorflow",
    }
    urls = dict(each.split(", ") for each in metadata.get_all("Project-URL", []))
    assert urls.keys() == {"Changelog", "Documentation", "Issues", "Repository"}
    assert all(url.startswith(urls["Repository"]) for url in urls.values())
    assert metadata["Description-Content-Type"].startswith("text/markdown")
    assert metadata.get_payload().strip() == (ROOT / "README.md").read_text().strip()


@pytest.mark.skipif(not (BIN / "maturin").exists(), reason="`make setup` installs maturin")
def test_the_metadata_of_a_wheel(tmp_path: Path) -> None:
    """The test asks for the metadata without building a wheel."""
    made = subprocess.run(
        [BIN / "maturin", "pep517", "write-dist-info", "--metadata-directory", tmp_path],
        cwd=ROOT,
        env=os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    (found,) = tmp_path.iterdir()
    check(email.message_from_string((found / "METADATA").read_text()))
    assert "tacit=tacit.cli:main" in (found / "entry_points.txt").read_text().replace(" ", "")
    assert (found / "licenses" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_the_readmes_images_are_found_from_anywhere() -> None:
    """The page of a package index has no other files of the repository."""
    files = f"{PROJECT['urls']['Repository']}/raw/main/"
    images = re.findall(r"!\[[^]]*\]\(([^)]+)\)", (ROOT / "README.md").read_text())
    assert images
    for image in images:
        assert image.startswith(files)
        assert (ROOT / image.removeprefix(files)).is_file()


def test_the_release_has_a_date() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(
        rf"^## \[{re.escape(version('tacit-mpc'))}\] - \d{{4}}-\d\d-\d\d$", text, re.MULTILINE
    )


def test_what_is_installed_by_hand_is_ours() -> None:
    """The package ``tacit`` of the index is another project's, so no instruction may install it."""
    stranger = re.compile(r"(pip install|uv add)[^\n]*['\" ]tacit(?![-\w])|\"tacit\[")
    places = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for folder in ("python", "examples", "tests"):
        places += [
            each for each in (ROOT / folder).rglob("*") if each.suffix in (".py", ".toml", ".md")
        ]
    said = [
        (path.name, line)
        for path in places
        if path != Path(__file__)
        for line in path.read_text().splitlines()
        if stranger.search(line)
    ]
    assert not said


def test_the_other_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = tmp_path / "installed" / "tacit-4.2.dist-info"
    beside.mkdir(parents=True)
    (beside / "METADATA").write_text("Metadata-Version: 2.1\nName: tacit\nVersion: 4.2\n")
    alone = Command("certificates", "--parties", 2, "--out", tmp_path / "alone").ended()
    assert (alone[0], alone[2]) == (0, "")
    monkeypatch.syspath_prepend(beside.parent)
    what = (
        "the package 'tacit' 4.2 is installed beside 'tacit-mpc', and both have a module 'tacit': "
        "each "
        "overwrites files of the other"
    )
    remedy = (
        "remove both and install tacit-mpc anew: pip uninstall tacit "
        "tacit-mpc, then pip install tacit-mpc"
    )
    code, _, errors = Command("certificates", "--parties", 2, "--out", tmp_path / "made").ended()
    assert (code, errors) == (0, f"tacit: {what}; {remedy}\n")
    report = tmp_path / "report.json"
    code, out, _ = Command("doctor", "--config", "none.toml", "--json", report).ended()
    assert code == 1
    assert f"WRONG another package: {what}; {remedy}\n" in out
    found = {each["check"]: each for each in json.loads(report.read_text())}
    assert found["another package"] == {
        "check": "another package",
        "ok": False,
        "detail": what,
        "remedy": remedy,
    }


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere wheels have another tag")
def test_a_wheel_is_installed_in_an_empty_environment(tmp_path: Path) -> None:
    """Takes long: it builds the extension a second time and installs PyTorch."""

    def ran(*words: object) -> str:
        done = subprocess.run(
            list(map(str, words)),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env=clean,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    ran("make", "-C", ROOT, "wheel", f"DIST={tmp_path}")
    (wheel,) = tmp_path.glob(f"tacit_mpc-*manylinux_2_28_{os.uname().machine}.whl")
    with zipfile.ZipFile(wheel) as files:
        (metadata,) = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
        check(email.message_from_string(files.read(metadata).decode()))
        assert {"tacit/py.typed", "tacit/_core.abi3.so", "tacit/_core.pyi"} <= set(files.namelist())
    # The versions of the lock file are in the local cache.
    pinned = ran(
        BIN / "uv",
        "export",
        "--project",
        ROOT,
        "--frozen",
        "--no-emit-project",
        "--no-hashes",
        "-q",
    )
    (tmp_path / "pinned.txt").write_text(pinned)
    ran(BIN / "uv", "venv", "--python", sys.executable, "environment")
    python = tmp_path / "environment" / "bin" / "python"
    ran(BIN / "uv", "pip", "install", "--python", python, "-c", "pinned.txt", wheel)
    assert ran(python.with_name("tacit"), "--version") == f"tacit {version('tacit-mpc')}\n"
    (tmp_path / "first.py").write_text(FIRST)
    assert str(tmp_path / "environment") in ran(python, "first.py")
