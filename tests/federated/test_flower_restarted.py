"""A ServerApp of Flower that is killed goes on with its strategy's state."""

import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import flower_restarted
import flowers
import numpy as np
import pytest
import torch
from flwr.app import Array, ArrayRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import (
    DifferentialPrivacyServerSideFixedClipping,
    FedAdam,
    FedAvgM,
    FedYogi,
)
from worlds import Servers, written

from tacit.errors import MisuseError, SetupError
from tacit.federated.flower import SecureAggregation
from tacit.federated.flower.kept import KIND, Kept
from tacit.federated.service.archive import archived

NODES, SIZE, ROUNDS = len(flowers.COUNTS), 15, 3

RULES = f"coordinator = {NODES}\nnorm = 20.0\ngreatest_weight = 70\n"


@pytest.mark.parametrize(
    ("name", "when", "lost"),
    [
        ("FedAdam", flower_restarted.AFTER, 0),
        pytest.param("FedAvgM", flower_restarted.AFTER, 0, marks=pytest.mark.long),
        # The servers' round goes on, and the next process joins it.
        pytest.param("FedAdam", flower_restarted.AMID, 0, marks=pytest.mark.long),
        ("FedAdam", flower_restarted.WITHIN, 1),
    ],
)
def test_a_killed_server_comes_to_the_same_model(
    name: str, when: str, lost: int, tmp_path: Path
) -> None:
    config = written(tmp_path, NODES + 1, rules=RULES)
    servers = Servers(
        config, lambda server: [server.round(torch.zeros(SIZE)) for _ in range(ROUNDS + lost)]
    )
    kept, out = tmp_path / "strategy.pt", tmp_path / "out"
    program = [sys.executable, flower_restarted.__file__, name, config, kept, ROUNDS]
    codes = [
        subprocess.run([*map(str, [*program, killed, out])], timeout=240).returncode
        for killed in (when, "")
    ]
    for reports in servers.ended():
        assert [report.accepted for report in reports] == [[*range(NODES)]] * (ROUNDS + lost)
    assert codes == [-signal.SIGKILL, 0]
    assert out.read_text() == "2 3"
    expected: list[ArrayRecord] = []

    def plain(grid: Grid) -> None:
        inner = flower_restarted.inner(name)
        expected.append(inner.start(grid, flowers.model(), ROUNDS).arrays)

    flowers.simulated(flowers.client_app([]), plain)
    found = np.load(out.with_suffix(".npz"))
    for key, start in flowers.START.items():
        one, other = found[key], expected[0][key].numpy()
        assert np.abs(one - other).max() < 1e-4
        assert start.dtype.kind != "f" or np.abs(one - start).max() > 0.01


def state(tmp_path: Path) -> tuple[Kept, Path]:
    path = tmp_path / "strategy.pt"
    kept = Kept(path, "test")
    inner = FedAdam()
    inner.m_t = {"a": np.ones(2)}
    kept.write(2, flowers.model(), inner)
    return kept, path


def test_what_is_kept_is_restored_exactly(tmp_path: Path) -> None:
    kept, _ = state(tmp_path)
    inner = FedAdam()
    found = kept.read(flowers.model(), inner)
    assert found is not None
    assert found.ended == 2
    assert inner.m_t is not None
    assert inner.m_t["a"].tolist() == [1.0, 1.0]
    assert inner.v_t is None
    for name, values in flowers.START.items():
        assert found.model[name].numpy().dtype == values.dtype
        assert np.array_equal(found.model[name].numpy(), values)
    assert Kept(tmp_path / "none.pt", "test").read(flowers.model(), inner) is None
    # Other strategies keep a list, and the model as they moved it.
    before, after = FedAvgM(), FedAvgM()
    before.momentum_vector, before.current_arrays = [np.arange(3.0), np.array(7)], flowers.model()
    kept.write(1, flowers.model(), before)
    kept.read(flowers.model(), after)
    assert after.momentum_vector is not None
    assert [each.tolist() for each in after.momentum_vector] == [[0.0, 1.0, 2.0], 7]
    assert after.current_arrays == flowers.model()


