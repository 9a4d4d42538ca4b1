"""Libraries that use operations that secret tensors lack: the error names the line of the
program and a remedy, and the remedy works."""

import io
import pickle
import re
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.backends import cudnn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import tacit
from saying import said_twice

HIDDEN = torch.tensor([[False, False, True], [False, False, False]])

PLACES = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])


def share(values: torch.Tensor) -> torch.Tensor:
    return tacit.share(values, owner=0)


def shared_layer() -> nn.Module:
    """A layer whose weights are secret, with gradients."""
    layer = tacit.share_module(nn.Linear(3, 2), owner=0, trainable=True)
    layer(PLACES).square().mean().backward()
    return layer


def attention(mask: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(1)
    layer = nn.MultiheadAttention(4, 2, batch_first=True)
    x = torch.randn(2, 3, 4)
    return layer(x, x, x, key_padding_mask=mask)[0]


def adaptive(targets: torch.Tensor) -> Any:
    return nn.AdaptiveLogSoftmaxWithLoss(3, 10, [3, 6])(share(PLACES), targets)


def load(layer: nn.Module, **how: Any) -> nn.Module:
    layer.load_state_dict({"weight": share(torch.ones(2, 3)), "bias": share(torch.ones(2))}, **how)
    return layer


def plain_parameters(**kwargs: Any) -> None:
    layer = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1, **kwargs)
    layer(share(PLACES)).sum().backward()
    optimizer.step()


def averaged() -> None:
    layer = nn.Linear(3, 2)
    average = torch.optim.swa_utils.AveragedModel(layer)
    average.update_parameters(tacit.share_module(layer, owner=0))


def fused() -> None:
    torch.optim.Adam(shared_layer().parameters(), fused=True).step()


def scaled() -> None:
    layer, scaler = shared_layer(), torch.amp.GradScaler("cpu")
    scaler.scale(layer(PLACES).mean()).backward()
    scaler.unscale_(torch.optim.SGD(layer.parameters(), 0.1))


def by_lines() -> None:
    layer = shared_layer()
    optimizer = torch.optim.LBFGS(layer.parameters(), line_search_fn="strong_wolfe")
    optimizer.step(lambda: layer(PLACES).sum())


def plateau() -> None:
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
        torch.optim.SGD(nn.Linear(1, 1).parameters(), 1.0)
    )
    scheduler.step(share(torch.tensor(1.0)))


#: The error for PyTorch's compiler. The pattern includes the end of the message, because PyTorch
#: tends to add lines about itself.
COMPILED = (
    r"^tracing by torch\.compile or torch\.export is not supported .*\); call the module as it is, "
    r"shared by "
    r"tacit\.share_module.* tacit\.compile compiles a plain model.* Nothing was revealed\.$"
)

