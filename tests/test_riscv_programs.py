"""The programs that are part of this repository: small, and what their sources give."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from test_riscv import PROGRAMS, ROOT

COMPILER = "riscv64-linux-gnu-gcc"

#: Which made those that are here. Another one makes others of the same meaning.
VERSION = "12.2.0"


def test_programs_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in PROGRAMS.glob("*.elf")}
    assert len(sizes) > 15
    assert max(sizes.values()) <= 64 << 10, sizes
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
    """`make riscv-programs`, in a copy: paths of sources that programs have are those from the root
    on."""
    folder = Path("crates/riscv/programs")
    shutil.copy(ROOT / "Makefile", tmp_path)
    # Cargo may have left there what it built.
    shutil.copytree(PROGRAMS, tmp_path / folder, ignore=shutil.ignore_patterns("rust", "*.elf"))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    subprocess.run(
        ["make", "riscv-programs"], cwd=tmp_path, env=environment, check=True, capture_output=True
    )
    for path in sorted(PROGRAMS.glob("*.elf")):
        assert (tmp_path / folder / path.name).read_bytes() == path.read_bytes(), path.name