def _replaced(path: Path, content: Any) -> None:
    """Writes something else, with its checksum."""
    path.write_bytes(archived(content, {}, KIND))


def _without(name: str, path: Path) -> None:
    content = torch.load(path, weights_only=True)
    del content[name]
    _replaced(path, content)


def _with(name: str, value: Any, path: Path) -> None:
    _replaced(path, {**torch.load(path, weights_only=True), name: value})


def _flipped(path: Path) -> None:
    """Changes one bit of an array."""
    content = bytearray(path.read_bytes())
    content[content.index(np.ones(2).tobytes())] ^= 1
    path.write_bytes(content)


class Other:
    """No kind of object that is loaded."""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: path.write_bytes(b"no file of torch"), "is not read: it has no checksum"),
        (lambda path: path.write_bytes(path.read_bytes()[:200]), "is not read: it has no checksum"),
        (_flipped, "is not read: it was damaged"),
        (lambda path: _replaced(path, Other()), "is not what a strategy keeps (UnpicklingError)"),
        (lambda path: _replaced(path, 3), "is not what a strategy keeps"),
        (partial(_without, "ended"), "is not what a strategy keeps"),
        (partial(_with, "ended", 0), "is not what a strategy keeps"),
        (partial(_with, "state", {"m_t": ("other", {})}), "is not what a strategy keeps"),
        (partial(_with, "state", {"m_t": 3}), "is not what a strategy keeps"),
        (partial(_with, "model", {"a": torch.ones(1)}), "is of a model of other names, shapes or"),
        (
            partial(_with, "model", {"a": torch.ones(1, requires_grad=True)}),
            "is not what a strategy keeps",
        ),
        (partial(_with, "federation", "other\n"), "is of FedAdam in the federation 'other'"),
        (partial(_with, "state", {"other": ("listed", [])}), "has other, which FedAdam does not"),
    ],
)
def test_files_that_are_not_a_strategys_are_refused(
    change: Any, message: str, tmp_path: Path
) -> None:
    kept, path = state(tmp_path)
    change(path)
    said = f"{re.escape(message)}.*: give another file, or remove it to begin with round 1"
    inner = FedAdam()
    with pytest.raises(SetupError, match=said):
        kept.read(flowers.model(), inner)
    assert inner.m_t is None
    # The remedy.
    path.unlink()
    assert kept.read(flowers.model(), inner) is None


def test_another_strategys_or_models_state_is_refused(tmp_path: Path) -> None:
    kept, _ = state(tmp_path)
    with pytest.raises(SetupError, match="is of FedAdam in the federation 'test'"):
        kept.read(flowers.model(), FedYogi())
    other = ArrayRecord({**flowers.model(), "steps": Array(np.array(7.0))})
    with pytest.raises(SetupError, match="is of a model of other names, shapes or kinds"):
        kept.read(other, FedAdam())


def test_arrays_of_a_strategy_within_another_are_not_lost_silently(tmp_path: Path) -> None:
    config = written(tmp_path, NODES + 1, rules=RULES)
    outer = DifferentialPrivacyServerSideFixedClipping(FedAdam(), 1.0, 1.0, NODES)
    with pytest.raises(MisuseError) as raised:
        SecureAggregation(outer, config, kept=tmp_path / "strategy.pt")
    assert str(raised.value) == (
        "kept is for the arrays of one strategy, and DifferentialPrivacyServerSideFixedClipping "
        "has FedAdam inside, whose arrays would be lost: give FedAdam itself, or leave kept out"
    )
    # Both remedies.
    SecureAggregation(outer.strategy, config, kept=tmp_path / "strategy.pt")
    SecureAggregation(outer, config)
