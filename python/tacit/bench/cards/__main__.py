"""``make bench-gpu``: measures every row with the card and without it, as far as time allows.

Each measurement runs in a process of its own. What was measured is in a JSON file after each, and
the next call goes on from there. Without a card it says so and measures nothing; with
``TACIT_REQUIRE_GPU=1`` it fails."""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from tacit import _core
from tacit.atomic_write import write
from tacit.bench.cards.measure import measure
from tacit.bench.cards.rows import ROWS
from tacit.errors import DeviceError, MisuseError, SetupError, TacitError
from tacit.libraries import find_libraries
from tacit.providers import DEVICES, quoted

#: Seconds of a call: less than nine minutes.
SECONDS = 510.0

#: A measurement that was stopped after this part of a whole call is not tried again.
MOST = 0.9

#: Version of the file.
FORMAT = 1


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="bench-gpu", description=(__doc__ or "").split("\n\n")[0])
    found.add_argument("--device", default="cuda", choices=list(DEVICES))
    found.add_argument("--json", type=Path, default=Path("target/bench-gpu.json"))
    found.add_argument("--only", help="these rows, with commas between them", default="")
    found.add_argument("--seconds", type=float, default=SECONDS, help="of this call")
    found.add_argument("--most", type=int, default=1 << 30, help="measurements of this call")
    found.add_argument("--again", action="store_true", help="measure again what failed")
    found.add_argument("--tiny", action="store_true", help="tiny sizes, to try the command")
    found.add_argument("--measure", metavar="ROW", help=argparse.SUPPRESS)
    return found


def main(words: list[str] | None = None) -> int:
    parsed = parser().parse_args(words)
    find_libraries()
    try:
        if parsed.measure:
            print(json.dumps(measure(parsed.measure, parsed.device, tiny=parsed.tiny)))
            return 0
        return _go_on(parsed)
    except TacitError as error:
        print(f"bench-gpu: {error}", file=sys.stderr)
        return 1


def _go_on(parsed: argparse.Namespace) -> int:
    """Measures what is not measured yet. Returns the exit status."""
    names = parsed.only.split(",") if parsed.only else list(ROWS)
    if unknown := [name for name in names if name not in ROWS]:
        raise MisuseError(f"no row is called {quoted(unknown)}; there are {', '.join(ROWS)}")
    try:
        _core.rate_of_product(parsed.device, ([1, 8, 8, 8], False))
    except (SetupError, DeviceError) as error:
        if os.environ.get("TACIT_REQUIRE_GPU") == "1":
            raise
        print(f"bench-gpu: skipped, since no card can be used: {error}")
        return 0
    end = time.monotonic() + parsed.seconds
    content, left = _opened(parsed), parsed.most
    todo = [
        (name, device)
        for name in names
        for device in dict.fromkeys((parsed.device, "cpu"))
        if _is_open(content["rows"].get(name, {}).get(device), parsed)
    ]
    for name, device in todo:
        remaining = end - time.monotonic()
        if left == 0 or remaining <= 0:
            break
        left -= 1
        row = content["rows"].setdefault(name, {"published": ROWS[name].published})
        row[device] = _measured(name, device, remaining, parsed.tiny)
        print(f"{name} on {device}: {_told(row[device])}", flush=True)
        write(parsed.json, json.dumps(content, indent=2) + "\n")
    rows = [content["rows"].get(name, {}) for name in names]
    found = [row.get(device) for row in rows for device in dict.fromkeys((parsed.device, "cpu"))]
    is_done = not any(_is_open(each, parsed, again=False) for each in found)
    print(f"bench-gpu: {parsed.json} has {sum(each is not None for each in found)} of {len(found)}")
    if not is_done:
        print("bench-gpu: call it again to go on")
    return 1 if any("error" in each for each in found if each is not None) else 0


def _opened(parsed: argparse.Namespace) -> dict[str, Any]:
    """Returns what earlier calls measured, on the same machine in the same way."""
    about = {
        "format": FORMAT,
        "tiny": parsed.tiny,
        "machine": platform.node(),
        "cores": os.cpu_count(),
        "torch": torch.__version__,
    }
    if not parsed.json.exists():
        return {**about, "rows": {}}
    content: dict[str, Any] = json.loads(parsed.json.read_text())
    for key, value in about.items():
        if content.get(key) != value:
            raise MisuseError(
                f"{parsed.json} has {key} {content.get(key)!r}, and this is {value!r}: give "
                "another file with --json"
            )
    return content


def _is_open(
    found: dict[str, Any] | None, parsed: argparse.Namespace, again: bool | None = None
) -> bool:
    """Whether a measurement is to be made, or to be made again."""
    if found is None:
        return True
    if "stopped_after" in found:
        return bool(found["stopped_after"] < MOST * parsed.seconds)
    return "error" in found and (parsed.again if again is None else again)


def _measured(name: str, device: str, seconds: float, tiny: bool) -> dict[str, Any]:
    """Measures a row in a process of its own, which is stopped when the time is over."""
    command = [sys.executable, "-m", "tacit.bench.cards", "--measure", name, "--device", device]
    child = subprocess.Popen(
        [*command, *["--tiny"] * tiny],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, errors = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return {"stopped_after": seconds}
    if child.returncode:
        lines = errors.strip().splitlines() or [f"it ended with {child.returncode}"]
        return {"error": lines[-1]}
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


def _told(found: dict[str, Any]) -> str:
    if "error" in found:
        return f"failed: {found['error']}"
    if "stopped_after" in found:
        return f"stopped after {found['stopped_after']:.0f} s"
    rate = found.get("multiply_adds_a_second")
    of_rate = f", {rate / 1e12:.3f} * 10^12 multiply-adds a second" if rate else ""
    return f"{found['seconds_median']:.4f} s{of_rate}"


if __name__ == "__main__":
    sys.exit(main())
