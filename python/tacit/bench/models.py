"""Benchmark models as PyTorch, torchvision and transformers define them, each with an example
input. Weights are random."""

from typing import Any

import torch
from torch import nn

from tacit.errors import setup_error

Example = tuple[nn.Module, torch.Tensor]

NEEDS_TORCHVISION = "this case needs torchvision: pip install 'tacit-mpc[demo]'"


def _torchvision(name: str, **options: Any) -> nn.Module:
    try:
        from torchvision.models import get_model
    except ImportError:
        raise setup_error(NEEDS_TORCHVISION) from None
    model: nn.Module = get_model(name, weights=None, **options)
    return model


def lenet() -> nn.Module:
    """LeNet-5 with max pooling, for 28×28 images."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )


def secureml() -> Example:
    """SecureML's network of three layers (Mohassel, Zhang 2017), and an image of MNIST's size."""
    layers = (nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    return nn.Sequential(*layers), torch.rand(1, 784)


def minionn() -> Example:
    """MiniONN's network of two convolutions for MNIST (Liu and others 2017, figure 12), and an
    image."""
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(256, 100), nn.ReLU(), nn.Linear(100, 10)),
    ), torch.rand(1, 1, 28, 28)


def caffe_lenet() -> Example:
    """LeNet as Caffe has it, with more filters and no padding, and an image of MNIST."""
    return nn.Sequential(
        *(nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(20, 50, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10)),
    ), torch.rand(1, 1, 28, 28)


def chameleon() -> Example:
    """Chameleon's network of one convolution for MNIST (Riazi and others 2018), and an image."""
    return nn.Sequential(
        *(nn.Conv2d(1, 5, 5, stride=2, padding=2), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(980, 100), nn.ReLU(), nn.Linear(100, 10)),
    ), torch.rand(1, 1, 28, 28)


def transformer_block() -> nn.Module:
    """Transformer block of BERT-base."""
    return nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True)


def of_image(name: str, **options: Any) -> Example:
    """torchvision's model of this name, and an image of ImageNet's size."""
    return _torchvision(name, **options), torch.randn(1, 3, 224, 224)


def resnet200() -> Example:
    """ResNet of 200 layers (He and others 2016), which torchvision does not name, and an image of
    ImageNet's size.

    Its residual branches are scaled down: drawn at random and not trained, 66 of them would double
    what they add to, again and again."""
    try:
        from torchvision.models.resnet import Bottleneck, ResNet
    except ImportError:
        raise setup_error(NEEDS_TORCHVISION) from None
    model = ResNet(Bottleneck, [3, 24, 36, 3])
    for block in model.modules():
        if isinstance(block, Bottleneck):
            nn.init.constant_(block.bn3.weight, 0.25)
    return model, torch.randn(1, 3, 224, 224)


def vit_b16() -> Example:
    """torchvision's ViT-B/16, and an image of ImageNet's size. Its head, which begins with zeros,
    is drawn at random."""
    model = _torchvision("vit_b_16")
    nn.init.normal_(model.heads.head.weight, std=0.02)  # type: ignore[union-attr, arg-type]
    return model, torch.randn(1, 3, 224, 224)


def bert_base() -> Example:
    """BERT-base as Hugging Face defines it, from the indices of 128 tokens to the states of its
    last layer."""
    try:
        from transformers import BertConfig, BertModel
    except ImportError:
        raise setup_error("this case needs transformers: pip install transformers") from None
    configuration = BertConfig()
    model: nn.Module = BertModel(configuration, add_pooling_layer=False)
    return model, torch.randint(0, configuration.vocab_size, (1, 128))


def alexnet() -> nn.Module:
    """AlexNet for images of CIFAR-10's shape, as in Falcon (Wagh and others 2020)."""
    return nn.Sequential(
        *(
            nn.Conv2d(3, 96, 11, stride=4, padding=9),
            nn.MaxPool2d(3, 2),
            nn.ReLU(),
            nn.BatchNorm2d(96),
        ),
        *(nn.Conv2d(96, 256, 5, padding=1), nn.MaxPool2d(2, 1), nn.ReLU(), nn.BatchNorm2d(256)),
        *(nn.Conv2d(256, 384, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(384, 384, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(384, 256, 3, padding=1), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()),
        nn.Linear(256, 10),
    )


def vgg16() -> nn.Module:
    """torchvision's convolutions for images of CIFAR-10's shape, which leave one pixel, and three
    linear layers."""
    model = _torchvision("vgg16")
    model.avgpool = nn.Identity()
    model.classifier = nn.Sequential(
        nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
    )
    return model


#: Number of words, and size of their embeddings, in CrypTen's benchmark (Knott and others 2021,
#: section 6.1).
WORDS, EMBEDDING = 519_820, 32


def text_sentiment() -> Example:
    """A linear layer on the sum of the embeddings of a review's words, and 32 reviews of about 130
    words.

    The sum is a product of the counts of all words with all embeddings."""
    model = nn.Sequential(nn.Linear(WORDS, EMBEDDING, bias=False), nn.Linear(EMBEDDING, 1))
    nn.init.normal_(model[0].weight)  # type: ignore[arg-type]
    return model, torch.poisson(torch.full((32, WORDS), 130 / WORDS))


def wav2letter() -> Example:
    """Wav2Letter (Collobert and others 2016) on a waveform, with torchaudio's sizes, and a second
    of audio."""
    sizes = [
        *((1, 250, 250, 160, 45), (250, 250, 48, 2, 23)),
        *[(250, 250, 7, 1, 3)] * 7,
        *((250, 2000, 32, 1, 16), (2000, 2000, 1, 1, 0), (2000, 29, 1, 1, 0)),
    ]
    layers: list[nn.Module] = []
    for size in sizes:
        convolution = nn.Conv1d(*size)
        # With PyTorch's own initial weights hardly anything would be left of a signal after twelve
        # layers.
        nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
        layers += [convolution, nn.ReLU()]
    return nn.Sequential(*layers, nn.LogSoftmax(1)), torch.randn(1, 1, 16_000)
