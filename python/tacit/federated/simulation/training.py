"""A client's work on its own data, in the clear: it trains, and computes its update."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

#: Examples that are classified at once, and the most pixels that an image is moved by.
AT_ONCE, MOST_MOVED = 500, 4


@dataclass(frozen=True)
class Training:
    """The parameters of the clients' training."""

    epochs: int = 4
    batch: int = 32
    rate: float = 0.3
    #: Batches of an epoch, if not all.
    batches: int | None = None
    #: Whether images are moved and mirrored at random each time.
    moves: bool = False
    #: The device on which a model is trained and evaluated, "cpu" or "cuda", and the number of
    #: threads for that; PyTorch's number if ``None``.
    device: str = "cpu"
    threads: int | None = 1


def update_of(
    model: nn.Module,
    start: torch.Tensor,
    examples: tuple[torch.Tensor, torch.Tensor],
    training: Training,
    generator: torch.Generator,
) -> torch.Tensor:
    """Trains a model from the given parameters on examples; returns the change, [parameters].

    The generator decides the order.
    """
    given_to(model, start, training.device)
    inputs, labels = examples
    optimizer = torch.optim.SGD(model.parameters(), lr=training.rate)
    model.train()
    for _ in range(training.epochs):
        order = torch.randperm(len(labels), generator=generator)
        for batch in torch.split(order, training.batch)[: training.batches]:
            optimizer.zero_grad()
            chosen = moved(inputs[batch], generator) if training.moves else inputs[batch]
            found = model(chosen.to(training.device))
            torch.autograd.backward(
                nn.functional.cross_entropy(found, labels[batch].to(training.device))
            )
            optimizer.step()
    return parameters_to_vector(model.parameters()).detach().cpu() - start


def given_to(model: nn.Module, parameters: torch.Tensor, device: str) -> None:
    """Moves a model to a device and sets its parameters. They share the memory of a copy of the
    vector."""
    model.to(device)
    vector_to_parameters(parameters.clone().to(device), model.parameters())


def moved(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Moves images (n, channels, height, width) at random, and mirrors each with probability ½.

    Each is moved by up to four pixels in both directions over a border of zeros.
    """
    count, channels, height, width = images.shape
    down, right = torch.randint(2 * MOST_MOVED + 1, (2, count, 1), generator=generator)
    is_mirrored = torch.rand(count, 1, generator=generator) < 0.5
    across = torch.arange(width)
    rows, columns = (
        down + torch.arange(height),
        right + torch.where(is_mirrored, across.flip(0), across),
    )
    wider = nn.functional.pad(images, (MOST_MOVED,) * 4)
    which = torch.arange(count)[:, None, None, None], torch.arange(channels)[None, :, None, None]
    return wider[*which, rows[:, None, :, None], columns[:, None, None, :]]


def accuracy(
    model: nn.Module,
    parameters: torch.Tensor,
    inputs: torch.Tensor,
    labels: torch.Tensor,
    *,
    among: int = 1,
    device: str = "cpu",
) -> float:
    """Computes the fraction of examples whose label is among the most likely ones, ``among`` in
    number, of a model with these parameters."""
    given_to(model, parameters, device)
    model.eval()
    right = 0
    with torch.no_grad():
        for piece, expected in zip(
            torch.split(inputs, AT_ONCE), torch.split(labels, AT_ONCE), strict=True
        ):
            likely = model(piece.to(device)).topk(among, dim=1).indices.cpu()
            right += int((likely == expected.unsqueeze(1)).sum())
    return right / len(labels)


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Sets the number of PyTorch's threads within a block; leaves it as it is if not given."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def one_thread() -> AbstractContextManager[None]:
    """Uses one thread, for small models, for which several threads would only wait for one
    another."""
    return threads(1)
