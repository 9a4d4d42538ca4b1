"""Private training of a classifier of handwritten digits.

Party 0 has a model's initial weights. Party 1 has the images and their labels. Neither sees the
other's data, and only party 0 learns the trained weights. The training loop is ordinary PyTorch.

Run all parties on this machine, compare with the same training in the clear, and chart both:

    python examples/private_training.py --optimizer adam --epochs 5 --chart training.svg

Run on three machines, each with its own number I:

    tacit run --config examples/parties.toml --party I examples/private_training.py
"""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import torch
from rich.console import Console
from rich.progress import track
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import tacit
from tacit.demo import DigitNet, for_training, held_out

MODEL_OWNER, DATA_OWNER = 0, 1

OPTIMIZERS: dict[str, Callable[[Iterable[torch.Tensor]], torch.optim.Optimizer]] = {
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=3e-3),
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9),
}


class Course(NamedTuple):
    """Progress of a training run: the loss of each step, and the accuracy after each epoch."""

    losses: list[float]
    accuracies: list[float]


def train(
    model: nn.Module,
    images: torch.Tensor,
    labels: torch.Tensor,
    options: argparse.Namespace,
    evaluate: Callable[[nn.Module], float],
    told: Callable[[torch.Tensor], float],
    progress: Console | None = None,
) -> Course:
    """Trains the model, on plain tensors or on secret ones. Every party draws the same public order
    of images."""
    optimizer = OPTIMIZERS[options.optimizer](model.parameters())
    places = TensorDataset(torch.arange(len(images)))
    order = DataLoader(
        places, options.batch, shuffle=True, generator=torch.Generator().manual_seed(1)
    )
    course = Course([], [])
    for epoch in range(options.epochs):
        batches = track(order, f"epoch {epoch + 1}", console=progress, disable=progress is None)
        for (batch,) in batches:
            loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            course.losses.append(told(loss.detach()))
        course.accuracies.append(evaluate(model))
        if progress is not None:
            progress.print(f"  loss {course.losses[-1]:.3f}, accuracy {course.accuracies[-1]:.1%}")
    return course


def accuracy(model: nn.Module, predict: Callable[[torch.Tensor], torch.Tensor | None]) -> float:
    """Returns the accuracy on held-out images in evaluation mode, or NaN at a party that does not
    learn the classes."""
    images, labels = held_out()
    model.eval()
    with torch.no_grad():
        classes = predict(images)
    model.train()
    return float("nan") if classes is None else (classes == labels).double().mean().item()


def plainly(model: nn.Module, options: argparse.Namespace) -> Course:
    """Trains the model in the clear."""
    images, labels = (each[: options.images] for each in for_training())

    def evaluate(model: nn.Module) -> float:
        return accuracy(model, lambda images: model(images).argmax(1))

    return train(model, images, labels, options, evaluate, float)


def secretly(
    model: nn.Module, options: argparse.Namespace
) -> tuple[Course, dict[str, torch.Tensor] | None]:
    """Trains in secret; every party runs this function.

    Only the owner of the data learns the losses and accuracies, and prints them. Only the owner of
    the model receives the weights.
    """
    party = tacit.session().party
    tacit.share_module(model, owner=MODEL_OWNER, trainable=True)
    images, labels = (each[: options.images] for each in for_training())
    owned = party == DATA_OWNER
    secret_images = tacit.share(images if owned else None, owner=DATA_OWNER)
    secret_labels = tacit.share(labels if owned else None, owner=DATA_OWNER)

    def told(value: torch.Tensor) -> float:
        plain = value.reveal(to=DATA_OWNER)
        return float("nan") if plain is None else float(plain)

    def evaluate(model: nn.Module) -> float:
        def predict(images: torch.Tensor) -> torch.Tensor | None:
            secret = tacit.share(images if owned else None, owner=DATA_OWNER)
            return model(secret).argmax(1).reveal(to=DATA_OWNER)

        return accuracy(model, predict)

    progress = Console(stderr=True) if owned else None
    course = train(model, secret_images, secret_labels, options, evaluate, told, progress)
    return course, tacit.reveal_module(model, to=MODEL_OWNER)


def chart(plain: Course, secret: Course) -> str:
    """Draws the losses and accuracies of both runs as an SVG image."""
    panels = [
        ("loss", plain.losses, secret.losses),
        ("accuracy", plain.accuracies, secret.accuracies),
    ]
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 300" font-family="sans-serif">'
    ]
    for at, (title, *curves) in enumerate(panels):
        left, top = 60 + 370 * at, max(1.0, *curves[0], *curves[1])
        parts.append(f'<text x="{left}" y="24">{title}, from 0 to {top:.3g}</text>')
        parts.append(f'<path d="M{left},40 V260 H{left + 300}" fill="none" stroke="black"/>')
        for color, name, curve in (
            ("#999", "in the clear", curves[0]),
            ("#c33", "in secret", curves[1]),
        ):
            step = 300 / max(1, len(curve) - 1)
            points = (
                f"{left + place * step:.1f},{260 - 220 * y / top:.1f}"
                for place, y in enumerate(curve)
            )
            parts.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{color}"/>')
            parts.append(
                f'<text x="{left + (color == "#c33") * 110}" y="285" fill="{color}">{name}</text>'
            )
    return "\n".join([*parts, "</svg>", ""])


def trial(options: argparse.Namespace) -> None:
    """Runs all parties on this machine, and the same training in the clear for comparison."""
    torch.manual_seed(options.seed)
    weights = DigitNet().state_dict()
    model = DigitNet()
    model.load_state_dict(weights)
    plain = plainly(model, options)
    outcomes = tacit.launch(_party, weights, options, transport="tcp")
    secret = outcomes[DATA_OWNER][0]
    if options.chart is not None:
        options.chart.write_text(chart(plain, secret))
    print(f"in the clear: loss {plain.losses[-1]:.3f}, accuracy {plain.accuracies[-1]:.2%}")
    print(f"in secret:    loss {secret.losses[-1]:.3f}, accuracy {secret.accuracies[-1]:.2%}")


def _party(
    weights: dict[str, torch.Tensor], options: argparse.Namespace
) -> tuple[Course, dict[str, torch.Tensor] | None]:
    model = DigitNet()
    if tacit.session().party == MODEL_OWNER:
        model.load_state_dict(weights)
    return secretly(model, options)


def main() -> None:
    """Runs this party's part in a session; otherwise runs the trial."""
    parser = argparse.ArgumentParser(
        description="Private training of a small CNN on handwritten digits."
    )
    parser.add_argument("--optimizer", choices=sorted(OPTIMIZERS), default="adam")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--images", type=int, help="how many are trained on; all if not given")
    parser.add_argument("--seed", type=int, default=0, help="of a trial's initial weights")
    parser.add_argument(
        "--chart", type=Path, help="of a trial: write its course there, as an SVG image"
    )
    options = parser.parse_args()
    try:
        party = tacit.session().party
    except tacit.NoSessionError:
        trial(options)
        return
    _, weights = secretly(DigitNet(), options)
    if weights is not None:
        torch.save(weights, "digits.pt")
        print(f"party {party} has the weights: digits.pt")


if __name__ == "__main__":
    main()
