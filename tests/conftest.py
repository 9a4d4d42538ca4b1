import pytest
import torch

# torch_geometric puts functions of its own in the place of PyTorch's, which refuse a single number: the tests of
# PyTorch's operators have PyTorch's.
_OWN = {name: getattr(torch, name) for name in ("index_select",)}


@pytest.fixture(autouse=True)
def _functions_of_pytorch() -> None:
    for name, own in _OWN.items():
        setattr(torch, name, own)
