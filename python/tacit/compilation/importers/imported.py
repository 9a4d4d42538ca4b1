"""Result of every importer: a PyTorch module, with its inputs and outputs."""

from dataclasses import dataclass, field

import torch


@dataclass(frozen=True)
class Imported:
    """A model in evaluation mode, with parameters of float32, that `torch.export` can trace."""

    module: torch.nn.Module
    #: Name, dtype and static shape of each input, in the order in which the module takes them.
    inputs: list[tuple[str, torch.dtype, tuple[int, ...]]]
    #: Names of the outputs, in the order in which the module returns them: a tensor alone, or a
    #: tuple if there are several.
    outputs: list[str]
    #: Names of numbers of the file that became part of the graph, and so public.
    public: list[str] = field(default_factory=list)
