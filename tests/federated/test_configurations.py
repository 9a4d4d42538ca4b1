"""``federation.toml``: files that are no federation, or whose rounds can never work, are refused
when read."""

import re
from pathlib import Path
from typing import Any, cast

import pytest
from worlds import written

from tacit.errors import MisuseError, SetupError
from tacit.federated import Client
from tacit.federated.service.config import Federation


def test_a_configuration_is_checked(tmp_path: Path) -> None:
    config = written(tmp_path, 2)
    right = config.read_text()
    assert Federation.read(config).clients == 2
    for before, after, message in (
        ('name = "test"', 'nam = "test"', r"the file has no 'nam'; it may have name, timeout"),
        ('name = "test"', "", r"the file lacks 'name'"),
        ("count = 2", "count = 0", r"\[clients\]: count = 0; a federation has 1 to 4096"),
        ("count = 2", 'count = "2"', r"\[clients\]: count = '2' is not a whole number"),
        (
            "seconds = 60.0",
            "seconds = -1",
            r"\[round\]: seconds = -1; it is a number of seconds above 0",
        ),
        (
            "seconds = 60.0",
            "minimum_clients = 1",
            r"\[round\]: minimum_clients = 1 without noise: a round of",
        ),
        (
            "seconds = 60.0",
            "reveals_single = 1",
            r"\[round\]: reveals_single = 1 is not true or false",
        ),
        (
            "seconds = 60.0",
            "divisor = 2.0",
            r"\[round\]: a divisor divides a sum with noise, and there is no",
        ),
        ("seconds = 60.0", "[privacy]\ndelta = 1e-6", r"\[privacy\] without noise in \[round\]"),
        (
            "seconds = 60.0",
            'noise = "pairs"\nsigma = 1.0\ndivisor = 2.0\n[privacy]\nsampling = 0.5',
            r"\[privacy\] has no 'sampling'; it may have delta, budget",
        ),
        ("seconds = 60.0", "bounds = 1", r"\[round\] has no 'bounds'"),
        ("[[server]]\n", "[[servers]]\n", r"the file has no 'servers'"),
        (
            "\naddress = ",
            '\nlisten = "0.0.0.0"\naddress = ',
            r"\[\[server\]\] 0: listen = '0\.0\.0\.0'; it is a host and a port, as "
            r"\"alice.example:7400\"",
        ),
        (
            "\nclients = ",
            '\nclients = ":7500" # ',
            r"\[\[server\]\] 0: clients = ':7500'; it is a host and a port",
        ),
        ('name = "test"', "name = ", r"federation.toml: .*line 1"),
    ):
        config.write_text(right.replace(before, after))
        with pytest.raises(SetupError, match=message):
            Federation.read(config)
    config.write_text(right.replace("count = 2", "count = 65") + '\naggregator = "krum"')
    with pytest.raises(SetupError, match="krum of 65 clients: its ranges hold for 64 at most"):
        Federation.read(config)
    config.write_text(right)
    with pytest.raises(MisuseError, match="client 2 does not exist: the clients are 0 to 1"):
        Client(config, 2)
    with pytest.raises(MisuseError, match="the number of a client is a whole number, not '1'"):
        Client(config, cast(Any, "1"))
    with pytest.raises(MisuseError, match="the number of a server is a whole number, not '1'"):
        Federation.read(config).server(cast(Any, "1"))
    (tmp_path / "client-0.key").chmod(0o644)
    with pytest.raises(SetupError, match="can be read by other users"):
        Client(config, 0)


