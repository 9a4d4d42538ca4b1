"""What a client does with its own data, in the clear: it trains, and its update is what that changed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters


@dataclass(frozen=True)
class Training:
    """How clients train."""

    epochs: int = 4
    batch: int = 32
    rate: float = 0.3


def update_of(
    model: nn.Module,
    start: torch.Tensor,
    examples: tuple[torch.Tensor, torch.Tensor],
    training: Training,
    generator: torch.Generator,
) -> torch.Tensor:
    """What training on these examples changes of a model that begins with these parameters, [parameters]; the
    generator decides the order."""
    # The model takes the memory of the vector that it is given.
    vector_to_parameters(start.clone(), model.parameters())
    inputs, labels = examples
    optimizer = torch.optim.SGD(model.parameters(), lr=training.rate)
    model.train()
    for _ in range(training.epochs):
        for batch in torch.split(torch.randperm(len(labels), generator=generator), training.batch):
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.cross_entropy(model(inputs[batch]), labels[batch]))
            optimizer.step()
    return parameters_to_vector(model.parameters()).detach() - start


def accuracy(model: nn.Module, parameters: torch.Tensor, inputs: torch.Tensor, labels: torch.Tensor) -> float:
    """The part of examples that a model with these parameters classifies rightly."""
    vector_to_parameters(parameters.clone(), model.parameters())
    model.eval()
    with torch.no_grad():
        return float((model(inputs).argmax(1) == labels).double().mean())


@contextmanager
def one_thread() -> Iterator[None]:
    """For small models, where several threads would only wait for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
