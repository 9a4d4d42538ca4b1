"""What every importer gives: an ordinary module of PyTorch, and what goes in
and comes out of it."""

from dataclasses import dataclass, field

import torch


@dataclass(frozen=True)
class Imported:
    """A model in evaluation mode, with parameters of float32, that `torch.export` can trace."""

    module: torch.nn.Module
    #: Name, type and static shape of each, in the order in which the module takes them.
    inputs: list[tuple[str, torch.dtype, tuple[int, ...]]]
    #: Names, in the order in which the module gives them: a tensor alone, or a tuple if there are
    #: several.
    outputs: list[str]
    #: Numbers of the file that became part of the graph, which everybody sees.
    public: list[str] = field(default_factory=list)