#: Operations, and the errors that they must raise.
ASKED: dict[str, tuple[Callable[[], Any], str]] = {
    "a mask that may be causal": (
        lambda: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 1, enable_nested_tensor=False
        )(share(torch.randn(2, 3, 4)), mask=share(torch.ones(3, 3).bool().triu(1))),
        r"is_causal=False, or True",
    ),
    "a comparison of tests": (
        lambda: torch.testing.assert_close(share(PLACES), PLACES),
        r"^(?!Comparing).*torch\.testing\.assert_close\(x\.reveal\(\), y\)$",
    ),
    "the places of a split": (
        lambda: torch.tensor_split(PLACES, share(torch.tensor([1]))),
        r"tensor_split at secret places .* places\.reveal\(\)",
    ),
    "what traces, and looks at it": (
        lambda: torch.jit.trace(lambda x: x * 2, share(PLACES)),
        r"^(?!Comparing).*check_trace=False",
    ),
    "a variance": (
        lambda: functional.gaussian_nll_loss(share(PLACES), PLACES, share(torch.ones(2, 3))),
        r"write it out: \(torch\.log\(var\)",
    ),
    "sequences of several lengths": (
        lambda: nn.utils.rnn.pad_sequence([share(PLACES), share(PLACES[:1])]),
        r"torch\.nn\.functional\.pad, and torch\.stack",
    ),
    "adaptive softmax, secret targets": (
        lambda: adaptive(share(torch.tensor([1, 7]))),
        r"take its log_prob\(\)",
    ),
    "plain parameters": (plain_parameters, "share_module.*trainable=True"),
    "an average of plain parameters": (
        averaged,
        r"AveragedModel\(tacit\.share_module\(model, owner",
    ),
    "plain parameters, lists": (
        lambda: plain_parameters(foreach=True),
        "share_module.*trainable=True",
    ),
    "a fused optimiser": (fused, "without fused=True"),
    "an optimiser that searches": (by_lines, "leave line_search_fn out and choose lr"),
    "a scheduler by the loss": (plateau, r"scheduler\.step\(loss\.reveal\(\)\)"),
    "an embedding that is shortened": (
        lambda: nn.Embedding(4, 3, max_norm=1.0)(share(torch.tensor([1]))),
        "leave max_norm out",
    ),
    "nested tensors": (
        lambda: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 1
        ).eval()(share(torch.randn(2, 3, 4)), src_key_padding_mask=HIDDEN),
        "enable_nested_tensor=False",
    ),
    "a compiled module": (lambda: torch.compile(nn.Linear(3, 2))(share(PLACES)), COMPILED),
    "a compiled module that is shared": (lambda: torch.compile(shared_layer())(PLACES), COMPILED),
    "a compiled function": (
        lambda: torch.compile(torch.relu, backend="eager")(share(PLACES)),
        COMPILED,
    ),
    "an exported module": (
        lambda: torch.export.export(nn.Linear(3, 2), (share(PLACES),)),
        COMPILED,
    ),
    "an exported module that is shared": (
        lambda: torch.export.export(shared_layer(), (PLACES,)),
        COMPILED,
    ),
    "a scaled loss": (scaled, "fixed point already"),
    "whether all are close": (
        lambda: torch.allclose(share(PLACES), PLACES),
        r"torch\.isclose\(x, y\)\.all\(\)\.reveal\(\)",
    ),
    "elements by a mask": (lambda: share(PLACES)[share(PLACES) > 0], r"torch\.where\(mask, x, 0\)"),
    "a sum of NumPy's": (lambda: np.sum(share(PLACES)), "torch"),
    "a result of another shape": (
        lambda: torch.add(share(PLACES), 1, out=share(torch.zeros(0))),
        "the form that returns a new tensor",
    ),
    "division by zero": (
        lambda: share(PLACES) / 0,
        r"division by zero\?\); aten\.div\.Tensor in no module",
    ),
    "a distribution that looks at its parameters": (
        lambda: torch.distributions.Normal(share(PLACES), 1.0, validate_args=True),
        "validate_args=False",
    ),
    "a difference of booleans": (
        lambda: share(HIDDEN) - share(HIDDEN),
        r"x \^ y says where they differ",
    ),
    "the negative of a boolean": (lambda: -share(HIDDEN), "~x inverts it"),
    "an operator of numbers on booleans": (
        lambda: share(HIDDEN).clamp_max(torch.tensor(True)),
        r"aten\.clamp_max\.Tensor of booleans is not supported.*x\.long\(\)",
    ),
    "a module before its first call": (
        lambda: tacit.share_module(nn.Sequential(nn.LazyLinear(2)), owner=0),
        r"0\.weight has no shape before the module's first call",
    ),
    "a module without values": (
        lambda: tacit.share_module(nn.Linear(3, 2, device="meta"), owner=0),
        "weight is on the device meta and has no values",
    ),
    "lists in a search of beams": (lambda: _generated(num_beams=2), "inputs_embeds=.*num_beams=1"),
    "where a text ends": (lambda: _generated(eos_token_id=1), "eos_token_id=None"),
    "a mask of words": (
        lambda: _generated(attention_mask=share(torch.ones(1, 3))),
        "a mask that all know",
    ),
}


def _generated(**options: Any) -> Any:
    import transformers

    form = transformers.GPT2Config(
        vocab_size=9, n_embd=4, n_layer=1, n_head=1, bos_token_id=0, eos_token_id=1
    )
    model = transformers.GPT2LMHeadModel(form).eval()
    words = model.get_input_embeddings()(share(torch.tensor([[2, 3, 4]])))
    return model.generate(
        inputs_embeds=words,
        **{"max_new_tokens": 2, "do_sample": False, "eos_token_id": None, "pad_token_id": None}
        | options,
    )


@pytest.mark.parametrize("name", ASKED)
def test_what_a_library_asks_for_is_refused_with_its_remedy(name: str) -> None:
    # The lazy modules of transformers fail if threads import them concurrently, so they are
    # imported first.
    for lazy in ("GPT2Config", "GPT2LMHeadModel"):
        getattr(import_module("transformers"), lazy)
    ask, said = ASKED[name]

    def program() -> str:
        # New layers get the same initial weights in all parties.
        with tacit.public_random(), pytest.raises(tacit.MisuseError) as caught:
            ask()
        return str(caught.value)

    for message in tacit.launch(program, parties=2, protocol="plain"):
        assert not said_twice(message)
        assert re.search(said, message), message
        if "values" in said or "first call" in said:
            # Errors of sharing name the tensor instead of the line.
            continue
        # The line is in this file, or in a library other than PyTorch.
        assert re.search(r"(test_remedies|utils)\.py:\d+", message), message


