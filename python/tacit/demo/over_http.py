"""A client of a gateway: the Open Inference Protocol v2 with raw tensors, by ``http.client``.

The demo asks through it. Applications use a client of their own, such as Triton's."""

import http.client
import json
import time

import numpy as np
import torch

from tacit.errors import PeerError, RequestRefusedError, printable
from tacit.gateway.messages import HEADER_LENGTH

#: Seconds for an answer.
PATIENCE = 60.0


class OverHttp:
    """Asks a gateway. One thread uses it."""

    def __init__(self, host: str, port: int) -> None:
        self._connection = http.client.HTTPConnection(host, port, timeout=PATIENCE)

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    def infer(self, model: str, x: torch.Tensor) -> torch.Tensor:
        """Returns a model's only output, of 32-bit floats, for its only input.

        Raises:
            RequestRefusedError: the gateway answered with an error.
            PeerError: it did not answer.
        """
        raw = x.numpy().tobytes()
        entry = {
            "name": self._input(model),
            "datatype": "FP32",
            "shape": list(x.shape),
            "parameters": {"binary_data_size": len(raw)},
        }
        asked = {"inputs": [entry], "parameters": {"binary_data_output": True}}
        header = json.dumps(asked).encode()
        answer, body = self._ask(
            "POST", f"/v2/models/{model}/infer", header + raw, {HEADER_LENGTH: str(len(header))}
        )
        length = int(answer.headers[HEADER_LENGTH])
        (output,) = json.loads(body[:length])["outputs"]
        values = np.frombuffer(body[length:], np.float32).reshape(output["shape"])
        return torch.from_numpy(values.copy())

    def _input(self, model: str) -> str:
        _, body = self._ask("GET", f"/v2/models/{model}")
        (only,) = json.loads(body)["inputs"]
        return str(only["name"])

    def _ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[http.client.HTTPResponse, bytes]:
        try:
            self._connection.request(method, path, body, headers or {})
            answer = self._connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise PeerError(f"the gateway did not answer: {type(error).__name__}") from None
        if answer.status != 200:
            said = printable(json.loads(content)["error"])
            # An application that asks again at once would only be refused again.
            time.sleep(float(answer.headers.get("Retry-After", 0)))
            raise RequestRefusedError.of(str(answer.status), 0, f"the gateway says: {said}")
        return answer, content
