"""Three parties as the chart starts them, and a gateway in front: from HTTP to the protocol.

The image's entry point runs with the arguments of the chart's pods, as processes of this machine,
in folders that the pods' own first containers have laid. No engine for containers runs."""

import contextlib
import json
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest
import torch
from prometheus_client.parser import text_string_to_metric_families
from test_chart import laid, pod, pytestmark  # noqa: F401 -- marks these tests too
from test_image import last_stage

from commands import Command
from over_http import ask
from ports import free_addresses
from tacit import cli
from tacit.gateway.messages import HEADER_LENGTH
from tacit.serving import example
from tacit.serving.config import Service, text_of

PARTIES = 3

#: Seconds in which all parties must be ready: three processes that import PyTorch's parts.
STARTING = 180.0


def written(folder: Path) -> None:
    """Writes what all organisations agreed on, in ``folder``."""
    example.make(folder, PARTIES, ["app"])
    addresses = free_addresses(3 * PARTIES)
    parties = [
        {
            "address": addresses[party],
            "clients": addresses[PARTIES + party],
            "status": addresses[2 * PARTIES + party],
            "certificate": f"{example.CERTIFICATES}/party-{party}.pem",
        }
        for party in range(PARTIES)
    ]
    model = {
        "name": "lenet",
        "program": f"{example.PROGRAM}:{example.CALLABLE}",
        "owner": 0,
        "weights": str(folder / example.WEIGHTS),
        "shape": list(example.SHAPE),
    }
    client = {"name": "app", "certificate": f"{example.CERTIFICATES}/client-app.pem"}
    text = text_of("shop", parties, [client], [model], timeout=20)
    (folder / "service.toml").write_text(text)


def started(agreed: Path, folder: Path, party: int) -> Command:
    """Starts a party as the chart's pod of cell 0 does."""
    public, key = folder / "public", folder / "key"
    public.mkdir(parents=True)
    key.mkdir()
    shutil.copy(agreed / "service.toml", public / "service-0.toml")
    shutil.copy(agreed / example.PROGRAM, public)
    for path in (agreed / example.CERTIFICATES).glob("*.pem"):
        shutil.copy(path, public)
    shutil.copy(agreed / example.CERTIFICATES / f"party-{party}.key", key)
    laid(folder, party)
    (container,) = pod({"party": party, "threads": 1})["spec"]["containers"]
    words = [
        word.replace("$(CELL)", "0").replace("/etc/tacit", f"{folder}/etc/tacit")
        for word in container["args"]
    ]
    assert json.loads(last_stage()["ENTRYPOINT"]) == ["tacit"]
    return Command(*words)


def answered(page: str) -> float:
    """Returns how many requests a party says that it has answered."""
    with urlopen(f"http://{page}/metrics", timeout=20) as answer:
        text = answer.read().decode()
    found = {family.name: family.samples for family in text_string_to_metric_families(text)}
    assert [sample.value for sample in found["tacit_is_ready"]] == [1]
    assert found["tacit_rounds"][0].value > 0
    return sum(
        sample.value
        for sample in found["tacit_requests"]
        if sample.labels == {"model": "lenet", "version": "1", "outcome": "answered"}
    )


@pytest.fixture
def agreed(tmp_path: Path) -> Iterator[Path]:
    """Starts the parties; yields the folder of the agreed files once all are ready."""
    folder = tmp_path / "agreed"
    folder.mkdir()
    written(folder)
    with contextlib.ExitStack() as stack:
        running = [started(folder, tmp_path / str(party), party) for party in range(PARTIES)]
        for each in running:
            stack.callback(each.kill)
        deadline = time.monotonic() + STARTING
        while True:
            code = 0
            try:
                cli.main(["doctor", "--config", str(folder / "service.toml")])
            except SystemExit as end:
                code = int(str(end.code))
            if code == 0:
                break
            assert time.monotonic() < deadline, [each.errors() for each in running]
            time.sleep(0.2)
        yield folder
        for each in running:
            os.kill(each.id, signal.SIGTERM)
        # The first that leaves tells the others, who leave with it.
        assert [each.ended(60)[0] for each in running] == [0] * PARTIES


def test_from_http_to_three_parties(agreed: Path) -> None:
    service = agreed / "service.toml"
    gateway = Command("gateway", "--service", service, "--listen", "127.0.0.1:0")
    try:
        gateway.warned()
        found = re.search(r"serves http://(\S+)/v2", gateway.errors())
        assert found
        address = found[1]
        status, _, described = ask(address, "GET", "/v2/models/lenet")
        assert (status, described["versions"]) == (200, ["1"])
        (given,), (returned,) = described["inputs"], described["outputs"]
        assert given["shape"] == [-1, *example.SHAPE[1:]]
        x = torch.rand(2, *example.SHAPE[1:], generator=torch.Generator().manual_seed(3))
        with torch.no_grad():
            expected = example.module()(x).numpy()
        entry = {"name": given["name"], "datatype": "FP32", "shape": list(x.shape)}
        as_json = json.dumps({"inputs": [{**entry, "data": x.flatten().tolist()}]}).encode()
        raw = x.numpy().tobytes()
        parameters = {"binary_data_size": len(raw)}
        header = json.dumps({"inputs": [{**entry, "parameters": parameters}]}).encode()
        for body, headers in (
            (as_json, {}),
            (header + raw, {HEADER_LENGTH: str(len(header))}),
        ):
            status, _, said = ask(address, "POST", "/v2/models/lenet/infer", body, headers)
            assert status == 200, said
            (output,) = said["outputs"]
            assert output["name"] == returned["name"]
            assert output["shape"] == list(expected.shape)
            result = np.array(output["data"]).reshape(output["shape"])
            assert np.abs(result - expected).max() < 0.01
        # What the client refuses before anything is sent is the application's mistake.
        large = json.dumps({"inputs": [{**entry, "data": [1e30] * x.numel()}]}).encode()
        status, _, said = ask(address, "POST", "/v2/models/lenet/infer", large)
        assert (status, list(said)) == (400, ["error"])
        for party in Service.read(service).parties:
            assert answered(party.status or "") == 2 * len(x)
        os.kill(gateway.id, signal.SIGTERM)
        code, _, errors = gateway.ended(60)
        assert (code, errors.splitlines()[-1]) == (143, "tacit: terminated")
    finally:
        gateway.kill()
