"""Fourier transforms, as products with cosines and sines, and mel filters."""

from typing import Any

import torch

from tacit.compilation.importers.onnx.operators.shapes import as_list
from tacit.compilation.importers.onnx.problems import NotImportedError
from tacit.compilation.importers.onnx.table import Node, implements

#: Greatest length of a transform, whose matrix is held.
LONGEST = 1 << 12


def _waves(rows: int, columns: int, period: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns cosines and sines of 2π·row·column/period."""
    if max(rows, columns, period) > LONGEST:
        raise NotImportedError(f"it transforms {period} places", f"up to {LONGEST} are imported")
    product = torch.arange(rows).unsqueeze(1) * torch.arange(columns)
    angles = (product % period).to(torch.float64) * (2 * torch.pi / period)
    return torch.cos(angles).float(), torch.sin(angles).float()


def _transformed(x: torch.Tensor, period: int, one_sided: bool, inverse: bool) -> torch.Tensor:
    """Transforms (..., positions, 1 or 2), where 2 stands for real and imaginary parts."""
    whole = one_sided and inverse
    rows = period if inverse or not one_sided else period // 2 + 1
    taken = period // 2 + 1 if whole else period
    x = x[..., :taken, :]
    cosines, sines = _waves(rows, x.shape[-2], period)
    if inverse:
        sines = -sines
        weights = torch.full((x.shape[-2],), (2.0 if whole else 1.0) / period)
        if whole:
            # The other half mirrors all elements except the first, and the middle one if there is
            # one.
            weights[0] = 1 / period
            if period % 2 == 0 and x.shape[-2] == taken:
                weights[-1] = 1 / period
        cosines, sines = cosines * weights, sines * weights
    real, imaginary = torch.matmul(x[..., 0], cosines.t()), -torch.matmul(x[..., 0], sines.t())
    if x.shape[-1] == 2:
        real = real + torch.matmul(x[..., 1], sines.t())
        imaginary = imaginary + torch.matmul(x[..., 1], cosines.t())
    return real.unsqueeze(-1) if whole else torch.stack([real, imaginary], -1)


@implements("DFT", known=(1, 2), folds=False)
def fourier_transform(
    node: Node, x: torch.Tensor, length: Any = None, axis: Any = None
) -> torch.Tensor:
    """Fourier transform along an axis, of real or complex numbers; half of the result if the file
    asks for it."""
    axis = node.integer("axis", 1 if node.opset < 20 else -2) if axis is None else as_list(axis)[0]
    one_sided, inverse = node.flag("onesided"), node.flag("inverse")
    size = x.shape[axis]
    natural = 2 * (size - 1) if one_sided and inverse else size
    period = natural if length is None else as_list(length)[0]
    x = torch.movedim(x, axis % x.ndim, -2)
    return torch.movedim(_transformed(x, period, one_sided, inverse), -2, axis % x.ndim)


@implements("STFT", known=(1, 3), folds=False)
def short_fourier_transform(
    node: Node, x: torch.Tensor, step: Any, window: torch.Tensor | None = None, length: Any = None
) -> torch.Tensor:
    """Fourier transform of frames of a signal."""
    size = x.shape[1]
    length = (
        as_list(length)[0] if length is not None else size if window is None else window.shape[0]
    )
    frames = x.unfold(1, length, as_list(step)[0]).transpose(2, 3)
    frames = frames if window is None else frames * window.unsqueeze(-1)
    return _transformed(frames, length, node.flag("onesided", True), False)


@implements("MelWeightMatrix", known=(0, 1, 2, 3, 4))
def mel_weights(_: Node, bins: Any, length: Any, rate: Any, lower: Any, upper: Any) -> torch.Tensor:
    """Returns mel filters: triangles that are evenly spaced on the scale of human hearing."""
    bins, length, rate, lower, upper = (
        as_list(each)[0] for each in (bins, length, rate, lower, upper)
    )
    if not (0 < bins <= LONGEST and 0 < length <= LONGEST and rate > 0 and 0 <= lower <= upper):
        raise ValueError("its sizes or frequencies are out of range")
    ends = 2595 * torch.log10(1 + torch.tensor([lower, upper], dtype=torch.float64) / 700)
    mels = ends[0] + torch.arange(bins + 2) * ((ends[1] - ends[0]) / (bins + 2))
    points = torch.floor((length + 1) * (700 * (10 ** (mels / 2595) - 1)) / rate)
    left, centre, right = points[:-2], points[1:-1], points[2:]
    at = torch.arange(length // 2 + 1, dtype=torch.float64).unsqueeze(1)
    rising = torch.where(
        centre == left, (at == centre).double(), (at - left) / (centre - left).clamp(min=1)
    )
    falling = (right - at) / (right - centre).clamp(min=1)
    found = torch.where((at >= left) & (at <= centre), rising, torch.zeros_like(rising))
    return torch.where((at >= centre) & (at < right) & (right > centre), falling, found).float()
