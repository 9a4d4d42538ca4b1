"""Tracing of secret tensors by PyTorch.

PyTorch can flatten secret tensors and rebuild them. Tracers see the protocol's operations, which
are operators of PyTorch, and traced graphs give the same results.
"""

import ast
import fcntl
import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from functorch.compile import make_boxed_func
from torch import nn
from torch._functorch.aot_autograd import aot_function
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

import tacit
from tacit import SecretTensor
from tacit.errors import MisuseError
from tacit.fixed import Shift
from tacit.operators.numerics.approximation.series import ARGUMENT, _divided
from tacit.sharings import bilinear, shares, tracing
from tacit.sharings.bilinear import Addend, Term
from tacit.sharings.bilinear_shapes import Geometry, Matrices
from tacit.sharings.shares import Comparison, Parts

X = torch.tensor([[1.0, -2.0, 0.5], [3.0, -4.0, 0.25]])
PUBLIC = torch.tensor([[1.0, 2.5, -1.0], [0.0, 1.0, 3.0]])
TURNED, MASK = PUBLIC.t(), PUBLIC > 1

#: PyTorch has one tracer in a process, so parties that trace are processes.
SETTINGS = [
    {"transport": "tcp"},
    {"parties": 2, "protocol": "additive", "source": "dealer", "transport": "tcp"},
]
IDS = ["replicated", "additive"]


def components(x: SecretTensor) -> tuple[list[torch.Tensor], Any]:
    """Flattens a tensor as PyTorch does."""
    names, rest = x.__tensor_flatten__()
    return [getattr(x, name) for name in names], (names, rest, x.shape, x.stride())


def together(parts: Any, how: Any) -> SecretTensor:
    """Rebuilds a tensor as PyTorch does."""
    names, rest, shape, strides = how
    made = SecretTensor.__tensor_unflatten__(
        dict(zip(names, parts, strict=True)), rest, shape, strides
    )
    assert isinstance(made, SecretTensor)
    return made


# Flattening and rebuilding
# ----------------------------------------------------------------------------------------


def test_what_is_put_together_is_what_was_taken_apart() -> None:
    def run() -> None:
        small = tacit.share(torch.tensor([[100, -7]], dtype=torch.int8), owner=0)
        given = [
            tacit.share(X, owner=0),
            tacit.share(X, owner=1, scale=20).t(),
            tacit.share(MASK, owner=0),
            tacit.share(torch.tensor(5), owner=0),
            tacit.share(torch.zeros(0, 3), owner=0),
            # Its values exceed the range of its dtype.
            small + small,
        ]
        for x in given:
            assert is_traceable_wrapper_subclass(x)
            parts, how = components(x)
            assert len(parts) == tacit.session().core.parts
            assert not any(isinstance(part, SecretTensor) for part in parts)
            y = together(parts, how)
            assert (y.dtype, y.shape, y.stride()) == (x.dtype, x.shape, x.stride())
            assert (y._scale, y._session, y._unreduced) == (x._scale, x._session, x._unreduced)
            assert y.reveal().equal(x.reveal())
            assert (y + y).reveal().equal((x + x).reveal())

    for setting in (
        {},
        {"parties": 2, "protocol": "additive"},
        {"parties": 2, "protocol": "plain"},
    ):
        tacit.launch(run, **setting)


def test_what_are_no_components_is_refused() -> None:
    def run() -> None:
        (one, other), how = components(tacit.share(X, owner=0))
        names, rest, shape, strides = how
        for wrong in (
            {names[0]: one},
            {names[0]: one, "third": other},
            {names[0]: one, names[1]: other[:1]},
            {names[0]: one, names[1]: other.to(torch.uint8)},
            {names[0]: one, names[1]: other.to(torch.float32)},
            {},
        ):
            with pytest.raises(
                MisuseError, match=r"no components of a secret tensor of shape \(2, 3\)"
            ):
                SecretTensor.__tensor_unflatten__(wrong, rest, shape, strides)
        with pytest.raises(MisuseError, match="no components"):
            SecretTensor.__tensor_unflatten__(
                dict(zip(names, (one, other), strict=True)), rest, (3, 2), (2, 1)
            )

    tacit.launch(run)


# Operators
# ----------------------------------------------------------------------------

