"""Passes: what they guarantee about the graph, that results are unchanged, and what they must leave
alone."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from models import Attention, Residual, normalised
from tacit.compilation.graph import Draft, calls, is_call, outputs, plain
from tacit.compilation.importers.exported import of_exported, of_file, of_module
from tacit.compilation.passes import PASSES, improve
from tacit.compilation.passes.assign_scales import at_scale
from tacit.compilation.passes.batch_independent import batch_independent
from tacit.compilation.passes.common_subexpressions import common_subexpressions
from tacit.compilation.passes.fold_normalisation import fold_normalisation
from tacit.compilation.passes.fuse_rectify import fuse_rectify
from tacit.compilation.passes.fuse_sums import fuse_sums
from tacit.compilation.passes.merge_factors import merge_factors
from tacit.compilation.passes.merge_truncations import truncations
from tacit.compilation.passes.normalise import normalise
from tacit.compilation.passes.switch_relu_maxpool import switch_relu_maxpool
from tacit.compilation.passes.whole_functions import whole_functions
from tacit.compilation.passes.whole_layers import whole_layers
from tacit.errors import MisuseError, SetupError, UnsupportedOperatorError

IMAGES = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))


class Function(nn.Module):
    """A function as a module with two layers."""

    def __init__(self, function: Callable[["Function", torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self._function = function
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.other = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._function(self, x)


def improved(
    function: Callable[[Function, torch.Tensor], torch.Tensor], *passes: Callable[[Draft], None]
) -> tuple[Counter[str], Draft]:
    """Applies the passes to a function and checks that its results are unchanged. Returns the
    remaining operators and the draft."""
    return of(normalised(Function(function)), IMAGES, normalise, *passes)


def of(
    module: nn.Module,
    x: torch.Tensor,
    *passes: Callable[[Draft], None],
    promised: tuple[float, float] | None = (-10.0, 10.0),
) -> tuple[Counter[str], Draft]:
    """Applies the passes to a module and checks that its results are unchanged. Returns the
    remaining operators and the draft."""
    draft = of_module(module, (x,), {})
    if promised is not None:
        draft.intervals = dict.fromkeys(draft.examples, promised)
    improve(draft, passes)
    (name,) = draft.examples
    with torch.no_grad():
        torch.testing.assert_close(plain(draft, {name: x})[0], module(x), rtol=1e-4, atol=1e-5)
    return Counter(
        str(node.target).split(".")[1] for node in draft.graph.nodes if is_call(node)
    ), draft


def test_all_passes_keep_what_a_model_gives() -> None:
    before, draft = of(normalised(Residual()), IMAGES, normalise)
    cost_before = truncations(draft.graph)
    after, draft = of(normalised(Residual()), IMAGES, *PASSES)
    assert before["_native_batch_norm_legit_no_training"] == 4
    assert after["_native_batch_norm_legit_no_training"] == after["max_pool2d"] == 0
    assert after["adaptive_avg_pool2d"] == after["add"] == 0
    # The pooling, the block, and the operators after the sum.
    assert after["rectified_max_pool2d"] == 1
    assert after["relu"] == 0
    assert after["conv2d"] == after["linear"] == 1
    assert after["rectified_affine"] == 2
    assert truncations(draft.graph) == 4 < cost_before


def test_attention_becomes_one_product_of_its_input() -> None:
    x = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(2))
    before, _ = of(normalised(Attention()), x, normalise)
    after, _ = of(normalised(Attention()), x, *PASSES)
    assert before["linear"] == 3
    assert after["linear"] == 1
    assert before["div"] == 1
    assert after["div"] == 0


@pytest.mark.parametrize(
    "function",
    [
        lambda m, x: torch.relu(m.norm(m.conv(x)) + m.other(x)),
        lambda m, x: torch.relu(m.norm(m.conv(x)) + x[:, :1]),
        lambda m, x: m.norm(m.conv(x)) + m.other(x),
    ],
)
def test_sums_of_unlike_digits_stay_apart_where_more_might_leave_no_range(
    function: Callable[[Function, torch.Tensor], torch.Tensor],
) -> None:
    module = Function(function)
    normalised(module)
    with torch.no_grad():
        module.norm.weight.mul_(2.0**-6)
    left, draft = of(module, IMAGES, *PASSES, promised=None)
    assert max(draft.weight_scales.values()) > 16
    assert left["affine"] == left["rectified_affine"] == 0
    left, _ = of(module, IMAGES, *PASSES)
    assert left["affine"] + left["rectified_affine"] == 1 or left["conv2d"] == 1


def test_layers_of_unlike_digits_stay_apart_where_more_might_leave_no_range() -> None:
    x = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(2))
    after, draft = of(normalised(Attention()), x, *PASSES, promised=None)
    # The query includes the factor of the scores, and has one more fraction bit for it. Key and
    # value do not.
    assert after["linear"] == 2
    assert sorted(draft.weight_scales.values()) == [16, 17]


def test_equal_work_is_done_once() -> None:
    left, _ = improved(
        lambda m, x: torch.relu(m.conv(x)) + torch.relu(m.conv(x)), common_subexpressions
    )
    assert left == {"conv2d": 1, "relu": 1, "add": 1}


def test_unlike_numbers_are_not_equal_work() -> None:
    left, _ = improved(
        lambda _, x: torch.clamp(x, 0.0, 1.0) + torch.clamp(x, -0.0, 1), common_subexpressions
    )
    assert left["clamp"] == 2


def test_a_normalisation_goes_into_the_layer_before_it() -> None:
    left, _ = improved(lambda m, x: m.norm(m.conv(x)), fold_normalisation)
    assert left == {"conv2d": 1}


def test_a_normalisation_of_what_another_uses_too_stays_beside_it() -> None:
    def function(m: Function, x: torch.Tensor) -> torch.Tensor:
        y = m.conv(x)
        return m.norm(y) + y

    left, draft = improved(function, fold_normalisation)
    # One weight per channel.
    assert left["conv2d"] == 2
    assert sorted(draft.weight_scales.values()) == [24]


def preactivated(m: Function, x: torch.Tensor) -> torch.Tensor:
    """A normalisation before a ReLU, of a value that is also used elsewhere."""
    y = m.conv(x)
    return m.third(torch.relu(m.norm(y))) + y


@pytest.mark.parametrize("padding", [0, 1])
def test_a_normalisation_before_a_relu_goes_into_the_layer_after_it(padding: int) -> None:
    module = Function(preactivated)
    module.third = nn.Conv2d(4, 4, 1 + 2 * padding, padding=padding)
    normalised(module)
    with torch.no_grad():
        # Only the offset of the second channel is left. It is greater than zero only if there is no
        # padding.
        module.norm.weight.copy_(torch.tensor([-0.7, 0.0, 0.4, 0.9]))
        module.norm.bias[1] = -0.5 if padding else 0.5
    left, draft = of(module, IMAGES, normalise, fold_normalisation)
    assert left == {"conv2d": 2, "add": 2, "one_sided": 1}
    (below,) = [value for value in draft.weights.values() if value.dtype == torch.bool]
    assert below.flatten().tolist() == [True, False, False, False]


@pytest.mark.parametrize(
    ("function", "third"),
    [
        pytest.param(lambda m, x: m.third(torch.tanh(m.norm(y := m.conv(x)))) + y, nn.Conv2d(4, 4, 1),
                     id="another activation"),
        pytest.param(lambda m, x: m.third(z := torch.relu(m.norm(y := m.conv(x)))) + y + z,
                     nn.Conv2d(4, 4, 1), id="used beside"),
        pytest.param(lambda m, x: m.third(torch.relu(z := m.norm(y := m.conv(x)))) + y + z,
                     nn.Conv2d(4, 4, 1), id="used before"),
        pytest.param(preactivated, nn.Conv2d(4, 4, 1, groups=2), id="groups"),
        pytest.param(lambda m, x: m.third(torch.relu(m.norm(y := m.conv(x)))).sum() + y,
                     nn.ConvTranspose2d(4, 4, 1), id="transposed"),
    ],
)  # fmt: skip
def test_other_normalisations_are_products(
    function: Callable[[Function, torch.Tensor], torch.Tensor], third: nn.Module
) -> None:
    module = Function(function)
    module.third = third
    left, _ = of(normalised(module), IMAGES, normalise, fold_normalisation)
    assert left["one_sided"] == 0
    assert left["conv2d"] >= 2


@pytest.mark.parametrize(("factor", "offset"), [(1e-4, 0.5), (0.0, 0.5)])
def test_an_offset_that_no_layer_takes_stays(factor: float, offset: float) -> None:
    module = Function(preactivated)
    module.third = nn.Conv2d(4, 4, 3, padding=1)
    normalised(module)
    with torch.no_grad():
        module.norm.weight[1], module.norm.bias[1] = factor, offset
    left, _ = of(module, IMAGES, normalise, fold_normalisation)
    assert left["one_sided"] == 0


def test_an_average_goes_into_the_linear_layer_after_it() -> None:
    module = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 4))
    left, draft = of(normalised(module), IMAGES, normalise, fold_normalisation)
    assert left == {"sum": 1, "reshape": 1, "linear": 1}
    # The precision is as before: 64 positions take six bits.
    assert list(draft.weight_scales.values()) == [22]


class Gathered(nn.Module):
    """An averaging of images, followed by a linear layer."""

    def __init__(self, pool: nn.Module) -> None:
        super().__init__()
        self.pool, self.linear = pool, nn.Linear(3, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.pool(x).flatten(1))


@pytest.mark.parametrize(
    ("pool", "shape"),
    [
        (nn.AvgPool2d(8), (2, 3, 8, 8)),
        (nn.AvgPool2d((4, 8)), (2, 3, 4, 8)),
        (nn.AvgPool1d(8), (2, 3, 8)),
        (nn.AvgPool3d(4), (2, 3, 4, 4, 4)),
        (nn.AdaptiveAvgPool1d(1), (2, 3, 8)),
        (nn.AdaptiveAvgPool3d(1), (2, 3, 4, 4, 4)),
    ],
)
def test_other_averages_over_all_places_do_too(pool: nn.Module, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(4))
    left, _ = of(normalised(Gathered(pool)), x, normalise, fold_normalisation)
    assert left["sum"] == left["linear"] == 1
    assert sum(left.values()) == 2 + left["reshape"] + left["squeeze"] + left["flatten"]


@pytest.mark.parametrize(
    ("pool", "size"),
    [
        (nn.AvgPool2d(8, padding=1), 8),
        (nn.AvgPool2d(8, divisor_override=3), 8),
        (nn.AvgPool2d((8, 5)), 9),
    ],
)
def test_averages_over_other_places_stay(pool: nn.Module, size: int) -> None:
    x = torch.randn(2, 3, 8, size, generator=torch.Generator().manual_seed(4))
    left, _ = of(normalised(Gathered(pool)), x, normalise, fold_normalisation)
    assert left["sum"] == 0


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.ConvTranspose2d(3, 4, 3, stride=2, bias=False), (2, 3, 5, 5)),
        (
            nn.ConvTranspose2d(6, 4, 3, groups=2, padding=1, output_padding=1, stride=2),
            (2, 6, 5, 5),
        ),
        (nn.ConvTranspose1d(3, 4, 3), (2, 3, 5)),
        (nn.ConvTranspose3d(3, 4, 2), (2, 3, 3, 3, 3)),
    ],
)
def test_a_normalisation_goes_into_the_transposed_layer_before_it(
    layer: nn.Module, shape: tuple[int, ...]
) -> None:
    norm = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)[len(shape) - 3](4)
    norm.running_var.mul_(0.3)
    norm.running_mean.copy_(torch.arange(4.0))
    x = torch.randn(shape, generator=torch.Generator().manual_seed(4))
    left, _ = of(normalised(nn.Sequential(layer, norm)), x, normalise, fold_normalisation)
    assert sum(left.values()) == 1


AVERAGED = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 4))


@pytest.mark.parametrize("promised", [None, (0.0, 2.0**24)])
def test_an_average_stays_where_more_digits_might_leave_no_range(
    promised: tuple[float, float] | None,
) -> None:
    x = torch.ones(1, 3, 32, 32)
    left, _ = of(normalised(AVERAGED), x, normalise, fold_normalisation, promised=promised)
    assert left["sum"] == 0
    assert left["mean"] + left["adaptive_avg_pool2d"] == 1


@pytest.mark.parametrize(("size", "has_room"), [(2.0**10, True), (2.0**20, False)])
def test_calibration_data_with_a_distance_are_enough_for_more_digits(
    size: float, has_room: bool
) -> None:
    draft = of_module(normalised(AVERAGED), (torch.ones(1, 3, 32, 32),), {})
    draft.calibration = [{name: torch.full((1, 3, 32, 32), size) for name in draft.examples}]
    improve(draft, (normalise, fold_normalisation))
    assert bool(list(calls(draft.graph, torch.ops.aten.sum.dim_IntList))) == has_room
    if has_room:
        # With more fraction bits for all numbers, these weights get fewer additional ones.
        at_most = at_scale(draft, 22).weight_scales
        assert max(at_most.values()) < max(draft.weight_scales.values()) + 6


def test_a_normalisation_stays_before_its_relu_where_more_digits_might_leave_no_range() -> None:
    module = Function(preactivated)
    module.third = nn.Conv2d(4, 4, 1)
    left, _ = of(normalised(module), IMAGES, normalise, fold_normalisation, promised=None)
    assert left["affine"] == 0


def test_factors_take_nothing_from_the_range_that_is_left() -> None:
    # One channel becomes smaller, another does not.
    module = Channels(nn.Linear(3, 4), (4,))
    with torch.no_grad():
        module.factor.copy_(torch.tensor([1.0, 2.0**-8, 0.5, -1.0]))
    _, draft = of(module.eval(), torch.randn(2, 3), normalise, whole_layers, promised=None)
    assert set(draft.weight_scales.values()) <= {16}
    _, draft = improved(lambda m, x: m.conv(x) * 0.3, merge_factors)
    assert max(draft.weight_scales.values()) == 17


def test_an_average_that_something_else_uses_stays() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            average = x.mean((2, 3), keepdim=True).flatten(1)
            return self.linear(average) + average

    left, _ = of(normalised(Both()), IMAGES, normalise, fold_normalisation)
    assert left["mean"] == 1


@pytest.mark.parametrize("kernel", [2, 3, (1, 2)])
def test_relu_becomes_a_candidate_of_the_pooling(kernel: int | tuple[int, int]) -> None:
    left, _ = improved(
        lambda m, x: torch.max_pool2d(torch.relu(m.conv(x)), kernel, 2), switch_relu_maxpool
    )
    assert left == {"conv2d": 1, "rectified_max_pool2d": 1}


def test_monotone_activations_move_behind_the_pooling() -> None:
    left, draft = improved(
        lambda m, x: torch.max_pool2d(torch.tanh(m.conv(x)), 2), switch_relu_maxpool
    )
    assert left["tanh"] == 1
    order = [str(node.target) for node in draft.graph.nodes if is_call(node)]
    assert order.index("aten.max_pool2d.default") < order.index("aten.tanh.default")


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda m, x: torch.max_pool2d(y := torch.relu(m.conv(x)), 2) + 0 * y[..., :4, :4],
                     id="used twice"),
        pytest.param(lambda m, x: torch.max_pool2d(-torch.relu(m.conv(x)), 2), id="decreasing"),
        pytest.param(lambda m, x: torch.max_pool2d(nn.functional.leaky_relu(m.conv(x), -0.5), 2), id="bent"),
        pytest.param(lambda m, x: torch.max_pool2d(nn.functional.gelu(m.conv(x)), 2), id="not monotone"),
    ],
)  # fmt: skip
def test_other_activations_stay_before_the_pooling(
    function: Callable[[Function, torch.Tensor], torch.Tensor],
) -> None:
    left, draft = improved(function, common_subexpressions, switch_relu_maxpool)
    assert left["max_pool2d"] == 1
    assert left["rectified_max_pool2d"] == 0
    pool = next(node for node in draft.graph.nodes if str(node.target) == "aten.max_pool2d.default")
    assert str(pool.args[0].target) != "aten.conv2d.default"


def test_sums_of_convolutions_are_one() -> None:
    left, _ = improved(lambda m, x: m.conv(x) + m.other(x * 2), fuse_sums)
    assert left == {"mul": 1, "affine": 1}


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda m, x: m.conv(x) + torch.relu(m.other(x)), id="not two layers"),
        pytest.param(lambda m, x: torch.add(m.conv(x), m.other(x), alpha=2), id="weighted"),
        pytest.param(
            lambda m, x: (m.conv(x) + m.other(x)) * torch.relu(m.conv(x)), id="used twice"
        ),
    ],
)
def test_other_sums_stay(function: Callable[[Function, torch.Tensor], torch.Tensor]) -> None:
    left, _ = improved(function, common_subexpressions, fuse_sums)
    assert left["add"] == 1


def test_a_public_factor_goes_into_the_weights() -> None:
    left, _ = improved(lambda m, x: m.conv(x).flatten(2).transpose(1, 2) * 0.25, merge_factors)
    assert left["mul"] == 0


class Attending(nn.Module):
    """One attention. Its queries may also be used elsewhere."""

    def __init__(self, *, is_shared: bool, scale: float | None) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(6, 8), nn.Linear(6, 8)
        self.is_shared, self.scale = is_shared, scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key = (
            of(x).unflatten(-1, (2, 4)).transpose(-2, -3) for of in (self.query, self.key)
        )
        found = nn.functional.scaled_dot_product_attention(query, key, key, scale=self.scale)
        return found + query if self.is_shared else found


@pytest.mark.parametrize("scale", [None, 0.3])
def test_the_factor_of_an_attention_goes_into_the_weights(scale: float | None) -> None:
    module = normalised(Attending(is_shared=False, scale=scale))
    _, draft = of(module, torch.randn(1, 5, 6), normalise, merge_factors)
    (node,) = calls(draft.graph, torch.ops.aten.scaled_dot_product_attention.default)
    assert node.kwargs["scale"] == 1.0
    query = module.query.weight.detach() * (scale or 0.5)
    (scaled,) = [draft.weights[name] for name in draft.weights if name.endswith("weight_scaled")]
    torch.testing.assert_close(scaled.float(), query)


def test_the_factor_of_an_attention_stays_where_others_use_the_queries() -> None:
    module = normalised(Attending(is_shared=True, scale=0.3))
    _, draft = of(module, torch.randn(1, 5, 6), normalise, merge_factors)
    (node,) = calls(draft.graph, torch.ops.aten.scaled_dot_product_attention.default)
    assert node.kwargs["scale"] == 0.3


def test_a_factor_of_zero_divides_nothing() -> None:
    left, _ = improved(lambda m, x: torch.nan_to_num(m.conv(x)) * 0.0 + x.mean(), merge_factors)
    assert left["mul"] == 1


class Channels(nn.Module):
    """A layer, each channel of whose result is multiplied and then shifted, as in TensorFlow's
    normalisation."""

    def __init__(self, layer: nn.Module, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.layer = layer
        self.factor, self.offset = (nn.Parameter(torch.ones(shape)) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.factor * self.layer(x) - self.offset


@pytest.mark.parametrize(
    ("layer", "channels", "shape"),
    [
        (nn.Conv1d(3, 4, 3), (1, 4, 1), (2, 3, 8)),
        (nn.Conv1d(3, 4, 3), (4, 1), (3, 8)),
        (nn.Conv2d(3, 4, 3, bias=False), (1, 4, 1, 1), (2, 3, 8, 8)),
        (nn.Conv2d(4, 4, 3, groups=4), (4, 1, 1), (2, 4, 8, 8)),
        (nn.Conv3d(3, 4, 2), (1, 4, 1, 1, 1), (2, 3, 4, 4, 4)),
        (nn.Conv2d(3, 4, 3), (1,), (2, 3, 8, 8)),
        (nn.Linear(3, 4), (4,), (2, 3)),
        (nn.Linear(3, 4), (1, 1, 4), (2, 5, 3)),
    ],
)
def test_what_channels_are_multiplied_by_goes_into_the_layer(
    layer: nn.Module, channels: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    after, draft = of(normalised(Channels(layer, channels)), x, normalise, whole_layers)
    assert sum(after.values()) == 1
    assert len(draft.weights) == 2


@pytest.mark.parametrize(
    ("layer", "channels", "shape"),
    [
        (nn.Conv2d(3, 6, 3), (1, 1, 1, 6), (2, 3, 8, 8)),
        (nn.Conv2d(3, 6, 3), (6, 6), (2, 3, 8, 8)),
        (nn.Conv2d(3, 6, 3), (2, 1, 1, 1), (2, 3, 8, 8)),
        (nn.Conv2d(3, 6, 3), (2, 1, 1, 1, 1), (2, 3, 8, 8)),
        (nn.Linear(3, 1), (4,), (2, 3)),
        (nn.Linear(3, 5), (5, 1), (5, 3)),
    ],
)
def test_what_tells_more_than_channels_apart_stays(
    layer: nn.Module, channels: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    after, _ = of(normalised(Channels(layer, channels)), x, normalise, whole_layers)
    assert (after["mul"], after["sub"]) == (1, 1)


def test_a_layer_that_another_uses_too_keeps_its_weights() -> None:
    class Twice(Channels):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x) * self.factor + self.layer(x).abs()

    after, _ = of(
        normalised(Twice(nn.Linear(3, 4), (4,))),
        torch.randn(2, 3),
        normalise,
        common_subexpressions,
        whole_layers,
    )
    assert (after["linear"], after["mul"]) == (1, 1)


def test_a_sum_with_a_factor_of_its_own_stays() -> None:
    class Times(Channels):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.add(self.layer(x), self.offset, alpha=2)

    after, _ = of(
        normalised(Times(nn.Linear(3, 4), (4,))), torch.randn(2, 3), normalise, whole_layers
    )
    assert after["add"] == 1


class Matrices(nn.Module):
    """A product with a matrix weight and a bias, and one with another matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.shared = nn.Parameter(torch.ones(6, 4)), nn.Parameter(torch.ones(4, 4))
        self.bias = nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.matmul(x, self.first) + self.bias
        return torch.matmul(torch.matmul(x, self.shared), self.shared)


