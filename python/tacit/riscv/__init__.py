"""Runs compiled RISC-V programs, built from C or Rust by an ordinary compiler, on secret data.

    mean = tacit.riscv.load("mean.elf")
    found = mean.call("mean", ["a", "len:a"], secret={"a": (0, salaries if party == 0 else None)})
    found.result

    psi = tacit.riscv.load("psi.elf")
    found = psi.run(secret={"a": (0, mine), "b": (1, None)}, output={"common": 1})
    found.outputs["common"]

Every party runs the same program. The call states which data are secret; the program does not. A
program stops if an observable action, such as a branch or a memory address, would depend on a
secret; the error names the place. The machine itself is in crates/riscv."""

from tacit.riscv.arrays import MOST_ELEMENTS, TYPES, Range, Receiver, Typed
from tacit.riscv.program import LARGEST, LIMIT, Opened, Outcome, Program, Scanned, load

__all__ = [
    "LARGEST",
    "LIMIT",
    "MOST_ELEMENTS",
    "TYPES",
    "Opened",
    "Outcome",
    "Program",
    "Range",
    "Receiver",
    "Scanned",
    "Typed",
    "load",
]
