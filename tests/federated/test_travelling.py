"""Which tensors travel: those that patterns name. The others stay with each client."""

import re
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch import nn
from worlds import LONG, Servers, written

from commands import tacit as command
from tacit.errors import MisuseError, PeerError, SetupError
from tacit.federated import Client
from tacit.federated.rounds.selection import MOST_PATTERNS, Selection
from tacit.federated.rounds.settings import Settings
from tacit.federated.rounds.states import change_of, in_a_row, in_form, layout_of, load, named
from tacit.federated.service.config import Federation
from tacit.federated.service.model_store import Kept, Models
from tacit.federated.service.server import Server
from tacit.federated.service.terms import Terms


def normalised() -> nn.Module:
    """A model with batch normalisation, whose statistics are buffers."""
    torch.manual_seed(0)
    return nn.Sequential(
        OrderedDict(first=nn.Linear(3, 4), norm=nn.BatchNorm1d(4), last=nn.Linear(4, 2))
    )


class Adapted(nn.Module):
    """A frozen layer with an adapter of low rank, named as LoRA's libraries name theirs."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.base = nn.Linear(6, 5)
        self.lora_A = nn.Linear(6, 1, bias=False)
        self.lora_B = nn.Linear(1, 5, bias=False)
        self.base.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + self.lora_B(self.lora_A(x))


STATISTICS = Selection(exclude=("*running_*",))


def test_patterns_choose_by_name() -> None:
    state = normalised().state_dict()
    for selection, wanted in (
        (Selection(include=("first.*",)), ["first.weight", "first.bias"]),
        (Selection(include=("*.weight",), exclude=("norm.*",)), ["first.weight", "last.weight"]),
        (
            Selection(exclude=("norm.*", "last.?ias")),
            ["first.weight", "first.bias", "last.weight"],
        ),
        (Selection(), [name for name in state if "num" not in name]),
    ):
        assert list(named(state, selection)) == wanted
        assert len(in_a_row(state, selection)) == sum(state[name].numel() for name in wanted)


def test_nothing_is_asked_of_what_stays() -> None:
    """A tensor that stays may be of any kind, such as a table of integers or a text."""
    state = {"w": torch.zeros(2), "places": torch.arange(3), "note": "text"}
    stays = Selection(exclude=("places", "note"))
    assert list(named(state, stays)) == ["w"]  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match=r"places is of torch\.int64"):
        named(state)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (
            Selection(exclude=("norm.*", "Last.*")),
            "exclude has the pattern 'Last.*', which matches no tensor; there are first.weight, "
            "first.bias, norm.weight, norm.bias and 5 others: correct it under [round]",
        ),
        (
            Selection(include=("lora_*",)),
            "include has the pattern 'lora_*', which matches no tensor",
        ),
        (
            Selection(include=("first.*",), exclude=("first.*",)),
            "include and exclude leave no tensor that travels",
        ),
    ],
)
def test_patterns_that_match_nothing_are_refused_by_name(
    selection: Selection, message: str
) -> None:
    model = normalised()
    for state in (model, model.state_dict()):
        with pytest.raises(MisuseError, match=re.escape(message)):
            change_of(state, torch.zeros(30), "", selection)


def test_a_module_has_the_names_of_its_buffers() -> None:
    """A module's buffers do not travel anyway, but patterns may name them, as servers that begin
    from a ``state_dict()`` need."""
    model = normalised()
    assert list(named(model, STATISTICS)) == list(named(model.state_dict(), STATISTICS))
    layout = layout_of(model.state_dict(), STATISTICS)
    size = len(in_a_row(model))
    for state in (model, model.state_dict()):
        assert len(change_of(state, torch.zeros(size), layout, STATISTICS)) == size
    only = {name: value for name, value in model.named_parameters() if name != "last.bias"}
    with pytest.raises(
        MisuseError, match="exclude has the pattern '\\*running_\\*', which matches"
    ):
        change_of(only, torch.zeros(size), layout, STATISTICS)


def test_a_row_is_written_into_what_travels() -> None:
    model, selection = normalised(), Selection(exclude=("norm.*",))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    row = torch.arange(float(len(in_a_row(model, selection))))
    for layout in ("", layout_of(model.state_dict(), selection)):
        load(row, model, layout, selection)
        assert torch.equal(in_a_row(model, selection).float(), row)
        assert all(
            torch.equal(value, before[name])
            for name, value in model.state_dict().items()
            if name.startswith("norm.")
        )
    made = in_form(row + 1, model.state_dict(), selection)
    assert isinstance(made, dict)
    assert list(made) == list(before)
    assert torch.equal(made["norm.running_var"], before["norm.running_var"])
    assert torch.equal(in_a_row(made, selection).float(), row + 1)
    # Everything travels, buffers too, if servers began from a state_dict().
    whole = torch.arange(float(len(in_a_row(model.state_dict()))))
    for layout in ("", layout_of(model.state_dict())):
        load(whole, model, layout)
        assert torch.equal(in_a_row(model.state_dict()).float(), whole)
    with pytest.raises(MisuseError, match="a module of 30 values that travel; the model of this"):
        load(row[:-1], nn.Linear(5, 5))
    with pytest.raises(MisuseError, match=r"weight of shape \[5, 5\], tensor 0 of the state, has"):
        load(row, nn.Linear(5, 5), layout_of(model, selection))


class Tied(nn.Module):
    """An embedding whose table is the last layer's weight, too, as in GPT-2."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5)
        self.head.weight = self.embed.weight


