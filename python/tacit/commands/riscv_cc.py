"""``tacit riscv cc``: compiles a program in C for the machine."""

import argparse
from pathlib import Path
from typing import Any


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "cc",
        help="compile a program in C",
        description="Compiles a program in C with clang-19 or gcc for riscv64, whichever is found, "
        "and a "
        "small runtime: stdio on files, malloc, texts, and tacit.h. In the clear the ELF file runs "
        "under "
        "qemu-riscv64 too.",
    )
    parser.add_argument("sources", nargs="+", type=Path, metavar="FILE.c", help="the program")
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help="the ELF file (FILE.elf)")
    parser.add_argument("-D", dest="defined", action="append", default=[], metavar="NAME=VALUE")
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    from tacit.riscv.compiler import compile_program

    output = parsed.out or parsed.sources[0].with_suffix(".elf")
    compiler = compile_program(parsed.sources, output, [f"-D{each}" for each in parsed.defined])
    print(f"{output}, by {compiler}")
