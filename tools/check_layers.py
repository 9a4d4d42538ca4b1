"""Checks that each layer uses only those below it, between crates, inside them, and in Python."""

import ast
import sys
import tomllib
from pathlib import Path

from rust_modules import Crate, circle

ROOT = Path(__file__).resolve().parent.parent

#: Rust crates, lowest first; those on one line may not use each other.
CRATES = [["ring"], ["lattice", "net", "ot"], ["mpc"], ["session"], ["riscv"], ["testkit", "py"]]

#: Inside each crate: its modules, lowest first; those on one line may not use each other. Modules in folders
#: need no list, as long as there is no circle among them.
INSIDE = {
    "ring": [
        ["dispatch", "memory", "message", "parallel", "shared_slice"],
        ["aes", "pack", "planes", "polynomial", "product"],
        ["convolution", "matrix", "stream"],
    ],
    "lattice": [
        ["error", "tiling", "wiped"],
        ["residues"],
        ["sample", "wire"],
        ["keys"],
        ["encryption"],
        ["answers"],
    ],
    "net": [
        ["agreement", "bytes", "error", "interruption", "meter", "parameters", "spare"],
        ["certificates", "frame", "process", "roster"],
        ["inbox"],
        ["config", "mesh"],
        ["channel", "memory", "tcp"],
        ["door"],
    ],
    "ot": [
        ["error", "rows"],
        ["binding"],
        ["base", "hash"],
        ["forms", "leaves", "tree"],
        ["extension", "products"],
        ["setup"],
    ],
    "mpc": [
        ["agreement", "bits", "blocks", "broadcast", "dense", "keys", "leaves", "sealed", "threat_model"],
        ["gaussian", "group", "learned", "operand", "width"],
        ["correlations", "cost", "submission", "tree"],
        ["protocol"],
        ["additive", "functions", "integers", "plain", "replicated", "series"],
        ["providers"],
        ["open"],
        ["making"],
    ],
    "session": [["limits", "options", "session"], ["configured", "doctor", "local", "submissions"]],
    "riscv": [
        ["real"],
        ["words"],
        ["composed", "fault", "operation"],
        ["formats", "ieee", "runtime"],
        ["fixed"],
        ["encoding", "instruction", "memory", "secret"],
        ["extensions", "lines", "scan"],
        ["symbols"],
        ["program"],
        ["decode"],
        ["code", "places"],
        ["joins"],
        ["machine"],
        ["arrays", "system"],
        ["execution"],
        ["calls", "runs"],
    ],
    "testkit": [["inputs", "shares", "transcript"]],
    "py": [
        ["errors"],
        ["buffer", "certificates", "doctor", "making"],
        ["kernels", "session"],
        ["opening"],
        ["door", "operands", "riscv"],
        ["operations"],
    ],
}

#: Modules of python/tacit, lowest first; those on one line may not use each other. A name stands for a
#: package too.
MODULES = [
    ["_core", "coverage", "gradient_coverage"],
    ["errors"],
    ["components", "fixed", "meter", "storages"],
    ["session", "starting", "_entry"],
    ["processes", "_party", "generators", "paths", "trace"],
    ["launch", "ranges"],
    ["shares"],
    ["patterns", "tensor"],
    ["sampling"],
    ["distributions"],
    ["operators", "riscv", "sharing", "shuffling"],
    ["checkpoint_files", "module", "random"],
    ["checkpoints", "rehearsal"],
    ["__init__", "_forkserver"],
    ["federated"],
    ["demo", "bench", "doctor"],
    ["commands"],
    ["cli"],
    ["__main__"],
]

