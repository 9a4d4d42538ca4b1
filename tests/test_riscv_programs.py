"""The compiled programs in this repository: they are small, and match their sources."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from test_riscv import PROGRAMS, ROOT

COMPILER = "riscv64-linux-gnu-gcc"

#: The compiler's version that made these programs. Other versions make other programs with the same
#: meaning.
VERSION = "12.2.0"


def test_programs_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in PROGRAMS.glob("*.elf")}
    assert len(sizes) > 15
    # Most of the largest are the lines by which places in it are named.
    assert max(sizes.values()) <= 96 << 10, sizes
    assert sum(sizes.values()) <= 1 << 20, sizes


def _has_compiler() -> bool:
    if shutil.which(COMPILER) is None or shutil.which("make") is None:
        return False
    asked = subprocess.run(
        [COMPILER, "-dumpfullversion"], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() == VERSION


@pytest.mark.long
@pytest.mark.skipif(not _has_compiler(), reason=f"{COMPILER} {VERSION} is not here")
def test_programs_are_what_their_sources_give(tmp_path: Path) -> None:
    """Runs `make riscv-programs` in a copy, in which the paths of sources relative to the root
    are the same."""
    folder = Path("crates/riscv/programs")
    shutil.copy(ROOT / "Makefile", tmp_path)
    # Cargo's build outputs may be there.
    shutil.copytree(PROGRAMS, tmp_path / folder, ignore=shutil.ignore_patterns("rust", "*.elf"))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    subprocess.run(
        ["make", "riscv-programs"], cwd=tmp_path, env=environment, check=True, capture_output=True
    )
    for path in sorted(PROGRAMS.glob("*.elf")):
        assert (tmp_path / folder / path.name).read_bytes() == path.read_bytes(), path.name
