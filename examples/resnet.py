r"""Private inference with torchvision's ResNet-18.

Party 0 has the weights, party 1 has the image, and only party 1 learns the class.

Run all parties on this machine and compare with inference in the clear:

    python examples/resnet.py --size 64 --report report.html

Run on three machines, each with its own number I. Party 0 has the weights, party 1 the image:

    tacit run --config examples/parties.toml --party I examples/resnet.py \
        --weights w.pth --image cat.jpg
"""

import argparse
from pathlib import Path

import torch
from torchvision.io import ImageReadMode, decode_image
from torchvision.models import ResNet18_Weights, resnet18

import tacit

MODEL_OWNER, DATA_OWNER = 0, 1


def network(weights: Path | None) -> torch.nn.Module:
    """Returns the model with weights from a file in torchvision's format, or with random
    weights."""
    model = resnet18()
    if weights is not None:
        model.load_state_dict(torch.load(weights, weights_only=True))
    return model.eval()


def picture(image: Path | None, size: int) -> torch.Tensor:
    """Returns an image from a file in the format that the model expects, or a random image."""
    if image is None:
        return torch.rand(1, 3, size, size)
    prepare = ResNet18_Weights.DEFAULT.transforms(crop_size=size, resize_size=size)
    return prepare(decode_image(image, ImageReadMode.RGB)).unsqueeze(0)


def classify(model: torch.nn.Module | None, image: torch.Tensor | None) -> torch.Tensor | None:
    """Classifies the image; every party runs this function. Returns the logits to the image's
    owner."""
    model = tacit.share_module(model or network(None), owner=MODEL_OWNER)
    with torch.inference_mode():
        return model(tacit.share(image, owner=DATA_OWNER)).reveal(to=DATA_OWNER)


def told(logits: torch.Tensor) -> str:
    """Formats the three most likely classes."""
    names = ResNet18_Weights.DEFAULT.meta["categories"]
    return ", ".join(names[int(at)] for at in logits[0].topk(3).indices)


def trial(options: argparse.Namespace) -> None:
    """Runs all parties on this machine, and inference in the clear for comparison."""
    torch.manual_seed(0)
    model, image = network(options.weights), picture(options.image, options.size)
    with torch.inference_mode():
        plain = model(image)
    logits = tacit.launch(_party, model, image, transport="tcp", report=options.report)[DATA_OWNER]
    print(f"in the clear: {told(plain)}")
    print(
        f"in secret:    {told(logits)}; no logit is off by more than "
        f"{(logits - plain).abs().max():.1e}"
    )


def _party(model: torch.nn.Module, image: torch.Tensor) -> torch.Tensor | None:
    party = tacit.session().party
    return classify(model if party == MODEL_OWNER else None, image if party == DATA_OWNER else None)


def main() -> None:
    """Runs this party's part in a session; otherwise runs the trial."""
    parser = argparse.ArgumentParser(description="Private inference of torchvision's ResNet-18.")
    parser.add_argument("--weights", type=Path, help="the model owner's; random if not given")
    parser.add_argument("--image", type=Path, help="the data owner's; random if not given")
    parser.add_argument("--size", type=int, default=224, help="of the image; 224 by default")
    parser.add_argument(
        "--report", type=Path, help="of a trial: write what took time there, as a page"
    )
    options = parser.parse_args()
    try:
        party = tacit.session().party
    except tacit.NoSessionError:
        trial(options)
        return
    model = network(options.weights) if party == MODEL_OWNER else None
    image = picture(options.image, options.size) if party == DATA_OWNER else None
    logits = classify(model, image)
    if logits is not None:
        print(f"party {party} learns: {told(logits)}")


if __name__ == "__main__":
    main()