@pytest.mark.parametrize("selection", [Selection(exclude=("head.*",)), Selection(("embed.*",))])
def test_memory_that_travels_and_stays_is_refused_by_both_names(selection: Selection) -> None:
    model = Tied()
    message = "embed.weight, which travels, and head.weight, which does not, are the same memory"
    for state in (model, model.state_dict()):
        with pytest.raises(MisuseError, match=message):
            named(state, selection)
    with pytest.raises(MisuseError, match=message):
        load(torch.zeros(15), model, "", selection)
    # The remedy; and rows of one table that do not overlap are no ties.
    assert list(named(model, Selection(exclude=("head.bias",)))) == ["embed.weight"]
    table = torch.zeros(4, 3)
    state = {"embed.weight": table[:2], "head.weight": table[2:]}
    assert list(named(state, selection)) == ["embed.weight"]


class Placed(nn.Module):
    """A layer with a table of places, as Swin and BERT have."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.last = nn.Linear(2, 2)
        self.register_buffer("places", torch.arange(3))
        self.register_buffer("scale", torch.ones(3))


@pytest.mark.parametrize("selection", [Selection(), Selection(exclude=("last.*",))])
def test_values_are_loaded_beside_buffers_of_integers(selection: Selection) -> None:
    model = Placed()
    size = len(in_a_row(model, selection))
    for layout in ("", layout_of(model, selection)):
        load(torch.full((size,), 2.0), model, layout, selection)
        assert set(in_a_row(model, selection).tolist()) == {2.0}
    assert model.get_buffer("places").tolist() == [0, 1, 2]
    assert model.get_buffer("scale").tolist() == [1.0] * 3
    # Servers that began from a state without the integers have its other buffers.
    state = {name: value for name, value in model.state_dict().items() if name != "places"}
    for layout in ("", layout_of(state, selection)):
        load(torch.full((size + 3,), 4.0), model, layout, selection)
        assert model.get_buffer("scale").tolist() == [4.0] * 3


def test_a_file_keeps_what_stays_of_any_kind(tmp_path: Path) -> None:
    """Also if it is no tensor, and room for it on the disk is asked for."""
    stays = Selection(exclude=("places", "note"))
    state = {"w": torch.zeros(2), "places": torch.arange(3), "note": "text"}
    models = Models(tmp_path / "model.pt", travelling=stays)
    models.begin(Kept.of(state, travelling=stays))  # type: ignore[arg-type]
    models.check_room()
    models.pend(1, 1, torch.ones(2))
    models.settle()
    kept = torch.load(tmp_path / "model.pt", weights_only=True)
    assert kept["note"] == "text"
    assert kept["w"].tolist() == [1.0, 1.0]
    assert kept["places"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ('include = "first.*"', "include = 'first.*' is not a list of texts"),
        ("exclude = [1]", "exclude has a pattern that is not a text of 1 to 256 characters"),
        ('exclude = [""]', "exclude has a pattern that is not a text of 1 to 256 characters"),
        (f"include = {['a'] * (MOST_PATTERNS + 1)}", "include has 257 patterns; at most 256"),
    ],
)
def test_what_is_no_pattern_is_refused_when_read(rules: str, message: str, tmp_path: Path) -> None:
    config = written(tmp_path, 2, rules=rules)
    with pytest.raises(SetupError, match=re.escape(message)):
        Federation.read(config)


def test_terms_carry_patterns() -> None:
    terms = Terms(Settings(include=("a", "b.*"), exclude=("c",)), 3, clients=2)
    assert Terms.from_bytes(terms.to_bytes()) == terms
    for wrong in (b'"ab"', b"[1]", b"[[]]", b"3", b"null"):
        told = terms.to_bytes().replace(b'["a", "b.*"]', wrong)
        assert told != terms.to_bytes()
        with pytest.raises(PeerError, match="not of this release"):
            Terms.from_bytes(told)


def test_statistics_of_batch_normalisation_stay_at_each_client(tmp_path: Path) -> None:
    """FedBN: layers of normalisation differ between clients, everything else is averaged. The
    servers' model keeps theirs."""
    config = written(tmp_path, 2, rules='norm = 16.0\nexclude = ["norm.*"]')
    start, out = normalised().state_dict(), [tmp_path / f"{at}.pt" for at in range(3)]
    travelling = Federation.read(config).settings.travelling
    seen: list[torch.Tensor] = []

    def work(server: Server) -> None:
        models = Models(out[server.number], travelling=travelling)
        chosen = server.agree_to_begin(2, [Kept.of(start, travelling=travelling)])
        assert chosen is not None
        models.begin(chosen)
        model = chosen.model
        for _ in range(2):
            model = server.round(model, models=models).model
        seen.append(model)

    servers = Servers(config, work)

    # Made here, since threads share the generator of the initial values.
    own = [normalised(), normalised()]

    def learn(number: int) -> nn.Module:
        client, model = Client(config, number), own[number]
        for _ in range(2):
            task = client.join(LONG)
            task.load_into(model)
            with torch.no_grad():
                for value in model.parameters():
                    value += number + 1
                model(torch.randn(8, 3, generator=torch.Generator().manual_seed(number)))
            client.submit(model if number else model.state_dict())
            task.load_into(model, client.result(LONG))
        return model

    with ThreadPoolExecutor(2) as pool:
        models = list(pool.map(learn, range(2)))
    servers.ended()
    states = [model.state_dict() for model in models]
    for name, before in start.items():
        if name.startswith("norm."):
            kept = not name.endswith("num_batches_tracked")
            assert torch.equal(states[0][name], states[1][name]) != kept, name
        else:
            for state in states:
                torch.testing.assert_close(state[name], before + 3, rtol=0, atol=1e-4)
    assert torch.equal(states[1]["norm.weight"], start["norm.weight"] + 4)
    # The file has the whole model: of what stays, what servers began from.
    for path in out:
        kept_here = torch.load(path, weights_only=True)
        assert list(kept_here) == list(start)
        assert torch.equal(kept_here["norm.running_mean"], start["norm.running_mean"])
        torch.testing.assert_close(kept_here["last.bias"], start["last.bias"] + 3)
    assert len(seen[0]) == len(in_a_row(start, travelling))