@pytest.mark.parametrize("shape", [(3, 6), (2, 3, 6)])
def test_a_product_with_a_matrix_is_a_layer(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    after, draft = of(normalised(Matrices()), x, normalise, whole_layers)
    assert after == {"linear": 1, "matmul": 2}
    assert len(draft.weights) == 3


class Images(nn.Module):
    """Images whose channels are multiplied and shifted without a layer before them."""

    def __init__(self, factor: tuple[int, ...], offset: tuple[int, ...]) -> None:
        super().__init__()
        self.factor, self.offset = (nn.Parameter(torch.ones(shape)) for shape in (factor, offset))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.offset + torch.tanh(x) * self.factor)


@pytest.mark.parametrize(
    ("factor", "offset", "left"),
    [
        ((1, 3, 1, 1), (3, 1, 1), {"batch_norm": 1}),
        ((3, 1, 1), (1,), {"batch_norm": 1}),
        ((1, 3, 1, 1), (8,), {"batch_norm": 1, "add": 1}),
        ((1, 3, 1, 1), (2, 3, 1, 1), {"batch_norm": 1, "add": 1}),
        ((8,), (3, 1, 1), {"mul": 1, "add": 1}),
        ((2, 3, 1, 1), (3, 1, 1), {"mul": 1, "add": 1}),
        ((1,), (3, 1, 1), {"mul": 1, "add": 1}),
    ],
)
def test_channels_of_images_that_are_multiplied_are_normalised(
    factor: tuple[int, ...], offset: tuple[int, ...], left: dict[str, int]
) -> None:
    module = normalised(Images(factor, offset))
    after, _ = of(module, IMAGES, normalise, whole_layers)
    assert after == {"tanh": 2, **left}
    after, _ = of(module, IMAGES, normalise, whole_layers, fold_normalisation)
    assert after["batch_norm"] == 0
    assert after["conv2d"] == left.get("batch_norm", 0)


