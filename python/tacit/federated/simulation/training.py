"""What a client does with its own data, in the clear: it trains, and its update is what that
changed."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

#: Examples that are classified at once, and pixels that an image is moved by at most.
AT_ONCE, MOST_MOVED = 500, 4


@dataclass(frozen=True)
class Training:
    """How clients train."""

    epochs: int = 4
    batch: int = 32
    rate: float = 0.3
    #: Batches of an epoch, if not all.
    batches: int | None = None
    #: Whether images are moved and mirrored by chance each time.
    moves: bool = False
    #: What a model is trained and evaluated on, "cpu" or "cuda", and threads of the processor for
    #: that; as many as there are where it is ``None``.
    device: str = "cpu"
    threads: int | None = 1


def update_of(
    model: nn.Module,
    start: torch.Tensor,
    examples: tuple[torch.Tensor, torch.Tensor],
    training: Training,
    generator: torch.Generator,
) -> torch.Tensor:
    """What training on these examples changes of a model that begins with these parameters,
    [parameters]; the generator decides the order."""
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
    """Has a model these parameters, on a device. It takes the memory of the vector that it is
    given."""
    model.to(device)
    vector_to_parameters(parameters.clone().to(device), model.parameters())


def moved(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Images (n, channels, height, width), each moved by up to four pixels in both directions over
    a border of zeros, and every second one mirrored, by chance."""
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
    """The part of examples whose label is ``among`` so many that a model with these parameters
    finds most likely."""
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
    """So many of PyTorch's, or as many as there were."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def one_thread() -> AbstractContextManager[None]:
    """For small models, where several threads would only wait for one another."""
    return threads(1)
