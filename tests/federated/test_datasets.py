"""Datasets in folders, tested with small generated files in the formats of CIFAR and UCI HAR; and
PPPFL's tables on them."""

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from tacit.errors import MisuseError, SetupError
from tacit.federated.experiments import accuracy, both, pppfl
from tacit.federated.simulation.data import dataset
from tacit.federated.simulation.datasets import found, split
from tacit.federated.simulation.federation import in_the_clear
from tacit.federated.simulation.networks import NETWORKS
from tacit.federated.simulation.training import moved


def write_har(folder: Path, train: int = 40, test: int = 12) -> None:
    """Writes activities, each of which stands out in one feature."""
    random = np.random.default_rng(1)
    for part, count in (("train", train), ("test", test)):
        within = folder / "UCI HAR Dataset" / part
        within.mkdir(parents=True)
        labels = np.arange(count) % 6
        x = random.normal(0, 0.01, (count, 561))
        x[np.arange(count), labels] += 5
        np.savetxt(within / f"X_{part}.txt", x, fmt="%.8e")
        np.savetxt(within / f"y_{part}.txt", labels + 1, fmt="%d")


def write_cifar(folder: Path, each: int = 6) -> None:
    """Writes rows of red, green and blue planes in files like torchvision's, of both kinds of
    CIFAR."""
    random = np.random.default_rng(2)

    def write(name: str, entries: dict[str, Any]) -> None:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(pickle.dumps(entries))

    def images() -> Any:
        return random.integers(0, 256, (each, 3072), dtype=np.uint8)

    for number in range(1, 6):
        labels = [(number + place) % 10 for place in range(each)]
        write(f"cifar-10-batches-py/data_batch_{number}", {"data": images(), "labels": labels})
    write("cifar-10-batches-py/test_batch", {"data": images(), "labels": list(range(each))})
    write(
        "cifar-10-batches-py/batches.meta",
        {"label_names": [f"class {label}" for label in range(10)]},
    )
    for part in ("train", "test"):
        fine = [(17 * place) % 100 for place in range(each)]
        write(
            f"cifar-100-python/{part}",
            {"data": images(), "fine_labels": fine, "coarse_labels": [0] * each},
        )
    write("cifar-100-python/meta", {"fine_label_names": [f"class {label}" for label in range(100)]})


@pytest.fixture
def any_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes torchvision accept the generated files, whose hashes differ from CIFAR's."""
    cifar = pytest.importorskip("torchvision.datasets.cifar")
    monkeypatch.setattr(cifar, "check_integrity", lambda path, _: Path(path).exists())


@pytest.mark.usefixtures("any_hash")
def test_cifar_is_read_as_torchvision_has_it(tmp_path: Path) -> None:
    write_cifar(tmp_path)
    assert found(tmp_path) == ["cifar-10", "cifar-100"]
    ten, hundred = split("cifar-10", tmp_path), split("cifar-100", tmp_path)
    assert ten.inputs.shape == (30, 3, 32, 32)
    assert (ten.inputs.dtype, ten.test_inputs.shape) == (torch.uint8, (6, 3, 32, 32))
    assert ten.labels[:7].tolist() == [1, 2, 3, 4, 5, 6, 2]
    assert ten.test_labels.tolist() == [0, 1, 2, 3, 4, 5]
    assert (ten.classes, hundred.classes) == (10, 100)
    assert hundred.labels.tolist() == [0, 17, 34, 51, 68, 85]
    # The planes keep their order of rows.
    entries = pickle.loads((tmp_path / "cifar-10-batches-py" / "test_batch").read_bytes())
    assert np.array_equal(ten.test_inputs[4, 2, 31], entries["data"][4, 2 * 1024 + 31 * 32 :])
    with pytest.raises(
        MisuseError, match="no network is called 'resnet'; known are linear, vgg-11, resnet-18"
    ):
        dataset("cifar-10/resnet", str(tmp_path))
    # With many classes, results also report whether the right class is among the top five.
    case = pppfl.Case("cifar-100", "linear", clients=2)
    rows = in_the_clear(pppfl.federation(case, tmp_path, 1, "cpu", 0))[0]
    assert [row.accuracy == row.accuracy for row in rows].count(True) == len(rows) == 8
    assert rows[-1].among_five is not None
    assert 0 <= rows[-1].accuracy <= rows[-1].among_five <= 1


def test_files_that_are_not_cifars_are_not_unpickled(tmp_path: Path) -> None:
    pytest.importorskip("torchvision")
    write_cifar(tmp_path)
    with pytest.raises(
        SetupError, match=r"cifar-10-batches-py is not what torchvision.datasets.CIFAR10 keeps"
    ):
        split("cifar-10", tmp_path)


def test_har_is_read(tmp_path: Path) -> None:
    write_har(tmp_path)
    read = split("uci-har", tmp_path)
    assert (read.inputs.shape, read.test_inputs.shape) == ((40, 561), (12, 561))
    assert read.labels.tolist() == [place % 6 for place in range(40)]
    assert float(read.inputs[5, 5]) == pytest.approx(5, abs=0.1)
    assert dataset("uci-har", str(tmp_path)).model()[0].in_features == 561


