"""Fine-tunes the last layers of a vision transformer with differential privacy, in a federation.

    python examples/fine_tuning.py                          # a small random one, on 8×8 digits
    python examples/fine_tuning.py --hides images           # by opacus, at each client
    python examples/fine_tuning.py --model vit_b_16 --weights vit_b_16-c867db91.pth --images FOLDER

The last command takes the weights that torchvision publishes for its model of that name, and a
folder that has a folder of images for each class. Nothing is downloaded. Servers and clients are
processes of this machine. It needs `pip install 'tacit-mpc[demo,federated]'`, and opacus with
`--hides images`.

Only the last normalisation and the head travel (INCLUDE). The layers before them stay as they are,
so they run once for each image. They must not have been trained on the clients' images.

- `--hides clients`: servers add noise that none of them knows to the sum of the updates. It hides
  whether a client took part, with all of its images.
- `--hides images`: each client trains with noise of its own (DP-SGD), which hides each image, from
  the servers, too. opacus draws it by PyTorch's generator, not by a cryptographic one.
"""

import argparse
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import cross_entropy, interpolate
from torch.nn.utils import parameters_to_vector
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torchvision import datasets, models, transforms

from tacit.federated import Client, SubmissionWarning
from tacit.federated.rounds.settings import Settings
from tacit.federated.service.local import Plan, Servers

#: The tensors that travel, by name.
INCLUDE = ("encoder.ln.*", "heads.*")

#: What torchvision's transformers were trained on: means and deviations of colours.
COLOURS = transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))

#: The part of all examples that is held out, and the δ of every ε.
HELD_OUT, DELTA = 0.2, 1e-5

Part = tuple[torch.Tensor, torch.Tensor]


def transformer(name: str, weights: Path | None, classes: int) -> models.VisionTransformer:
    """Returns a model whose head is new."""
    torch.manual_seed(0)
    model = (
        models.VisionTransformer(
            image_size=32, patch_size=8, num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=128
        )
        if name == "small"
        else models.get_model(name)
    )
    if weights is not None:
        model.load_state_dict(torch.load(weights, weights_only=True))
    model.heads.head = nn.Linear(model.hidden_dim, classes)
    nn.init.zeros_(model.heads.head.weight)
    return model.eval()


def examples(folder: Path | None, size: int) -> tuple[Dataset[Part], int]:
    """Returns images and labels, and the number of classes."""
    if folder is not None:
        resize = [transforms.Resize(size), transforms.CenterCrop(size), transforms.ToTensor()]
        found = datasets.ImageFolder(folder, transforms.Compose([*resize, COLOURS]))
        return found, len(found.classes)
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    images = torch.tensor(pixels, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
    images = interpolate(images.expand(-1, 3, -1, -1), size=size)
    return TensorDataset(COLOURS(images), torch.tensor(labels)), 10


def features(model: models.VisionTransformer, data: Dataset[Part]) -> Part:
    """Returns what enters the last layers, and the labels, in a random order."""
    body = deepcopy(model)
    body.encoder.ln, body.heads = nn.Identity(), nn.Identity()
    with torch.no_grad():
        rows = [(body(images), labels) for images, labels in DataLoader(data, batch_size=64)]
    inputs, labels = (torch.cat(each) for each in zip(*rows, strict=True))
    order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(0))
    return inputs[order], labels[order]


def last_layers(model: models.VisionTransformer) -> nn.Sequential:
    """Returns the layers that are trained, whose parameters are those of the model."""
    return nn.Sequential(model.encoder.ln, model.heads)


def train(model: models.VisionTransformer, part: Part, options: argparse.Namespace) -> None:
    """Trains the last layers at a client, without noise."""
    layers, (inputs, labels) = last_layers(model), part
    optimizer = torch.optim.SGD(layers.parameters(), options.lr)
    for _ in range(options.epochs):
        optimizer.zero_grad()
        cross_entropy(layers(inputs), labels).backward()
        optimizer.step()


