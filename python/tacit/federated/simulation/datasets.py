"""Datasets in a folder of this machine, as their publishers pack them. Nothing is downloaded."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from tacit.errors import MisuseError, SetupError, setup_error, tellable

#: In a folder of UCI HAR: the number of measures of an example, and of activities.
HAR_MEASURES, HAR_ACTIVITIES = 561, 6


class Split(NamedTuple):
    """Training examples and held-out examples, as their publishers divided them."""

    inputs: torch.Tensor
    labels: torch.Tensor
    test_inputs: torch.Tensor
    test_labels: torch.Tensor
    classes: int


class Source(NamedTuple):
    """A dataset's folder, and the function that reads it."""

    folder: str
    read: Callable[[Path], Split]


def _cifar(name: str, classes: int) -> Callable[[Path], Split]:
    """Returns a reader of CIFAR's images as bytes, (n, 3, 32, 32).

    It uses torchvision, which checks each file against its known hash before it unpickles it.
    """

    def read(folder: Path) -> Split:
        try:
            from torchvision import datasets
        except ImportError:
            raise setup_error("CIFAR is read by torchvision: pip install torchvision") from None
        parts: list[torch.Tensor] = []
        for train in (True, False):
            try:
                read: Any = getattr(datasets, name)(folder, train=train, download=False)
            except (RuntimeError, OSError, EOFError, KeyError, ValueError) as error:
                raise setup_error(
                    f"{folder / SOURCES[_NAMES[name]].folder} is not what "
                    f"torchvision.datasets.{name} keeps: {str(error).split('. You')[0]}"
                ) from None
            images = torch.from_numpy(np.ascontiguousarray(read.data.transpose(0, 3, 1, 2)))
            parts += [images, torch.tensor(read.targets)]
        return Split(parts[0], parts[1], parts[2], parts[3], classes)

    return read


def _har(folder: Path) -> Split:
    """Reads activities of people with 561 measures of their phones (Anguita et al. 2013)."""
    parts: list[torch.Tensor] = []
    for part in ("train", "test"):
        within = folder / SOURCES["uci-har"].folder / part
        try:
            inputs = np.loadtxt(within / f"X_{part}.txt", dtype=np.float32, ndmin=2)
            labels = np.loadtxt(within / f"y_{part}.txt", dtype=np.int64, ndmin=1)
        except (OSError, ValueError) as error:
            # NumPy's error quotes the text that it cannot read.
            unlike = SetupError(f"{within} is not that of UCI HAR: {error}")
            raise tellable(unlike, f"{within} is not that of UCI HAR") from None
        wrong = labels[(labels < 1) | (labels > HAR_ACTIVITIES)]
        if (
            inputs.shape != (len(labels), HAR_MEASURES)
            or len(wrong)
            or not np.isfinite(inputs).all()
        ):
            raise setup_error(
                f"{within} is not that of UCI HAR: {inputs.shape[0]} examples of {inputs.shape[1]} "
                f"measures and {len(labels)} labels, where each has {HAR_MEASURES} measures and "
                f"a label from 1 to {HAR_ACTIVITIES}"
            )
        parts += [torch.from_numpy(inputs), torch.from_numpy(labels - 1)]
    return Split(parts[0], parts[1], parts[2], parts[3], HAR_ACTIVITIES)


#: The datasets by name.
SOURCES = {
    "cifar-10": Source("cifar-10-batches-py", _cifar("CIFAR10", 10)),
    "cifar-100": Source("cifar-100-python", _cifar("CIFAR100", 100)),
    "uci-har": Source("UCI HAR Dataset", _har),
}

#: Names of datasets by torchvision's names.
_NAMES = {"CIFAR10": "cifar-10", "CIFAR100": "cifar-100"}


def split(name: str, folder: Path) -> Split:
    """Reads the dataset of the given name from a folder.

    Raises:
        MisuseError: no dataset of that name is read from folders.
        SetupError: it is not there, or is incomplete; or torchvision is not installed.
    """
    if name not in SOURCES:
        raise MisuseError(f"no data in folders are called {name!r}; known are {', '.join(SOURCES)}")
    if not (folder / SOURCES[name].folder).is_dir():
        raise setup_error(f"there is no folder {folder / SOURCES[name].folder}")
    return SOURCES[name].read(folder)


def found(folder: Path) -> list[str]:
    """Returns the names of the datasets in a folder.

    Raises:
        SetupError: there are none.
    """
    names = [name for name, source in SOURCES.items() if (folder / source.folder).is_dir()]
    if not names:
        wanted = ", ".join(source.folder for source in SOURCES.values())
        raise setup_error(f"there are no data in {folder}: it holds one of {wanted} at least")
    return names