def test_adapters_travel_without_the_layers_below_them(tmp_path: Path) -> None:
    """Servers have adapters only: neither base model nor its size is known to them."""
    config = written(tmp_path, 2, rules='norm = 8.0\ninclude = ["*lora_*"]')
    travelling = Selection(include=("*lora_*",))
    start = {name: value for name, value in Adapted().state_dict().items() if "lora" in name}
    servers = Servers(config, lambda server: server.round(start))

    own = [Adapted(), Adapted()]

    def learn(number: int) -> tuple[nn.Module, int]:
        client, model = Client(config, number), own[number]
        task = client.join(LONG)
        task.load_into(model)
        with torch.no_grad():
            model.lora_B.weight += number
        before = client.traffic[0]
        client.submit(model)
        task.load_into(model, client.result(LONG))
        return model, client.traffic[0] - before

    with ThreadPoolExecutor(2) as pool:
        (one, sent), (other, _) = pool.map(learn, range(2))
    servers.ended()
    size = len(in_a_row(Adapted(), travelling))
    assert size == 11
    torch.testing.assert_close(one.lora_B.weight, Adapted().lora_B.weight + 0.5)
    torch.testing.assert_close(one.lora_B.weight, other.lora_B.weight)
    assert torch.equal(one.base.weight, Adapted().base.weight)
    assert sent < 4000


def test_a_client_with_other_patterns_takes_no_part(tmp_path: Path) -> None:
    config = written(tmp_path, 1, rules="reveals_single = true\nminimum_clients = 1\nseconds = 1")
    text = config.read_text().replace("seconds = 60.0\n", "")
    config.write_text(text)
    other = tmp_path / "other.toml"
    other.write_text(text + '\nexclude = ["norm.*"]')
    start = normalised()
    servers = Servers(config, lambda server: server.round(start))
    with pytest.raises(PeerError, match=r"have exclude = \(\), this client's configuration"):
        Client(other, 0).join(LONG)
    servers.ended()


def test_servers_name_a_pattern_that_matches_nothing(tmp_path: Path) -> None:
    """Before they connect, with the file; with the remedy the pattern matches."""
    config = written(tmp_path, 2, rules='exclude = ["normal.*"]')
    torch.save(normalised().state_dict(), tmp_path / "start.pt")
    serve = ("federated", "serve", "--config", config, "--server", 0)
    ended = command(*serve)
    assert ended.returncode != 0
    assert "start.pt: exclude has the pattern 'normal.*', which matches no tensor" in ended.stderr
    config.write_text(config.read_text().replace("normal.*", "norm.*"))
    loaded = torch.load(tmp_path / "start.pt", weights_only=True)
    assert len(in_a_row(loaded, Federation.read(config).settings.travelling)) == 26
