"""Runs other projects' test programs on the machine of crates/riscv, with public words.

``tools/riscv/official.sh`` builds what runs the programs, and starts this script.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tacit.riscv.compiler import Compiler, prepared

ROOT = Path(__file__).parents[2]

#: Page that lists the exceptions, by suite, name and reason.
PAGE = ROOT / "docs" / "riscv.md"

#: Archive in which Debian's gcc-12-source has its sources.
SOURCES = "/usr/src/gcc-12/gcc-*.tar.xz"

#: Folder of these sources that is used.
TORTURE = "gcc/testsuite/gcc.c-torture/execute/"

#: Time limits in seconds: of a compilation, of a run on the machine, and of the processor's time
#: for a random program whose result is compared.
COMPILES = 120
RUNS = 600
RANDOM_RUNS = 1

#: Pattern of the compiler's options that a test states, for any machine.
OPTIONS = re.compile(r'\{\s*dg-(?:additional-)?options\s+\{?\s*"([^"]*)"\s*\}?\s*\}')


@dataclasses.dataclass(frozen=True)
class Result:
    """Outcome of a program."""

    suite: str
    name: str
    #: "passed", "failed", "stopped" before its end, "uncompiled", or "left" out, because it is not
    #: one to compare.
    how: str
    #: Reason in words, on one line.
    why: str = ""


@dataclasses.dataclass(frozen=True)
class Tools:
    """Tools that run the programs."""

    plain: Path
    qemu: str


def main() -> None:
    parsed = arguments()
    tools = Tools(parsed.plain, parsed.qemu)
    excepted = exceptions(PAGE.read_text())
    every: list[Result] = []
    with tempfile.TemporaryDirectory() as folder:
        for suite, jobs in suites(parsed, tools, Path(folder)):
            results = ran(jobs, parsed.jobs, parsed.log)
            show(suite, results, excepted)
            every += results
    wrong = [each for each in every if is_wrong(each, excepted)]
    for each in wrong:
        print(f"{each.how}: {each.suite} {each.name} {each.why}")
    sys.exit(1 if wrong else 0)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tools/riscv/official.sh", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--plain", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument(
        "--only",
        default="torture,csmith,isa,signatures",
        help="some suites, or as 'csmith clang' one of two",
    )
    parser.add_argument("--gcc", default="riscv64-linux-gnu-gcc", help="which is used")
    parser.add_argument("--clang", default="clang-19", help="which is used, for random programs")
    parser.add_argument(
        "--qemu", default="qemu-riscv64", help="whose results random programs must have"
    )
    parser.add_argument("--csmith", default="csmith", help="what makes random programs")
    parser.add_argument("--headers", default="/usr/include/csmith", help="what these include")
    parser.add_argument("--first", type=int, default=1, help="the first seed of random programs")
    parser.add_argument("--count", type=int, default=500, help="random programs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="programs at once")
    parser.add_argument(
        "--torture", type=Path, help="a folder gcc.c-torture/execute (that of gcc-12-source)"
    )
    parser.add_argument(
        "--isa", type=Path, help="a folder of programs rv64*-p-* of riscv-tests, built"
    )
    parser.add_argument(
        "--signatures",
        type=Path,
        help="a folder of programs NAME.elf of riscv-arch-test, built, and NAME.reference_output "
        "beside them",
    )
    parser.add_argument("--log", type=Path, help="a file for a line for each program")
    return parser.parse_args()


def suites(
    parsed: argparse.Namespace, tools: Tools, folder: Path
) -> Iterator[tuple[str, Iterable[Callable[[], Result]]]]:
    """Yields each suite that is requested and available, with its jobs."""
    wanted = parsed.only.split(",")

    def is_wanted(suite: str) -> bool:
        return suite in wanted or suite.split()[0] in wanted

    levels = [level for level in ("-O0", "-O2") if is_wanted(f"torture {level}")]
    if levels:
        sources = parsed.torture or unpacked(folder)
    for level in levels:
        compiler = ready(parsed.gcc, folder / f"gcc{level}", (level, "-w"))
        yield f"torture {level}", torture(sources, compiler, tools, folder, level)
    for suite, found in (("csmith gcc", parsed.gcc), ("csmith clang", parsed.clang)):
        if is_wanted(suite):
            place = folder / suite.replace(" ", "-")
            compiler = ready(found, place, ("-w", "-isystem", parsed.headers))
            # Csmith's header includes math.h for floats, which these programs do not have.
            (place / "math.h").touch()
            yield suite, random(parsed, suite, compiler, tools, folder)
    if "isa" in wanted and parsed.isa:
        programs = [path for path in sorted(parsed.isa.glob("rv64*-p-*")) if not path.suffix]
        yield "riscv-tests", (job(bare, tools, path) for path in programs)
    if "signatures" in wanted and parsed.signatures:
        yield (
            "riscv-arch-test",
            (job(signed, tools, path) for path in sorted(parsed.signatures.glob("*.elf"))),
        )


def job(does: Callable[..., Result], *given: object) -> Callable[[], Result]:
    return lambda: does(*given)


def ran(jobs: Iterable[Callable[[], Result]], at_once: int, log: Path | None) -> list[Result]:
    """Runs all jobs, ``at_once`` of them at a time."""
    results = []
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for done in concurrent.futures.as_completed([pool.submit(each) for each in jobs]):
            result = done.result()
            results.append(result)
            if log:
                with log.open("a") as file:
                    file.write(f"{result.how} {result.suite} {result.name} {result.why}\n")
    return sorted(results, key=lambda each: each.name)


def show(suite: str, results: list[Result], excepted: dict[tuple[str, str], str]) -> None:
    """Prints a line of the table."""
    said = collections.Counter(
        "excepted" if is_excepted(each, excepted) else each.how for each in results
    )
    ends = ", ".join(f"{number} {how}" for how, number in sorted(said.items()))
    print(f"{suite}: {ends}", flush=True)


def is_excepted(result: Result, excepted: dict[tuple[str, str], str]) -> bool:
    suite = result.suite.split()[0]
    names = ((suite, result.name), (result.suite, result.name))
    return result.how not in ("passed", "left") and any(name in excepted for name in names)


def is_wrong(result: Result, excepted: dict[tuple[str, str], str]) -> bool:
    return result.how not in ("passed", "left") and not is_excepted(result, excepted)


def exceptions(page: str) -> dict[tuple[str, str], str]:
    """Returns the reason for each suite and name, from the rows of the table "| suite | names |
    reason |"."""
    found = {}
    for row in page.splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if row.startswith("| ") and len(cells) == 3:
            for name in re.findall(r"`([^`]+)`", cells[1]):
                found[cells[0], name] = cells[2]
    return found


