"""The verifier checks scales, intervals and widths after each pass."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tacit
from models import Residual, normalised
from tacit.compilation import compiler
from tacit.compilation.graph import Draft, calls
from tacit.compilation.importers.exported import of_module
from tacit.compilation.passes import improve
from tacit.compilation.passes.assign_widths import assign_widths
from tacit.compilation.verify import verify_draft
from tacit.errors import MisuseError
from tacit.fixed import Scale

IMAGES = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def prepared() -> Draft:
    """Returns a draft with widths."""
    draft = of_module(normalised(Residual()), (IMAGES,), {})
    draft.intervals = dict.fromkeys(draft.examples, (-4.0, 4.0))
    improve(draft)
    assign_widths(draft)
    verify_draft(draft)
    return draft


def some(draft: Draft, target: Any) -> Any:
    return next(calls(draft.graph, target))


LAYER, RECTIFIED = torch.ops.aten.conv2d.default, torch.ops.tacit.rectified_affine.default


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.weight_scales.update(nobody=16), "nobody has a scale"),
        (lambda d: d.weight_scales.update({next(iter(d.weights)): 41}), "41 fraction bits"),
        (lambda d: setattr(d, "scale", Scale(0)), "the session has 0 fraction bits"),
        (lambda d: d.intervals.update(nobody=(0.0, 1.0)), "nobody has a scale or an interval"),
        (lambda d: d.intervals.update({next(iter(d.examples)): (1.0, 0.0)}), "empty or infinite"),
        (lambda d: d.reaches.update(nobody=1.0), "nobody has"),
        (lambda d: some(d, LAYER).meta.update(interval=(0.0, float("inf"))), "empty or infinite"),
        (lambda d: some(d, LAYER).meta.update(width=20), "compares 20 bits"),
        (lambda d: some(d, LAYER).meta.update(guard=(20, 0)), "compares nothing"),
        (lambda d: some(d, LAYER).meta.update(scale=16), "keeps 16 fraction bits"),
        (lambda d: some(d, LAYER).meta.update(dropped=3), "drops 3 low bits"),
        (lambda d: some(d, RECTIFIED).meta.update(width=65), "compares 65 bits"),
        (lambda d: some(d, RECTIFIED).meta.pop("interval"), "no interval"),
        (lambda d: some(d, RECTIFIED).meta.pop("width"), "for some nodes and not for all"),
    ],
)
def test_what_does_not_fit_is_seen(change: Callable[[Draft], Any], message: str) -> None:
    draft = prepared()
    change(draft)
    with pytest.raises(MisuseError, match=message):
        verify_draft(draft)


@pytest.mark.parametrize(
    "name",
    [
        "assign_scales",
        "choose_approximations",
        "assign_widths",
        "merge_truncations",
        "drop_low_bits",
    ],
)
def test_it_runs_after_each_pass(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = getattr(compiler, name)

    def damaging(draft: Draft, *args: Any, **named: Any) -> Any:
        result = own(draft, *args, **named)
        draft.weight_scales["nobody"] = 16
        return result

    monkeypatch.setattr(compiler, name, damaging)
    with pytest.raises(MisuseError, match="nobody has a scale"):
        tacit.compile(normalised(Residual()), IMAGES, calibrate=IMAGES, tolerance=2.0**-6)
