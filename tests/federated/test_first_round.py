"""A server's first round is like all others: modules that PyTorch imports late are loaded before
clients are asked."""

import json
import os
import subprocess
import sys
from pathlib import Path

from worlds import written

#: Runs three servers and two clients in threads of a separate interpreter. Its first secret tensors
#: are those of the round. It prints the modules that servers imported after they became reachable.
PROGRAM = """
import json, sys, threading
import torch
from worlds import Servers
from tacit.federated import Client

config = sys.argv[1]
barrier = threading.Barrier(3)

def work(server):
    barrier.wait()
    known = set(sys.modules)
    barrier.wait()
    report = server.round(torch.zeros(3))
    barrier.wait()
    return report, set(sys.modules) - known

clients = [Client(config, number) for number in range(2)]
servers = Servers(config, work)
for client in clients:
    client.submit(client.join(100).model + 0.25)
for client in clients:
    client.result(100)
found = servers.ended()
assert all(report.accepted == [0, 1] for report, _ in found)
print(json.dumps(sorted(set().union(*(new for _, new in found)))))
"""


def test_the_first_round_imports_nothing(tmp_path: Path) -> None:
    config = written(tmp_path, 2, rules='aggregator = "geometric-median"\nbound = "clip"\n')
    here = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parent)])}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, config],
        env=here,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    imported = json.loads(done.stdout)
    assert [
        name for name in imported if name.partition(".")[0] in ("torch", "sympy", "numpy")
    ] == []
    assert len(imported) < 10, imported
