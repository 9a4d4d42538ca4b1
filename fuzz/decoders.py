"""Feeds Python's decoders with damaged bytes: ONNX, compiled programs, checkpoints, the files of
federations and services, and what parties of a service say.

A decoder takes a file or raises a :class:`tacit.TacitError`. Any other exception, a run of more
than :data:`LONGEST` seconds, and memory beyond :data:`MOST_MEMORY` are findings: the input is
written to ``fuzz/artifacts``, and the next run of its target begins with it.

    python fuzz/decoders.py [TARGET ...] --seconds 60 --seed 1
"""

import argparse
import json
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import tacit
from tacit import checksums
from tacit.checkpoint import files
from tacit.compilation.importers import onnx as importer
from tacit.compilation.program import Program
from tacit.errors import TacitError
from tacit.federated.service.config import Federation
from tacit.serving.batches import Notice, notice_of
from tacit.serving.config import Service, text_of
from tacit.serving.description import Described, Tensor, described_in, description_of

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT / "tests" / "compilation"))

#: Seconds of the processor that a decoder may take for one file.
LONGEST = 20

#: Bytes that the process may have beside what it has when fuzzing begins.
MOST_MEMORY = 4 << 30

#: Damaged files that decoders took, and that are damaged further.
MOST_KEPT = 500

#: Numbers at the limits of what fields hold.
EDGES = (0, 1, -1, 127, 128, 255, 1 << 16, 1 << 31, (1 << 32) - 1, 1 << 62, (1 << 64) - 1)

#: What stands in place of a value of JSON.
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1 << 40,
    1e308,
    "",
    "x",
    "é" * 40,
    [],
    {},
    {"of": "x"},
)


@dataclass(frozen=True)
class Target:
    """A decoder, right files, and how they are damaged."""

    accepts: Callable[[bytes, Path], object]
    seeds: Callable[[Path], list[bytes]]
    damage: Callable[[random.Random, bytes, list[bytes]], bytes]


def damaged(rng: random.Random, content: bytes, others: list[bytes]) -> bytes:
    """Some bytes, numbers or parts are changed, cut, repeated or taken from another file."""
    made = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        at, length = rng.randrange(len(made) + 1), rng.choice((1, 2, 4, 8, 64))
        match rng.randrange(7):
            case 0:
                made[at : at + 1] = rng.randbytes(1)
            case 1 if at < len(made):
                made[at] ^= 1 << rng.randrange(8)
            case 2:
                size = rng.choice((1, 2, 4, 8))
                edge = rng.choice(EDGES) % (1 << 8 * size)
                made[at : at + size] = edge.to_bytes(size, "little")
            case 3:
                del made[at : at + length]
            case 4:
                start = rng.randrange(len(made) + 1)
                made[at:at] = made[start : start + length]
            case 5:
                other = rng.choice(others)
                start = rng.randrange(len(other) + 1)
                made[at : at + length] = other[start : start + length]
            case _ if rng.randrange(8) == 0:
                del made[at:]
    return bytes(made)


def places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Each place of a tree of JSON: what holds it, and its key or index."""
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from places(tree[key])


def altered(rng: random.Random, tree: dict[str, Any]) -> dict[str, Any]:
    """Some values of JSON become others, go, or come twice."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        every = list(places(tree))
        if not every:
            break
        holder, key = rng.choice(every)
        match rng.randrange(5):
            case 0:
                holder[key] = rng.choice(VALUES)
            case 1:
                source, place = rng.choice(every)
                holder[key] = json.loads(json.dumps(source[place]))
            case 2:
                del holder[key]
            case 3 if isinstance(holder, list):
                holder.insert(key, json.loads(json.dumps(holder[key])))
            case _ if isinstance(holder[key], int):
                holder[key] = rng.choice(EDGES)
    return tree


def rechecked(content: bytes, kind: str) -> bytes:
    """With the checksum of what it holds now, so that more than the checksum is reached."""
    try:
        return checksums.filled(content, kind)
    except TacitError:
        return content


