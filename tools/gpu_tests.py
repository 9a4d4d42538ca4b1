"""The tests that need a card, by ``make test-gpu``.

``build`` builds the test binaries into ``target/gpu-tests``. ``run`` runs them and the sessions of
``tests/gpu.py``, and needs neither Rust nor a build: tacit may come from a wheel. Where
compute-sanitizer is installed, it watches some products.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BINARIES = ROOT / "target" / "gpu-tests"

#: Test binaries by name: what cargo is told, besides to build and not to run them.
TESTS = {
    "cuda": ["--package", "tacit-cuda", "--lib"],
    "digests": ["--package", "tacit-mpc", "--test", "digests"],
}

#: Seconds that all tests together may take.
SECONDS = 480.0

#: Tools of compute-sanitizer, and the tests that they watch.
SANITIZERS = ("memcheck", "racecheck", "synccheck")
SANITIZED = "card_few_shapes"

#: Status of compute-sanitizer if it finds something.
FOUND = "77"

Run = Callable[[list[str], Mapping[str, str], float], int]


def built(messages: str) -> list[str]:
    """Returns the test binaries that cargo's messages name."""
    found = [json.loads(line) for line in messages.splitlines() if line.startswith("{")]
    return [each["executable"] for each in found if each.get("executable")]


def build() -> int:
    BINARIES.mkdir(parents=True, exist_ok=True)
    for name, options in TESTS.items():
        command = ["cargo", "test", "--no-run", "--quiet", "--message-format=json", *options]
        made = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        if made.returncode:
            return made.returncode
        (binary,) = built(made.stdout)
        shutil.copy2(binary, BINARIES / name)
    return 0


def steps(sanitizer: str | None) -> dict[str, list[str]]:
    """Returns the command of each step, by name."""
    one_by_one = ["--ignored", "--nocapture", "--test-threads=1"]
    found = {name: [str(BINARIES / name), *one_by_one, "card_"] for name in TESTS}
    pytest = [sys.executable, "-m", "pytest", "-q", "-rs", "-m", "", str(ROOT / "tests/gpu.py")]
    found["sessions"] = pytest
    for tool in SANITIZERS if sanitizer else ():
        watched = [str(BINARIES / "cuda"), *one_by_one, SANITIZED]
        options = ["--tool", tool, "--error-exitcode", FOUND]
        found[tool] = [str(sanitizer), *options, *watched]
    return found


def started(command: list[str], environment: Mapping[str, str], seconds: float) -> int:
    """Runs a command, and returns its status; 124 if it takes longer."""
    try:
        return subprocess.run(
            command, cwd=ROOT, env=dict(environment), timeout=seconds, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        return 124


def run(start: Run = started) -> int:
    """Runs all steps, also after one that failed. Returns 0 if all passed."""
    from tacit.libraries import folders

    missing = [name for name in TESTS if not (BINARIES / name).exists()]
    if missing:
        print(f"test-gpu: {BINARIES} lacks {', '.join(missing)}: make gpu-tests", file=sys.stderr)
        return 1
    libraries = os.pathsep.join(map(str, folders()))
    environment = {**os.environ, "TACIT_CUDA_LIBRARIES": libraries}
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        print("test-gpu: compute-sanitizer is not installed, so nothing is watched by it")
    end, failed = time.monotonic() + SECONDS, []
    for name, command in steps(sanitizer).items():
        began = time.monotonic()
        status = start(command, environment, max(1.0, end - began))
        took = time.monotonic() - began
        print(f"test-gpu: {name}: {'passed' if status == 0 else status}, {took:.0f} s", flush=True)
        failed += [name] * (status != 0)
    if failed:
        print(f"test-gpu: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="gpu_tests.py", description=__doc__)
    parser.add_argument("what", choices=["build", "run"])
    return build() if parser.parse_args(words).what == "build" else run()


if __name__ == "__main__":
    sys.exit(main())
