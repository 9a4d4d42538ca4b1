"""What is measured with a card and without, by name, and what was published for it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import nn

from tacit.bench import models
from tacit.bench.cards.networks import LARGE, lenet, network
from tacit.bench.cases import Work, inference, module, secret, training
from tacit.bench.settings import Setting

#: Seconds that were published, by who published them.
Published = dict[str, float]

#: Three parties, and two or more with a dealer as CrypTen has them.
REPLICATED = Setting(transport="memory")


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    #: Prepares the work of a party. Takes whether sizes are tiny, as for a trial.
    prepare: Callable[[bool], Work] | None = None
    #: Returns the model and the input of an inference, which is compiled.
    make: Callable[[bool], models.Example] | None = None
    #: Maps whose rate is measured in one party, by batch size.
    maps: Callable[[bool], list[tuple[list[int], bool] | dict[str, object]]] | None = None
    published: Published = field(default_factory=dict)
    setting: Setting = REPLICATED
    repetitions: int = 3


def _images(batch: int, side: int, channels: int, tiny: bool) -> torch.Tensor:
    side = 64 if tiny and side == LARGE else side
    return torch.rand(min(batch, 2) if tiny else batch, channels, side, side)


def _inferred(name: str, side: int, batch: int, seconds: float | None = None) -> Row:
    def make(tiny: bool) -> models.Example:
        model = lenet() if name == "lenet" else network(name, side)
        return model, _images(batch, side, 1 if name == "lenet" else 3, tiny)

    return Row(make=make, published={} if seconds is None else {"CryptGPU": seconds})


def _trained(name: str, side: int, batch: int, parts: tuple[float, ...]) -> Row:
    """A training step. Its published parts are linear layers, pooling, ReLU and softmax."""

    def prepare(tiny: bool) -> Work:
        made = lenet if name == "lenet" else partial(network, name, side)
        return training(made, *_images(batch, side, 1 if name == "lenet" else 3, tiny).shape)

    names = ("linear", "pooling", "relu", "softmax")
    by_part = {f"CryptGPU, {part}": each for part, each in zip(names, parts, strict=True)}
    return Row(prepare, published={"CryptGPU": round(sum(parts), 3), **by_part}, repetitions=2)


def _relu(n: int) -> Row:
    def prepare(tiny: bool) -> Work:
        x = secret(1000 if tiny else n)
        return lambda: torch.relu(x)

    return Row(prepare)


def _pooling(of: type[nn.Module]) -> Row:
    return Row(lambda tiny: module(of(2), 1, 4 if tiny else 64, 112, 112))


def _crypten(
    parties: int,
    batch: int,
    make: Callable[[], models.Example],
    seconds: float | None = None,
) -> Row:
    """Inference as in CrypTen's figures 5 to 9 (Knott and others 2021)."""

    def prepare(tiny: bool) -> Work:
        def batched() -> models.Example:
            model, x = make()
            return model, x[:1].expand(min(batch, 2) if tiny else batch, *x.shape[1:]).contiguous()

        return inference(batched)

    setting = Setting("additive", parties, "dealer", transport="memory")
    return Row(prepare, published={} if seconds is None else {"CrypTen": seconds}, setting=setting)


def _square(size: int) -> Row:
    return Row(maps=lambda tiny: [([1, *[64 if tiny else size] * 3], False)])


