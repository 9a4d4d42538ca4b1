"""Support vector machines. What each kernel compares with is secret, and so are its parameters."""

from collections.abc import Sequence
from itertools import combinations
from math import comb

import torch
from torch.nn import functional

from tacit.compilation.importers.onnx.operators.classifiers import (
    either,
    labels_of,
    of_two,
    transformed,
)
from tacit.compilation.importers.onnx.operators.features import columns, decided
from tacit.compilation.importers.onnx.problems import NotImportedError
from tacit.compilation.importers.onnx.table import CLASSICAL, Node, Part, implements

#: Greatest degree of a polynomial kernel.
MOST_DEGREE = 64


def _kernel_parts(node: Node, size: int) -> list[Part]:
    """Returns the weights that make each kernel's argument a weighted sum.

    That of a radial kernel, −γ·|x − s|², is 2γ·xs − γ·|s|² − γ·|x|²: a sum over the columns of x
    and |x|²."""
    vectors = torch.tensor(node.numbers("support_vectors") or [], dtype=torch.float64)
    if not vectors.numel() or vectors.numel() % size:
        raise ValueError(f"{vectors.numel()} numbers of support vectors for {size} columns")
    vectors = vectors.reshape(-1, size)
    gamma, offset, _ = [*(node.numbers("kernel_params") or []), 0.0, 0.0, 0.0][:3]
    kind = node.text("kernel_type", "LINEAR")
    if kind == "LINEAR":
        weight, bias = vectors, torch.zeros(len(vectors), dtype=torch.float64)
    elif kind == "RBF":
        squares = torch.full((len(vectors), 1), -gamma, dtype=torch.float64)
        weight = torch.cat([2 * gamma * vectors, squares], 1)
        bias = -gamma * vectors.square().sum(1)
    else:
        weight = gamma * vectors
        bias = torch.full((len(vectors),), offset, dtype=torch.float64)
    return [Part("vectors", weight.float()), Part("offsets", bias.float())]


