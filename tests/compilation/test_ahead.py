"""Correlations of a compiled program, made ahead from its shapes: none is missing, and none is left
over."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tacit
from commands import Command
from commands import tacit as command
from ports import free_addresses
from tacit import _core, cli
from tacit.commands.correlations import recorded
from tacit.compilation.dry_run import demand
from tacit.compilation.program import Program
from tacit.errors import DesyncError

#: Does what `tacit run model.tacit` does, in a form whose demand for correlations can be recorded.
RUN = """
import tacit, torch
program, weights = tacit.load_program("model.tacit"), tacit.load_weights("model.weights")
party = tacit.session().party
bound = program.share(weights if party == 0 else None, owner=0)
images = torch.load("images.pt")
bound(bound.given(images if party == 1 else None, owner=1)).reveal(to=1)
"""

#: Runs a program several times. Weights are written to before some runs, and some runs compare at
#: another width. The script prints how often each run was rehearsed. With an argument, the findings
#: of rehearsals are discarded before each run.
AGAIN = """
import sys, tacit, torch
program, weights = tacit.load_program("model.tacit"), tacit.load_weights("model.weights")
current = tacit.session()
bound = program.share(weights if current.party == 0 else None, owner=0)
images = torch.load("images.pt")
rehearsed, rehearsals = current.storages.rehearsed, []

def counted():
    rehearsals.append(None)
    return rehearsed()

current.storages.rehearsed = counted

def run():
    if len(sys.argv) > 1:
        bound._rehearsed.clear()
    before = len(rehearsals)
    bound(bound.given(images if current.party == 1 else None, owner=1)).reveal(to=1)
    return len(rehearsals) - before

found = [run() for _ in range(4)]
for weight in bound._weights.values():
    current.storages.written(weight._parts[0])
found += [run() for _ in range(3)]
with tacit.comparison_width(48):
    found += [run() for _ in range(2)]