NOISE = 'noise = "pairs"\nsigma = 1.0\ndivisor = 2.0\n'


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ('bound = "maybe"', "bound = 'maybe': known are none, refuse, clip"),
        ("norm = -1", "norm = -1: it is a finite number above 0"),
        ("norm = nan", "norm = nan: it is a finite number above 0"),
        ("greatest_weight = inf", "greatest_weight = inf: it is a finite number above 0"),
        ('result_to = "nobody"', "result_to = 'nobody': known are all, clients"),
        ('aggregator = "average"', "no aggregator is called 'average'; known are fedavg, fltrust"),
        ('aggregator = "krum"\nbound = "none"', "krum takes vectors whose norms are validated"),
        ('aggregator = "fltrust"', "fltrust needs a root"),
        ('aggregator = "fltrust"\nroot = 3', "root = 3; the clients are 0 to 2"),
        ('aggregator = "fltrust"\nroot = -1', "root = -1; the clients are 0 to 2"),
        ("root = 1", "root = 1: fedavg takes no root"),
        ('aggregator = "krum"\nroot = 1', "root = 1: krum takes no root"),
        ('aggregator = "mine.py:combine"\nroot = 1', "root = 1: mine.py:combine takes no root"),
        (
            "attackers = 0.25",
            "attackers = 0.25: fedavg takes no attackers, krum and multi-krum do; leave it out",
        ),
        (
            'aggregator = "mine.py:combine"\nsteps = 9',
            "steps = 9: mine.py:combine takes no steps, geometric-median does",
        ),
        ('aggregator = "krum"\nchosen = 2', "chosen = 2: krum takes no chosen, multi-krum does"),
        (
            'aggregator = "krum"\nattackers = 0.5',
            "attackers = 0.5: it is a part of the clients, from 0 to less than a half",
        ),
        ('aggregator = "krum"\nattackers = -0.1', "attackers = -0.1: it is a part of the clients"),
        (
            'aggregator = "trimmed-mean"\ntrimmed = nan',
            "trimmed = nan: it is a part of the clients",
        ),
        (
            'aggregator = "multi-krum"\nchosen = 0',
            "chosen = 0: it is how many vectors count, 1 or more",
        ),
        (
            'aggregator = "multi-krum"\nchosen = 3\ncoordinator = 0',
            "chosen = 3, and 2 clients hand in vectors that count: take 2 at most",
        ),
        ('aggregator = "multi-krum"\nchosen = 1.5', "chosen = 1.5 is not a whole number"),
        (
            'aggregator = "geometric-median"\nsteps = 0',
            "steps = 0: the iteration takes 1 to 1000 steps",
        ),
        (
            'aggregator = "fltrust"\nroot = 1\ncoordinator = 1',
            "a root hands in a vector, which the coordinator",
        ),
        (
            "minimum_clients = 4",
            "minimum_clients = 4, and a round needs 4: 3 of 3 clients hand in vectors that count,",
        ),
        (
            "minimum_clients = 3\ncoordinator = 2",
            "minimum_clients = 3, and a round needs 3: 2 of 3 clients hand in vectors that count "
            "besides the "
            "coordinator, so every round would come to nothing",
        ),
        (
            'aggregator = "fltrust"\nroot = 1\ncoordinator = 0',
            "minimum_clients = 2, and a round needs 2: 1 of 3 clients hand in vectors that count "
            "besides the "
            "coordinator and the root",
        ),
        (
            "minimum_clients = -1\nreveals_single = true",
            "minimum_clients = -1: it is a count of clients",
        ),
        (
            'bound = "none"\nchecked = true',
            "checked = true is for vectors whose norms are validated: without that a client that "
            "lies",
        ),
        ("checked = 1", "checked = 1 is not true or false"),
        ("word_bits = 24", "word_bits = 24: numbers travel in 64, 32, 16 or 8 bits"),
        ('noise = "gauss"\nsigma = 1.0', "noise = 'gauss': known are pairs, joint"),
        (
            'noise = "pairs"\nsigma = 1.0',
            "noise without a divisor: give what the sum is divided by",
        ),
        (NOISE.replace("2.0", "-2.0"), "divisor = -2.0: it is a finite number above 0"),
        (NOISE.replace("1.0", "nan"), "sigma = nan: it is a finite number above 0"),
        (
            NOISE.replace("1.0", "64.0"),
            'sigma = 64: noise = "pairs" is drawn of standard deviations from 2.38e-07',
        ),
        (NOISE.replace("1.0", "5e-5"), "sigma = 5e-05 cannot be accounted: from 0.0001 to"),
        (
            "sampling = 0.5",
            "sampling = 0.5: sampling alone hides no client; it needs noise and a divisor",
        ),
        (NOISE + "sampling = 0.0", "sampling = 0.0 cannot be accounted: from 1e-06 to 1;"),
        (NOISE + "sampling = 1.5", "sampling = 1.5 cannot be accounted: from 1e-06 to 1;"),
        (NOISE + 'bound = "none"', "noise hides a client whose norm is validated"),
        (
            NOISE + 'aggregator = "median"',
            "median with noise: by how much one client changes its result",
        ),
        (
            NOISE + 'aggregator = "mine.py:combine"',
            "mine.py:combine with noise: by how much one client",
        ),
    ],
)
def test_rounds_that_can_never_work_are_refused_when_the_file_is_read(
    rules: str, message: str, tmp_path: Path
) -> None:
    config = tmp_path / "federation.toml"
    config.write_text(written(tmp_path, 3).read_text() + rules)
    with pytest.raises(SetupError, match=re.escape(f"{config}: [round]: {message}")):
        Federation.read(config)


def test_an_aggregators_settings_are_read(tmp_path: Path) -> None:
    rules = 'aggregator = "multi-krum"\nattackers = 0.4\nchosen = 2'
    read = Federation.read(written(tmp_path, 3, rules=rules))
    assert read.settings.arguments == {"attackers": 0.4, "chosen": 2}


@pytest.mark.parametrize(
    ("privacy", "message"),
    [
        ("delta = 2.0", "[privacy]: δ = 2.0 cannot be accounted: from 1e-10 to 0.9999999999;"),
        ("delta = nan", "[privacy]: δ = nan cannot be accounted"),
        ("budget = 0", "[privacy]: budget = 0; it is an ε above 0, of all rounds together"),
        ("budget = nan", "[privacy]: budget = nan; it is an ε above 0"),
    ],
)
def test_accounts_that_cannot_be_are_refused_when_the_file_is_read(
    privacy: str, message: str, tmp_path: Path
) -> None:
    config = written(tmp_path, 3, rules=f"{NOISE}[privacy]\n{privacy}")
    with pytest.raises(SetupError, match=re.escape(f"{config}: {message}")):
        Federation.read(config)


def test_the_example_of_a_configuration_is_one() -> None:
    federation = Federation.read(
        Path(__file__).resolve().parents[2] / "examples" / "federation.toml"
    )
    assert (federation.clients, federation.settings.norm, federation.servers[1].listen) == (
        16,
        3.0,
        "bob.example:7400",
    )
    assert federation.certificate_of(7).name == "client-7.pem"
