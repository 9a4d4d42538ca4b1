"""Popular architectures run unmodified on replicated shares.

The models are small configurations with random weights from torchvision, timm and Hugging Face, and
some that this file defines.
"""

from collections.abc import Callable
from typing import Any

import pytest
import timm
import torch
import torchvision
import transformers
from torch import nn

import tacit

#: The bound on the squared error divided by the squared norm.
LARGEST_ERROR = 1e-3

Arguments = dict[str, Any]

#: The configuration of a small transformer, as Hugging Face names its options.
SMALL = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 37,
}
SPEECH = {
    "conv_dim": (16, 16, 16),
    "conv_kernel": (10, 3, 3),
    "conv_stride": (5, 2, 2),
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
}


class UNet(nn.Module):
    """A small U-Net: one step down, one step up, and a skip connection."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.below = nn.Sequential(
            nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.InstanceNorm2d(16)
        )
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.last = nn.Conv2d(16 + 8, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns scores of four classes for each pixel."""
        side = self.down(x)
        below = torch.nn.functional.silu(self.below(side))
        wide = torch.nn.functional.interpolate(
            below, scale_factor=2.0, mode="bilinear", align_corners=False
        )
        return self.last(torch.cat([side, self.up(below), wide[:, :8]], 1))


class Wav2Letter(nn.Module):
    """A narrow version of the convolutional speech model of Collobert and others 2016."""

    def __init__(self) -> None:
        super().__init__()
        sizes = [(1, 16, 48, 16), (16, 16, 7, 1), (16, 32, 9, 1), (32, 32, 1, 1)]
        layers = [
            layer
            for inputs, outputs, kernel, stride in sizes
            for layer in (nn.Conv1d(inputs, outputs, kernel, stride, kernel // 2), nn.ReLU())
        ]
        self.layers = nn.Sequential(*layers, nn.Conv1d(32, 29, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the log-probabilities of letters."""
        return self.layers(x).log_softmax(1)


class Tagger(nn.Module):
    """A recurrent model that classifies each word."""

    def __init__(self, recurrent: type[nn.RNNBase]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 12)
        self.recurrent = recurrent(12, 16, batch_first=True, bidirectional=True)
        self.last = nn.Linear(32, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns scores of five tags for each word."""
        return self.last(self.recurrent(self.embedding(x))[0])


def _image(size: int) -> torch.Tensor:
    return torch.randn(1, 3, size, size)


def _vision(name: str, **options: Any) -> Callable[[], tuple[nn.Module, Arguments]]:
    return lambda: (torchvision.models.get_model(name, weights=None, **options), {"x": _image(64)})


def _timm(name: str, size: int = 64, **options: Any) -> Callable[[], tuple[nn.Module, Arguments]]:
    return lambda: (timm.create_model(name, **options), {"x": _image(size)})


def _text(
    model: str, configuration: str, **options: Any
) -> Callable[[], tuple[nn.Module, Arguments]]:
    def build() -> tuple[nn.Module, Arguments]:
        made = getattr(transformers, configuration)(**options)
        return getattr(transformers, model)(made), {"input_ids": torch.randint(0, 50, (2, 9))}

    return build


def _bert() -> tuple[nn.Module, Arguments]:
    model, arguments = _text("BertModel", "BertConfig", **SMALL)()
    mask = torch.ones(2, 9, dtype=torch.int64)
    mask[1, 6:] = 0
    return model, {**arguments, "attention_mask": mask}


def _vit() -> tuple[nn.Module, Arguments]:
    form = {key: value for key, value in SMALL.items() if key != "vocab_size"}
    configuration = transformers.ViTConfig(**form, image_size=32, patch_size=8)
    return transformers.ViTModel(configuration), {"pixel_values": _image(32)}


def _wav2vec2() -> tuple[nn.Module, Arguments]:
    configuration = transformers.Wav2Vec2Config(**SMALL, **SPEECH)
    return transformers.Wav2Vec2Model(configuration), {"input_values": torch.randn(1, 800)}


#: Models that every test run tries, one for each kind of layer.
QUICK: dict[str, Callable[[], tuple[nn.Module, Arguments]]] = {
    "BERT": _bert,
    "Llama": _text("LlamaForCausalLM", "LlamaConfig", **SMALL, num_key_value_heads=2),
    "T5": _text(
        "T5EncoderModel", "T5Config", vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=2
    ),
    "Wav2Vec2": _wav2vec2,
    "U-Net": lambda: (UNet(), {"x": _image(16)}),
    "Wav2Letter": lambda: (Wav2Letter(), {"x": torch.randn(1, 1, 2000)}),
    "LSTM tagger": lambda: (Tagger(nn.LSTM), {"x": torch.randint(0, 50, (2, 6))}),
}

LONG: dict[str, Callable[[], tuple[nn.Module, Arguments]]] = {
    "GRU tagger": lambda: (Tagger(nn.GRU), {"x": torch.randint(0, 50, (2, 6))}),
    "DistilBERT": _text(
        "DistilBertModel",
        "DistilBertConfig",
        vocab_size=99,
        dim=32,
        n_layers=2,
        n_heads=4,
        hidden_dim=37,
    ),
    "GPT-2": _text("GPT2LMHeadModel", "GPT2Config", vocab_size=99, n_embd=32, n_layer=2, n_head=4),
    "ViT": _vit,
    **{
        name: _vision(name)
        for name in (
            "resnet50",
            "densenet121",
            "vgg16",
            "efficientnet_b0",
            "convnext_tiny",
            "swin_t",
            "shufflenet_v2_x0_5",
            "regnet_y_400mf",
        )
    },
    "googlenet": _vision("googlenet", init_weights=False),
    "vit_b_16": _vision("vit_b_16", image_size=64),
    "Mixer": _timm("mixer_s32_224", img_size=64),
    "ResMLP": _timm("resmlp_12_224", img_size=64),
    "DeiT": _timm("deit_tiny_patch16_224", img_size=64),
    "PoolFormer": _timm("poolformer_s12"),
    "LeViT": _timm("levit_128s", 224),
    "EfficientNetV2": _timm("efficientnetv2_rw_t"),
}


def made(name: str) -> tuple[nn.Module, Arguments]:
    """Builds a model and its arguments, equal in every party.

    Batch norms get statistics of images, as after training. No linear layer has all-zero weights.
    """
    torch.manual_seed(0)
    model, arguments = {**QUICK, **LONG}[name]()
    for part in model.modules():
        if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
            part.momentum = 1.0
            part.weight.data.uniform_(0.5, 1.5)
            part.bias.data.normal_(0, 0.1)
        if isinstance(part, nn.Linear) and not part.weight.any():
            nn.init.normal_(part.weight, 0, 0.05)
    if any(isinstance(part, nn.BatchNorm2d) for part in model.modules()):
        with torch.no_grad():
            model.train()(torch.randn(16, *arguments["x"].shape[1:]))
    return model.eval(), arguments


def result_of(model: nn.Module, arguments: Arguments) -> Any:
    """Returns the output of a model that the test compares."""
    with torch.no_grad():
        result = model(**arguments)
    for kind in ("logits", "last_hidden_state"):
        result = getattr(result, kind, result)
    return result


def top(result: torch.Tensor) -> torch.Tensor:
    """Returns the classes with the greatest scores, of sequences at the last place."""
    return result[:, -1].argmax(-1) if result.dim() == 3 else result.argmax(1)


def program(name: str) -> torch.Tensor:
    """Runs in a party. Party 0 owns the model, party 1 owns the fractions, and words are public."""
    model, arguments = made(name)
    tacit.share_module(model, owner=0)
    secret = {
        key: tacit.share(value, owner=1) if value.is_floating_point() else value
        for key, value in arguments.items()
    }
    return result_of(model, secret).reveal()


def check(name: str, **setting: Any) -> None:
    """Checks a model's result on secret inputs against the plain result."""
    plain = result_of(*made(name))
    secret = tacit.launch(program, name, timeout=300, **setting)[0]
    assert (secret - plain).square().sum() < LARGEST_ERROR * plain.square().sum()
    assert top(secret).equal(top(plain))


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.long) for name in LONG)]
)
def test_architecture(name: str) -> None:
    check(name)


