"""Datasets for simulated federations, and models for them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector

from tacit.errors import MisuseError, setup_error
from tacit.federated.simulation.datasets import split
from tacit.federated.simulation.networks import NETWORKS
from tacit.federated.simulation.training import Training, accuracy, one_thread, update_of

#: The fraction of all examples that clients train on; the rest is held out.
TRAINED = 0.7

#: The number of examples of mnist1d, and of the points of each.
GENERATED, POINTS = 4000, 40


@dataclass(frozen=True)
class Dataset:
    """Training examples, held-out examples, and a model for them."""

    name: str
    inputs: torch.Tensor
    labels: torch.Tensor
    test_inputs: torch.Tensor
    test_labels: torch.Tensor
    classes: int
    hidden: int
    #: The name of the network, for images.
    network: str | None = None
    #: If only the last layer is trained: the accuracy of the public model itself on the held-out
    #: examples.
    before: float | None = None

    def model(self) -> nn.Sequential:
        """Makes the model: two layers, one if nothing is hidden, or the network.

        PyTorch's generator decides the initial parameters.
        """
        if self.network is not None:
            return NETWORKS[self.network](self.classes)
        if not self.hidden:
            return nn.Sequential(nn.Linear(self.inputs.shape[1], self.classes))
        return nn.Sequential(
            nn.Linear(self.inputs.shape[1], self.hidden),
            nn.ReLU(),
            nn.Linear(self.hidden, self.classes),
        )


#: Suffix of the names of data of which only the last layer is trained.
LAST_LAYER = "-last-layer"

#: The fraction of the examples that is public then.
PUBLIC = 0.3


@lru_cache(maxsize=2)
def dataset(name: str, folder: str | None = None) -> Dataset:
    """Returns data by name.

    The names are "digits" and "cancer" of scikit-learn, and "mnist1d", which is generated. With the
    suffix "-last-layer" the inputs are the outputs of all layers but the last one of a model. That
    model was trained on public examples whose labels do not distinguish a class from the next one:
    like PPPFL's transformer (Akhtar 2024, 4.6.1) it knows images, but not what clients learn.

    With a folder, the names are "cifar-10/NETWORK" and "cifar-100/NETWORK", with a network of
    ``NETWORKS``, and "uci-har". The last two results are cached, since one federation after the
    other asks for the same. Callers must not write to them.

    Raises:
        MisuseError: another name.
        SetupError: scikit-learn is not installed, or the folder does not hold these data.
    """
    if folder is not None:
        return _of_folder(name, Path(folder))
    if name.endswith(LAST_LAYER):
        return _last_layer(dataset(name.removesuffix(LAST_LAYER)))
    if name not in DATASETS:
        raise MisuseError(f"no data are called {name!r}; known are {', '.join(DATASETS)}")
    inputs, labels, hidden = DATASETS[name]()
    order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(20))
    trained, held_out = order.tensor_split([int(TRAINED * len(order))])
    return Dataset(
        name,
        inputs[trained],
        labels[trained],
        inputs[held_out],
        labels[held_out],
        int(labels.max()) + 1,
        hidden,
    )


def _of_folder(name: str, folder: Path) -> Dataset:
    source, _, network = name.partition("/")
    read = split(source, folder)
    is_image = read.inputs.dim() == 4
    if is_image and network not in NETWORKS:
        raise MisuseError(f"no network is called {network!r}; known are {', '.join(NETWORKS)}")
    return Dataset(name, *read, hidden=0, network=network if is_image else None)


def _last_layer(data: Dataset) -> Dataset:
    public, private = torch.arange(len(data.labels)).tensor_split([int(PUBLIC * len(data.labels))])
    with torch.random.fork_rng(), one_thread():
        torch.manual_seed(0)
        model = data.model()
        start = parameters_to_vector(model.parameters()).detach()
        # Merges every two classes into the lesser one.
        examples = data.inputs[public], data.labels[public] // 2 * 2
        trained = start + update_of(
            model, start, examples, Training(epochs=30), torch.Generator().manual_seed(0)
        )
        before = accuracy(model, trained, data.test_inputs, data.test_labels)
    with torch.no_grad():
        inside, held_out = (
            model[:-1](inputs) for inputs in (data.inputs[private], data.test_inputs)
        )
    return replace(
        data,
        name=data.name + LAST_LAYER,
        inputs=inside,
        labels=data.labels[private],
        test_inputs=held_out,
        hidden=0,
        before=before,
    )


Loaded = tuple[torch.Tensor, torch.Tensor, int]


def _digits() -> Loaded:
    """Loads 1,797 images of 8×8 digits."""
    data, labels = _scikit_learn().load_digits(return_X_y=True)
    return torch.tensor(data, dtype=torch.float32) / 16, torch.tensor(labels), 64


def _cancer() -> Loaded:
    """Loads 569 tumours with 30 measures, each scaled to mean 0 and deviation 1."""
    data, labels = _scikit_learn().load_breast_cancer(return_X_y=True)
    inputs = torch.tensor(data, dtype=torch.float64)
    return ((inputs - inputs.mean(0)) / inputs.std(0)).float(), torch.tensor(labels), 16


def _scikit_learn() -> Any:
    try:
        from sklearn import datasets
    except ImportError:
        raise setup_error(
            "these data are scikit-learn's: pip install 'tacit-mpc[federated]'"
        ) from None
    return datasets


#: The ten shapes of mnist1d: heights at twelve points of a line.
SHAPES = (
    (5, 6, 6.5, 6.75, 7, 7, 7, 7, 6.75, 6.5, 6, 5),
    (5, 3, 3, 3.4, 3.8, 4.2, 4.6, 5, 5.4, 5.8, 5, 5),
    (5, 6, 6.5, 6.5, 6, 5.25, 4.75, 4, 3.5, 3.5, 4, 5),
    (5, 6, 6.5, 6.5, 6, 5, 5, 6, 6.5, 6.5, 6, 5),
    (5, 4.4, 3.8, 3.2, 2.6, 2.6, 5, 5, 5, 5, 5, 5),
    (5, 3, 3, 3, 3, 5, 6, 6.5, 6.5, 6, 4.5, 5),
    (5, 4, 3.5, 3.25, 3, 3, 3, 3, 3.25, 3.5, 4, 5),
    (5, 7, 7, 6.6, 6.2, 5.8, 5.4, 5, 4.6, 4.2, 5, 5),
    (5, 4, 3.5, 3.5, 4, 5, 5, 4, 3.5, 3.5, 4, 5),
    (5, 4, 3.5, 3.5, 4, 5, 5, 5, 5, 4.7, 4.3, 5),
)


def _mnist1d() -> Loaded:
    """Generates digits as lines (after S. Greydanus 2020).

    Each shape is moved, stretched, sheared and noisy, at 40 points.
    """
    random = np.random.default_rng(42)
    labels = random.integers(len(SHAPES), size=GENERATED)
    points = np.linspace(0, 1, POINTS)
    rows = []
    for label in labels:
        shape = np.array(SHAPES[label]) - 5
        width, slope = random.uniform(0.5, 0.9), random.normal(0, 0.75)
        start = random.uniform(0, 1 - width)
        line = np.interp(points, start + width * np.linspace(0, 1, len(shape)), shape, 0, 0)
        smooth = np.convolve(random.normal(0, 0.4, POINTS), np.ones(3) / 3, "same")
        rows.append(random.uniform(0.75, 1.25) * (line + slope * (points - 0.5)) + smooth)
    return torch.tensor(np.stack(rows), dtype=torch.float32), torch.from_numpy(labels), 64


DATASETS: dict[str, Callable[[], Loaded]] = {
    "digits": _digits,
    "cancer": _cancer,
    "mnist1d": _mnist1d,
}
