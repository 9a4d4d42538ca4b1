"""What a party answers while it computes a batch, however long that takes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from load import TOLERANCE, given
from services import Parties, model, page, wait_for, write

from tacit.client import Client
from tacit.serving.status import ask_ready

#: A module that computes until a file is there, and gives up Python's lock only when it must.
SLOW = """
from pathlib import Path

from torch import nn

class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        while not Path("{end}").exists():
            for _ in range(100_000):
                pass
        return self.linear(x)

def build():
    return Slow()
"""


def test_pages_and_other_clients_are_answered_while_a_batch_computes(tmp_path: Path) -> None:
    end = tmp_path / "end"
    end.touch()
    program = SLOW.format(end=end)
    (tmp_path / "slow.py").write_text(program)
    made: dict[str, type[torch.nn.Module]] = {}
    exec(program, made)
    module = made["Slow"]()
    torch.save(module.state_dict(), tmp_path / "slow.pt")
    config = write(tmp_path, [model(program="slow.py:build", weights="slow.pt")])
    with Parties(config), Client(config, name="app") as client, ThreadPoolExecutor(1) as pool:
        wait_for(client)
        end.unlink()
        asked = pool.submit(client.infer, "net", given(1))
        try:
            for party, each in enumerate(client.service.parties):
                assert each.status is not None
                # The page says that the batch was taken, and not that it was computed.
                taken = 'tacit_stage_seconds_count{stage="take"}'
                while taken not in (metrics := page(client, party)):
                    assert not asked.done()
                assert 'stage="compute"' not in metrics
                assert page(client, party, "healthz") == "ok\n"
                assert ask_ready(each.status, 20) == (True, "ok")
            with Client(config, name="other") as other:
                assert other.is_ready(20)
            assert not asked.done()
        finally:
            end.touch()
        with torch.no_grad():
            assert (asked.result() - module(given(1))).abs().max() < TOLERANCE
