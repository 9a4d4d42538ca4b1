"""Measures the time from an edit to the end of one test. CONTRIBUTING.md has the figures.

Each edit changes a function for the compiler, but not what it computes. The least time of several
runs is reported, since whatever else the machine does only adds to it. Files are restored at the
end.

    .venv/bin/python tools/measure_edits.py --runs 3 rust-to-python rust-to-rust python-to-python
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: A function of crates/mpc, at whose beginning a line is written.
RUST = ROOT / "crates" / "mpc" / "src" / "functions.rs"
RUST_FUNCTION = "pub fn forget(protocol: &mut dyn Protocol, name: Name) {\n"

PYTHON = ROOT / "python" / "tacit" / "operators" / "piecewise.py"

PYTEST = [".venv/bin/pytest", "-q", "tests/test_sharing.py", "-k", "all_shapes"]
RUST_TEST = [
    "cargo",
    "test",
    "--quiet",
    "-p",
    "tacit-mpc",
    "--test",
    "protocols",
    "functions::relu",
]

#: For each loop: the file that is edited, and the commands that a developer then runs.
LOOPS = {
    "rust-to-python": (RUST, [["make", "setup"], PYTEST]),
    "rust-to-python-dev": (RUST, [["make", "setup-dev"], PYTEST]),
    "rust-to-rust": (RUST, [RUST_TEST]),
    "python-to-python": (PYTHON, [PYTEST]),
}


@contextmanager
def edited(path: Path, run: int) -> Iterator[None]:
    """Adds a line of code to a file within this context."""
    text = path.read_text()
    if path.suffix == ".rs":
        assert text.count(RUST_FUNCTION) == 1, "the function that is edited has another signature"
        line = f"    std::hint::black_box({run}_u32);\n"
        changed = text.replace(RUST_FUNCTION, RUST_FUNCTION + line)
    else:
        changed = f"{text}\n_EDITED = {run}\n"
    path.write_text(changed)
    try:
        yield
    finally:
        path.write_text(text)


def seconds(commands: list[list[str]]) -> float:
    """Returns how long the commands take, one after another."""
    began = time.monotonic()
    for command in commands:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("loops", nargs="+", choices=LOOPS)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    for name in given.loops:
        path, commands = LOOPS[name]
        # Building what was not built yet is not part of an edit.
        seconds(commands)
        taken = []
        for run in range(given.runs):
            with edited(path, run):
                taken.append(seconds(commands))
        every = ", ".join(f"{each:.1f}" for each in taken)
        print(f"{name:20} {min(taken):7.1f} s of {every}", flush=True)


if __name__ == "__main__":
    main()