def _convolutions(batch: int) -> Row:
    """All convolutions of ResNet-50, on images of ImageNet."""

    def maps(tiny: bool) -> list[tuple[list[int], bool] | dict[str, object]]:
        found: list[tuple[list[int], bool] | dict[str, object]] = []

        def noted(layer: nn.Module, inputs: tuple[torch.Tensor], _: torch.Tensor) -> None:
            assert isinstance(layer, nn.Conv2d)
            found.append(
                {
                    "batch": batch,
                    "groups": layer.groups,
                    "in_channels": layer.in_channels,
                    "out_channels": layer.out_channels,
                    "input": list(inputs[0].shape[2:]),
                    "kernel": list(layer.kernel_size),
                    "stride": list(layer.stride),
                    "padding": list(layer.padding),
                    "dilation": list(layer.dilation),
                }
            )

        model, side = network("resnet50", LARGE), 32 if tiny else LARGE
        for layer in model.modules():
            if isinstance(layer, nn.Conv2d):
                layer.register_forward_hook(noted)
        with torch.inference_mode():
            model.eval()(torch.zeros(1, 3, side, side))
        return found[:4] if tiny else found

    return Row(maps=maps)


#: All rows by name, the shortest first in each group.
ROWS: dict[str, Row] = {
    "product_4096": _square(4096),
    "resnet50_convolutions_1": _convolutions(1),
    "resnet50_convolutions_32": _convolutions(32),
    "relu_256000": _relu(256_000),
    "relu_32000000": _relu(32_000_000),
    "pooling_average": _pooling(nn.AvgPool2d),
    "pooling_max": _pooling(nn.MaxPool2d),
    "lenet_mnist_1": _inferred("lenet", 28, 1, 0.38),
    "alexnet_cifar_1": _inferred("alexnet", 32, 1, 0.91),
    "alexnet_cifar_64": _inferred("alexnet", 32, 64, 1.09),
    "alexnet_tiny_imagenet_1": _inferred("alexnet", 64, 1, 0.95),
    "alexnet_imagenet_1": _inferred("alexnet", LARGE, 1, 1.52),
    "vgg16_cifar_1": _inferred("vgg16", 32, 1, 2.14),
    "vgg16_cifar_64": _inferred("vgg16", 32, 64, 11.76),
    "vgg16_tiny_imagenet_1": _inferred("vgg16", 64, 1, 2.30),
    "vgg16_imagenet_1": _inferred("vgg16", LARGE, 1, 9.44),
    "vgg16_imagenet_8": _inferred("vgg16", LARGE, 8),
    "resnet50_imagenet_1": _inferred("resnet50", LARGE, 1, 9.31),
    "resnet50_imagenet_8": _inferred("resnet50", LARGE, 8, 42.99),
    "resnet50_imagenet_32": _inferred("resnet50", LARGE, 32),
    "resnet101_imagenet_1": _inferred("resnet101", LARGE, 1, 17.62),
    "resnet101_imagenet_8": _inferred("resnet101", LARGE, 8, 72.99),
    "resnet152_imagenet_1": _inferred("resnet152", LARGE, 1, 25.77),
    "resnet152_imagenet_8": _inferred("resnet152", LARGE, 8, 105.20),
    "training_lenet_mnist_128": _trained("lenet", 28, 128, (0.49, 0.076, 1.00, 0.53)),
    "training_alexnet_cifar_128": _trained("alexnet", 32, 128, (0.86, 0.077, 1.33, 0.55)),
    "training_alexnet_tiny_imagenet_128": _trained("alexnet", 64, 128, (5.60, 0.37, 4.16, 1.04)),
    "training_vgg16_cifar_32": _trained("vgg16", 32, 32, (6.33, 0.21, 4.74, 0.53)),
    "training_vgg16_tiny_imagenet_8": _trained("vgg16", 64, 8, (7.61, 0.32, 4.73, 0.98)),
    **{
        f"{name}_{parties}_parties_{batch}": _crypten(parties, batch, make, seconds)
        for name, make, published in (
            ("text_sentiment", models.text_sentiment, None),
            ("wav2letter", models.wav2letter, None),
            ("resnet18", partial(models.of_image, "resnet18"), 2.49),
            ("vit_b16", models.vit_b16, 8.47),
        )
        for parties, batch in ((2, 1), (2, 8), (3, 1))
        for seconds in (published if (parties, batch) == (2, 1) else None,)
    },
}