def test_derivatives_forwards_are_refused() -> None:
    """Parties are processes, because threads would collide in PyTorch's single forward mode."""

    def program() -> None:
        with pytest.raises(tacit.MisuseError, match="take derivatives backwards"):
            torch.func.jvp(lambda x: x * x, (share(PLACES),), (share(PLACES),))

    tacit.launch(program, transport="tcp")


def test_remedies_work() -> None:
    """Follows the remedies of the errors above."""

    def program() -> list[torch.Tensor]:
        torch.manual_seed(2)
        x, variance = share(PLACES), share(torch.full((2, 3), 0.5))
        nll = (torch.log(variance) + (x - 1) ** 2 / variance).mean() / 2
        softmax = nn.AdaptiveLogSoftmaxWithLoss(3, 10, [3, 6])
        expected = softmax.log_prob(PLACES)
        padded = torch.stack([x, functional.pad(x[:1], (0, 0, 0, 1))])
        layer = load(nn.Linear(3, 2), assign=True)
        traced = torch.jit.trace(lambda x: torch.relu(x * 2 + 1), x, check_trace=False)
        return [
            traced(share(PLACES + 1)).reveal() - torch.relu(PLACES * 2 + 3),
            attention(torch.where(share(HIDDEN), -100.0, 0.0)).reveal() - attention(HIDDEN),
            nll.reveal()
            - functional.gaussian_nll_loss(PLACES, torch.ones(2, 3), torch.full((2, 3), 0.5)),
            softmax.log_prob(x).reveal() - expected,
            padded.reveal() - nn.utils.rnn.pad_sequence([PLACES, PLACES[:1]], batch_first=True),
            layer(PLACES).reveal() - (PLACES.sum(1, keepdim=True) + 1),
        ]

    for error in tacit.launch(program)[0]:
        assert error.abs().max() < 4e-3


def test_secret_weights_for_a_plain_module_are_refused_with_the_way() -> None:
    def program() -> str:
        with pytest.raises(
            RuntimeError, match="assign=True, which makes the module's tensors secret"
        ) as caught:
            load(nn.Linear(3, 2))
        return str(caught.value)

    assert "test_remedies.py" in tacit.launch(program, parties=2, protocol="plain")[0]


@pytest.mark.parametrize("write", [pickle.dumps, lambda x: torch.save({"x": x}, io.BytesIO())])
def test_what_is_pickled_names_checkpoints(write: Callable[[Any], Any]) -> None:
    def program() -> None:
        with pytest.raises(tacit.MisuseError, match=r"tacit\.save_checkpoint"):
            write(share(PLACES))

    tacit.launch(program, parties=2, protocol="plain")


def test_workers_of_a_loader_are_refused_without_their_insides() -> None:
    def program() -> str:
        loader = DataLoader(TensorDataset(share(PLACES)), num_workers=1)
        with pytest.raises(tacit.MisuseError) as caught:
            next(iter(loader))
        return str(caught.value)

    said = tacit.launch(program, parties=2, protocol="plain")[0]
    assert said.endswith("make the loader without num_workers")
    assert "\n" not in said


def test_results_are_written_where_they_are_wanted() -> None:
    """Tests ``out=`` of functions that return new tensors."""

    def results(x: torch.Tensor, new: Callable[[torch.Tensor], torch.Tensor]) -> list[torch.Tensor]:
        number, whole = new(torch.tensor(0.0)), new(torch.tensor(0))
        torch.sum(x, (0, 1), out=number)
        torch.argmax(x, out=whole)
        values, indices = new(torch.zeros(2)), new(torch.zeros(2, dtype=torch.long))
        torch.max(x, 1, out=(values, indices))
        ordered, order = new(torch.zeros(2, 3)), new(torch.zeros(2, 3, dtype=torch.long))
        torch.sort(x, 1, out=(ordered, order))
        kept = torch.cumsum(x, 1, out=new(torch.zeros(2, 3)))
        return [number, whole, values, indices, ordered, order, kept]

    def program() -> list[torch.Tensor]:
        return [one.reveal() for one in results(share(PLACES), share)]

    for found, plain in zip(tacit.launch(program)[0], results(PLACES, lambda x: x), strict=True):
        assert found.dtype == plain.dtype
        assert torch.allclose(found, plain, atol=1e-3)


