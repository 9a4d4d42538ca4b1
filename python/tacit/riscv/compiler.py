"""Programs in C, compiled for the machine with a compiler that is found, and the runtime of
crates/riscv."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tacit import _core
from tacit.errors import MisuseError, setup_error

#: Compilers, the first that is found being used.
COMPILERS = ("clang-19", "riscv64-linux-gnu-gcc", "riscv64-unknown-elf-gcc", "clang")

#: What all are told. Debug information names the lines where a program stops, or opens something.
OPTIONS = [
    *("-O2", "-g", "-mabi=lp64d", "-fno-math-errno", "-ffunction-sections", "-fdata-sections"),
    # A switch on a secret is branches, of which all sides are carried out, and no table at a secret
    # place.
    "-fno-jump-tables",
    *("-static", "-nostdlib", "-nostdinc"),
    *("-Wl,--gc-sections", "-Wl,--build-id=none", "-Wl,-z,noexecstack"),
]

#: The instructions that compilers may use, the first set that they know.
INSTRUCTIONS = ("rv64gc_zba_zbb_zbs_zicond", "rv64gc_zba_zbb_zbs")

#: All functions of a source stand together and are kept, whoever calls them: ``--call`` may name
#: any.
KEPT = """__asm__(".pushsection .tacit.kept, \\"aR\\", @progbits\\n.dword .text\\n.popsection");
"""

#: What stands in the place of a ``main`` where there is none.
NO_MAIN = """#include <stdio.h>
__attribute__((weak)) int main(void) {
    puts("this program has no main: --call names one of its functions");
    return 1;
}
"""

#: Seconds that a compiler may take.
LONGEST = 300.0


@dataclass(frozen=True)
class Compiler:
    """A compiler that is found, with the runtime in a folder."""

    #: Of the program.
    name: str
    #: With all options but files.
    command: list[str]
    #: The runtime's sources.
    runtime: list[Path]
    #: What stands behind all files.
    libraries: list[str]


def prepared(found: str, folder: Path, options: Sequence[str] = ()) -> Compiler:
    """A compiler with the runtime, which is written into a folder.

    Args:
        found: its path; one whose file's name begins with ``clang`` is clang, any other gcc.
        folder: it should be empty.
        options: more for the compiler, such as ``-DN=100``.
    """
    name = Path(found).name
    is_clang = name.startswith("clang")
    # Where gcc copies the end of a loop, the sides of a branch before it do not meet again in the
    # loop. Of a switch between numbers it makes a table.
    target = (
        ["--target=riscv64-unknown-elf", "-fuse-ld=lld"]
        if is_clang
        else ["-fno-reorder-blocks", "-fno-tree-switch-conversion"]
    )
    own = (
        _says(found, "-print-resource-dir") + "/include"
        if is_clang
        else _says(found, "-print-file-name=include")
    )
    for source, text in _core.riscv_runtime():
        (folder / source).write_text(text)
    runtime = sorted(folder.glob("*.c"))
    headers = ["-isystem", str(folder), "-isystem", own, f"-ffile-prefix-map={folder}=tacit"]
    base = [found, *target, *OPTIONS, *headers]
    instructions = _instructions([*base, *options], folder)
    return Compiler(
        name,
        [*base, f"-march={instructions}", *options],
        runtime,
        [] if is_clang else ["-lgcc"],
    )


def compile_program(sources: Sequence[Path], output: Path, options: Sequence[str] = ()) -> str:
    """Makes an ELF file of a program in C; which compiler did.

    All of its functions that are not ``static`` are there; who runs it whole needs a ``main``.

    Args:
        sources: files in C.
        output: the ELF file.
        options: more for the compiler, such as ``-DN=100``.

    Raises:
        SetupError: no compiler is found.
        MisuseError: the program does not compile; the message has what the compiler says.
    """
    found = next((found for name in COMPILERS if (found := shutil.which(name))), None)
    if found is None:
        raise setup_error(
            f"no compiler for RISC-V is found, of {', '.join(COMPILERS)}: install "
            f"gcc-riscv64-linux-gnu, or "
            "clang-19 and lld-19"
        )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compiler = prepared(found, folder, options)
        kept, no_main = folder / "kept.h", folder / "no_main.c"
        kept.write_text(KEPT)
        no_main.write_text(NO_MAIN)
        objects = [folder / f"{number}.o" for number in range(len(sources))]
        for source, made in zip(sources, objects, strict=True):
            _compile(compiler, "-fno-function-sections", "-include", kept, "-c", source, "-o", made)
        _compile(compiler, *objects, no_main, *compiler.runtime, *compiler.libraries, "-o", output)
    return compiler.name


def _compile(compiler: Compiler, *what: str | Path) -> None:
    done = _run([*compiler.command, *what])
    if done.returncode != 0:
        raise MisuseError(f"{compiler.name} did not compile it:\n{done.stderr.strip()}")


def _instructions(command: list[str], folder: Path) -> str:
    """The first set that the compiler knows."""
    source = folder / "empty.c"
    source.write_text("")
    for instructions in INSTRUCTIONS[:-1]:
        if (
            _run(
                [*command, f"-march={instructions}", "-c", source, "-o", folder / "empty.o"]
            ).returncode
            == 0
        ):
            return instructions
    return INSTRUCTIONS[-1]


def _says(compiler: str, question: str) -> str:
    return _run([compiler, question]).stdout.strip()


def _run(command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            list(map(str, command)), capture_output=True, text=True, check=False, timeout=LONGEST
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise setup_error(f"cannot run {command[0]}: {error}") from None