def _kernels(node: Node, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Returns the kernel of each row and each support vector."""
    x, kind = x.to(torch.float32), node.text("kernel_type", "LINEAR")
    if kind == "RBF":
        x = torch.cat([x, x.square().sum(1, keepdim=True)], 1)
    sums = functional.linear(x, weight, bias)
    match kind:
        case "LINEAR":
            return sums
        case "RBF":
            return torch.exp(sums)
        case "SIGMOID":
            return torch.tanh(sums)
        case "POLY":
            degree = int([*(node.numbers("kernel_params") or []), 0.0, 0.0, 0.0][2])
            if not 0 < degree <= MOST_DEGREE:
                raise ValueError(f"a kernel of degree {degree}")
            return torch.pow(sums, degree)
    raise NotImportedError(
        f"the kernel {kind[:40]} is not known", "use LINEAR, POLY, RBF or SIGMOID"
    )


def _classifier_parts(node: Node, given: Sequence[torch.Tensor]) -> list[Part]:
    labels, counts = labels_of(node), node.integers("vectors_per_class") or []
    if not any(counts):
        raise NotImportedError("it has no support vectors", "use a LinearClassifier")
    if len(counts) != len(labels) or len(labels) < 2:
        raise ValueError(f"support vectors of {len(counts)} classes, and {len(labels)} labels")
    pairs = _pairs(node, counts)
    return [*_kernel_parts(node, columns(given[0])), *pairs]


def _pairs(node: Node, counts: list[int]) -> list[Part]:
    """Returns the weight of each support vector in the score of each pair of classes."""
    total, rho = sum(counts), torch.tensor(node.numbers("rho") or [], dtype=torch.float32)
    if min(counts) < 0 or len(rho) != comb(len(counts), 2):
        raise ValueError(f"{len(rho)} offsets for the pairs of {len(counts)} classes")
    coefficients = torch.tensor(node.numbers("coefficients") or [], dtype=torch.float32)
    coefficients = coefficients.reshape(len(counts) - 1, total)
    first = [sum(counts[:at]) for at in range(len(counts))]
    rows = []
    for one, other in combinations(range(len(counts)), 2):
        row = torch.zeros(total)
        mine, theirs = (slice(first[at], first[at] + counts[at]) for at in (one, other))
        row[mine], row[theirs] = coefficients[other - 1, mine], coefficients[one, theirs]
        rows.append(row)
    parts = [Part("pairs", torch.stack(rows)), Part("rho", rho)]
    if slopes := node.numbers("prob_a"):
        offsets = node.numbers("prob_b") or [0.0] * len(slopes)
        if not len(slopes) == len(offsets) == len(rows):
            raise ValueError(
                f"{len(slopes)} and {len(offsets)} numbers of the probabilities of {len(rows)} "
                "pairs"
            )
        parts += [Part("prob_a", torch.tensor(slopes)), Part("prob_b", torch.tensor(offsets))]
    return parts


@implements("SVMClassifier", domain=CLASSICAL, parts=_classifier_parts)
def svm_classifier(
    node: Node,
    x: torch.Tensor,
    vectors: torch.Tensor,
    offsets: torch.Tensor,
    pairs: torch.Tensor,
    rho: torch.Tensor,
    slopes: torch.Tensor | None = None,
    shifts: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the labels, which most pairs of classes vote for, and the scores of the pairs, or the
    probabilities of the classes."""
    scores = functional.linear(_kernels(node, x, vectors, offsets), pairs, rho)
    labels, wins = labels_of(node), scores > 0
    if len(labels) == 2:
        # A positive score is a vote for the first class.
        label = either(~wins[:, 0], labels)
        if slopes is None or shifts is None:
            return label, of_two(node, scores)
        chance = 1 - torch.sigmoid(scores * slopes + shifts)
        return label, transformed(node, torch.cat([chance, 1 - chance], 1))
    chosen = list(combinations(range(len(labels)), 2))
    bits = torch.cat([wins, ~wins], 1).to(torch.float32)
    votes = torch.zeros(2 * len(chosen), len(labels))
    for at, (one, other) in enumerate(chosen):
        votes[at, one] = votes[len(chosen) + at, other] = 1.0
    if slopes is not None and shifts is not None:
        scores = _coupled(1 - torch.sigmoid(scores * slopes + shifts), len(labels))
    return decided(torch.matmul(bits, votes).argmax(1), labels), transformed(node, scores)


def _coupled(chances: torch.Tensor, classes: int) -> torch.Tensor:
    """Returns the probabilities of classes from those of the first class of each pair.

    Wu, Lin and Weng, "Probability estimates for multi-class classification by pairwise coupling"
    (2004), second method: with r_ij the chance of class i against class j, those p of sum 1 for
    which Σ (r_ji p_i − r_ij p_j)² = pᵀQp is least. LIBSVM iterates until Qp is equal in all places
    to within 0.005 / classes. Here p follows from the linear equations of its limit, without
    the last class, whose probability is what the others leave."""
    places, first = torch.zeros(chances.shape[1], classes * classes), torch.zeros(classes * classes)
    for at, (one, other) in enumerate(combinations(range(classes), 2)):
        places[at, one * classes + other], places[at, other * classes + one] = 1.0, -1.0
        first[other * classes + one] = 1.0
    r = (torch.matmul(chances, places) + first).reshape(-1, classes, classes)
    squares = r.square().sum(1).unsqueeze(2) * torch.eye(classes)
    q = squares - r * r.transpose(1, 2)
    row, column, corner = q[:, -1:, :-1], q[:, :-1, -1:], q[:, -1:, -1:]
    found = torch.linalg.solve(q[:, :-1, :-1] - row - column + corner, corner - column).squeeze(2)
    return torch.cat([found, 1 - found.sum(1, keepdim=True)], 1)


def _regressor_parts(node: Node, given: Sequence[torch.Tensor]) -> list[Part]:
    size = columns(given[0])
    rho = torch.tensor((node.numbers("rho") or [0.0])[:1], dtype=torch.float32)
    weight = torch.tensor(node.numbers("coefficients") or [], dtype=torch.float32).reshape(1, -1)
    if not node.integer("n_supports", 0):
        return [Part("coefficients", weight), Part("rho", rho)]
    parts = _kernel_parts(node, size)
    if weight.shape[1] != len(parts[0].value):
        raise ValueError(f"{weight.shape[1]} coefficients, {len(parts[0].value)} vectors")
    return [*parts, Part("coefficients", weight), Part("rho", rho)]


@implements("SVMRegressor", domain=CLASSICAL, parts=_regressor_parts)
def svm_regressor(node: Node, x: torch.Tensor, *held: torch.Tensor) -> torch.Tensor:
    """Returns a weighted sum of kernels; of one class, 1 if it is positive and −1 elsewhere."""
    *kernel, weight, rho = held
    values = _kernels(node, x, *kernel) if kernel else x.to(torch.float32)
    score = functional.linear(values, weight, rho)
    if node.flag("one_class"):
        return 2 * (score > 0).to(torch.float32) - 1
    return transformed(node, score)
