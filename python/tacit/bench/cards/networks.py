"""The networks of CryptGPU (Tan and others 2021, section IV): those of torchvision with average
pooling, and with fewer neurons for small images."""

from torch import nn

from tacit.bench.models import NEEDS_TORCHVISION
from tacit.errors import setup_error

#: Neurons of the last layers, by the side of the images.
NEURONS = {
    "alexnet": {32: (256, 256, 10), 64: (1024, 1024, 200)},
    "vgg16": {32: (256, 256, 10), 64: (512, 512, 200)},
}

#: Images of ImageNet have this side.
LARGE = 224


def _torchvision(name: str) -> nn.Module:
    try:
        from torchvision.models import get_model
    except ImportError:
        raise setup_error(NEEDS_TORCHVISION) from None
    model: nn.Module = get_model(name, weights=None)
    return model


def averaging(model: nn.Module) -> nn.Module:
    """Replaces max pooling by average pooling."""
    for name, child in model.named_children():
        if isinstance(child, nn.MaxPool2d):
            setattr(model, name, nn.AvgPool2d(child.kernel_size, child.stride, child.padding))
        else:
            averaging(child)
    return model


def network(name: str, side: int) -> nn.Module:
    """Network of this name for images of this side."""
    model = averaging(_torchvision(name))
    if side not in NEURONS.get(name, {}):
        return model
    features = [*model.features.children()]  # type: ignore[union-attr]
    if name == "alexnet" and side == 32:
        # One pixel is left before the last pooling layer.
        features.pop()
    first, second, classes = NEURONS[name][side]
    left = 512 * 2 * 2 if name == "vgg16" and side == 64 else 512 if name == "vgg16" else 256
    return nn.Sequential(
        *features,
        nn.Flatten(),
        nn.Linear(left, first),
        nn.ReLU(),
        nn.Linear(first, second),
        nn.ReLU(),
        nn.Linear(second, classes),
    )


def lenet() -> nn.Module:
    """LeNet with ReLU and average pooling, for images of MNIST."""
    return nn.Sequential(
        *(nn.Conv2d(1, 20, 5), nn.ReLU(), nn.AvgPool2d(2)),
        *(nn.Conv2d(20, 50, 5), nn.ReLU(), nn.AvgPool2d(2)),
        *(nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10)),
    )
