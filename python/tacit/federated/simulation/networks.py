"""Networks for small images, as PPPFL trains them (Akhtar 2024, table 4.2).

They have convolutions of 3×3 from the first layer on, batch normalisation, and one linear layer.
Running averages of batch normalisation are not parameters: clients do not send them, and a party
that evaluates a model has its own."""

from collections.abc import Callable

import torch
from torch import nn

#: Means and deviations of the colours of CIFAR's images, as fractions of the brightest.
MEANS, DEVIATIONS = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


class Pixels(nn.Module):
    """Scales images of bytes to mean 0 and deviation 1."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        means, deviations = (
            torch.tensor(each, device=images.device).view(3, 1, 1) for each in (MEANS, DEVIATIONS)
        )
        return (images.float() / 255 - means) / deviations


class Residual(nn.Module):
    """Adds a branch's output to its input (He et al. 2016).

    If their numbers of channels differ, a 1×1 convolution adapts the input.
    """

    def __init__(self, into: int, out: int, stride: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            *_normalized(into, out, 3, stride), nn.ReLU(), *_normalized(out, out, 3, 1)
        )
        differs = stride != 1 or into != out
        self.direct = nn.Sequential(*(_normalized(into, out, 1, stride) if differs else ()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.branch(x) + self.direct(x))


class ConcatenateInput(nn.Module):
    """Concatenates a branch's output with its input (Huang et al. 2017)."""

    def __init__(self, branch: nn.Module) -> None:
        super().__init__()
        self.branch = branch

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.branch(x), x], 1)


class Tree(nn.Module):
    """Two halves in sequence, and a root that joins the outputs of both (Yu et al. 2018)."""

    def __init__(self, into: int, out: int, levels: int, stride: int) -> None:
        super().__init__()
        self.left, self.right = (
            Residual(*sizes) if levels == 1 else Tree(*sizes[:2], levels - 1, sizes[2])
            for sizes in ((into, out, stride), (out, out, 1))
        )
        self.root = nn.Sequential(*_normalized(2 * out, out, 1, 1), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left: torch.Tensor = self.left(x)
        joined: torch.Tensor = self.root(torch.cat([left, self.right(left)], 1))
        return joined


def _normalized(into: int, out: int, width: int, stride: int) -> tuple[nn.Module, nn.Module]:
    convolution = nn.Conv2d(into, out, width, stride, padding=width // 2, bias=False)
    return convolution, nn.BatchNorm2d(out)


def _classified(layers: list[nn.Module], channels: int, classes: int) -> nn.Sequential:
    """Appends the mean of each channel, and a linear layer."""
    end = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))
    return nn.Sequential(Pixels(), *layers, *end)


def linear(classes: int) -> nn.Sequential:
    """Makes one linear layer."""
    return nn.Sequential(Pixels(), nn.Flatten(), nn.Linear(3 * 32 * 32, classes))


def vgg_11(classes: int) -> nn.Sequential:
    """Makes a VGG-11 (Simonyan and Zisserman 2015) with batch normalisation."""
    layers: list[nn.Module] = []
    into = 3
    for width, count in ((64, 1), (128, 1), (256, 2), (512, 2), (512, 2)):
        for _ in range(count):
            layers += [nn.Conv2d(into, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
            into = width
        layers.append(nn.MaxPool2d(2))
    return _classified(layers, into, classes)


def resnet_18(classes: int) -> nn.Sequential:
    """Makes a ResNet-18 (He et al. 2016)."""
    layers: list[nn.Module] = [*_normalized(3, 64, 3, 1), nn.ReLU()]
    into = 64
    for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Residual(into, width, stride), Residual(width, width, 1)]
        into = width
    return _classified(layers, into, classes)


def densenet_121(classes: int, growth: int = 32) -> nn.Sequential:
    """Makes a DenseNet-121 (Huang et al. 2017).

    It has blocks of 6, 12, 24 and 16 layers, and keeps half of the channels between two blocks.
    """
    width = 2 * growth
    layers: list[nn.Module] = [nn.Conv2d(3, width, 3, padding=1, bias=False)]
    for place, count in enumerate((6, 12, 24, 16)):
        if place:
            layers += [
                nn.BatchNorm2d(width),
                nn.ReLU(),
                nn.Conv2d(width, width // 2, 1, bias=False),
            ]
            layers.append(nn.AvgPool2d(2))
            width //= 2
        for _ in range(count):
            narrow = (nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, 4 * growth, 1, bias=False))
            wide = (nn.BatchNorm2d(4 * growth), nn.ReLU())
            branch = nn.Sequential(
                *narrow, *wide, nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)
            )
            layers.append(ConcatenateInput(branch))
            width += growth
    return _classified([*layers, nn.BatchNorm2d(width), nn.ReLU()], width, classes)


def simple_dla(classes: int) -> nn.Sequential:
    """Makes a network of deep layer aggregation (Yu et al. 2018), whose trees have no links past
    several levels."""
    layers: list[nn.Module] = []
    for into, out in ((3, 16), (16, 16), (16, 32)):
        layers += [*_normalized(into, out, 3, 1), nn.ReLU()]
    layers += [Tree(32, 64, 1, 1), Tree(64, 128, 2, 2), Tree(128, 256, 2, 2), Tree(256, 512, 1, 2)]
    return _classified(layers, 512, classes)


#: The networks by name: each takes the number of classes.
NETWORKS: dict[str, Callable[[int], nn.Sequential]] = {
    "linear": linear,
    "vgg-11": vgg_11,
    "resnet-18": resnet_18,
    "densenet-121": densenet_121,
    "simple-dla": simple_dla,
}
