"""``tacit device``: shows the card of this machine, and tries it out."""

import argparse
from typing import Any

from tacit import _core
from tacit.errors import DeviceError, SetupError
from tacit.libraries import find_libraries


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "device",
        help="show the card of this machine, and try it out",
        description="Shows the card, its driver and its memory, compares its products with those of "
        "the processor, and measures them. Says what is missing if there is no card that can be "
        "used. Exits with 1 if its products are wrong.",
    )
    parser.set_defaults(command=run)


def run(_: argparse.Namespace) -> None:
    find_libraries()
    try:
        found = _core.probe_card()
    except (SetupError, DeviceError) as error:
        print(f"This machine has no card that tacit can use: {error}.")
        return
    print("\n".join(described(found)))
    if found["wrong"] is not None:
        raise DeviceError(
            "the card's products are not the processor's: update its driver and PyTorch, and until "
            'they are, choose device "cpu"'
        )


def described(found: dict[str, Any]) -> list[str]:
    """Returns the lines about a card, from what :func:`tacit._core.probe_card` returns."""
    capability, driver, compiler = (
        ".".join(map(str, found[name])) for name in ("capability", "driver", "compiler")
    )
    free, total = (found[name] / 2**30 for name in ("memory_free", "memory_total"))
    wrong = found["wrong"]
    right = "its products are the processor's" if wrong is None else f"WRONG: {wrong}"
    rates = [
        f"products {size} x {size} x {size}: {rate / 1e12:.2f} * 10^12 multiply-adds a second, "
        f"{copied / 1e9:.1f} GB/s copied"
        for size, rate, copied in found["rates"]
    ]
    return [
        f"card: {found['card']}, compute capability {capability}",
        f"driver: supports CUDA {driver}; NVRTC {compiler}",
        f"memory: {free:.1f} of {total:.1f} GiB free",
        f"self-test: {right}",
        *rates,
    ]