GEOMETRY = Geometry(1, 1, 2, 3, (4, 4), (3, 3), (1, 1), (1, 1), (1, 1))


def examples() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Returns each operation, called by its operator, with its arguments after the session."""
    session = tacit.session()

    def shared(*shape: int) -> Parts:
        values = torch.arange(8, 8 + torch.Size(shape).numel()).reshape(shape)
        return shares.share(session, values if session.party == 0 else None, 0, shape)

    def bits(*shape: int) -> Parts:
        values = torch.ones(shape, dtype=torch.uint8)
        return shares.share_bits(session, values if session.party == 0 else None, 0, shape)

    x, y, b = shared(2, 3), shared(2, 3), bits(2, 3)
    left, right, images, weights = (
        shared(1, 2, 3),
        shared(1, 3, 4),
        shared(1, 2, 4, 4),
        shared(3, 2, 3, 3),
    )
    terms = [Term(images, weights, GEOMETRY), Term(images, weights, GEOMETRY)]
    product = [Term(left, right, Matrices((1, 2, 3, 4)))]
    rectified, size = Comparison(32), (1, 3, 4, 4)
    added = [Addend(shared(1, 3, 4, 4)), Addend(shared(3), run=16)]
    return {
        "trivial": (shares.trivial, (torch.arange(6).reshape(2, 3),)),
        "trivial_bits": (shares.trivial_bits, (torch.ones(3, dtype=torch.uint8),)),
        "multiply": (bilinear.multiply, (x, y, 4)),
        "matmul": (bilinear.matmul, (left, right, 4)),
        "convolution": (bilinear.convolution, (images, weights, GEOMETRY, size, 4)),
        "_truncated": (shares.truncate, (x, 2)),
        "sign": (shares.sign, (x, 32)),
        "equal_zero": (shares.equal_zero, (x, 32)),
        "series": (shares.series, (x, ARGUMENT, _divided((0.5, 0.25, 0.125, 0.0625, 0.5)))),
        "_rectified": (shares.relu, (x, 32)),
        "_rectified, on either side": (shares.one_sided, (x, b, 32)),
        "maximum": (shares.maximum, (x, y, Comparison(32))),
        "_affine": (bilinear.affine, (terms, added, size, Shift(4), rectified)),
        "_affine, of matrices": (bilinear.affine, (product, [], (1, 2, 4), Shift(4), None)),
        "and_bits": (shares.and_bits, (b, b)),
        "bit_multiply": (shares.bit_multiply, (b, x)),
        "bit_to_ring": (shares.bit_to_ring, (b,)),
        "low_bits": (shares.low_bits, (x, 8)),
        "binary": (shares.binary, (x, 5)),
        "_leading_zeros": (shares._leading_zeros, (x, 6)),
        "ring_product": (lambda _, *given: bilinear.ring_product(*given), (left[0], right[0])),
        "ring_convolution": (
            lambda _, *given: bilinear.ring_convolution(*given),
            (images[0], weights[0], GEOMETRY, size),
        ),
    }


@pytest.mark.parametrize("setting", SETTINGS, ids=IDS)
def test_each_operation_is_an_operator_that_gives_what_it_does(setting: dict[str, Any]) -> None:
    def run() -> set[str]:
        session, seen = tacit.session(), set()
        for name, (function, given) in examples().items():
            wanted = function(session, *given)
            leaves, spec = torch.utils._pytree.tree_flatten(given)
            held = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

            called = partial(_filled, partial(function, session), leaves, spec)
            graph = make_fx(called, tracing_mode="fake")(*held)
            used = {node.target.name().split("::")[1] for node in of_core(graph)}
            assert used == {name.partition(",")[0]}, (name, used)
            seen |= used
            # The fake kernel's results have the same shape and dtype.
            fakes = [node.meta["val"] for node in of_core(graph)][-1]
            found = graph(*held)
            for parts in (fakes, found):
                pairs = zip(
                    (parts,) if isinstance(parts, torch.Tensor) else parts,
                    (wanted,) if isinstance(wanted, torch.Tensor) else wanted,
                    strict=True,
                )
                for one, other in pairs:
                    assert (one.shape, one.dtype) == (other.shape, other.dtype), name
        return seen

    registered = {name.split("::")[1] for name in tracing.LIBRARY._op_defs}
    assert tacit.launch(run, **setting)[0] == registered


def _filled(function: Any, leaves: list[Any], spec: Any, *tensors: torch.Tensor) -> Any:
    """Calls an operation with these tensors in place of its original ones."""
    given = iter(tensors)
    filled = [next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    return function(*torch.utils._pytree.tree_unflatten(filled, spec))


def of_core(graph: GraphModule) -> list[Any]:
    """Returns the nodes of the core's operations in a graph."""
    return [
        node
        for node in graph.graph.nodes
        if node.op == "call_function" and getattr(node.target, "namespace", "") == tracing.NAMESPACE
    ]