found.append(run())
print(found)
"""

#: The number of guarded selections among the kinds of correlations.
GUARDED = "9"


def network() -> nn.Module:
    """A network with a convolution, products, ReLUs and maxima. The proved widths of its sums
    exceed the width of its numbers."""
    torch.manual_seed(2)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(36, 64),
        nn.ReLU(),
        nn.Linear(64, 40),
    ).eval()


IMAGES = torch.rand(2, 1, 8, 8, generator=torch.Generator().manual_seed(3))
COMPILED = tacit.compile(network(), IMAGES, calibrate=IMAGES, margin=1.0)


def saved(folder: Path) -> Program:
    """Saves the program, its weights and its inputs to files."""
    program, weights = COMPILED
    program.save(folder / "model.tacit")
    weights.save(folder / "model.weights")
    torch.save(IMAGES, folder / "images.pt")
    np.save(folder / "images.npy", IMAGES.numpy())
    (folder / "program.py").write_text(RUN)
    return program


def configured(folder: Path, parties: int, source: str, protocol: str = "additive") -> str:
    """Writes certificates, and configurations in which correlations are made and used."""
    dealer = source == "dealer"
    made = command("certificates", "--parties", parties, *["--dealer"] * dealer, "--out", folder)
    assert made.returncode == 0, made.stderr
    addresses = free_addresses(parties + dealer)
    lines = [f'protocol = "{protocol}"', "timeout = 60"]
    for party in range(parties):
        lines += [
            "[[party]]",
            f'address = "{addresses[party]}"',
            f'certificate = "party-{party}.pem"',
        ]
        lines += [f'correlations = "party-{party}.correlations"']
    (folder / "from-file.toml").write_text('source = "file"\n' + "\n".join(lines))
    if dealer:
        lines += ["[dealer]", f'address = "{addresses[-1]}"', 'certificate = "dealer.pem"']
    named = f'source = "{source}"\n' if source else ""
    (folder / "parties.toml").write_text(named + "\n".join(lines))
    return str(folder / "parties.toml")


def all_of(
    folder: Path, parties: int, *arguments: str, dealer: bool = False
) -> list[tuple[int, str, str]]:
    """Returns exit code, output and errors of each party. ``{}`` in an argument becomes the party's
    number."""
    words = [
        [argument.replace("{}", str(party)) for argument in arguments] for party in range(parties)
    ]
    words += [["dealer", "--config", "parties.toml"]] * dealer
    started = [Command(*each, folder=folder) for each in words]
    ended = [each.ended() for each in started]
    assert all(code == 0 for code, _, _ in ended), [err for _, _, err in ended]
    return ended[:parties]


MAKE = (
    "correlations",
    "make",
    "--config",
    "parties.toml",
    "--party",
    "{}",
    "--program",
    "model.tacit",
)


@pytest.mark.parametrize(("parties", "source"), [(2, "dealer"), (3, "ot")])
def test_a_run_takes_all_that_was_made_and_nothing_else(
    tmp_path: Path, parties: int, source: str
) -> None:
    program = saved(tmp_path)
    config = configured(tmp_path, parties, source)
    dealt = source == "dealer"
    all_of(tmp_path, parties, *MAKE, "--runs", "2", "--out", "party-{}.correlations", dealer=dealt)

    run = ("run", "--config", "from-file.toml", "--party", "{}")
    all_of(tmp_path, parties, *run, "--record", "used-{}.txt", "program.py")
    made = demand(program, _core.Session.rehearsed(config), 1)
    # Guards are present only if the source makes their correlations.
    title, *jobs = made.splitlines()
    assert title == f"tacit demand, version {2 if dealt else 1}, ahead 0"
    assert dealt == any(job.split()[0] == "0" and job.split()[2] == GUARDED for job in jobs)
    for party in range(parties):
        assert recorded(tmp_path / f"used-{party}.txt") == made

    if parties == 2 and dealt:
        part = {
            0: ("--weights", "model.weights"),
            1: ("--input", "images.npy", "--output", "y.npy"),
        }
        both = [
            Command(*run[:-1], str(party), "model.tacit", *part[party], folder=tmp_path)
            for party in part
        ]
        assert [each.ended()[0] for each in both] == [0, 0]
        plain = network()(IMAGES).detach().numpy()
        assert np.abs(np.load(tmp_path / "y.npy") - plain).max() < 0.05


@pytest.mark.parametrize(("parties", "source"), [(2, "dealer"), (3, "ot")])
def test_a_live_source_is_asked_for_what_the_program_takes(
    tmp_path: Path, parties: int, source: str
) -> None:
    program = saved(tmp_path)
    config, dealt = configured(tmp_path, parties, source), source == "dealer"
    run = (
        "run",
        "--config",
        "parties.toml",
        "--party",
        "{}",
        "--record",
        "asked-{}.txt",
        "program.py",
    )
    all_of(tmp_path, parties, *run, dealer=dealt)

    def known(receivers: int) -> list[str]:
        return demand(program, _core.Session.rehearsed(config), receivers).splitlines()[1:]

    for party in range(parties):
        asked = recorded(tmp_path / f"asked-{party}.txt").splitlines()[1:]
        assert asked[: len(known(0))] == known(0)
        # Guards follow the program's demand. They are checked when a result is revealed.
        assert (len(asked) > len(known(0))) == dealt
        assert len(asked) - len(known(0)) <= len(known(1)) - len(known(0))


@pytest.mark.parametrize(("parties", "source"), [(2, "dealer"), (3, "ot")])
def test_a_program_that_comes_again_is_not_rehearsed_again(
    tmp_path: Path, parties: int, source: str
) -> None:
    saved(tmp_path)
    configured(tmp_path, parties, source)
    (tmp_path / "again.py").write_text(AGAIN)
    run = ("run", "--config", "parties.toml", "--party", "{}", "--record")
    # The first run opens the masks of weights. So does the first run after weights were written to.
    for arguments, rehearsals in [((), [1, 1, 0, 0, 1, 1, 0, 1, 0, 0]), (("anew",), [1] * 10)]:
        name = f"asked{len(arguments)}-{{}}.txt"
        ended = all_of(
            tmp_path, parties, *run, name, "again.py", *arguments, dealer=source == "dealer"
        )
        assert [json.loads(told) for _, told, _ in ended] == [rehearsals] * parties
    for party in range(parties):
        kept, anew = ((tmp_path / f"asked{at}-{party}.txt").read_text() for at in (0, 1))
        assert kept == anew


@pytest.mark.parametrize("source", ["dealer", "ot"])
def test_what_another_program_takes_is_expected_at_no_loss_but_of_time(source: str) -> None:
    other = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 40)).eval()
    both = [COMPILED, tacit.compile(other, IMAGES, calibrate=IMAGES, margin=1.0)]

    def run(mistaken: list[int]) -> list[list[torch.Tensor]]:
        party = tacit.session().party
        bound = [
            program.share(weights if party == 0 else None, owner=0) for program, weights in both
        ]

        def results() -> list[torch.Tensor]:
            images = IMAGES if party == 1 else None
            return [each(each.given(images, owner=1)).reveal() for each in bound]

        found = [results() for _ in range(2)]
        if party in mistaken:
            first, second = (dict(each._rehearsed) for each in bound)
            # The finding for one example at the session's width, unchecked.
            assert first[64, False, 1] is not None
            assert second[64, False, 1] is not None
            bound[0]._rehearsed, bound[1]._rehearsed = second, first
        return [*found, results(), results()]

    options: dict[str, Any] = {
        "parties": 2,
        "protocol": "additive",
        "source": source,
        "timeout": 60,
    }
    with torch.no_grad():
        plain = [network()(IMAGES), other(IMAGES)]
    for results in tacit.launch(run, [0, 1], **options)[0]:
        for result, expected in zip(results, plain, strict=True):
            torch.testing.assert_close(result, expected, rtol=0, atol=0.05)
    # Parties never differ in this, since they derive it from common knowledge. If they differed,
    # there would be no result.
    with pytest.raises(DesyncError, match="correlations: "):
        tacit.launch(run, [0], **options)


def test_a_run_of_a_batch_over_streams_takes_what_was_made_for_it(tmp_path: Path) -> None:
    saved(tmp_path)
    configured(tmp_path, 2, "dealer")
    images = torch.rand(6, 1, 8, 8, generator=torch.Generator().manual_seed(4))
    np.save(tmp_path / "images.npy", images.numpy())
    batch = ("--examples", "3", "--streams", "2")
    all_of(tmp_path, 2, *MAKE, *batch, "--runs", "1", "--out", "party-{}.correlations", dealer=True)
    part = {0: ("--weights", "model.weights"), 1: ("--input", "images.npy", "--output", "y.npy")}
    run = ("run", "--config", "from-file.toml", "--party")
    both = [
        Command(*run, str(party), "model.tacit", "--streams", "2", *part[party], folder=tmp_path)
        for party in part
    ]
    ended = [each.ended() for each in both]
    assert [code for code, _, _ in ended] == [0, 0], ended
    assert np.abs(np.load(tmp_path / "y.npy") - network()(images).detach().numpy()).max() < 0.05


def test_each_receiver_looks_at_guards_for_itself(tmp_path: Path) -> None:
    program = saved(tmp_path)
    config = configured(tmp_path, 2, "dealer")

    def jobs(receivers: int, source: str | None = None) -> int:
        return len(
            demand(program, _core.Session.rehearsed(config, source=source), receivers).splitlines()
        )

    assert jobs(2) > jobs(1)
    # Without guards there is nothing to check.
    assert jobs(2, "ot") == jobs(1, "ot")


def test_what_cannot_be_made_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved(tmp_path)
    for number, protocol in enumerate(("additive", "replicated")):
        (tmp_path / protocol).mkdir()
        configured(tmp_path / protocol, 2 + number, "", protocol)
    make = ["correlations", "make", "--party", "0", "--runs", "1", "--out", str(tmp_path / "made")]
    model, recorded = (
        ["--program", str(tmp_path / "model.tacit")],
        ["--demand", str(tmp_path / "images.pt")],
    )
    for protocol, options, message in [
        (
            "replicated",
            model,
            'protocol "replicated" consumes no correlations, so none are made for it',
        ),
        ("additive", [*model, "--receivers", "3"], "--receivers 3: "),
        ("additive", [*model, "--streams", "0"], "streams are 1 to 64, not 0"),
        ("additive", [*model, "--examples", "100000000"], "cannot be 100000000 examples"),
        ("additive", [*recorded, "--receivers", "2"], "--receivers goes with --program"),
        ("additive", [*recorded, "--examples", "2"], "--examples goes with --program"),
        ("additive", [*recorded, "--streams", "2"], "--streams goes with --program"),
    ]:
        assert (
            cli.main([*make, "--config", str(tmp_path / protocol / "parties.toml"), *options]) == 1
        )
        told = capsys.readouterr().err
        assert message in told, told
    assert not (tmp_path / "made").exists()
