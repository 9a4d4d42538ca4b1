"""The gateway answers Triton's own client, over HTTP, with JSON and with the binary extension."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from serving_in_clear import InClear, gateway


@pytest.mark.skipif(
    importlib.util.find_spec("tritonclient") is None, reason="`make setup` installs tritonclient"
)
def test_tritonclient() -> None:
    backend = InClear()
    with gateway(backend) as address:
        made = subprocess.run(
            [sys.executable, Path(__file__).with_name("triton_session.py"), address],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert made.returncode == 0, made.stderr
    found = json.loads(made.stdout)
    assert [found[key] for key in ("live", "ready", "model ready", "another ready")] == [
        True, True, True, False,
    ]  # fmt: skip
    assert found["server"]["extensions"] == ["binary_tensor_data"]
    assert found["model"]["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}]
    twice, sums = [[2, 5, -6], [8, 10, 12]], [0.5, 15]
    assert found["results"] == [[twice, sums, "float32", "7"]] * 4
    assert found["all"] == twice
    assert found["added"] == [[2**53, 2]]
    assert found["errors"] == {
        "NaN": ["400", "input x: a number is infinite or not a number"],
        "another model": ["404", "the service has no model of this name"],
        "another version": ["404", "double has the versions 1, 2"],
    }
    assert backend.asked == [
        *[("double", None, 5.0)] * 4,
        ("double", "1", None),
        ("add", None, None),
    ]
