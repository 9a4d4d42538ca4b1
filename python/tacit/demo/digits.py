"""scikit-learn's handwritten digits (1,797 images of 8×8, part of the package) and a small CNN."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from tacit.errors import setup_error

#: Share of the images that the model is trained on; the rest is held out.
TRAINED = 0.7

EPOCHS = 30
BATCH = 32


class DigitNet(nn.Module):
    """Two convolutions with batch normalisation, ReLU and max pooling, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.relu1 = nn.ReLU()
        self.pool1 = nn.MaxPool2d(2)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(32)
        self.relu2 = nn.ReLU()
        self.pool2 = nn.MaxPool2d(2)
        self.flatten = nn.Flatten()
        self.linear = nn.Linear(128, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits (N, 10) of images (N, 1, 8, 8)."""
        features = self.pool1(self.relu1(self.norm1(self.conv1(images))))
        features = self.pool2(self.relu2(self.norm2(self.conv2(features))))
        logits: torch.Tensor = self.linear(self.flatten(features))
        return logits


def _split() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns images (N, 1, 8, 8) from 0 to 1, labels, and a fixed order, in which the first images
    are for training."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise setup_error("the demo needs scikit-learn: pip install 'tacit-mpc[demo]'") from None
    data, labels = load_digits(return_X_y=True)
    images = torch.tensor(data, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(20))
    return images, torch.tensor(labels), order


def for_training() -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the images for training and their labels."""
    images, labels, order = _split()
    chosen = order[: int(TRAINED * len(order))]
    return images[chosen], labels[chosen]


def held_out() -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the images of the data owner and their labels."""
    images, labels, order = _split()
    test = order[int(TRAINED * len(order)) :]
    return images[test], labels[test]


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limits PyTorch to one thread, for work in which several threads would only wait for one
    another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def train(seed: int = 0) -> DigitNet:
    """Trains the model of the model owner, in the clear, in a few seconds."""
    images, labels = for_training()
    with torch.random.fork_rng(), _one_thread():
        torch.manual_seed(seed)
        model = DigitNet()
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-4)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
        for _ in range(EPOCHS):
            for batch in torch.split(torch.randperm(len(images)), BATCH):
                loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
                optimizer.zero_grad()
                torch.autograd.backward(loss)
                optimizer.step()
            schedule.step()
    return model.eval()
