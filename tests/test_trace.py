"""The report of a run."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import tacit


def classify() -> list[int] | None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    tacit.share_module(model, owner=0)
    x = tacit.share(torch.rand(5, 4) if tacit.session().party == 1 else None, owner=1)
    classes = (model(x) * 2).argmax(1).reveal(to=1)
    return None if classes is None else classes.tolist()


def traces(path: Path) -> Any:
    """Returns the data of a page; checks that the page needs no other files."""
    text = path.read_text()
    assert not re.search(r"(src|href)\s*=|https?://|@import|url\(", text)
    found = re.search(r"^const traces = (.*);$", text, re.MULTILINE)
    assert found is not None
    return json.loads(found.group(1))


def named(span: Any, name: str) -> Any:
    return next(inner for inner in span["inside"] if inner["name"] == name)


@pytest.mark.parametrize("transport", ["memory", "tcp"])
def test_launch_reports_all_parties(transport: str, tmp_path: Path) -> None:
    results = tacit.launch(classify, transport=transport, report=tmp_path / "report.html")
    assert [result is None for result in results] == [True, False, True]
    found = traces(tmp_path / "report.html")
    assert [trace["party"] for trace in found] == [0, 1, 2]
    for trace in found:
        assert (trace["protocol"], trace["parties"], trace["complete"]) == ("replicated", 3, True)
        root = trace["spans"]
        names = [span["name"] for span in root["inside"]]
        assert names == ["share_module", "share", "Sequential", "mul", "argmax", "reveal"]
        layers = named(root, "Sequential")
        assert [layer["name"] for layer in layers["inside"]] == ["0", "1", "2"]
        assert [span["name"] for span in named(layers, "1")["inside"]] == ["relu"]
        # Each part costs at most as much as the whole, and happens within the whole's time.
        for whole in (root, layers):
            assert sum(span["bytes_sent"] for span in whole["inside"]) <= whole["bytes_sent"]
            assert sum(span["rounds"] for span in whole["inside"]) <= whole["rounds"]
            for span in whole["inside"]:
                assert whole["start"] <= span["start"] <= span["end"] <= whole["end"]
        assert named(layers, "1")["bytes_sent"] > 0
        # The rows add up to the total, work outside modules included, and nested parts count once.
        rows = {row["name"]: row for row in trace["rows"]}
        expected = ["share_module", "share", "Sequential", "0", "1", "2"]
        outside = ["mul, outside modules", "argmax, outside modules"]
        assert list(rows) == [*expected, *outside, "reveal", "(outside modules)"]
        for measure in ("bytes_sent", "rounds"):
            assert sum(row[measure] for row in rows.values()) == root[measure]
        totals = {
            "waiting_seconds": root["waiting_seconds"],
            "seconds": root["end"] - root["start"],
        }
        for measure, total in totals.items():
            assert sum(row[measure] for row in rows.values()) == pytest.approx(total)
        assert rows["argmax, outside modules"]["rounds"] == named(root, "argmax")["rounds"] > 0
        assert rows["Sequential"]["rounds"] == 0 < rows["1"]["rounds"]
        assert sum(rows[name]["rounds"] for name in ("0", "1", "2")) == layers["rounds"]
        assert all(row["calls"] == 1 for row in rows.values())


def test_report_in_a_program_is_of_its_party(tmp_path: Path) -> None:
    path = str(tmp_path / "{}.html")

    def program() -> Any:
        party = tacit.session().party
        x = tacit.share(torch.ones(3), owner=0)
        with tacit.report(path.format(party)):
            (x * x).sum().reveal()
            with pytest.raises(tacit.MisuseError, match="recorded already"), tacit.report("other"):
                pass
        before = tacit.session().meter.total.bytes_sent
        with pytest.raises(tacit.SetupError, match="cannot write"), tacit.report(f"{path}/nowhere"):
            x.reveal()
        return tacit.session().meter.total.bytes_sent - before

    sent = tacit.launch(program, protocol="additive", parties=2, source="dealer")
    assert min(sent) > 0
    for party in range(2):
        (trace,) = traces(tmp_path / f"{party}.html")
        assert (trace["party"], trace["source"]) == (party, "dealer")
        assert [span["name"] for span in trace["spans"]["inside"]] == ["mul", "sum", "reveal"]
    with pytest.raises(tacit.NoSessionError), tacit.report(tmp_path / "none.html"):
        pass
    assert not (tmp_path / "none.html").exists()