doubled = torch.jit.trace(lambda x: x * 2, torch.ones(1))


def test_what_was_traced_or_scripted_goes_to_parties_and_is_shared() -> None:
    torch.manual_seed(4)
    forms = [
        torch.jit.script(nn.Sequential(nn.Linear(3, 4), nn.Tanh())),
        torch.jit.trace(nn.Sequential(nn.Linear(3, 4), nn.Tanh()), PLACES),
    ]

    def program() -> list[list[torch.Tensor]]:
        x, found = share(PLACES), []
        for module in forms:
            plain = module(x).detach().reveal()
            tacit.share_module(module, owner=1, trainable=True)
            module(x).sum().backward()
            found.append(
                [plain, module(x).detach().reveal(), next(module.parameters()).grad.reveal()]
            )
        return [*found, [doubled(x).reveal()]]

    *found, (twice,) = tacit.launch(program)[0]
    assert torch.allclose(twice, PLACES * 2, atol=1e-3)
    for module, (by_plain, by_secret, gradient) in zip(forms, found, strict=True):
        module(PLACES).sum().backward()
        assert torch.allclose(by_plain, module(PLACES), atol=1e-3)
        assert torch.allclose(by_secret, module(PLACES), atol=1e-3)
        assert torch.allclose(gradient, next(module.parameters()).grad, atol=4e-3)


class Spheric(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.special.airy_ai(x)


class Choosing(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool(x.sum() > 0):
            return x
        return x + 1


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (Spheric, "aten.special_airy_ai.default is not supported"),
        (Choosing, "item() would show the values"),
    ],
)
def test_scripts_name_what_they_are_refused(module: type[nn.Module], said: str) -> None:
    """The interpreter of TorchScript drops the message of the error."""
    scripted = torch.jit.script(module())

    def program() -> list[str]:
        found = []
        for wanted in (said, "zeros"):
            with pytest.raises(RuntimeError) as caught:
                scripted(share(PLACES) if wanted == said else torch.zeros(2, 3).to_sparse())
            found.append(str(caught.value))
        return found

    for refused, other in tacit.launch(program, parties=2, protocol="plain"):
        assert f"RuntimeError: {said}" in refused.replace("the operator ", "")
        assert "test_remedies.py" in refused.partition(said)[2]
        # Other errors do not get this text.
        assert said not in other


def test_compilers_are_refused_in_processes_too() -> None:
    def program() -> None:
        for compiled in (
            torch.compile(shared_layer()),
            torch.compile(nn.Linear(3, 2), backend="eager"),
        ):
            with pytest.raises(
                tacit.UnsupportedOperatorError, match=r"tacit\.compile compiles a plain"
            ):
                compiled(share(PLACES))

    tacit.launch(program, transport="tcp")


def test_modules_of_a_class_of_their_own_go_to_parties() -> None:
    """Scripts that set ``cudnn.benchmark`` have such a module."""

    def program() -> bool:
        return cudnn.__name__ == "torch.backends.cudnn" and isinstance(cudnn.deterministic, bool)

    assert all(tacit.launch(program, parties=2, protocol="plain"))


def test_booleans_are_filled_with_numbers() -> None:
    def results(x: torch.Tensor, mask: torch.Tensor) -> list[torch.Tensor]:
        return [
            x.masked_fill(mask, 10),
            x.masked_fill(mask, 0),
            x.masked_fill(~mask, torch.tensor(True)),
        ]

    def program() -> list[torch.Tensor]:
        return [one.reveal() for one in results(share(HIDDEN), share(PLACES) > 0)]

    for found, plain in zip(tacit.launch(program)[0], results(HIDDEN, PLACES > 0), strict=True):
        assert found.equal(plain)


def test_a_tensor_without_values_is_named() -> None:
    with pytest.raises(
        tacit.MisuseError, match="party 0: a tensor on the device meta has no values to share"
    ):
        tacit.launch(lambda: share(torch.ones(2, device="meta")), parties=2, protocol="plain")


LOCK = threading.Lock()


@pytest.mark.parametrize("transport", ["memory", "tcp"])
def test_what_cannot_go_to_a_party_is_named(transport: str) -> None:
    def program() -> bool:
        return LOCK.locked()

    with pytest.raises(
        tacit.MisuseError, match=r"the program, or what it uses, holds .*lock.* inside the program"
    ):
        tacit.launch(program, transport=transport)


def test_what_cannot_come_back_from_a_party_is_named() -> None:
    with pytest.raises(tacit.MisuseError, match=r"what the program returned holds .*lock"):
        tacit.launch(threading.Lock, transport="tcp")
