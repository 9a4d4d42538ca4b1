"""``make test-gpu`` and ``make bench-gpu``, as far as they run without a card."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tacit import _core
from tacit.bench.cards import __main__ as bench
from tacit.bench.cards.measure import measure
from tacit.bench.cards.rows import ROWS
from tacit.errors import SetupError

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import gpu_tests  # noqa: E402

#: Seconds that CryptGPU's slides print, by row.
CRYPTGPU = {
    "lenet_mnist_1": 0.38,
    "alexnet_cifar_1": 0.91,
    "vgg16_cifar_1": 2.14,
    "alexnet_cifar_64": 1.09,
    "vgg16_cifar_64": 11.76,
    "alexnet_tiny_imagenet_1": 0.95,
    "vgg16_tiny_imagenet_1": 2.30,
    "alexnet_imagenet_1": 1.52,
    "vgg16_imagenet_1": 9.44,
    "resnet50_imagenet_1": 9.31,
    "resnet50_imagenet_8": 42.99,
    "resnet101_imagenet_1": 17.62,
    "resnet101_imagenet_8": 72.99,
    "resnet152_imagenet_1": 25.77,
    "resnet152_imagenet_8": 105.20,
    "training_alexnet_cifar_128": 2.82,
    "training_alexnet_tiny_imagenet_128": 11.17,
    "training_vgg16_cifar_32": 11.81,
    "training_vgg16_tiny_imagenet_8": 13.64,
}


def has_card() -> bool:
    try:
        _core.rate_of_product("cuda", ([1, 8, 8, 8], False))
    except SetupError:
        return False
    return True


def test_rows_have_the_published_seconds() -> None:
    found = {name: row.published.get("CryptGPU") for name, row in ROWS.items()}
    for name, seconds in CRYPTGPU.items():
        assert found[name] == pytest.approx(seconds, abs=0.006), name


@pytest.mark.parametrize("name", ["product_4096", "resnet50_convolutions_32"])
def test_rates_are_measured(name: str) -> None:
    found = measure(name, "simulated", tiny=True)
    assert found["seconds_median"] > 0
    assert found["multiply_adds_a_second"] > 0
    assert found["bytes_copied_a_second"] > 0
    assert measure(name, "cpu", tiny=True)["bytes_copied_a_second"] == 0


@pytest.mark.parametrize(
    "name", ["relu_256000", "lenet_mnist_1", "training_lenet_mnist_128", "resnet18_2_parties_1"]
)
def test_sessions_are_measured(name: str) -> None:
    """Parties share a device and have a share each of what is published."""
    found = measure(name, "simulated", tiny=True)
    assert found["seconds_median"] >= found["seconds_min"] > 0
    assert found["parties"] == len(found["device"]) == ROWS[name].setting.parties
    assert all(each["kind"] == "simulated" for each in found["device"])
    if not name.startswith("relu"):
        assert all(each["bytes_copied"] > 0 for each in found["device"])
    assert min(found["bytes_sent_per_party"]) > 0


def test_a_call_goes_on_where_the_last_one_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--device", "simulated", "--tiny", "--json", str(path := tmp_path / "rows.json")]
    words += ["--only", "product_4096,lenet_mnist_1"]
    assert bench.main([*words, "--most", "1"]) == 0
    assert "has 1 of 4" in (told := capsys.readouterr().out)
    assert "call it again" in told
    first = json.loads(path.read_text())["rows"]
    assert [*first["product_4096"]] == ["published", "simulated"]
    assert bench.main(words) == 0
    assert "has 4 of 4" in (told := capsys.readouterr().out)
    assert "call it again" not in told
    rows = json.loads(path.read_text())["rows"]
    assert rows["product_4096"]["simulated"] == first["product_4096"]["simulated"]
    assert rows["lenet_mnist_1"]["published"] == {"CryptGPU": 0.38}
    for row in rows.values():
        assert row["simulated"]["seconds_median"] > 0 < row["cpu"]["seconds_median"]
    before = path.read_bytes()
    assert bench.main(words) == 0
    assert path.read_bytes() == before
    # Other sizes are another table.
    assert bench.main([word for word in words if word != "--tiny"]) == 1
    assert "has tiny True, and this is False" in capsys.readouterr().err


def test_what_takes_longer_than_a_call_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A measurement that had most of a call is not tried again; one that had the rest of one is."""
    words = ["--device", "cpu", "--tiny", "--json", str(path := tmp_path / "rows.json")]
    words += ["--only", "product_4096", "--seconds", "0.2"]
    assert bench.main(words) == 0
    (row,) = json.loads(path.read_text())["rows"].values()
    assert 0 < row["cpu"]["stopped_after"] <= 0.2

    def never(*_: Any) -> dict[str, Any]:
        raise AssertionError("measured again")

    monkeypatch.setattr(bench, "_measured", never)
    assert bench.main(words) == 0
    assert "call it again" not in capsys.readouterr().out.split("stopped")[1].split("\n", 2)[2]
    with pytest.raises(AssertionError, match="measured again"):
        bench.main([*words[:-1], "100"])


