#!/bin/sh
# Programs of others on the machine of crates/riscv, with public words. Nothing of them is part of this repository:
# they are compiled and run in a folder that is thrown away. What passes, and why the rest does not, stands in
# docs/riscv.md, whose table of exceptions is read here. The rest is said by
#
#   tools/riscv/official.sh --help
#
# PYTHON (.venv/bin/python) has the package tacit.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
cargo build --quiet --release --manifest-path "$root/Cargo.toml" -p tacit-riscv --example plain
exec "${PYTHON:-$root/.venv/bin/python}" "$root/tools/riscv/official.py" \
    --plain "${CARGO_TARGET_DIR:-$root/target}/release/examples/plain" "$@"