@pytest.mark.long
@pytest.mark.parametrize("name", [*QUICK, *LONG])
def test_architecture_by_additive_sharing(name: str) -> None:
    """Additive sharing runs every model too, which takes long."""
    check(name, protocol="additive", parties=2, source="dealer")


def writer() -> tuple[nn.Module, torch.Tensor]:
    """Returns a small GPT-2 whose generated words differ, and the first words of two texts."""
    torch.manual_seed(0)
    form = transformers.GPT2Config(
        vocab_size=99, n_embd=32, n_layer=2, n_head=4, initializer_range=0.5
    )
    return transformers.GPT2LMHeadModel(form).eval(), torch.randint(0, 50, (2, 9))


#: Options of generation. No end token is given, since ending a text at its content would reveal it.
WRITING = {
    "max_new_tokens": 8,
    "eos_token_id": None,
    "pad_token_id": None,
    "return_dict_in_generate": True,
}


def test_gpt2_generates_words_that_nobody_sees() -> None:
    """Hugging Face's own generation loop runs with its cache."""

    def program() -> torch.Tensor:
        model, words = writer()
        tacit.share_module(model, owner=0)
        with torch.no_grad():
            begun = model.get_input_embeddings()(tacit.share(words, owner=1))
        found = model.generate(inputs_embeds=begun, do_sample=False, **WRITING)
        assert found.past_key_values.get_seq_length() == words.shape[1] + 7
        return found.sequences.reveal()

    model, words = writer()
    plain = model.generate(words, do_sample=False, **WRITING).sequences[:, words.shape[1] :]
    assert len(plain.unique()) > 4
    assert tacit.launch(program, timeout=300)[0].equal(plain)


def test_generating_refuses_what_would_show_words() -> None:
    def program() -> torch.Tensor:
        model, words = writer()
        tacit.share_module(model, owner=0)
        words = tacit.share(words, owner=1)
        with pytest.raises(tacit.MisuseError, match="a condition"):
            model.generate(words, do_sample=False, **WRITING)
        begun = model.get_input_embeddings()(words)
        with pytest.raises(tacit.MisuseError, match="a condition"):
            model.generate(inputs_embeds=begun, do_sample=False, **{**WRITING, "eos_token_id": 3})
        return model.generate(inputs_embeds=begun, do_sample=True, **WRITING).sequences.reveal()

    drawn = tacit.launch(program, parties=2, protocol="plain")[0]
    assert drawn.shape == (2, 8)
    assert bool(((drawn >= 0) & (drawn < 99)).all())
