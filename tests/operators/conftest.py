"""The sessions in which operators are tested."""

from collections.abc import Callable
from typing import Any

import pytest

import tacit

SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {"parties": 2, "protocol": "plain"},
    "replicated": {},
    "additive": {"parties": 2, "protocol": "additive", "source": "dealer"},
}


@pytest.fixture(params=SETTINGS)
def everywhere(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Runs a program under each protocol and returns the result of party 0."""
    return lambda fn, *args: tacit.launch(fn, *args, **SETTINGS[request.param])[0]
