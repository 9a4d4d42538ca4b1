"""Files of tensors, as ``torch.save`` writes them, with a comment of JSON and a checksum."""

import io
import json
from collections.abc import Mapping
from typing import Any

import torch

from tacit import checksums
from tacit.errors import setup_error


def archived(content: Any, about: Mapping[str, Any], kind: str) -> bytes:
    """Returns a file's content; ``about`` and the checksum of this kind are in its comment.

    Raises:
        SetupError: this release of PyTorch writes other files.
    """
    stream = io.BytesIO()
    torch.save(content, stream)
    archive = stream.getvalue()
    comment = json.dumps({**about, "checksum": checksums.field(kind)}).encode()
    # A zip archive ends with its comment, and before that the comment's length in two bytes.
    if archive[-2:] != bytes(2):
        raise setup_error(
            "this release of PyTorch writes model files in a way that tacit does not know: "
            "install a release that tacit names"
        )
    return checksums.filled(archive[:-2] + len(comment).to_bytes(2, "little") + comment, kind)
