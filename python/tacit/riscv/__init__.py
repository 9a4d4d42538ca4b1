"""Compiled programs on secret data: what an ordinary compiler makes of C or Rust for RISC-V.

    mean = tacit.riscv.load("mean.elf")
    found = mean.call("mean", ["a", "len:a"], secret={"a": (0, salaries if party == 0 else None)})
    found.result

    psi = tacit.riscv.load("psi.elf")
    found = psi.run(secret={"a": (0, mine), "b": (1, None)}, output={"common": 1})
    found.outputs["common"]

Every party runs the same program. Which data are secret is said here, and not in it. What depends
on a secret and would be seen, a branch or an address, stops the program with its place.
crates/riscv has the machine."""

from tacit.riscv.arrays import MOST_ELEMENTS, TYPES, Range, Receiver, Typed
from tacit.riscv.program import LARGEST, LIMIT, Opened, Outcome, Program, load

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
    "Typed",
    "load",
]