def test_folders_that_hold_something_else(tmp_path: Path) -> None:
    with pytest.raises(
        SetupError, match=r"there are no data in .*: it holds one of cifar-10-batches-py"
    ):
        found(tmp_path)
    with pytest.raises(SetupError, match=r"there is no folder .*UCI HAR Dataset"):
        split("uci-har", tmp_path)
    with pytest.raises(
        MisuseError, match="no data in folders are called 'digits'; known are cifar-10"
    ):
        split("digits", tmp_path)
    write_har(tmp_path)
    within = tmp_path / "UCI HAR Dataset" / "test"
    for name, text in (
        ("y_test.txt", "1\n2\n"),
        ("y_test.txt", "7\n" * 12),
        ("X_test.txt", "1 2\n" * 12),
    ):
        before = (within / name).read_text()
        (within / name).write_text(text)
        with pytest.raises(
            SetupError, match=r"test is not that of UCI HAR: 12 examples of (2|561) measures"
        ):
            split("uci-har", tmp_path)
        (within / name).write_text(before)
    (within / "X_test.txt").write_text("no numbers\n")
    with pytest.raises(SetupError, match="is not that of UCI HAR: could not convert"):
        split("uci-har", tmp_path)
    (within / "X_test.txt").unlink()
    with pytest.raises(SetupError, match=r"is not that of UCI HAR: .*not found"):
        split("uci-har", tmp_path)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("linear", 30_730),
        ("densenet-121", 6_956_298),
        ("vgg-11", 9_231_114),
        ("resnet-18", 11_173_962),
        ("simple-dla", 15_142_970),
    ],
)
def test_networks_are_as_large_as_pppfls(name: str, parameters: int) -> None:
    """Networks have the sizes of PPPFL's table 4.2."""
    with torch.device("meta"):
        network = NETWORKS[name](10)
        assert network(torch.zeros(2, 3, 32, 32, dtype=torch.uint8)).shape == (2, 10)
    assert sum(each.numel() for each in network.parameters()) == parameters


def test_images_are_moved_and_mirrored() -> None:
    images = torch.zeros(400, 2, 16, 16, dtype=torch.uint8)
    images[:, 1, 8, 5] = 7
    found = moved(images, torch.Generator().manual_seed(1))
    assert found.dtype == torch.uint8
    assert not found[:, 0].any()
    assert found[:, 1].flatten(1).sum(1).tolist() == [7] * 400
    rows, columns = (found[:, 1] == 7).nonzero()[:, 1:].unbind(1)
    assert set(rows.tolist()) == set(range(4, 13))
    # By mirroring, the fifth column becomes the tenth.
    assert set(columns.tolist()) == set(range(1, 15))
    both_ways = ((columns <= 5).sum(), (columns >= 10).sum())
    assert min(map(int, both_ways)) > 80


def test_pppfls_cases() -> None:
    ten = pppfl.cases("cifar-10")
    assert {case.network for case in ten} == set(pppfl.PAPER["cifar-10"]) < set(NETWORKS)
    assert {case.skew for case in ten} == {0.5, 0.7, 0.9}
    assert {case.clients for case in ten} == {8, 16, 32, 64}
    assert len(ten) == len(set(ten)) == 4 + 2 + 3
    tried = pppfl.federation(ten[0], Path("somewhere"), 2500, "cpu", 0)
    training = tried.training
    assert (training.batch, training.batches, training.epochs, training.rate) == (64, 1, 1, 0.1)
    assert (tried.rounds, tried.evaluated, tried.data) == (2500, 50, "cifar-10/densenet-121")
    assert pppfl.federation(replace(ten[0], clients=64), Path(), 2500, "cpu", 0).rounds == 625


def test_pppfls_tables_on_small_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the tables in secret on one kind of data, and checks what the other reports say."""
    monkeypatch.setattr(pppfl, "SKEWS", (0.9,))
    monkeypatch.setattr(pppfl, "NUMBERS", (16,))
    monkeypatch.setattr(both, "TRANSPORT", "memory")
    write_har(tmp_path)
    page = accuracy.run(Console(quiet=True), tmp_path / "har", data=tmp_path, rounds=3, seeds=1)
    text = page.read_text()
    assert text.count("<tr>") == 2 * (1 + 1)
    assert text.count("data:image/png") == 2
    secret, plain, apart = (text.split("<td>")[place].split("<")[0] for place in (2, 3, 4))
    assert float(secret.strip("%")) > 50
    assert float(apart) <= 100 / 12 + 0.01
    assert abs(float(secret.strip("%")) - float(plain.strip("%"))) == pytest.approx(
        float(apart), abs=0.02
    )
    row = in_the_clear(pppfl.federation(pppfl.Case("uci-har", ""), tmp_path, 1, "cpu", 0))[0][-1]
    learned = {
        case: both.Learned([[replace(row, among_five=0.75)]], [[row]])
        for case in pppfl.cases("cifar-100")
    }
    networks, *_ = pppfl._tables("cifar-100", learned)
    assert [each[0] for each in networks.rows] == list(pppfl.PAPER["cifar-100"])
    assert networks.rows[1][-3:] == ["47.76%", "48.97%", "1.21"]
    assert networks.rows[0][4:6] == ["75.00%", "0.00%"]
    assert {len(each) for each in networks.rows} == {len(networks.headings)}
