"""The check of layers finds violations."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import check_layers  # noqa: E402


def tree(root: Path) -> None:
    """Makes a miniature of the project."""
    for crate, uses in {
        "kernels": "",
        "lattice": "kernels",
        "net": "kernels",
        "mpc": "net",
        "testkit": "mpc",
        "py": "mpc",
    }.items():
        (root / "crates" / crate).mkdir(parents=True)
        used = f"{uses} = {{ workspace = true }}\n" if uses else ""
        (root / "crates" / crate / "Cargo.toml").write_text(f"[dependencies]\n{used}")
    for file, text in {
        "lib.rs": "pub mod bits;\nmod blocks;\nmod sealed;\npub use bits::Bits;\n",
        "bits.rs": "use kernels::planes;\npub struct Bits;\n",
        "blocks.rs": "",
        "sealed/mod.rs": "mod reader;\nmod writer;\npub struct Header;\n",
        "sealed/reader.rs": "use super::{Header, writer};\n",
        "sealed/writer.rs": "use super::Header;\n",
        "group.rs": "use crate::{Bits, blocks};\n#[cfg(test)]\nmod tests { use crate::protocol; }\n",
        "protocol.rs": "// use crate::open;\nuse crate::group::Group;\n#[cfg(test)]\nmod tests;\n",
        "protocol/tests.rs": "use crate::open;\n",
        "open.rs": "",
    }.items():
        path = root / "crates" / "mpc" / "src" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    package = root / "python" / "tacit"
    dispatch = package / "operators" / "dispatch"
    dispatch.mkdir(parents=True)
    (package / "errors").mkdir()
    (package / "_core.pyi").write_text("")
    (package / "__init__.py").write_text("")
    (package / "errors" / "__init__.py").write_text("from tacit import _core\n")
    (package / "tensor.py").write_text("from tacit.errors import X\n")
    (dispatch / "table.py").write_text("from tacit.operators.dispatch import operands\n")
    (dispatch / "operands.py").write_text("import torch\n")
    (package / "demo").mkdir()
    (package / "demo" / "__init__.py").write_text("from tacit.demo.run import run\n")
    (package / "demo" / "run.py").write_text("from tacit.demo import report\n")
    (package / "demo" / "report.py").write_text("")


def test_the_project_itself_is_layered() -> None:
    assert check_layers.main(ROOT) == 0


def test_a_sound_tree_passes(tmp_path: Path) -> None:
    tree(tmp_path)
    assert check_layers.main(tmp_path) == 0


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        (
            "crates/kernels/Cargo.toml",
            "[dependencies]\nnet = { workspace = true }\n",
            "kernels must not use net",
        ),
        (
            "crates/kernels/Cargo.toml",
            "[dependencies]\nlattice = { workspace = true }\n",
            "kernels must not use lattice",
        ),
        (
            "crates/lattice/Cargo.toml",
            "[dependencies]\nnet = { workspace = true }\n",
            "lattice must not use net",
        ),
        (
            "crates/lattice/Cargo.toml",
            "[dependencies]\not = { workspace = true }\n",
            "lattice must not use ot",
        ),
        (
            "crates/lattice/Cargo.toml",
            "[dependencies]\nmpc = { workspace = true }\n",
            "lattice must not use mpc",
        ),
        (
            "crates/net/Cargo.toml",
            "[dev-dependencies]\nmpc = { workspace = true }\ntestkit = { workspace = true }\n",
            "net must not use mpc",
        ),
        ("crates/novelty/Cargo.toml", "", "crate novelty has no layer"),
        (
            "crates/mpc/src/bits.rs",
            "use crate::group::Group;\n",
            "a circle: bits uses group uses bits",
        ),
        (
            "crates/mpc/src/bits.rs",
            "use crate::{\n    Error,\n    open::{Settings, open as start},\n};\n",
            "bits must not use open",
        ),
        ("crates/mpc/src/blocks.rs", "fn f(bits: &crate::Bits) {}\n", "blocks must not use bits"),
        (
            "crates/mpc/src/blocks.rs",
            'fn f() { super::open::open("//") }\n',
            "blocks must not use open",
        ),
        (
            "crates/mpc/src/sealed/writer.rs",
            "use super::reader::Reader;\n",
            "sealed: a circle: reader uses writer uses reader",
        ),
        (
            "crates/mpc/src/sealed/writer.rs",
            "use crate::protocol::Protocol;\n",
            "sealed must not use protocol",
        ),
        ("crates/mpc/src/novelty.rs", "", "novelty has no layer"),
        (
            "crates/mpc/Cargo.toml",
            "[dependencies]\ntestkit = { workspace = true }\n",
            "testkit is for tests",
        ),
        (
            "python/tacit/errors/__init__.py",
            "import tacit.tensor\n",
            "errors must not import tensor",
        ),
        (
            "python/tacit/errors/__init__.py",
            "from tacit import tensor\n",
            "errors must not import tensor",
        ),
        (
            "python/tacit/errors/__init__.py",
            "def f():\n    from tacit.parties.launch import launch\n",
            "errors must not import parties",
        ),
        (
            "python/tacit/operators/dispatch/operands.py",
            "from tacit.operators.dispatch.table import run\n",
            "a circle: operands uses table uses operands",
        ),
        ("python/tacit/tensor.py", "import hashlib\n", "cryptography lives in Rust"),
        ("python/tacit/tensor.py", "from tacit import share\n", "tensor must not import __init__"),
        (
            "python/tacit/demo/report.py",
            "from tacit.demo.run import run\n",
            "a circle: run uses report uses run",
        ),
        (
            "python/tacit/demo/report.py",
            "def f():\n    from tacit.demo import run\n",
            "a circle: run uses report uses run",
        ),
        (
            "python/tacit/demo/run.py",
            "from tacit.demo import VERSION\n",
            "a circle: __init__ uses run uses __init__",
        ),
        ("python/tacit/novelty.py", "", "novelty has no layer"),
    ],
)
def test_what_goes_up_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, text: str, expected: str
) -> None:
    tree(tmp_path)
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    assert check_layers.main(tmp_path) == 1
    assert expected in capsys.readouterr().out


def test_what_is_no_use_is_not_taken_for_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree(tmp_path)
    text = """
    //! As [`crate::open`] says.
    /* use crate::open; */
    const TEXT: &str = "use crate::open;";
    const RAW: &str = r#"crate::open " "#;
    const MARK: char = '"'; const NEXT: char = '\\'';
    #[cfg(test)]
    mod tests { fn f() { if true { crate::open::open(); } } }
    """
    (tmp_path / "crates/mpc/src/blocks.rs").write_text(text)
    assert check_layers.main(tmp_path) == 0, capsys.readouterr().out