def test_a_failure_is_shown_and_tried_again_if_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--device", "cpu", "--tiny", "--json", str(path := tmp_path / "rows.json")]
    words += ["--only", "product_4096"]
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert bench.main(words) == 1
    assert "product_4096 on cpu: failed: it ended with 1" in capsys.readouterr().out
    monkeypatch.undo()
    assert bench.main(words) == 1
    assert "error" in json.loads(path.read_text())["rows"]["product_4096"]["cpu"]
    assert bench.main([*words, "--again"]) == 0


@pytest.mark.skipif(has_card(), reason="this machine has a card")
def test_without_a_card_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--json", str(path := tmp_path / "rows.json")]
    monkeypatch.delenv("TACIT_REQUIRE_GPU", raising=False)
    assert bench.main(words) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("bench-gpu: skipped, since no card can be used: setup: ")
    monkeypatch.setenv("TACIT_REQUIRE_GPU", "1")
    assert bench.main(words) == 1
    assert not path.exists()


def test_unknown_rows_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["--only", "resnet51"]) == 1
    assert 'no row is called "resnet51"' in capsys.readouterr().err


def tried(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, statuses: Mapping[str, int]
) -> tuple[int, list[list[str]]]:
    """Runs the steps of ``make test-gpu`` with other binaries; returns the status and commands."""
    for name in gpu_tests.TESTS:
        (tmp_path / name).touch()
    monkeypatch.setattr(gpu_tests, "BINARIES", tmp_path)
    monkeypatch.setattr("shutil.which", lambda _: "/opt/compute-sanitizer")
    commands: list[list[str]] = []

    def start(command: list[str], environment: Mapping[str, str], seconds: float) -> int:
        assert "TACIT_CUDA_LIBRARIES" in environment
        assert 1 <= seconds <= gpu_tests.SECONDS
        commands.append(command)
        return next((status for part, status in statuses.items() if part in command), 0)

    return gpu_tests.run(start), commands


def test_all_steps_run_after_one_that_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, commands = tried(monkeypatch, tmp_path, {})
    assert status == 0
    assert len(commands) == len(gpu_tests.TESTS) + 1 + len(gpu_tests.SANITIZERS)
    for part in ("memcheck", str(tmp_path / "digests"), str(ROOT / "tests/gpu.py")):
        status, again = tried(monkeypatch, tmp_path, {part: 3})
        assert (status, again) == (1, commands)
        assert "test-gpu: failed: " in capsys.readouterr().err


def test_binaries_that_are_missing_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu_tests, "BINARIES", tmp_path)
    assert gpu_tests.run() == 1
    assert "lacks cuda, digests: make gpu-tests" in capsys.readouterr().err


def test_the_names_of_tests_are_those_of_rust() -> None:
    sources = [ROOT / "crates/cuda/src/tests/cards.rs", ROOT / "crates/mpc/tests/digests/main.rs"]
    text = "".join(source.read_text() for source in sources)
    assert f"fn {gpu_tests.SANITIZED}()" in text
    assert text.count("fn card_") == text.count('#[ignore = "needs a card: make test-gpu"]')


def test_binaries_are_those_that_cargo_names() -> None:
    messages = '{"reason":"compiler-artifact","executable":null}\n{"executable":"/a/cuda-1"}\nx\n'
    assert gpu_tests.built(messages) == ["/a/cuda-1"]
