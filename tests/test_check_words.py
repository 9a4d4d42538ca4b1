"""The check of words finds retired words."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import check_words  # noqa: E402


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("python/tacit/mine.py", "@aside\ndef mine(): ...\n"),
        ("python/tacit/mine.py", "x.like(parts, loose=True)\n"),
        ("crates/mpc/src/mine.rs", "/// A mask that is wanted no more.\n"),
        ("docs/internals/mine.md", "What a party works out.\n"),
        ("docs/mine.md", "Parties send, or the other way round.\n"),
        ("python/tacit/mine.py", "claim = claims.now(session.claimant)\n"),
        ("crates/riscv/src/isa/mine.rs", "    ShiftLeftHalf,\n"),
        ("crates/riscv/src/isa/mine.rs", "    LoadUpper,\n"),
        ("crates/net/src/mine.rs", "/// Each rider of a message.\n"),
        ("crates/net/src/mine.rs", "struct Acquaintances;\n"),
        ("crates/net/src/mine.rs", "const MOST_RIDER: u8 = 3;\n"),
    ],
)
def test_a_retired_word_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, text: str
) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("")
    assert check_words.main(tmp_path) == 0
    (tmp_path / file).write_text(text)
    assert check_words.main(tmp_path) == 1
    assert f"{file}:1: " in capsys.readouterr().out