def damaged_program(rng: random.Random, content: bytes, others: list[bytes]) -> bytes:
    """As bytes, or as JSON."""
    if rng.randrange(4) == 0:
        return rechecked(damaged(rng, content, others), "program")
    text = json.dumps(altered(rng, json.loads(content)), sort_keys=True, separators=(",", ":"))
    return rechecked(text.encode(), "program")


def damaged_checkpoint(rng: random.Random, content: bytes, others: list[bytes]) -> bytes:
    """As bytes, or in its manifest."""
    if rng.randrange(3) == 0:
        return rechecked(damaged(rng, content, others), files.KIND)
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    if rng.randrange(4) == 0:
        header = altered(rng, header)
    else:
        manifest = altered(rng, json.loads(header["__metadata__"]["manifest"]))
        header["__metadata__"]["manifest"] = json.dumps(manifest)
    text = json.dumps(header).encode()
    made = len(text).to_bytes(8, "little") + text + content[8 + length :]
    return rechecked(made, files.KIND)


def accepts_onnx(content: bytes, folder: Path) -> object:
    path = folder / "model.onnx"
    path.write_bytes(content)
    return importer.load(path)


def onnx_seeds(_: Path) -> list[bytes]:
    import numpy as np
    from onnx import helper
    from onnx_made import model, relu

    weights = {"w": np.ones((3, 2), np.float32), "b": np.zeros(2, np.float32)}
    product = helper.make_node("Gemm", ["x", "w", "b"], ["h"], transB=0)
    reshaped = helper.make_node("Reshape", ["h", "s"], ["y"])
    small = model([product, reshaped], {"x": [4, 3]}, ["y"], {**weights, "s": np.array([2, 4])})
    exact = (ROOT / "tests" / "compilation" / "exact.onnx").read_bytes()
    return [relu().SerializeToString(), small.SerializeToString(), exact]


def program_seeds(_: Path) -> list[bytes]:
    from written import node, program

    x, h = {"of": "x"}, {"of": "h"}
    one = program(node("y", "aten.neg.default", x))
    held = {"c": torch.ones(4)}
    two = program(
        node("h", "aten.add.Tensor", x, {"of": "c"}),
        node("y", "aten.relu.default", h),
        constants=held,
    )
    return [one, two]


def checkpoint_seeds(folder: Path) -> list[bytes]:
    def saves() -> None:
        module = tacit.share_module(torch.nn.Linear(3, 2), owner=0, trainable=True)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
        module(tacit.share(torch.ones(4, 3), owner=1)).square().sum().backward()
        optimizer.step()
        tacit.save_checkpoint(str(folder), module, optimizer, step=3)

    tacit.launch(saves)
    return [path.read_bytes() for path in sorted(folder.glob("*-party-0.*"))]


def accepts_checkpoint(content: bytes, folder: Path) -> object:
    path = folder / "step-000000003-party-0.safetensors"
    path.write_bytes(content)
    return files.read(path, 0)


def accepts_federation(content: bytes, folder: Path) -> object:
    path = folder / "federation.toml"
    path.write_bytes(content)
    return Federation.read(path)


def accepts_program(content: bytes, _: Path) -> object:
    return Program.parsed(content, "FILE")


def federation_seeds(_: Path) -> list[bytes]:
    return [(ROOT / "examples" / "federation.toml").read_bytes()]


def accepts_service(content: bytes, folder: Path) -> object:
    path = folder / "service.toml"
    path.write_bytes(content)
    return Service.read(path)


def service_seeds(_: Path) -> list[bytes]:
    party = {"address": "a:1", "clients": "a:2", "status": "a:3", "certificate": "party.pem"}
    client = {"name": "app", "certificate": "client.pem", "per_minute": 60, "waiting": 4}
    model = {"name": "net", "program": "net.py:build", "owner": 0, "shape": [1, 4]}
    compiled = {"name": "lenet", "program": "lenet.tacit", "owner": 1, "weights": "lenet.pt"}
    limits = {"queue": 9, "batch": 4, "wait": 1.5, "deadline": 5}
    dealt = {
        "protocol": "additive",
        "source": "dealer",
        "dealer": {"address": "d:1", "certificate": "dealer.pem"},
        "attestation": {"kind": "simulated", "allow_simulated": True, "measurements": ["ab" * 32]},
    }
    texts = [
        text_of("trial", [party] * 3, [client], [model, compiled], limits=limits),
        text_of("trial", [party] * 2, [client], [compiled], **dealt),
    ]
    return [text.encode() for text in texts]