def ready(found: str, folder: Path, options: tuple[str, ...]) -> Compiler:
    """Returns a compiler as ``tacit riscv cc`` uses it, with the runtime compiled once."""
    path = shutil.which(found)
    if path is None:
        sys.exit(f"{found} is not here; docs/riscv.md says what is installed")
    folder.mkdir()
    compiler = prepared(path, folder, options)
    objects = []
    for source in compiler.runtime:
        objects.append(source.with_suffix(".o"))
        # The runtime is compiled with the same options, whatever those of the programs are.
        subprocess.run(
            [*compiler.command, "-O2", "-c", str(source), "-o", str(objects[-1])],
            check=True,
            cwd=folder,
        )
    return dataclasses.replace(compiler, runtime=objects)


def made(
    compiler: Compiler, source: Path, program: Path, options: Iterable[str] = ()
) -> str | None:
    """Compiles a program, and returns the reason if that fails."""
    command = [
        *compiler.command,
        *options,
        source,
        *compiler.runtime,
        *compiler.libraries,
        "-o",
        program,
    ]
    try:
        done = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, timeout=COMPILES
        )
    except subprocess.TimeoutExpired:
        return "takes long to compile"
    if done.returncode == 0:
        return None
    said = re.search(r"undefined (?:reference|symbol).*|(?:fatal )?error: .*", done.stderr)
    return said.group() if said else "no word of why"


def plainly(tools: Tools, program: Path, *options: str) -> tuple[str, str]:
    """Returns how a program ends on the machine, and what it prints."""
    command = [str(tools.plain), *options, str(program)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=RUNS)
    except subprocess.TimeoutExpired:
        return "stopped", f"by the end of its {RUNS} seconds"
    how, _, said = done.stdout.strip().partition(f" {program}")
    return (how, said.strip()) if done.returncode == 0 else ("stopped", done.stderr.strip())


