"""The programs of examples/, as a new user runs them; classify.py is in test_command_line.py."""

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from opacus.accountants import RDPAccountant
from PIL import Image
from sklearn.datasets import load_digits

import tacit
from tacit.federated.privacy.account import epsilon
from tacit.federated.privacy.joint import OFF

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


def fine_tuned(*arguments: object) -> tuple[Any, Any]:
    """Runs the program on a few clients; returns its functions and the model."""
    example = runpy.run_path(str(EXAMPLES / "fine_tuning.py"))
    return example, example["main"]([*map(str, ("--clients", 6, "--rounds", 2, *arguments))])


def test_fine_tuning_of_a_transformer_hides_clients(capsys: pytest.CaptureFixture[str]) -> None:
    example, model = fine_tuned("--sigma", 1, "--sampling", 1)
    first, *rounds = capsys.readouterr().out.splitlines()
    assert first == "6 clients with 1438 images; 10 classes"
    spent = [
        re.fullmatch(
            r"round \d: accuracy ([\d.]+)%, δ = 1e-05, ε of a client ([\d.]+) against a server, "
            r"([\d.]+) against others",
            line,
        )
        for line in rounds
    ]
    assert None not in spent
    numbers = [tuple(map(float, each.groups())) for each in spent if each is not None]
    # The account that the servers keep: σ is all of the noise, and no server knows a part of it.
    for number, (_, *found) in enumerate(numbers, 1):
        wanted = epsilon(1.0, 1.0, number, 1e-5, OFF)
        assert found == pytest.approx([wanted, wanted], abs=0.01)
    # What does not travel is as it was, and what travels was learned.
    before = example["transformer"]("small", None, 10).state_dict()
    learned = {
        name for name, each in model.state_dict().items() if not torch.equal(each, before[name])
    }
    assert learned == {
        "encoder.ln.weight",
        "encoder.ln.bias",
        "heads.head.weight",
        "heads.head.bias",
    }


def test_fine_tuning_of_given_weights_and_images_hides_images(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each client's own account is that of opacus, of all rounds."""
    example = runpy.run_path(str(EXAMPLES / "fine_tuning.py"))
    published = example["transformer"]("small", None, 1000)
    torch.nn.init.normal_(published.encoder.pos_embedding)
    torch.save(published.state_dict(), tmp_path / "weights.pth")
    pixels, labels = load_digits(return_X_y=True)
    for number in range(120):
        folder = tmp_path / "images" / str(labels[number] % 2)
        folder.mkdir(parents=True, exist_ok=True)
        digit = Image.fromarray((pixels[number].reshape(8, 8) * 15).astype("uint8"))
        digit.convert("RGB").save(folder / f"{number}.png")
    options = ("--weights", tmp_path / "weights.pth", "--images", tmp_path / "images")
    _, model = fine_tuned(*options, "--hides", "images", "--sigma", 2.0, "--epochs", 3)
    first, *rounds = capsys.readouterr().out.splitlines()
    assert first == "6 clients with 96 images; 2 classes"
    found = [float(line.rsplit(" ", 1)[1]) for line in rounds]
    # Of each 16 images a batch has each with a chance of a half: three epochs are six batches.
    accountant = RDPAccountant()
    for number in range(2):
        for _ in range(6):
            accountant.step(noise_multiplier=2.0, sample_rate=0.5)
        assert found[number] == pytest.approx(accountant.get_epsilon(1e-5), abs=0.01)
    assert torch.equal(model.encoder.pos_embedding, published.encoder.pos_embedding)
    assert model.heads.head.weight.shape == (2, 64)
    assert bool(model.heads.head.weight.any())
