"""The gateway answers Triton's own client, over HTTP, with JSON and with the binary extension."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from serving_in_clear import Array, InClear, gateway

from tacit.errors import (
    DeviationError,
    EncodingError,
    LateError,
    PeerError,
    RequestRefusedError,
    TacitError,
)

#: What a service may say, and the statuses that the application sees.
FAILURES: tuple[tuple[TacitError, int], ...] = (
    (PeerError("party 1 cannot be reached"), 503),
    (RequestRefusedError.of("starting", 1, "a session begins", 0.25), 503),
    (RequestRefusedError.of("quota", 1, "this client may ask 2 times a minute", 30), 429),
    (RequestRefusedError.of("unknown", 1, "it serves no such version"), 404),
    (EncodingError("a value is too large"), 400),
    (LateError("party 1 did not answer within the timeout"), 504),
    (DeviationError("the parties sent parts that are not of one result"), 502),
)


class Failing(InClear):
    """A backend that fails where an input says so."""

    def infer(self, model: str, inputs: Mapping[str, Array], **named: Any) -> tuple[Array, ...]:
        found = super().infer(model, inputs, **named)
        if "x" in inputs and inputs["x"][0, 0] == 4242:
            raise FAILURES[int(inputs["x"][0, 1])][0]
        return found


@pytest.mark.skipif(
    importlib.util.find_spec("tritonclient") is None, reason="`make setup` installs tritonclient"
)
def test_tritonclient() -> None:
    backend = Failing()
    with gateway(backend) as address:
        made = subprocess.run(
            [
                sys.executable,
                Path(__file__).with_name("triton_session.py"),
                address,
                str(len(FAILURES)),
            ],
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
        **{
            f"failure {number}": [str(status), str(error)]
            for number, (error, status) in enumerate(FAILURES)
        },
    }
    assert backend.asked == [
        *[("double", None, 5.0)] * 4,
        ("double", "1", None),
        ("add", None, None),
        *[("double", None, None)] * len(FAILURES),
    ]
