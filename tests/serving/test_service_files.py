"""What a service reads: its configuration, descriptions of models, and notices between parties."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from services import model, write

from tacit.errors import DeviationError, MisuseError, PeerError, SetupError
from tacit.serving.batches import Notice, flags_of, notice_of
from tacit.serving.config import Service
from tacit.serving.description import Described, Tensor, described_in, description_of
from tacit.serving.models import load
from tacit.serving.observed import Observed

ROW = 3, b"n" * 16, b"d" * 32


def test_a_file_is_read_with_its_defaults(tmp_path: Path) -> None:
    service = Service.read(write(tmp_path))
    assert (service.protocol, service.source, len(service.parties)) == ("replicated", None, 3)
    assert [client.waiting for client in service.clients] == [128, 128]
    assert service.models[0].label == "net 1"
    assert service.party(0).listen == service.party(0).address
    assert service.client(None)[1].name == "app"
    assert len(service.certificates_of_clients()) == 2
    with pytest.raises(MisuseError, match="party 3 does not exist: the parties are 0 to 2"):
        service.party(3)
    with pytest.raises(MisuseError, match="has no client 'nobody'; it has app, other"):
        service.client("nobody")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "trial"\n', "", "the file lacks 'name'"),
        ("timeout = 10", "timeout = 0", "timeout = 0; it is a number of seconds above 0"),
        ("timeout = 10", 'protocol = "plain"', "protocol = 'plain'; it is one of replicated"),
        ("timeout = 10", 'source = "file"', "source = 'file'; it is one of ot"),
        ("timeout = 10", 'source = "dealer"', r"needs a table \[dealer\]"),
        ("timeout = 10", "times = 3", "the file has no 'times'; it may have name"),
        ('name = "other"', 'name = "app"', "app stands there twice"),
        ('name = "other"', 'name = "../other"', "up to 64 letters, digits"),
        ("shape = [1, 4]", "shape = [1, 0]", r"shape = \[1, 0\]; it is 1 to 8 whole numbers"),
        ("shape = [1, 4]", "", "a program in Python, which needs shape"),
        ("shape = [1, 4]", 'shape = [1, 4]\ndtype = "bool"', "dtype = 'bool'; it is one of"),
        ("owner = 0", "owner = 3", "owner = 3; it is 0 to 2"),
        ("owner = 0", "owner = true", "owner = True is not a whole number"),
        ("program.py:build", "program.py", 'or "FILE.py:CALLABLE"'),
        ("program.py:build", "net.tacit", "shape and dtype are for a program in Python"),
        ("deadline = 5", "deadline = 5\nbatch = 65", "batch = 65; it is 1 to 64"),
        ("deadline = 5", "deadline = 5\nwait = -1", "wait = -1; it is 0 to 10000 milliseconds"),
        ("deadline = 5", "deadline = [", "docs/service.md has an example"),
        ('name = "app"', 'name = "app"\nper_minute = 0', "per_minute = 0; it is 1 to"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    config = write(tmp_path)
    text = config.read_text()
    assert old in text
    config.write_text(text.replace(old, new, 1))
    with pytest.raises(SetupError, match=said):
        Service.read(config)


def test_clients_share_the_queue_unless_they_say_otherwise(tmp_path: Path) -> None:
    clients = {"name": "a"}, {"name": "b", "waiting": 5}, {"name": "c"}
    for queue, share in ((10, 3), (2, 1)):
        folder = tmp_path / str(queue)
        folder.mkdir()
        service = Service.read(write(folder, clients=clients, limits={"queue": queue}))
        assert [client.waiting for client in service.clients] == [share, 5, share]


def test_models_that_cannot_be_loaded(tmp_path: Path) -> None:
    service = Service.read(write(tmp_path, [model(of="build", name="a")]))
    (found,) = service.models
    assert load(found, 1).weights is None
    assert load(found, 0).weights is not None
    (tmp_path / "build.pt").write_bytes(b"no weights")
    with pytest.raises(SetupError, match=r"build\.pt holds no weights that torch\.save wrote"):
        load(found, 0)
    with pytest.raises(MisuseError, match="has no function 'other', which returns the module"):
        load(replace(found, callable="other"), 1)
    (tmp_path / "program.py").write_text("1 / 0")
    with pytest.raises(MisuseError, match="cannot be run: ZeroDivisionError"):
        load(found, 1)
    (tmp_path / "program.py").unlink()
    with pytest.raises(SetupError, match="cannot read the program"):
        load(found, 1)


def described() -> Described:
    given = Tensor("input", "float32", (1, 4), 16, (-1.0, 1.0))
    return Described("net", "1", "ab", (given,), (Tensor("output", "int64", (1,), 0),))


def test_descriptions_are_read_back() -> None:
    assert described_in(description_of([described()] * 2)) == (described(),) * 2
    assert (described().given, described().returned) == (4, 2)
    assert described().digest != described()._replace(version="2").digest


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", 1),
        ("name", "a\x1b"),
        ("inputs", []),
        ("inputs", [{}]),
        ("extra", 1),
        ("shape", [1, -4]),
        ("shape", [1 << 40]),
        ("shape", "ab"),
        ("dtype", "object"),
        ("scale", 1 << 20),
        ("scale", "16"),
        ("interval", [1]),
        ("exponents", [1 << 20]),
    ],
)
def test_descriptions_that_no_party_gives_are_refused(key: str, value: Any) -> None:
    content = json.loads(described().entry)
    if key in Described._fields or key == "extra":
        content[key] = value
    else:
        content["inputs"][0][key] = value
    with pytest.raises(PeerError, match="describe no models that this client can read"):
        described_in(json.dumps(content).encode())


def test_notices_are_read_back_and_nothing_else_is() -> None:
    notice = Notice((ROW,), b"m" * 32, True, "hash", (ROW, ROW), (ROW,))
    assert notice_of(1, notice.to_bytes()) == notice
    content = json.loads(notice.to_bytes())
    wrong: list[Any] = [b"", b"[]", b"\xff", b"[" * 100_000, json.dumps(content[:-1]).encode()]
    for at, value in (
        (0, [[3, "00", "00"]]),
        (0, [[-1, "00" * 16, "00" * 32]]),
        (0, [[True, "00" * 16, "00" * 32]]),
        (0, content[0] * 65),
        (0, content[0] * 2),
        (1, "xy"),
        (2, 1),
        (3, None),
        (4, content[0] * 65),
        (5, 7),
    ):
        changed = list(content)
        changed[at] = value
        wrong.append(json.dumps(changed).encode())
    for each in wrong:
        with pytest.raises(DeviationError, match="party 1 sent a notice"):
            notice_of(1, each)


def test_flags_are_one_of_each_request() -> None:
    assert flags_of(2, b"\x00\x01", 2) == [False, True]
    for wrong in (b"", b"\x00", b"\x00\x02", b"\x00\x01\x01"):
        with pytest.raises(DeviationError, match="which requests of a batch wait at it"):
            flags_of(2, wrong, 2)


def test_metrics_are_counted_and_timed() -> None:
    observed = Observed()
    observed.count("sessions_opened")
    observed.count("requests", 3, "net", "1", "answered")
    observed.set("queue", 7)
    observed.time("stage_seconds", 0.002, "take")
    observed.time("stage_seconds", 1000.0, "take")
    found = observed.snapshot()
    assert found.values["requests", ("net", "1", "answered")] == 3
    assert observed.value("queue") == 7
    assert observed.value("batches", "net", "1") == 0
    timed = found.histograms["stage_seconds", ("take",)]
    assert (sum(timed.counts), timed.counts[1], timed.counts[-1]) == (2, 1, 1)
    assert timed.sum == 1000.002


def test_a_gauge_may_be_read_whenever_it_is_asked_for() -> None:
    observed, waiting = Observed(), [1]
    observed.follow("queue", lambda: len(waiting))
    waiting.append(2)
    assert observed.value("queue") == observed.snapshot().values["queue", ()] == 2
