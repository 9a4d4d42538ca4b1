"""Data that lie in a folder of this machine, as their publishers pack them. Nothing is fetched."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from tacit.errors import MisuseError, SetupError, setup_error, tellable

#: What is in a folder of UCI HAR: measures of each example, and its activities.
HAR_MEASURES, HAR_ACTIVITIES = 561, 6


class Split(NamedTuple):
    """Examples to train on and examples held out, as those who published them divided them."""

    inputs: torch.Tensor
    labels: torch.Tensor
    test_inputs: torch.Tensor
    test_labels: torch.Tensor
    classes: int


class Source(NamedTuple):
    """Data of a name: the folder that they lie in, and what reads it."""

    folder: str
    read: Callable[[Path], Split]


def _cifar(name: str, classes: int) -> Callable[[Path], Split]:
    """Images of CIFAR as bytes, (n, 3, 32, 32): read by torchvision, which holds each file against
    its known hash before it unpickles it."""

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
                    f"torchvision.datasets.{name} keeps: "
                    f"{str(error).split('. You')[0]}"
                ) from None
            images = torch.from_numpy(np.ascontiguousarray(read.data.transpose(0, 3, 1, 2)))
            parts += [images, torch.tensor(read.targets)]
        return Split(parts[0], parts[1], parts[2], parts[3], classes)

    return read


def _har(folder: Path) -> Split:
    """Activities of people by 561 measures of their phones (Anguita et al. 2013)."""
    parts: list[torch.Tensor] = []
    for part in ("train", "test"):
        within = folder / SOURCES["uci-har"].folder / part
        try:
            inputs = np.loadtxt(within / f"X_{part}.txt", dtype=np.float32, ndmin=2)
            labels = np.loadtxt(within / f"y_{part}.txt", dtype=np.int64, ndmin=1)
        except (OSError, ValueError) as error:
            # NumPy quotes what it cannot read.
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
                f"measures "
                f"and {len(labels)} labels, where each has {HAR_MEASURES} measures and a label "
                f"from 1 to "
                f"{HAR_ACTIVITIES}"
            )
        parts += [torch.from_numpy(inputs), torch.from_numpy(labels - 1)]
    return Split(parts[0], parts[1], parts[2], parts[3], HAR_ACTIVITIES)


#: Data by name.
SOURCES = {
    "cifar-10": Source("cifar-10-batches-py", _cifar("CIFAR10", 10)),
    "cifar-100": Source("cifar-100-python", _cifar("CIFAR100", 100)),
    "uci-har": Source("UCI HAR Dataset", _har),
}

#: Their names by torchvision's.
_NAMES = {"CIFAR10": "cifar-10", "CIFAR100": "cifar-100"}


def split(name: str, folder: Path) -> Split:
    """Data of that name in a folder.

    Raises:
        MisuseError: no data of that name are read from folders.
        SetupError: they are not there, or not whole; or torchvision is not installed.
    """
    if name not in SOURCES:
        raise MisuseError(f"no data in folders are called {name!r}; known are {', '.join(SOURCES)}")
    if not (folder / SOURCES[name].folder).is_dir():
        raise setup_error(f"there is no folder {folder / SOURCES[name].folder}")
    return SOURCES[name].read(folder)


def found(folder: Path) -> list[str]:
    """The names of the data that lie in a folder.

    Raises:
        SetupError: there are none.
    """
    names = [name for name, source in SOURCES.items() if (folder / source.folder).is_dir()]
    if not names:
        wanted = ", ".join(source.folder for source in SOURCES.values())
        raise setup_error(f"there are no data in {folder}: it holds one of {wanted} at least")
    return names