def test_what_is_multiplied_and_used_otherwise_too_is_shifted_apart() -> None:
    class Both(Images):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x * self.factor
            return (y + self.offset) * y

    after, _ = of(normalised(Both((1, 3, 1, 1), (1, 3, 1, 1))), IMAGES, normalise, whole_layers)
    assert after == {"batch_norm": 1, "add": 1, "mul": 1}


def test_images_in_another_order_are_not_normalised() -> None:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = nn.Parameter(torch.ones(8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.factor

    after, _ = of(normalised(Last()), IMAGES, normalise, whole_layers)
    assert after == {"mul": 1}


@pytest.mark.parametrize(
    "pad",
    [
        lambda x: nn.functional.pad(x, (0, 1, 0, 1)),
        lambda x: nn.functional.pad(x, (1, 1, 2, 1), "constant", 0.0),
        lambda x: nn.functional.pad(x, (1, -1), value=0.0),
    ],
)
def test_relu_becomes_a_candidate_of_the_pooling_past_a_frame_of_zeros(
    pad: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    left, _ = improved(
        lambda m, x: nn.functional.max_pool2d(pad(torch.relu(m.conv(x))), 3, 2), switch_relu_maxpool
    )
    assert (left["rectified_max_pool2d"], left["relu"]) == (1, 0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: nn.functional.pad(torch.relu(x), (1, 1), value=1.0),
        lambda x: nn.functional.pad(torch.relu(x), (1, 1), value=-1.0),
        lambda x: nn.functional.pad(torch.relu(x), (1, 1, 1, 1), "reflect"),
        lambda x: nn.functional.pad(torch.tanh(x), (1, 1)),
    ],
)
def test_another_frame_keeps_relu_before_the_pooling(
    function: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    left, _ = improved(
        lambda m, x: nn.functional.max_pool2d(function(m.conv(x)), 3, 2), switch_relu_maxpool
    )
    assert (left["rectified_max_pool2d"], left["max_pool2d"]) == (0, 1)


def test_relu_that_is_used_otherwise_too_stays_before_the_frame() -> None:
    def function(m: Function, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(m.conv(x))
        return nn.functional.max_pool2d(nn.functional.pad(y, (1, 1, 1, 1)), 3, 1) + y

    left, _ = improved(function, switch_relu_maxpool)
    assert (left["rectified_max_pool2d"], left["relu"]) == (0, 1)


class Rows(nn.Module):
    """Layer normalisation as Keras writes it, optionally with one step changed."""

    def __init__(self, other: str = "") -> None:
        super().__init__()
        self.factor, self.shift = nn.Parameter(torch.ones(8)), nn.Parameter(torch.ones(8))
        self.other = other

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(1 if self.other == "mean" else -1, keepdim=True)
        deviations = x - mean
        squares = deviations * (x if self.other == "squares" else deviations)
        variance = squares.mean(1 if self.other == "variance" else -1, keepdim=True) + 1e-3
        variance = variance.abs() if self.other == "squares" else variance
        scaled = torch.reciprocal(torch.sqrt(variance)) * self.factor
        moved = (mean if self.other == "sign" else -mean) * scaled + self.shift
        result = (deviations if self.other == "x" else x) * scaled + moved
        return result + scaled if self.other == "used" else result


@pytest.mark.parametrize("shape", [(2, 3, 8), (4, 8), (2, 5, 3, 8)])
def test_a_layer_normalisation_is_recognised(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    after, _ = of(normalised(Rows()), x, normalise, common_subexpressions, whole_functions)
    assert after == {"layer_norm": 1}


@pytest.mark.parametrize("other", ["mean", "squares", "variance", "sign", "x", "used"])
def test_another_normalisation_stays(other: str) -> None:
    x = torch.rand((2, 3, 8), generator=torch.Generator().manual_seed(3)) + 1
    after, _ = of(normalised(Rows(other)), x, normalise, common_subexpressions, whole_functions)
    assert (after["layer_norm"], after["rsqrt"], after["sqrt"]) == (0, 1, 0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6),
        lambda x: torch.rsqrt((x * x).mean((-2, -1), keepdim=True) + 1e-6) * x,
        lambda x: x / torch.sqrt(1e-6 + x.square().mean(-1, keepdim=True)),
        lambda x: x * torch.reciprocal(torch.sqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)),
    ],
)
def test_a_root_mean_square_is_recognised(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    after, _ = improved(lambda _, x: function(x), normalise, common_subexpressions, whole_functions)
    assert after["rms_norm"] == 1
    assert not after["mean"] + after["rsqrt"] + after["sqrt"] + after["div"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * torch.rsqrt(x.pow(4).mean(-1, keepdim=True) + 1e-6),
        lambda x: x * torch.rsqrt((x * (x + 1)).abs().mean(-1, keepdim=True) + 1e-6),
        lambda x: (x + 1) * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6),
        lambda x: x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-6),
        lambda x: x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + 1e-6),
        lambda x: torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) / x,
        lambda x: x * torch.sqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6),
        lambda x: x[:, :1] * torch.rsqrt(x[:, :1].pow(2).mean(-1) + 1e-6).sum(-1, keepdim=True),
    ],
)
def test_roots_like_these_stay(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    after, _ = improved(lambda _, x: function(x), normalise, common_subexpressions, whole_functions)
    assert not after["rms_norm"]
    assert after["rsqrt"] + after["sqrt"] == 1


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: 0.5 * x * (1 + torch.erf(x / 2**0.5)), "gelu"),
        (lambda x: x * (torch.erf(x * 0.5**0.5) + 1) * 0.5, "gelu"),
        (lambda x: (1 - torch.erf(-x * 0.5**0.5)) * (x * 0.5), "gelu"),
        (lambda x: x * torch.sigmoid(x), "silu"),
        (lambda x: torch.sigmoid(x) * x, "silu"),
        (lambda x: torch.reciprocal(torch.sqrt(x.abs() + 1)), "rsqrt"),
    ],
)
def test_functions_that_are_written_apart_are_recognised(
    function: Callable[[torch.Tensor], torch.Tensor], name: str
) -> None:
    after, _ = improved(lambda _, x: function(x), common_subexpressions, whole_functions)
    assert after[name] == 1
    assert not after["erf"] + after["sigmoid"] + after["sqrt"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: 0.5 * x * (1 + torch.erf(x / 2)),
        lambda x: 0.5 * x * (1 - torch.erf(x / 2**0.5)),
        lambda x: x * (1 + torch.erf(x / 2**0.5)),
        lambda x: 0.5 * x * (2 + torch.erf(x / 2**0.5)),
        lambda x: 0.5 * (x + 1) * (1 + torch.erf(x / 2**0.5)),
        lambda x: x * (1 + torch.erf(x / 2**0.5)) * (0.5 * x),
        lambda x: x * torch.sigmoid(2 * x),
        lambda x: x * torch.sigmoid(x) + torch.sigmoid(x),
        lambda x: torch.sqrt(x.abs() + 1) + torch.reciprocal(torch.sqrt(x.abs() + 1)),
    ],
)
def test_functions_like_these_stay(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    after, _ = improved(lambda _, x: function(x), common_subexpressions, whole_functions)
    assert not after["gelu"] + after["silu"] + after["rsqrt"]


def test_an_order_of_its_own_in_memory_is_none() -> None:
    class Channelled(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x.permute(0, 2, 3, 1).reshape(2, -1))

    after, _ = of(Channelled().eval(), IMAGES, *PASSES)
    assert after == {"permute": 1, "reshape": 1, "relu": 1}


def test_layers_on_one_input_are_one() -> None:
    left, _ = improved(lambda m, x: m.conv(x) * torch.relu(m.other(x)), batch_independent)
    assert left["conv2d"] == 1


def test_activations_behind_layers_that_are_one_are_one() -> None:
    def both(m: Function, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(m.conv(x)) * torch.relu(m.other(x))

    left, _ = improved(both, batch_independent)
    assert (left["conv2d"], left["relu"]) == (1, 1)
    left, _ = improved(both, batch_independent, fuse_rectify)
    assert (left["conv2d"], left["relu"], left["rectified_affine"]) == (0, 0, 1)


def test_a_layer_that_something_else_uses_keeps_its_activation_to_itself() -> None:
    def both(m: Function, x: torch.Tensor) -> torch.Tensor:
        left, right = m.conv(x), m.other(x)
        return torch.relu(left) * torch.relu(right) + right

    left, _ = improved(both, batch_independent)
    assert (left["conv2d"], left["relu"]) == (1, 2)


# Unusual arrangements
# -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        pytest.param(
            nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5)),
            (2, 5, 4),
            id="channels before features",
        ),
        pytest.param(
            nn.Sequential(nn.Linear(4, 7), nn.BatchNorm1d(5)), (2, 5, 4), id="other channels"
        ),
        pytest.param(
            nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(0), nn.Linear(3, 2)),
            (3, 4, 4),
            id="no batch",
        ),
        pytest.param(
            nn.Sequential(nn.ELU(-1.0), nn.MaxPool2d(2)), (2, 3, 8, 8), id="decreasing ELU"
        ),
        pytest.param(
            nn.Sequential(nn.ELU(0.5), nn.MaxPool2d(2)), (2, 3, 8, 8), id="increasing ELU"
        ),
        pytest.param(
            nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, affine=False)),
            (2, 3, 8, 8),
            id="no weights",
        ),
        pytest.param(
            nn.Sequential(nn.ConvTranspose2d(3, 4, 3), nn.BatchNorm2d(4)),
            (2, 3, 8, 8),
            id="transposed",
        ),
        pytest.param(
            nn.Sequential(nn.Conv2d(3, 6, 3, groups=3), nn.BatchNorm2d(6)),
            (2, 3, 8, 8),
            id="groups",
        ),
    ],
)
def test_other_layouts_keep_their_numbers(module: nn.Module, shape: tuple[int, ...]) -> None:
    of(normalised(module), torch.randn(shape, generator=torch.Generator().manual_seed(3)), *PASSES)


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(
            lambda m, x: m.conv(x).relu().flatten() * m.other(x).tanh().flatten(), id="side by side"
        ),
        pytest.param(lambda m, x: m.conv(x) + m.other(x + 1), id="a sum"),
    ],
)
def test_images_without_a_batch_keep_their_numbers(
    function: Callable[[Function, torch.Tensor], torch.Tensor],
) -> None:
    of(normalised(Function(function)), IMAGES[0], *PASSES)