def unpacked(folder: Path) -> Path:
    """Unpacks the sources of Debian's package and returns their folder."""
    archives = sorted(Path("/").glob(SOURCES.lstrip("/")))
    if not archives:
        sys.exit("gcc-12-source is not here; docs/riscv.md says what is installed")
    with tarfile.open(archives[-1]) as archive:
        for member in archive:
            _, _, name = member.name.partition("/")
            if name.startswith(TORTURE):
                archive.extract(member, folder, filter="data")
                top = member.name.split("/")[0]
    return folder / top / TORTURE


def torture(
    sources: Path, compiler: Compiler, tools: Tools, folder: Path, level: str
) -> Iterator[Callable[[], Result]]:
    """Yields jobs of gcc's torture programs, which must be run to see whether they are right."""
    suite = f"torture {level}"

    def one(source: Path) -> Result:
        name = source.relative_to(sources).with_suffix("").as_posix()
        options = " ".join(OPTIONS.findall(source.read_text(errors="replace"))).split()
        program = folder / f"{name.replace('/', '-')}{level}.elf"
        why = made(compiler, source, program, options)
        if why:
            return Result(suite, name, "uncompiled", why)
        how, said = plainly(tools, program)
        program.unlink()
        return Result(suite, name, how, said)

    return (
        job(one, source) for source in sorted([*sources.glob("*.c"), *sources.glob("ieee/*.c")])
    )


def random(
    parsed: argparse.Namespace, suite: str, compiler: Compiler, tools: Tools, folder: Path
) -> Iterator[Callable[[], Result]]:
    """Yields jobs of random programs, one for each seed."""

    def one(seed: int) -> Result:
        name = str(seed)
        place = folder / f"{compiler.name}-{name}"
        place.mkdir()
        source, program = place / "random.c", place / "random.elf"
        with source.open("w") as file:
            subprocess.run(
                [parsed.csmith, "--seed", name, "--no-argc"], stdout=file, cwd=place, check=True
            )
        try:
            why = made(compiler, source, program)
            return (
                Result(suite, name, "uncompiled", why)
                if why
                else compared(suite, name, tools, program)
            )
        finally:
            shutil.rmtree(place)

    return (job(one, seed) for seed in range(parsed.first, parsed.first + parsed.count))


def compared(suite: str, name: str, tools: Tools, program: Path) -> Result:
    """Compares what a program prints with what it prints on another machine, in a second of
    processor time."""
    limited = f'ulimit -t {RANDOM_RUNS}; exec "$0" "$1"'
    other = subprocess.run(
        ["sh", "-c", limited, tools.qemu, str(program)], capture_output=True, text=True
    )
    if other.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return Result(suite, name, "left", "runs for long")
    if other.returncode != 0:
        return Result(suite, name, "failed", f"{tools.qemu} ends with {other.returncode}")
    how, said = plainly(tools, program)
    if how == "passed" and said != f'"{other.stdout.strip()}"':
        return Result(suite, name, "failed", f"{said} in the place of {other.stdout.strip()}")
    return Result(suite, name, how, said)


def bare(tools: Tools, program: Path) -> Result:
    """Runs a program without an operating system."""
    return Result("riscv-tests", program.name, *plainly(tools, program, "--bare"))


def signed(tools: Tools, program: Path) -> Result:
    """Compares the signature that a program leaves with its reference."""
    suite, name = "riscv-arch-test", program.stem
    how, said = plainly(tools, program, "--bare", "--signature")
    if how != "passed":
        return Result(suite, name, how, said)
    left = Path(f"{program}.signature").read_text().split()
    expected = program.with_suffix(".reference_output").read_text().split()
    if left == expected:
        return Result(suite, name, "passed")
    pairs = zip(left, expected, strict=False)
    at = next(
        (at for at, (one, other) in enumerate(pairs) if one != other), min(len(left), len(expected))
    )
    return Result(suite, name, "failed", f"word {at} of {len(expected)}, {len(left)} are there")


if __name__ == "__main__":
    main()