def test_nothing_enters_the_core_unseen() -> None:
    """Each function that calls the core is an operator, or refuses tracing."""
    entering = [
        function
        for function in ast.parse(inspect.getsource(shares)).body
        if isinstance(function, ast.FunctionDef) and ("session.core." in ast.unparse(function))
    ]
    assert len(entering) > 20
    for function in entering:
        text = ast.unparse(function)
        is_operator = any(
            ast.unparse(each).startswith(("operation(", "local("))
            for each in function.decorator_list
        )
        calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
        enters = [
            each for each in calls if ast.unparse(each.func).startswith(("session.core.", "open_"))
        ]
        assert is_operator or "tracing.refuse(" in text or not enters, function.name


# Tracing
# ----------------------------------------------------------------------------

FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "arithmetic": lambda x: torch.relu(x * x - x) * 0.3 + 1.5,
    "public": lambda x: x * PUBLIC + PUBLIC,
    "product": lambda x: x @ x.t(),
    "public product": lambda x: x @ TURNED,
    "convolution": lambda x: functional.conv2d(
        x.reshape(1, 1, 2, 3), x[:, :2].reshape(1, 1, 2, 2), padding=1
    ),
    "pooling": lambda x: functional.max_pool2d(x.reshape(1, 1, 2, 3), 2),
    "choice": lambda x: torch.where(x > 1.0, x, -x).masked_fill(MASK, -1.0),
    "mean": lambda x: functional.layer_norm(x, (3,)),
    "softmax": lambda x: x.softmax(-1),
    "gelu": functional.gelu,
    "quotient": lambda x: x / (x * x + 1),
    "sorted": lambda x: x.sort(1)[0],
    "class": lambda x: x.argmax(1),
    "in place": lambda x: (x * 1).add_(x).relu_(),
}

#: Tolerance: 128 units of the default scale, because truncations round at random.
CLOSE = 2.0**-9


def test_what_is_traced_gives_what_was_computed() -> None:
    def run() -> list[str]:
        wrong, x = [], tacit.share(X, owner=0)
        for name, function in FUNCTIONS.items():
            wanted, graphs = function(x).reveal(), []

            def compiler(graph: GraphModule, _: Any, graphs: Any = graphs) -> Any:
                graphs.append(graph)
                return make_boxed_func(graph.forward)

            with torch.no_grad():
                traced = aot_function(function, fw_compiler=compiler)
                found = [traced(x), traced(tacit.share(X, owner=1))]
            (graph,) = graphs
            placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
            # The graph works on components, and contains the protocol's operations.
            if len(placeholders) != tacit.session().core.parts or not of_core(graph):
                wrong.append(f"{name}: {graph.code}")
            for each in found:
                far = (each.reveal().double() - wanted.double()).abs().max()
                if (
                    not isinstance(each, SecretTensor)
                    or each.dtype != wanted.dtype
                    or float(far) > CLOSE
                ):
                    wrong.append(f"{name}: {far} off")
        return wrong

    assert [wrong for each in tacit.launch(run, **SETTINGS[1]) for wrong in each] == []


def test_the_reference_is_traced_too(tmp_path: Path) -> None:
    """The parties of the reference protocol are threads. They trace one after another."""
    lock = tmp_path / "lock"

    def run() -> list[str]:
        wrong, x = [], tacit.share(X, owner=0)
        parts, how = components(x)
        for name, function in FUNCTIONS.items():
            made: list[Any] = []

            def traced(*parts: torch.Tensor, of: Any = function, made: Any = made) -> Any:
                given, rest = components(of(together(parts, how)))
                made.append(rest)
                return given

            with lock.open("w") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                graph = make_fx(traced, tracing_mode="fake")(*parts)
            found = together(graph(*parts), made[0]).reveal()
            far = float((found.double() - function(x).reveal().double()).abs().max())
            if far or not of_core(graph):
                wrong.append(f"{name}: {far} off")
        return wrong

    assert [each for each in tacit.launch(run, parties=2, protocol="plain") if each] == []


