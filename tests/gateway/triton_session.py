"""What tritonclient says to a gateway, run as a process of its own, since it brings gevent.

It prints the results as JSON; the test compares them."""

import json
import sys

import numpy as np
import tritonclient.http as triton

#: The first number of an input at which the backend of the test fails.
FAILS = 4242


def main(address: str, failures: str) -> None:
    client = triton.InferenceServerClient(address, network_timeout=20, connection_timeout=20)
    x = np.array([[1, 2.5, -3], [4, 5, 6]], np.float32)
    found = {
        "live": client.is_server_live(),
        "ready": client.is_server_ready(),
        "model ready": client.is_model_ready("double", "2"),
        "another ready": client.is_model_ready("other"),
        "server": client.get_server_metadata(),
        "model": client.get_model_metadata("double"),
        "results": [],
        "errors": {},
    }
    for is_sent_raw in (False, True):
        for is_returned_raw in (False, True):
            given = triton.InferInput("x", list(x.shape), "FP32")
            given.set_data_from_numpy(x, binary_data=is_sent_raw)
            outputs = [
                triton.InferRequestedOutput(name, binary_data=is_returned_raw)
                for name in ("sum", "twice")
            ]
            result = client.infer(
                "double", [given], outputs=outputs, request_id="7", timeout=5_000_000
            )
            found["results"].append(
                [
                    result.as_numpy("twice").tolist(),
                    result.as_numpy("sum").tolist(),
                    str(result.as_numpy("sum").dtype),
                    result.get_response()["id"],
                ]
            )
    # Without outputs, this client asks for all of them as raw bytes.
    given = triton.InferInput("x", list(x.shape), "FP32")
    given.set_data_from_numpy(x)
    pending = client.async_infer("double", [given], model_version="1")
    found["all"] = pending.get_result().as_numpy("twice").tolist()
    whole = []
    for name, value in (("a", 2**53 + 1), ("b", -1)):
        whole.append(triton.InferInput(name, [1, 2], "INT64"))
        whole[-1].set_data_from_numpy(np.array([[value, 1]]), binary_data=name == "a")
    found["added"] = client.infer("add", whole).as_numpy("c").tolist()
    given.set_data_from_numpy(np.full((2, 3), np.nan, np.float32))
    cases = {
        "NaN": lambda: client.infer("double", [given]),
        "another model": lambda: client.get_model_metadata("other"),
        "another version": lambda: client.infer("double", [given], model_version="3"),
    }
    for number in range(int(failures)):
        cases[f"failure {number}"] = lambda number=number: _infer(client, number)
    for case, call in cases.items():
        try:
            call()
        except triton.InferenceServerException as error:
            found["errors"][case] = [error.status(), error.message()]
    client.close()
    print(json.dumps(found))


def _infer(client: triton.InferenceServerClient, number: int) -> None:
    """Asks for what the backend of the test fails at in a way of this number."""
    given = triton.InferInput("x", [1, 3], "FP32")
    given.set_data_from_numpy(np.array([[FAILS, number, 0]], np.float32))
    client.infer("double", [given])


if __name__ == "__main__":
    main(*sys.argv[1:])
