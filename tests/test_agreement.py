"""Parameters and public values that differ between the parties, at the border to Rust."""

import numpy as np
import pytest
import torch

import tacit

SETTINGS = [
    pytest.param("replicated", None, "threads", id="replicated"),
    pytest.param("replicated", None, "tcp", id="replicated-tcp"),
    pytest.param("additive", "dealer", "threads", id="additive"),
]


def ending(core_call: str, differ: bool, protocol: str, source: str | None, transport: str) -> None:
    """Each party hands something to its session that is its own where the parties differ, and opens."""

    def program() -> list[float] | None:
        secret = tacit.share(torch.ones(3), owner=0)
        core = tacit.session().core
        mine = tacit.session().party if differ else 7
        if core_call == "note":
            core.note(bytes([mine]))
        else:
            core.note_public("mul", np.full(1000, mine, dtype=np.uint8))
            core.note_public("add", bytes([mine]))
        opened = secret.reveal()
        assert opened is not None
        return list(opened)

    kind = "memory" if transport == "threads" else transport
    results = tacit.launch(program, protocol=protocol, source=source, transport=kind)
    assert results == [[1.0] * 3] * len(results)


@pytest.mark.parametrize(("protocol", "source", "transport"), SETTINGS)
def test_public_values_that_differ_end_the_session(protocol: str, source: str | None, transport: str) -> None:
    with pytest.raises(tacit.DesyncError, match=r'"mul": run the same program.*tacit\.public_random'):
        ending("note_public", True, protocol, source, transport)


@pytest.mark.parametrize(("protocol", "source", "transport"), SETTINGS)
def test_parameters_that_differ_end_the_session(protocol: str, source: str | None, transport: str) -> None:
    with pytest.raises(tacit.DesyncError, match=r"reveal of 3.*with other parameters"):
        ending("note", True, protocol, source, transport)


@pytest.mark.parametrize("call", ["note", "note_public"])
def test_equal_ones_do_not(call: str) -> None:
    ending(call, False, "replicated", None, "threads")
    ending(call, False, "additive", "dealer", "threads")


def test_a_public_value_is_bytes_that_lie_together() -> None:
    def program() -> None:
        core = tacit.session().core
        with pytest.raises(tacit.MisuseError, match="contiguous"):
            core.note_public("mul", np.zeros(10, dtype=np.uint8)[::2])
        with pytest.raises((BufferError, TypeError)):
            core.note_public("mul", np.zeros(10))  # type: ignore[arg-type]

    tacit.launch(program)
