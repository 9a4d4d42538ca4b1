"""Checks that each layer uses only those below it, between crates, inside them, and in Python."""

import ast
import sys
import tomllib
from functools import cache
from pathlib import Path

from rust_modules import Crate, circle

ROOT = Path(__file__).resolve().parent.parent

#: Rust crates, lowest first; those on one line may not use each other.
CRATES = [
    ["kernels"],
    ["attest", "cuda", "lattice", "net", "ot"],
    ["mpc"],
    ["session"],
    ["riscv"],
    ["testkit", "py"],
]

#: Modules inside each crate, lowest first; those on one line may not use each other. Modules in
#: folders need no list, as long as there is no cycle among them.
INSIDE = {
    "attest": [
        ["binding", "error", "versions"],
        ["intake", "policy", "tsm"],
        ["kind"],
        ["sev_snp", "simulated", "tdx"],
        ["kinds"],
        ["evidence", "reading"],
    ],
    "kernels": [
        [
            "dispatch",
            "large_pages",
            "memory",
            "message",
            "parallel",
            "residues",
            "shared_slice",
            "square",
            "third",
        ],
        ["rows", "vector"],
        ["aes", "pack", "planes", "ntt", "matrix"],
        ["convolution", "correlated_tree", "sparse_code", "stream"],
        ["bilinear", "binary_field", "galois", "projection", "residue_field"],
        ["device"],
    ],
    "cuda": [
        ["error", "places", "region"],
        ["process"],
        ["launch"],
        ["runtime"],
        ["digits", "driver", "simulated"],
        ["card"],
        ["opening"],
    ],
    "lattice": [
        ["error", "prices", "wiped"],
        ["residues", "tiling"],
        ["sample", "waiting", "windows", "wire"],
        ["keys", "layout"],
        ["encryption", "slots"],
        ["packing"],
        ["answers"],
    ],
    "net": [
        [
            "agreement",
            "buffer_pool",
            "bytes",
            "network",
            "error",
            "interruption",
            "meter",
            "parameters",
            "step_log",
        ],
        ["kinds", "writing"],
        ["wording"],
        ["certificates", "frame", "process", "roster"],
        ["inbox", "signing"],
        ["config", "mesh"],
        ["channel", "in_process", "tcp"],
        ["attested", "intake", "issuing"],
    ],
    "ot": [
        ["error", "rows"],
        ["binding"],
        ["base", "hash"],
        ["forms", "leaves", "silent", "tree"],
        ["extension", "products"],
        ["setup"],
    ],
    "mpc": [
        [
            "agreement",
            "bits",
            "blocks",
            "broadcast",
            "dense",
            "keys",
            "leaves",
            "proof",
            "sealed",
            "threat_model",
        ],
        ["group"],
        ["client_update", "gaussian", "operand", "range", "request", "width"],
        ["affine", "checking", "correlations", "cost", "submission", "tree"],
        ["combinations", "protocol"],
        ["checks", "fibers", "guards", "steps"],
        ["additive", "functions", "integers", "plain", "replicated", "series"],
        ["providers"],
        ["open"],
        ["preprocessing"],
    ],
    "session": [
        ["attestation", "devices", "limits", "streams"],
        ["options", "vouching"],
        ["session"],
        ["doctor", "local", "submissions"],
        ["requests"],
        ["configured"],
    ],
    "riscv": [
        ["numbers"],
        ["fault", "isa"],
        ["floats", "memory"],
        ["elf", "secret"],
        ["machine"],
        ["system"],
        ["host"],
    ],
    "testkit": [["inputs", "ports", "shares", "submissions", "transcript"]],
    "py": [
        ["errors"],
        [
            "attestation",
            "benchmark_programs",
            "buffer",
            "certificates",
            "digest",
            "doctor",
            "preprocessing",
        ],
        ["flags", "local", "session"],
        ["beginning", "kept"],
        ["intake", "operands", "requests", "riscv"],
        ["checks", "operations"],
    ],
}

#: Modules of python/tacit, lowest first; those on one line may not use each other. A name stands
#: for a package too.
MODULES = [
    ["_core", "buffers", "memory"],
    ["errors", "flags", "libraries", "meter", "providers"],
    ["checksums", "config_files", "modes", "places", "storage_cache"],
    ["atomic_write", "fixed", "logs"],
    ["checks"],
    ["sessions"],
    ["refusals", "trace"],
    ["sharings"],
    ["tensor"],
    ["public", "randomness", "riscv", "sharing"],
    ["checkpoint", "operators", "random"],
    ["module"],
    ["parties"],
    ["rehearsal"],
    ["compilation"],
    ["__init__"],
    ["federated", "serving"],
    ["client"],
    ["gateway"],
    ["demo", "doctor"],
    ["bench"],
    ["commands"],
    ["cli"],
    ["__main__"],
]

