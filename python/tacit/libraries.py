"""Where the libraries of a card are: NVRTC and cublasLt, which PyTorch's wheels bring."""

from importlib.util import find_spec
from pathlib import Path

from tacit import _core


def find_libraries() -> None:
    """Tells the core in which folders to look for a card's libraries."""
    _core.look_for_libraries_in([str(folder) for folder in folders()])


def folders() -> list[Path]:
    """Returns the folders of libraries of NVIDIA's wheels beside PyTorch, and of PyTorch itself.

    A folder `nvidia` elsewhere, such as where a program runs, is not searched."""
    torch = _places("torch")
    wheels = [lib for place in torch for lib in sorted(place.parent.glob("nvidia/*/lib"))]
    return [*(lib for lib in wheels if lib.is_dir()), *(place / "lib" for place in torch)]


def _places(package: str) -> list[Path]:
    """Returns where a package lies, without importing it."""
    spec = find_spec(package)
    return [Path(place) for place in (spec and spec.submodule_search_locations) or ()]
