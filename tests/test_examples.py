"""The programs of examples/, as a new user runs them; classify.py is in test_command_line.py."""

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import tacit

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def ran(name: str, *arguments: object) -> None:
    """Runs a program in this process, because its parties come from this process's fork server."""
    sys.argv = [name, *map(str, arguments)]
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


@pytest.fixture(autouse=True)
def _own_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", sys.argv)


def test_private_inference_of_a_resnet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran("resnet.py", "--size", 32, "--report", tmp_path / "report.html")
    plain, secret = capsys.readouterr().out.splitlines()
    assert plain.startswith("in the clear: ")
    classes, error = secret.removeprefix("in secret:    ").split("; no logit is off by more than ")
    assert classes == plain.removeprefix("in the clear: ")
    assert float(error) < 0.01
    assert "layer4.1.conv2" in (tmp_path / "report.html").read_text()


def test_salary_survey(capsys: pytest.CaptureFixture[str]) -> None:
    example = runpy.run_path(str(EXAMPLES / "salary_survey.py"))
    found: list[dict[str, Any]] = tacit.launch(
        example["main"], parties=5, protocol="additive", source="dealer"
    )
    everybody = torch.cat([example["own_salaries"](party) for party in range(5)])
    plain = {
        "mean": everybody.mean(),
        "median": everybody.median(),
        "quartiles": everybody.quantile(torch.tensor([0.25, 0.75])),
        "histogram": torch.histogram(everybody, example["BRACKETS"]).hist,
    }
    for mine in found:
        assert mine.keys() == plain.keys()
        assert all(torch.allclose(mine[name], plain[name], rtol=0, atol=1e-3) for name in plain)
    said = capsys.readouterr().out
    assert said.startswith(f"{len(everybody)} people earn {plain['mean']:.2f} thousand on average")
    assert said.count("#") == len(everybody)


def test_private_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chart = tmp_path / "training.svg"
    ran(
        "private_training.py",
        "--epochs",
        2,
        "--images",
        128,
        "--optimizer",
        "sgd",
        "--chart",
        chart,
    )
    plain, secret = map(figures, capsys.readouterr().out.splitlines())
    assert abs(plain[0] - secret[0]) < 0.03
    # After eight steps, accuracy rises by forty points an epoch, and rounding shifts it by a few.
    # Both runs are far above the 10% of guessing. The comparison after all epochs is below.
    assert min(plain[1], secret[1]) > 40.0
    assert chart.read_text().count("<polyline") == 4


@pytest.mark.long
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_private_training_is_as_accurate_as_in_the_clear(
    optimizer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran("private_training.py", "--epochs", 5, "--optimizer", optimizer)
    plain, secret = map(figures, capsys.readouterr().out.splitlines())
    assert plain[1] > 95.0
    assert abs(plain[1] - secret[1]) <= 1.0


def figures(line: str) -> tuple[float, float]:
    """Returns loss and accuracy in percent."""
    found = re.fullmatch(r"in (?:the clear|secret): +loss ([\d.]+), accuracy ([\d.]+)%", line)
    assert found is not None, line
    return float(found[1]), float(found[2])


def test_saving_and_resuming(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran("resume.py", "--epochs", 6, "--folder", tmp_path / "saved")
    interrupted, resumed, error = capsys.readouterr().out.splitlines()
    assert resumed.startswith("resumed from epoch 3 to 6: loss ")
    before, after = (float(line.rsplit(" ", 1)[1]) for line in (interrupted, resumed))
    assert after < before
    # If Adam's states were lost, nine steps of 0.02 each would be off by a tenth.
    found = re.fullmatch(
        r"no weight is off by more than (\S+) from training that was not interrupted", error
    )
    assert found is not None
    assert float(found[1]) < 0.01
    assert any((tmp_path / "saved").iterdir())


def test_private_classification_of_text(capsys: pytest.CaptureFixture[str]) -> None:
    ran("text.py")
    *_, last = capsys.readouterr().out.splitlines()
    assert last.startswith("8 of 8 as in the clear; ")
    assert float(last.rsplit(" ", 1)[1]) < 0.02
