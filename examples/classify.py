"""Private image classification: party 0 has a model, party 1 has images, and only party 1 learns
the classes.

    tacit run --config examples/parties.toml --party I examples/classify.py
"""

import torch
from torch import nn

import tacit


def main() -> None:
    """Runs the same program at every party."""
    party = tacit.session().party
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(36, 10),
    ).eval()
    # Party 0 would load its trained weights here. The other parties' values are ignored.
    tacit.share_module(model, owner=0)

    images = torch.rand(5, 1, 8, 8) if party == 1 else None
    classes = model(tacit.share(images, owner=1)).argmax(1).reveal(to=1)
    if party == 1:
        print(f"party 1 learns the classes {classes.tolist()}")


if __name__ == "__main__":
    main()
