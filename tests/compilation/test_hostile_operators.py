"""Program operators with arguments of any kind: no call crashes the process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.compilation.allowlist import by_name

#: Processes; each handles an equal part of the operators.
BATCHES = 6

#: Most seconds that one process takes.
MOST_SECONDS = 240


@pytest.mark.long
@pytest.mark.parametrize("batch", range(BATCHES))
def test_no_operator_ends_the_process(batch: int) -> None:
    names = sorted(by_name())[batch::BATCHES]
    command = [
        sys.executable,
        "-W",
        "ignore",
        str(Path(__file__).with_name("hostile_calls.py")),
        *names,
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS)
    *called, last = ended.stdout.splitlines()
    assert ended.returncode == 0, f"{last}: {ended.returncode}, {ended.stderr[-2000:]}"
    assert called == names
    # Arguments of any kind are seldom valid. If none were, this test would check nothing.
    assert json.loads(last)["carried out"] > len(names)