#: Inside python/tacit/operators.
OPERATORS = [
    ["agreement", "network", "operands", "rewrites"],
    ["order"],
    ["approximation", "averages", "optimization", "scales", "tournaments"],
    ["propagation"],
    ["calls"],
    ["table"],
    [
        "arithmetic",
        "average_pooling",
        "choice",
        "comparison",
        "composed",
        "creation",
        "decompositions",
        "foreach",
        "movement",
        "norms",
        "ordering",
        "recurrent",
        "rounding",
    ],
    [
        "activation",
        "conversion",
        "distances",
        "division",
        "extremum",
        "linear",
        "logical",
        "max_pooling",
        "selection",
    ],
    [
        "addressing",
        "convolution",
        "drawing",
        "elementary",
        "integers",
        "interpolation",
        "layer_norm",
        "losses",
        "reduction",
        "scanning",
        "writing",
    ],
    ["backward", "convolution_gradient", "counting", "indexing", "normalization", "products", "softmax"],
    ["attention", "bags", "batch_norm", "grouping"],
    ["transformer"],
    ["__init__"],
]

#: What would be cryptography, which has no place in Python.
CRYPTOGRAPHY = {"cryptography", "hashlib", "hmac", "random", "secrets", "ssl"}


def level(layers: list[list[str]], name: str) -> int | None:
    """Where a name stands, from the bottom."""
    return next((at for at, layer in enumerate(layers) if name in layer), None)


def crates(root: Path) -> list[str]:
    """What is wrong with the crates' dependencies."""
    wrong = []
    for manifest in sorted(root.glob("crates/*/Cargo.toml")):
        name = manifest.parent.name
        here = level(CRATES, name)
        if here is None:
            wrong.append(f"{manifest}: crate {name} has no layer")
            continue
        document = tomllib.loads(manifest.read_text())
        for other in document.get("dependencies", {}):
            there = level(CRATES, other)
            if there is not None and there >= here:
                wrong.append(f"{manifest}: {name} must not use {other}")
        if name != "testkit" and "testkit" in document.get("dependencies", {}):
            wrong.append(f"{manifest}: testkit is for tests")
    return wrong


def inside(root: Path) -> list[str]:
    """What is wrong among the modules of each crate."""
    wrong = []
    for source in sorted(root.glob("crates/*/src")):
        name = source.parent.name
        layers = INSIDE.get(name, [])
        for folder, graph in Crate(source).siblings().items():
            place = "/".join((str(source), *folder))
            if found := circle(graph):
                wrong.append(f"{place}: a circle: {' uses '.join([*found, found[0]])}")
            if folder:
                continue
            for module, used in sorted(graph.items()):
                here = level(layers, module)
                if here is None:
                    wrong.append(f"{place}: {module} has no layer")
                    continue
                for other in sorted(used):
                    there = level(layers, other)
                    if there is not None and there >= here:
                        wrong.append(f"{place}: {module} must not use {other}")
    return wrong


def imported(path: Path, package: str) -> set[tuple[str, int]]:
    """Modules that a file imports, by their full name, with the line; under TYPE_CHECKING too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {(alias.name, node.lineno) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or package
            found.add((base, node.lineno))
            if base in (package, f"{package}.operators"):
                found |= {(f"{base}.{alias.name}", node.lineno) for alias in node.names}
    return found


def modules(root: Path) -> list[str]:
    """What is wrong with the imports of the Python package."""
    wrong = []
    source = root / "python" / "tacit"
    for path in sorted(source.rglob("*.py")):
        inside = path.relative_to(source).with_suffix("").parts
        for layers, prefix, name in (
            (MODULES, "tacit", inside[0]),
            (OPERATORS, "tacit.operators", inside[1] if inside[0] == "operators" else None),
        ):
            if name is None:
                continue
            here = level(layers, name)
            if here is None:
                wrong.append(f"{path}: {name} has no layer")
                continue
            for target, line in sorted(imported(path, "tacit")):
                if target.split(".")[0] in CRYPTOGRAPHY:
                    wrong.append(f"{path}:{line}: {target} in Python; cryptography lives in Rust")
                if not target.startswith(prefix + "."):
                    continue
                other = target.removeprefix(prefix + ".").split(".")[0]
                there = level(layers, other)
                if there is not None and other != name and there >= here:
                    wrong.append(f"{path}:{line}: {name} must not import {other}")
    return wrong


def main(root: Path = ROOT) -> int:
    """Prints what is wrong; 1 if anything is."""
    wrong = crates(root) + inside(root) + modules(root)
    print("\n".join(wrong) or "layers: everything uses what is below it")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