class PrivateTraining:
    """A client's own training with noise, and its account over all rounds."""

    def __init__(self, options: argparse.Namespace) -> None:
        from opacus import PrivacyEngine

        self._engine, self._options = PrivacyEngine(accountant="rdp"), options

    def __call__(self, model: models.VisionTransformer, part: Part) -> None:
        # opacus puts hooks into the layers, so it gets a copy of them.
        layers = deepcopy(last_layers(model)).train()
        data = TensorDataset(*part)
        private, optimizer, batches = self._engine.make_private(
            module=layers,
            optimizer=torch.optim.SGD(layers.parameters(), self._options.lr),
            data_loader=DataLoader(data, batch_size=max(1, len(data) // 2)),
            noise_multiplier=self._options.sigma,
            max_grad_norm=1.0,
        )
        for _ in range(self._options.epochs):
            for inputs, labels in batches:
                optimizer.zero_grad()
                cross_entropy(private(inputs), labels).backward()
                optimizer.step()
        last_layers(model).load_state_dict(private._module.state_dict())

    @property
    def epsilon(self) -> float:
        return float(self._engine.get_epsilon(DELTA))


def settings_of(options: argparse.Namespace) -> Settings:
    """Returns the rules of a round. Servers refuse what is longer than the bound, to which clients
    shorten their updates."""
    if options.hides == "images":
        return Settings(include=INCLUDE, norm=10.0)
    return Settings(
        include=INCLUDE,
        norm=1.0,
        noise="joint",
        sigma=options.sigma,
        sampling=options.sampling,
        divisor=options.sampling * options.clients,
    )


def accuracy(model: models.VisionTransformer, part: Part) -> float:
    with torch.no_grad():
        found = last_layers(model)(part[0]).argmax(1)
    return float((found == part[1]).float().mean())


def learned(
    model: models.VisionTransformer, parts: Sequence[Part], options: argparse.Namespace
) -> Iterator[str]:
    """Runs the rounds, after each of which the model is the next one; says what was spent."""
    own = [PrivateTraining(options) for _ in parts] if options.hides == "images" else []
    start = parameters_to_vector(last_layers(model).parameters())
    plan = Plan(len(parts), settings_of(options), start, options.rounds, 600.0, DELTA)
    with tempfile.TemporaryDirectory() as folder, Servers(Path(folder), plan) as servers:
        clients = [Client(servers.config, number) for number in range(len(parts))]
        for _ in range(options.rounds):
            tasks = [client.join() for client in clients]
            for number, (client, task) in enumerate(zip(clients, tasks, strict=True)):
                task.load_into(model)
                if own:
                    own[number](model, parts[number])
                else:
                    train(model, parts[number], options)
                client.submit(model)
            tasks[0].load_into(model, clients[0].result())
            spent = servers.reports()[0].report.epsilons
            if spent is None:
                yield f"ε of an image {max(each.epsilon for each in own):.2f}"
            else:
                yield (
                    f"ε of a client {spent.to_server:.2f} against a server, "
                    f"{spent.to_others:.2f} against others"
                )


def main(given: Sequence[str] | None = None) -> models.VisionTransformer:
    parser = argparse.ArgumentParser(description="Fine-tunes a vision transformer's last layers.")
    parser.add_argument("--model", default="small", help="one of torchvision, such as vit_b_16")
    parser.add_argument("--weights", type=Path, help="file of its state_dict")
    parser.add_argument("--images", type=Path, help="folder with a folder for each class")
    parser.add_argument("--hides", choices=("clients", "images"), default="clients")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=5, help="of a client in a round")
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--sigma", type=float, default=1.0, help="the noise multiplier")
    parser.add_argument("--sampling", type=float, default=0.5, help="chance of a client in a round")
    options = parser.parse_args(given)
    # Nearly all updates are longer than the bound, and shortened.
    warnings.simplefilter("ignore", SubmissionWarning)
    # opacus warns of PyTorch's generator, and PyTorch of opacus' hooks.
    warnings.filterwarnings("ignore", message="Secure RNG|Full backward hook")

    size = 32 if options.model == "small" else 224
    data, classes = examples(options.images, size)
    model = transformer(options.model, options.weights, classes)
    inputs, labels = features(model, data)
    held_out = int(HELD_OUT * len(inputs))
    test = inputs[:held_out], labels[:held_out]
    parts = list(
        zip(
            inputs[held_out:].tensor_split(options.clients),
            labels[held_out:].tensor_split(options.clients),
            strict=True,
        )
    )
    print(f"{len(parts)} clients with {len(inputs) - held_out} images; {classes} classes")
    for number, spent in enumerate(learned(model, parts, options), 1):
        right = accuracy(model, test)
        print(f"round {number}: accuracy {right:.1%}, δ = {DELTA:g}, {spent}", flush=True)
    return model


if __name__ == "__main__":
    main()
