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
    #: Names of numbers of the file that became public: part of the graph, or what follows from them
    #: is.
    public: list[str] = field(default_factory=list)
    #: What the file calls the submodules that have other names, by these.
    layers: dict[str, str] = field(default_factory=dict)
