"""Private inference of torchvision's ResNet-18: party 0 has the weights, party 1 the image, and
party 1 alone learns what is on it.

A trial on this machine, which compares with the clear:

    python examples/resnet.py --size 64 --report report.html

Between three machines, each with its own number I; party 0 has the weights, party 1 the image:

    tacit run --config examples/parties.toml --party I examples/resnet.py --weights w.pth --image
    cat.jpg
"""

import argparse
from pathlib import Path

import torch
from torchvision.io import ImageReadMode, decode_image
from torchvision.models import ResNet18_Weights, resnet18

import tacit

MODEL_OWNER, DATA_OWNER = 0, 1


def network(weights: Path | None) -> torch.nn.Module:
    """The model, with the weights of a file (as torchvision publishes them) or random ones."""
    model = resnet18()
    if weights is not None:
        model.load_state_dict(torch.load(weights, weights_only=True))
    return model.eval()


def picture(image: Path | None, size: int) -> torch.Tensor:
    """An image of a file, as the model wants it, or a random one."""
    if image is None:
        return torch.rand(1, 3, size, size)
    prepare = ResNet18_Weights.DEFAULT.transforms(crop_size=size, resize_size=size)
    return prepare(decode_image(image, ImageReadMode.RGB)).unsqueeze(0)


def classify(model: torch.nn.Module | None, image: torch.Tensor | None) -> torch.Tensor | None:
    """What every party runs: the logits, for the image's owner."""
    model = tacit.share_module(model or network(None), owner=MODEL_OWNER)
    with torch.inference_mode():
        return model(tacit.share(image, owner=DATA_OWNER)).reveal(to=DATA_OWNER)


def told(logits: torch.Tensor) -> str:
    """The three likeliest classes."""
    names = ResNet18_Weights.DEFAULT.meta["categories"]
    return ", ".join(names[int(at)] for at in logits[0].topk(3).indices)


def trial(options: argparse.Namespace) -> None:
    """All parties on this machine, and the clear beside them."""
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
    """In a session this party's part, elsewhere a trial."""
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