def accepts_description(content: bytes, _: Path) -> object:
    return described_in(content)


def description_seeds(_: Path) -> list[bytes]:
    given = Tensor("input", "float32", (1, 4), 16)
    result = Tensor("output", "int64", (1,), 0)
    described = Described("net", "1", "ab" * 32, (given,), (result,))
    return [description_of([described]), description_of([described] * 2)]


def accepts_notice(content: bytes, _: Path) -> object:
    return notice_of(1, content)


def notice_seeds(_: Path) -> list[bytes]:
    rows = tuple((client, bytes(16), bytes(32)) for client in range(3))
    return [Notice().to_bytes(), Notice(rows, bytes(32), True, "ab", rows, rows).to_bytes()]


TARGETS = {
    "onnx": Target(accepts_onnx, onnx_seeds, damaged),
    "compiled": Target(accepts_program, program_seeds, damaged_program),
    "checkpoints": Target(accepts_checkpoint, checkpoint_seeds, damaged_checkpoint),
    "federations": Target(accepts_federation, federation_seeds, damaged),
    "services": Target(accepts_service, service_seeds, damaged),
    "descriptions": Target(accepts_description, description_seeds, damaged),
    "notices": Target(accepts_notice, notice_seeds, damaged),
}


class TooLongError(BaseException):
    """A decoder did not end. It is no `Exception`: a decoder would take it for one of its own."""


def _stop(*_: object) -> None:
    raise TooLongError(f"more than {LONGEST} s")


def raised(target: Target, content: bytes, folder: Path) -> BaseException | None:
    """What the decoder raises; nothing for a file that it takes."""
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    try:
        target.accepts(content, folder)
    except (Exception, TooLongError) as error:
        return error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def fuzz(name: str, seconds: float, seed: int) -> int:
    """Runs a target for that long; how many findings there were."""
    target, rng, found = TARGETS[name], random.Random(seed), set()
    artifacts = HERE / "artifacts" / name
    with tempfile.TemporaryDirectory() as written:
        folder = Path(written)
        seeds = target.seeds(folder)
        assert seeds
        for content in seeds:
            refusal = raised(target, content, folder)
            assert refusal is None, f"a right file of {name} is refused: {refusal!r}"
        again = [path.read_bytes() for path in sorted(artifacts.glob("*"))]
        corpus, runs, kept = list(seeds), 0, 0
        until = time.monotonic() + seconds
        while time.monotonic() < until or again:
            base = rng.choice(corpus if rng.randrange(2) else seeds)
            content = again.pop() if again else target.damage(rng, base, seeds)
            error = raised(target, content, folder)
            runs += 1
            if error is None:
                kept += 1
                # A file that is taken though it was damaged is where the next damage goes deeper.
                if len(corpus) < MOST_KEPT:
                    corpus.append(content)
                continue
            if isinstance(error, TacitError):
                continue
            frames = traceback.extract_tb(error.__traceback__)
            file, line = Path(frames[-1].filename).name, frames[-1].lineno
            where = f"{type(error).__name__} at {file}:{line}"
            if where not in found:
                found.add(where)
                artifacts.mkdir(parents=True, exist_ok=True)
                (artifacts / f"{seed}-{runs}").write_bytes(content)
                print(f"{name}: {where}: {str(error)[:200]}", flush=True)
                traceback.print_exception(error, limit=-6)
    print(f"{name}: {runs} files, {kept} taken, {len(found)} findings", flush=True)
    return len(found)


def main() -> int:
    """1 if anything was found."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS], metavar="TARGET")
    parser.add_argument("--seconds", type=float, default=60, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    signal.signal(signal.SIGPROF, _stop)
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST_MEMORY,) * 2)
    findings = [fuzz(name, given.seconds, given.seed) for name in given.targets or TARGETS]
    return int(any(findings))


if __name__ == "__main__":
    sys.exit(main())
