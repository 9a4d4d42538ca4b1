"""Linear models of ONNX's classical operators, and what classifiers have in common."""

import math
from collections.abc import Sequence

import torch
from torch.nn import functional

from tacit.compilation.importers.onnx.operators.features import columns, decided
from tacit.compilation.importers.onnx.problems import NotImportedError
from tacit.compilation.importers.onnx.table import CLASSICAL, Node, Part, implements

#: Coefficients of the inverse of the normal distribution, as ONNX computes it: Winitzki, "A handy
#: approximation for the error function and its inverse" (2008).
WINITZKI = 0.147


def transformed(node: Node, scores: torch.Tensor) -> torch.Tensor:
    """Returns scores as the file asks for them: as they are, or as probabilities."""
    match how := node.text("post_transform", "NONE"):
        case "NONE":
            return scores
        case "LOGISTIC":
            return torch.sigmoid(scores)
        case "SOFTMAX":
            return torch.softmax(scores, -1)
        case "SOFTMAX_ZERO":
            return _softmax_zero(scores)
        case "PROBIT":
            return _probit(scores)
    raise NotImportedError(
        f"the transform {how[:40]} is not known",
        "use NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO or PROBIT",
    )


def _softmax_zero(scores: torch.Tensor) -> torch.Tensor:
    """Softmax over the scores that are not zero; zeros stay zero, and rows of zeros are halves."""
    is_zero = scores == 0
    powers = torch.exp(scores - scores.amax(-1, keepdim=True))
    powers = torch.where(is_zero, torch.zeros_like(scores), powers)
    total = powers.sum(-1, keepdim=True)
    nothing = total == 0
    shares = powers / torch.where(nothing, torch.ones_like(total), total)
    return torch.where(nothing, torch.full_like(scores, 0.5), shares)


def _probit(chance: torch.Tensor) -> torch.Tensor:
    """The inverse of the normal distribution, by Winitzki's approximation, as ONNX's runtimes
    compute it."""
    x = 2 * chance - 1
    logarithm = torch.log(1 - x * x)
    first = 2 / (math.pi * WINITZKI) + 0.5 * logarithm
    size = math.sqrt(2) * torch.sqrt(torch.sqrt(first * first - logarithm / WINITZKI) - first)
    return torch.where(x < 0, -size, size)


def labels_of(node: Node) -> list[int]:
    """Returns the labels of a classifier's classes. Names are counted in the order of the file."""
    for name in ("classlabels_ints", "classlabels_int64s"):
        if found := node.integers(name):
            return found
    return list(range(len(node.words("classlabels_strings") or [])))


def greatest(node: Node, scores: torch.Tensor, labels: list[int]) -> torch.Tensor:
    """Returns the label of the greatest score of each row."""
    if node.text("post_transform") == "SOFTMAX_ZERO":
        scores = _softmax_zero(scores)
    return decided(scores.argmax(-1), labels)


def either(condition: torch.Tensor, labels: list[int]) -> torch.Tensor:
    """Returns the second label where the condition is true, and the first elsewhere."""
    position = condition.to(torch.int64)
    return position if labels == [0, 1] else labels[0] + (labels[1] - labels[0]) * position


def _classifier_parts(node: Node, given: Sequence[torch.Tensor]) -> list[Part]:
    weight, bias = _matrix(node, columns(given[0]))
    labels = labels_of(node)
    if len(weight) not in (1, len(labels)) and labels:
        raise ValueError(f"coefficients of {len(weight)} classes, and {len(labels)} labels")
    if len(weight) == 2 and torch.equal(weight[0], -weight[1]) and torch.equal(bias[0], -bias[1]):
        # A score and its negative, as scikit-learn's classifiers of two classes are exported.
        weight, bias = weight[1:], bias[1:]
    return [Part("coefficients", weight), Part("intercepts", bias)]


def _matrix(node: Node, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    weight = torch.tensor(node.numbers("coefficients") or [], dtype=torch.float32)
    if not size or not weight.numel() or weight.numel() % size:
        raise ValueError(f"{weight.numel()} coefficients for {size} columns")
    weight = weight.reshape(-1, size)
    bias = torch.tensor(node.numbers("intercepts") or [0.0], dtype=torch.float32)
    if bias.numel() not in (1, len(weight)):
        raise ValueError(f"{bias.numel()} intercepts for {len(weight)} rows of coefficients")
    return weight, bias.expand(len(weight)).clone()


@implements("LinearClassifier", domain=CLASSICAL, parts=_classifier_parts)
def linear_classifier(
    node: Node, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the labels, and the scores of all classes."""
    scores, labels = functional.linear(x.to(torch.float32), weight, bias), labels_of(node)
    if weight.shape[0] > 1:
        return greatest(node, scores, labels), transformed(node, scores)
    if len(labels) == 2:
        return either(scores[:, 0] > 0, labels), of_two(node, scores)
    found = transformed(node, scores)
    edge = 0.0 if node.text("post_transform", "NONE") == "NONE" else 0.5
    return either(found[:, 0] >= edge, [0, *labels[:1]]), found


def of_two(node: Node, score: torch.Tensor) -> torch.Tensor:
    """Returns the scores of two classes, of which one is the negative of the other."""
    if node.text("post_transform") == "LOGISTIC":
        chance = torch.sigmoid(score)
        return torch.cat([1 - chance, chance], 1)
    return transformed(node, torch.cat([-score, score], 1))


def _regressor_parts(node: Node, given: Sequence[torch.Tensor]) -> list[Part]:
    weight, bias = _matrix(node, columns(given[0]))
    if len(weight) != node.integer("targets", 1):
        raise ValueError(f"coefficients of {len(weight)} targets")
    return [Part("coefficients", weight), Part("intercepts", bias)]


@implements("LinearRegressor", domain=CLASSICAL, parts=_regressor_parts)
def linear_regressor(
    node: Node, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    """Returns a weighted sum for each target."""
    return transformed(node, functional.linear(x.to(torch.float32), weight, bias))