def test_a_mean_of_other_dimensions_is_none_of_places() -> None:
    class Mean(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(8, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x.mean((2, 3), keepdim=True).flatten(1))

    of(
        normalised(Mean()),
        torch.randn(1, 2, 4, 4, 4, generator=torch.Generator().manual_seed(3)),
        *PASSES,
    )


def test_activations_of_integers_stay_integers() -> None:
    class Two(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return torch.relu(x), torch.relu(y)

    draft = of_module(Two().eval(), (torch.randn(3), torch.arange(3)), {})
    improve(draft)
    assert [node.meta["value"].dtype for node in outputs(draft.graph)] == [
        torch.float32,
        torch.int64,
    ]


# The most additional bits that leave the range as it was: 2^7 is less than 255.
@pytest.mark.parametrize(("slope", "expected"), [(1 / 255, 23), (1e-4, 24)])
def test_weights_that_become_small_keep_their_digits(slope: float, expected: int) -> None:
    _, draft = improved(lambda m, x: m.conv(x) * slope, merge_factors)
    (bits,) = [draft.weight_scales[name] for name in draft.weights if "scaled" in name]
    assert bits == expected


# What is refused
# ----------------------------------------------------------------------------


def test_a_model_in_training_is_refused() -> None:
    with pytest.raises(MisuseError, match=r"training mode.*model\.eval\(\)"):
        of_module(nn.Sequential(nn.Linear(2, 2)), (torch.ones(1, 2),), {})


def test_decisions_by_values_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    module = nn.Sequential(nn.Identity(), Function(lambda _, x: x if x.sum() > 0 else -x)).eval()
    message = r"^1 \(test_passes\.py, line \d+: module = .*\) decides by values.*torch\.where"
    with pytest.raises(MisuseError, match=message):
        of_module(module, (IMAGES,), {})
    # PyTorch would print its graph in addition to the message.
    assert capfd.readouterr() == ("", "")


def test_dynamic_shapes_are_refused() -> None:
    rows = torch.export.Dim("rows", min=2, max=16)
    exported = torch.export.export(
        nn.Linear(2, 2).eval(), (torch.ones(4, 2),), dynamic_shapes=({0: rows},)
    )
    with pytest.raises(MisuseError, match="exported with dynamic shapes"):
        of_exported(exported)


@pytest.mark.parametrize(
    ("function", "operator"),
    [
        (lambda _, x: x[x > 0] * 2, "index.Tensor"),
        (lambda _, x: x + torch.unique(x).sum(), "_unique2"),
    ],
)
def test_shapes_that_follow_from_values_are_refused(
    function: Callable[..., torch.Tensor], operator: str
) -> None:
    module = nn.Sequential(nn.Identity(), Function(function)).eval()
    message = (
        rf"^in 1 the shape of what aten\.{operator}\S* gives depends on values.*by torch\.where"
    )
    with pytest.raises(MisuseError, match=message):
        of_module(module, (IMAGES,), {})


def test_a_damaged_exported_program_is_told_in_one_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(nn.Linear(2, 2).eval(), (torch.ones(1, 2),)), path)
    assert of_file(path).weights
    path.write_bytes(path.read_bytes()[:1000])
    capfd.readouterr()
    with pytest.raises(
        SetupError, match=r"model\.pt2 is no exported program of this PyTorch: File is not a zip"
    ):
        of_file(path)
    # PyTorch would print where it was.
    assert capfd.readouterr() == ("", "")


def test_all_that_is_missing_is_named_at_once() -> None:
    module = Function(
        lambda m, x: torch.special.i0(m.conv(x)) + torch.special.erfcx(m.norm(m.conv(x)))
    ).eval()
    with pytest.raises(UnsupportedOperatorError, match=r"(?s)i0.*erfcx"):
        of_module(module, (IMAGES,), {})


def test_weights_without_number_are_refused() -> None:
    module = Function(lambda m, x: m.conv(x)).eval()
    module.conv.weight.data[0, 0, 0, 0] = float("nan")
    with pytest.raises(MisuseError, match=r"conv\.weight holds NaN .*: train the model again"):
        of_module(module, (IMAGES,), {})
