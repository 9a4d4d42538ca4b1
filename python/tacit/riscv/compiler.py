"""Compiles C programs for the machine, with an installed compiler and the runtime of
crates/riscv."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tacit import _core
from tacit.errors import MisuseError, setup_error

#: The supported compilers; the first that is installed is used.
COMPILERS = ("clang-19", "riscv64-linux-gnu-gcc", "riscv64-unknown-elf-gcc", "clang")

#: Options for all compilers. Debug information names the source lines in errors and of openings.
OPTIONS = [
    *("-O2", "-g", "-mabi=lp64d", "-fno-math-errno", "-ffunction-sections", "-fdata-sections"),
    # A switch on a secret compiles to branches, of which all sides are executed, instead of to a
    # table that would be read at a secret address.
    "-fno-jump-tables",
    *("-static", "-nostdlib", "-nostdinc"),
    *("-Wl,--gc-sections", "-Wl,--build-id=none", "-Wl,-z,noexecstack"),
]

#: Options for clang. Where it copies the end of a branch's sides, these meet again too late. The
#: last option keeps a public bound of a loop apart from a secret one.
TARGET_OF_CLANG = [
    *("--target=riscv64-unknown-elf", "-fuse-ld=lld"),
    *("-mllvm", "-tail-dup-placement=false", "-mllvm", "-disable-lftr"),
]

#: Options for gcc. It would copy the end of a loop, or of a branch's sides, which then meet again
#: too late. It would also replace a switch between numbers by a table.
TARGET_OF_GCC = [
    *("-fno-reorder-blocks", "-fno-thread-jumps", "-fno-split-paths"),
    "-fno-tree-switch-conversion",
]

#: The instruction sets to compile for; the first that the compiler supports is used.
INSTRUCTIONS = ("rv64gc_zba_zbb_zbs_zicond", "rv64gc_zba_zbb_zbs")

#: Keeps all functions of a source together and in the program, even if nothing calls them:
#: ``--call`` may name any of them.
KEPT = """__asm__(".pushsection .tacit.kept, \\"aR\\", @progbits\\n.dword .text\\n.popsection");
"""

#: A weak ``main`` for programs that define none.
NO_MAIN = """#include <stdio.h>
__attribute__((weak)) int main(void) {
    puts("this program has no main: --call names one of its functions");
    return 1;
}
"""

#: The maximum time that a compiler may take, in seconds.
LONGEST = 300.0


@dataclass(frozen=True)
class Compiler:
    """An installed compiler, with the runtime in a folder."""

    #: The compiler's name.
    name: str
    #: The command with all options, without files.
    command: list[str]
    #: The runtime's sources.
    runtime: list[Path]
    #: Libraries, which follow all files on the command line.
    libraries: list[str]


def prepared(found: str, folder: Path, options: Sequence[str] = ()) -> Compiler:
    """Prepares a compiler, and writes the runtime into a folder.

    Args:
        found: the compiler's path. A file name that begins with ``clang`` means clang, any other
            gcc.
        folder: an empty folder.
        options: more options for the compiler, such as ``-DN=100``.
    """
    name = Path(found).name
    is_clang = name.startswith("clang")
    target = TARGET_OF_CLANG if is_clang else TARGET_OF_GCC
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
    """Compiles a C program to an ELF file. Returns the name of the compiler.

    The file keeps all functions that are not ``static``. A program that is run whole needs a
    ``main``.

    Args:
        sources: the C files.
        output: the ELF file to write.
        options: more options for the compiler, such as ``-DN=100``.

    Raises:
        SetupError: no compiler is installed.
        MisuseError: the program does not compile; the message contains the compiler's output.
    """
    found = next((found for name in COMPILERS if (found := shutil.which(name))), None)
    if found is None:
        raise setup_error(
            f"no compiler for RISC-V is installed ({', '.join(COMPILERS)}): install "
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
    """Returns the first instruction set that the compiler supports."""
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
