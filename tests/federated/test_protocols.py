"""The protocol of the servers is a setting. The core declares what each protocol can do."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from views import watch
from worlds import written

import tacit
from tacit import buffers
from tacit.errors import MisuseError, PeerError, SetupError
from tacit.federated import Client
from tacit.federated.privacy import noise
from tacit.federated.privacy.noise import pairs
from tacit.federated.rounds.settings import Settings
from tacit.federated.rounds.steps import Round
from tacit.federated.service.config import Federation
from tacit.providers import PROTOCOLS

SERVING = [name for name, each in PROTOCOLS.items() if each.serves_federations]


def test_the_protocol_is_one_that_serves_federations(tmp_path: Path) -> None:
    config = written(tmp_path, 2)
    right = config.read_text()
    assert Federation.read(config).settings.protocol == "replicated"
    for name in SERVING:
        config.write_text(f'{right}protocol = "{name}"')
        assert Federation.read(config).settings.protocol == name
    for name in (*(set(PROTOCOLS) - set(SERVING)), "another"):
        config.write_text(f'{right}protocol = "{name}"')
        said = f"[round]: protocol = '{name}' serves no federation; known are {', '.join(SERVING)}"
        with pytest.raises(SetupError, match=re.escape(said)):
            Federation.read(config)
        with pytest.raises(MisuseError, match="serves no federation"):
            Round.of(Settings(protocol=name))


def test_a_client_and_its_servers_have_the_same_protocol(tmp_path: Path) -> None:
    client = Client(written(tmp_path, 2), 0)
    said = "the servers' rounds have protocol = 'another', this client's configuration 'replicated'"
    with pytest.raises(PeerError, match=said):
        client._check(replace(client._settings, protocol="another"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_the_core_says_of_a_protocol_is_so(protocol: str) -> None:
    """A protocol that declares support for federations has its own noise, and no other has."""

    def program() -> str:
        parts = tuple(part.clone() for part in tacit.share(torch.zeros(4), owner=0)._parts)
        try:
            tacit.session().core.add_noise(list(map(buffers.array, parts)), 1 << 20)
        except MisuseError as error:
            return str(error)
        return ""

    for said in tacit.launch(program, protocol=protocol):
        assert (said == "") is PROTOCOLS[protocol].serves_federations
        if said:
            names = " or ".join(f'"{name}"' for name in SERVING)
            assert said.endswith(f"this protocol serves no federation; use {names}")


def test_how_noise_is_drawn_goes_by_what_a_protocol_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The drawing depends on the declared features, not on the name: a new protocol draws by keys
    too, and no party draws alone."""
    another = PROTOCOLS["replicated"]._replace(name="another")
    monkeypatch.setattr(noise, "PROTOCOLS", {"another": another})
    monkeypatch.setattr(noise, "rounded_gaussian", None)

    def program() -> list[tuple[list[Any], list[Any]]]:
        zeros = tacit.share(torch.zeros(1000), owner=0)
        tacit.session().protocol = "another"
        watched = watch(components=False)
        pairs(zeros, 1.0)
        return watched.noise

    for ((before, after),) in tacit.launch(program):
        assert all(not np.array_equal(*each) for each in zip(before, after, strict=True))