#: Modules inside python/tacit/operators, lowest first; those on one line may not use each other.
OPERATORS = [
    ["dispatch"],
    ["numerics"],
    [
        "composed",
        "creation",
        "foreach",
        "recurrent",
        "rounding",
        "segments",
        "sequences",
        "volumes",
    ],
    [
        "arithmetic",
        "average_pooling",
        "comparison",
        "covariances",
        "ctc",
        "linalg",
        "matrix_exp",
        "norms",
        "ordering",
        "view_ops",
        "where",
    ],
    [
        "conversion",
        "distances",
        "division",
        "extremum",
        "linear",
        "logical",
        "losses",
        "max_pooling",
        "piecewise",
        "selection",
    ],
    ["integer_powers"],
    [
        "addressing",
        "convolution",
        "gamma_functions",
        "integers",
        "interpolation",
        "layer_norm",
        "random_ops",
        "reduction",
        "scanning",
        "smooth",
        "sparse",
        "spectra",
        "trigonometric",
        "writing",
    ],
    [
        "affine",
        "backward",
        "convolution_gradient",
        "histograms",
        "searching",
        "indexing",
        "normalization",
        "prod",
        "softmax",
    ],
    ["attention", "batch_norm", "embedding_bag", "scatter_reduce_kernels"],
    ["scatter_reduce", "transformer"],
    ["unwritten"],
    ["__init__"],
]

#: Modules of cryptography, which has no place in Python.
CRYPTOGRAPHY = {"cryptography", "hashlib", "hmac", "random", "secrets", "ssl"}


def level(layers: list[list[str]], name: str) -> int | None:
    """Returns the layer of a name, counted from the bottom."""
    return next((at for at, layer in enumerate(layers) if name in layer), None)


def crates(root: Path) -> list[str]:
    """Returns what is wrong with the dependencies of the crates."""
    wrong = []
    for manifest in sorted(root.glob("crates/*/Cargo.toml")):
        name = manifest.parent.name
        here = level(CRATES, name)
        if here is None:
            wrong.append(f"{manifest}: crate {name} has no layer")
            continue
        document = tomllib.loads(manifest.read_text())
        # A crate's own tests may use testkit too, which is above it.
        for_tests = set(document.get("dev-dependencies", {})) - {"testkit"}
        for other in sorted({*document.get("dependencies", {}), *for_tests}):
            there = level(CRATES, other)
            if there is not None and there >= here:
                wrong.append(f"{manifest}: {name} must not use {other}")
        if name != "testkit" and "testkit" in document.get("dependencies", {}):
            wrong.append(f"{manifest}: testkit is for tests")
    return wrong


def inside(root: Path) -> list[str]:
    """Returns what is wrong among the modules of each crate."""
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


@cache
def imported(path: Path, source: Path) -> set[tuple[str, int]]:
    """Returns the modules that a file imports, by their full name, with the line; those under
    TYPE_CHECKING too.

    Args:
        source: folder of the package, among whose modules names are looked up.
    """
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {(alias.name, node.lineno) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            folder = source.parent.joinpath(*node.module.split("."))
            members = {alias.name for alias in node.names if _is_module(folder / alias.name)}
            found |= {(f"{node.module}.{name}", node.lineno) for name in members}
            # A name that is not a module is defined in the package's own module.
            if len(members) < len(node.names):
                found.add((node.module, node.lineno))
    return found


def _is_module(path: Path) -> bool:
    return path.is_dir() or any(path.with_suffix(suffix).exists() for suffix in (".py", ".pyi"))


def _member(target: str, prefix: str) -> str | None:
    """Returns the member of a package that contains a module; the package itself is
    ``__init__``."""
    if target == prefix:
        return "__init__"
    return (
        target.removeprefix(prefix + ".").split(".")[0] if target.startswith(prefix + ".") else None
    )


def packages(root: Path) -> list[str]:
    """Returns the cycles among the modules of each Python package below the outermost."""
    wrong = []
    source = root / "python" / "tacit"
    for folder in sorted({path.parent for path in source.rglob("*.py")} - {source}):
        prefix = ".".join((source.name, *folder.relative_to(source).parts))
        graph: dict[str, set[str]] = {}
        for path in sorted(folder.rglob("*.py")):
            name = path.relative_to(folder).with_suffix("").parts[0]
            used = {_member(target, prefix) for target, _ in imported(path, source)}
            graph.setdefault(name, set()).update(
                member for member in used if member not in (None, name)
            )
        if found := circle(graph):
            wrong.append(f"{folder}: a circle: {' uses '.join([*found, found[0]])}")
    return wrong


def modules(root: Path) -> list[str]:
    """Returns what is wrong with the imports of the Python package."""
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
            for target, line in sorted(imported(path, source)):
                if target.split(".")[0] in CRYPTOGRAPHY:
                    wrong.append(f"{path}:{line}: {target} in Python; cryptography lives in Rust")
                other = _member(target, prefix)
                there = None if other is None else level(layers, other)
                if there is not None and other != name and there >= here:
                    wrong.append(f"{path}:{line}: {name} must not import {other}")
    return wrong


def main(root: Path = ROOT) -> int:
    """Prints what is wrong, and returns 1 if anything is."""
    wrong = crates(root) + inside(root) + modules(root) + packages(root)
    print("\n".join(wrong) or "layers: everything uses what is below it")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
