"""Training that is interrupted and resumed.

After every epoch each party saves its own shares of the weights and of the optimiser's state. These
shares alone reveal nothing. A later session continues from them.

The trial runs two sessions on this machine that have only the folder in common. It compares their
result with a training that was never interrupted:

    python examples/resume.py --folder /tmp/checkpoints
"""

import argparse
import tempfile

import torch
from torch import nn

import tacit

MODEL_OWNER, DATA_OWNER = 0, 1


def rows() -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the data of their owner."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(96, 4, generator=generator)
    return x, (x @ torch.tensor([[1.0], [-2.0], [0.5], [0.0]])).tanh()


def train(
    epochs: int, folder: str, resumes: bool
) -> tuple[int, float, dict[str, torch.Tensor] | None]:
    """Trains up to the given number of epochs; every party runs this function.

    Returns the number of epochs so far, the loss, and, at their owner, the weights.
    """
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    tacit.share_module(model, owner=MODEL_OWNER, trainable=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    done = tacit.load_checkpoint(folder, model, optimizer) if resumes else 0
    mine = rows() if tacit.session().party == DATA_OWNER else (None, None)
    x, y = (tacit.share(each, owner=DATA_OWNER) for each in mine)
    for epoch in range(done, epochs):
        for batch in torch.arange(96).split(32):
            loss = nn.functional.mse_loss(model(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        tacit.save_checkpoint(folder, model, optimizer, step=epoch + 1)
    loss = nn.functional.mse_loss(model(x), y)
    return done, float(loss.reveal()), tacit.reveal_module(model, to=MODEL_OWNER)


def main() -> None:
    """Runs the trial."""
    parser = argparse.ArgumentParser(description="Trains in secret, is interrupted, and resumes.")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument(
        "--folder", help="of the checkpoints; one that is removed again if not given"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder, half = options.folder or f"{temporary}/interrupted", options.epochs // 2
        _, before, _ = tacit.launch(train, half, folder, False)[MODEL_OWNER]
        print(f"interrupted after epoch {half}: loss {before:.4f}")
        done, after, weights = tacit.launch(train, options.epochs, folder, True)[MODEL_OWNER]
        print(f"resumed from epoch {done} to {options.epochs}: loss {after:.4f}")
        _, _, whole = tacit.launch(train, options.epochs, f"{temporary}/whole", False)[MODEL_OWNER]
    assert weights is not None
    assert whole is not None
    error = max(float((weights[name] - value).abs().max()) for name, value in whole.items())
    print(f"no weight is off by more than {error:.1e} from training that was not interrupted")


if __name__ == "__main__":
    main()
