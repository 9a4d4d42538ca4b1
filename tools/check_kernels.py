"""Checks that NVRTC compiles the kernels of crates/cuda for each architecture.

NVRTC comes with PyTorch's wheels for CUDA, and needs neither a driver nor a card. Where it is not
installed, nothing is checked, and a sentence says so.
"""

import ctypes
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: The oldest architecture that is supported, and those of the cards that figures are stated for.
ARCHITECTURES = ["sm_80", "sm_90", "sm_100"]


def source(crate: Path) -> str:
    """Returns the kernels as one source, in the order of ``launch.rs``."""
    names = re.findall(
        r'include_str!\("\.\./(kernels/[^"]+)"\)', (crate / "src/launch.rs").read_text()
    )
    return "".join((crate / name).read_text() for name in names)


def libraries() -> Iterator[Path]:
    """Yields the copies of NVRTC in NVIDIA's wheels."""
    spec = find_spec("nvidia")
    for place in (spec and spec.submodule_search_locations) or ():
        yield from sorted(Path(place).glob("*/lib/libnvrtc.so.[0-9]*"))


def compiled(nvrtc: ctypes.CDLL, text: str, architecture: str) -> str:
    """Compiles kernels. Returns what NVRTC objects to."""
    program = ctypes.c_void_p()
    created = nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), text.encode(), b"tacit.cu", 0, None, None
    )
    options = (ctypes.c_char_p * 1)(f"--gpu-architecture={architecture}".encode())
    status = created or nvrtc.nvrtcCompileProgram(program, 1, options)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(max(1, size.value))
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    objections = log.value.decode()
    return objections or f"NVRTC's status {status}" if status or objections else ""


def main(root: Path = ROOT) -> int:
    path = next(libraries(), None)
    if path is None:
        print("kernels: not checked: install NVRTC, which PyTorch's wheel for CUDA brings")
        return 0
    nvrtc, text = ctypes.CDLL(str(path)), source(root / "crates" / "cuda")
    objections = {name: compiled(nvrtc, text, name) for name in ARCHITECTURES}
    for name, log in objections.items():
        if log:
            print(f"{name}: {log}", file=sys.stderr)
    if any(objections.values()):
        return 1
    print(f"kernels: NVRTC compiles them for {', '.join(ARCHITECTURES)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
