"""The kernels of crates/cuda as NVIDIA's compiler and headers see them. Neither needs a card."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import check_kernels  # noqa: E402

NVRTC = next(check_kernels.libraries(), None)

without_nvrtc = pytest.mark.skipif(NVRTC is None, reason="NVRTC is not installed here")

#: What `crt/host_defines.h` defines, which none of the installed wheels brings.
HOST_DEFINES = "\n".join(
    f"#define {name}"
    for name in (
        "__align__(n)",
        "__builtin_align__(n)",
        "__device_builtin__",
        "__device_builtin_texture_type__",
        "__device_builtin_surface_type__",
        "__cudart_builtin__",
        "__device__",
        "__host__",
        "CUDARTAPI",
    )
)


@without_nvrtc
def test_nvrtc_compiles_every_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_kernels.main() == 0
    expected = "kernels: NVRTC compiles them for sm_80, sm_90, sm_100\n"
    assert capsys.readouterr().out == expected


@without_nvrtc
def test_a_kernel_that_does_not_compile_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crate = tmp_path / "crates" / "cuda"
    shutil.copytree(ROOT / "crates" / "cuda", crate)
    kernel = crate / "kernels" / "recompose.cu"
    kernel.write_text(kernel.read_text().replace("word value = 0", "word value = nothing"))
    assert check_kernels.main(tmp_path) == 1
    assert 'identifier "nothing" is undefined' in capsys.readouterr().err


def test_without_nvrtc_it_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check_kernels, "libraries", lambda: iter([]))
    assert check_kernels.main() == 0
    assert "not checked" in capsys.readouterr().out


def headers() -> Path | None:
    """Returns the folder of CUDA's headers, if wheels bring them."""
    folder = NVRTC and NVRTC.parent.parent / "include"
    needed = ("cuda.h", "nvrtc.h", "cublasLt.h")
    return folder if folder and all((folder / name).exists() for name in needed) else None


@pytest.mark.skipif(
    headers() is None or shutil.which("cc") is None, reason="CUDA's headers are not installed here"
)
def test_the_fake_driver_has_the_functions_of_the_headers(tmp_path: Path) -> None:
    """So do the functions that crates/cuda calls, which are tested with the fake driver."""
    (tmp_path / "crt").mkdir()
    (tmp_path / "crt" / "host_defines.h").write_text(HOST_DEFINES)
    kernels = ROOT / "crates" / "cuda" / "kernels"
    flags = ["-std=gnu11", "-fsyntax-only", "-DWITH_HEADERS", "-Wall", "-Werror"]
    flags += ["-Wno-unknown-pragmas", f"-isystem{tmp_path}", f"-isystem{headers()}"]
    command = ["cc", *flags, str(kernels / "fake_driver.c")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