def test_a_model_is_traced_with_its_weights() -> None:
    net = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 3)
    ).eval()
    images = torch.rand(2, 1, 6, 6)

    def run() -> torch.Tensor:
        shared = tacit.share_module(net, owner=0)
        x, weights, graphs = tacit.share(images, owner=1), dict(shared.named_parameters()), []

        def called(x: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
            return torch.func.functional_call(shared, dict(zip(weights, values, strict=True)), (x,))

        def compiler(graph: GraphModule, _: Any) -> Any:
            graphs.append(graph)
            return make_boxed_func(graph.forward)

        with torch.no_grad():
            result = aot_function(called, fw_compiler=compiler)(x, *weights.values())
        constants = [node for node in graphs[0].graph.nodes if node.op == "get_attr"]
        assert not constants, constants
        return result.reveal()

    with torch.no_grad():
        wanted = net(images)
    torch.testing.assert_close(tacit.launch(run, transport="tcp")[0], wanted, rtol=0, atol=1e-3)


def test_a_graph_runs_in_another_session() -> None:
    def run() -> torch.Tensor:
        parts, how = components(tacit.share(X, owner=0))

        def called(*parts: torch.Tensor) -> Any:
            return components(torch.relu(together(parts, how) * 2.5))[0]

        return make_fx(called)(*parts)

    graph = tacit.launch(run, parties=2, protocol="additive", source="dealer", transport="tcp")[0]

    def again() -> torch.Tensor:
        parts, how = components(tacit.share(-X, owner=1))
        return together(graph(*parts), how).reveal()

    found = tacit.launch(again, parties=3, protocol="additive", source="dealer")[0]
    torch.testing.assert_close(found, torch.relu(-X * 2.5), rtol=0, atol=CLOSE)


def test_what_cannot_be_traced_is_refused() -> None:
    def run() -> None:
        parts, how = components(tacit.share(X, owner=0))
        refused: list[tuple[Callable[..., Any], str]] = [
            (
                lambda *parts: together(parts, how).reveal(),
                "revealing is not traced: hand secret tensors",
            ),
            (lambda *_: tacit.share(X, owner=0), "sharing is not traced"),
            (
                lambda *parts: together(parts, how) * torch.rand(2, 3),
                "public tensors that are combined with them",
            ),
        ]
        for function, message in refused:
            for mode in ("real", "fake"):
                with pytest.raises(MisuseError, match=message):
                    make_fx(function, tracing_mode=mode)(*parts)
        # The tensor and the mode are unchanged afterwards.
        assert together(parts, how).reveal().equal(X)
        assert not tracing.is_tracing()
        with FakeTensorMode():
            assert tracing.is_tracing()

    tacit.launch(run, transport="tcp")


def test_what_is_not_done_within_derivatives_is_refused_alike() -> None:
    """Every party refuses. If only the owner did, it would end the other parties, which wait for
    its message."""

    def run() -> None:
        x = tacit.share(X, owner=0)
        refused: list[tuple[Callable[[], Any], str]] = [
            (lambda: tacit.share(X, owner=0), "sharing is not done within torch"),
            (lambda: x.reveal(), "revealing is not done within torch"),
            (lambda: tacit.random.normal((2, 3)), "drawing is not done within torch"),
        ]
        for made, message in refused:
            with pytest.raises(
                MisuseError, match=rf"{message}\.func\.grad: hand secret tensors to"
            ):
                torch.func.grad(lambda q, made=made: (q * made()).sum())(x)
        # As an argument it works, and the refusals have left no trace.
        found = torch.func.grad(lambda q, other: (q * other).sum())(x, tacit.share(2 * X, owner=1))
        torch.testing.assert_close(found.reveal(), 2 * X, rtol=0, atol=CLOSE)

    tacit.launch(run)
