"""Messages that users read when something is wrong: they say who, where, why and what to do, in
plain words."""

import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import tacit
from commands import Command
from ports import free_addresses
from saying import said_twice
from tacit import _core
from tacit.commands.correlations import to_bytes
from tacit.federated.service.config import Federation

#: Words that must not appear: debug output of Rust and Python, and libraries that produce errors.
INSIDE = (
    r"Os \{",
    r"\bkind: ",
    r"\b(Err|Some|Ok|None)\(",
    r"os error",
    r"\[Errno",
    r"Traceback",
    r"panicked",
    r"\.rs:\d",
    r"\\\"",
    r"\bf64\b",
    r"\bstruct\b",
    r"InvalidCertificate|AlertReceived|InvalidData|UnexpectedEof",
    r"rustls|webpki|serde|pyo3",
)

#: Nested quotes of the same kind leave an odd quote next to a word.
NESTED = re.compile(r'\w""|""\w|"[^" ]*\'[^\']*"[^\']*\'')


def plain(text: str) -> str:
    """Checks that a text is fit for users, and returns it."""
    assert not said_twice(text), text
    for inside in INSIDE:
        assert not re.search(inside, text), (inside, text)
    assert not NESTED.search(text), text
    assert text.count('"') % 2 == 0, text
    return text


def example(folder: Path, parties: int = 2, head: str = "timeout = 20") -> Path:
    """Writes a configuration with the given number of parties, and with its own certificates and
    addresses."""
    _core.write_certificates([f"party-{party}" for party in range(parties)], str(folder))
    lines = ['protocol = "additive"', head]
    for party, address in enumerate(free_addresses(parties)):
        lines += ["[[party]]", f'address = "{address}"', f'certificate = "party-{party}.pem"']
    path = folder / "parties.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def refused(config: Path, party: int = 0, **options: Any) -> str:
    """Returns the error of a party that cannot take part."""
    with (
        pytest.raises(tacit.TacitError) as error,
        tacit.connect(str(config), party, timeout=options.pop("timeout", 1.0), **options),
    ):
        pass
    return plain(str(error.value))


@pytest.mark.parametrize(
    ("before", "after", "line", "said"),
    [
        ("timeout = 20", "timeout = twenty", 2, ""),
        ("timeout = 20", 'timeout = "20"', 2, "a number is expected"),
        ("timeout = 20", "timeuot = 20", 2, 'unknown field "timeuot", expected one of "protocol"'),
        ('protocol = "additive"', "protocol = 7", 1, "a text in quotes is expected"),
        ("[[party]]", "[[partie]]", 3, 'unknown field "partie"'),
        ("[[party]]", "[[party]", 3, ""),
        ("[[party]]", "[party]", 6, "duplicate key"),
    ],
)
def test_a_line_of_a_configuration_that_is_wrong(
    tmp_path: Path, before: str, after: str, line: int, said: str
) -> None:
    config = example(tmp_path)
    config.write_text(config.read_text().replace(before, after, 1))
    text = refused(config)
    assert f"parties.toml: line {line}: " in text, text
    assert said in text, text
    assert text.endswith("; correct this line as examples/parties.toml has it"), text


def test_files_of_a_configuration_that_are_not_there_or_another_s(tmp_path: Path) -> None:
    remedy = "check the path, and that the file is yours"
    text = refused(tmp_path / "none.toml")
    assert (
        text
        == f"setup: cannot read {tmp_path / 'none.toml'}: there is no such file or folder; {remedy}"
    )
    assert "it is a folder" in refused(tmp_path)
    config = example(tmp_path)
    certificate, key = tmp_path / "party-1.pem", tmp_path / "party-0.key"
    kept = certificate.read_text()
    certificate.unlink()
    text = refused(config)
    assert f"cannot read {certificate}: there is no such file or folder; {remedy}" in text
    certificate.write_text("nothing")
    said = f"the certificate of party 1, {certificate}, is not a certificate in PEM; give its .pem file"
    assert said in refused(config)
    certificate.write_text((tmp_path / "party-0.pem").read_text())
    assert "party 0 and party 1 have the same certificate; give each its own" in refused(config)
    certificate.write_text(kept)
    kept = key.read_text()
    key.write_text((tmp_path / "party-1.key").read_text())
    text = refused(config)
    assert (
        "the private key of party 0 does not fit its certificate; use the two files that were made"
        in text
    )
    key.write_text(kept)
    key.chmod(0o644)
    assert (
        f"can be read by other users of this machine (mode 644); run: chmod 600 {key}"
        in refused(config)
    )
    key.chmod(0o600)
    assert "there is no party 7 in the file; its parties are 0 to 1" in refused(config, 7)
    assert 'step "connect"' in (text := refused(config))
    assert "party 1" in text


def test_a_dealer_who_is_not_in_the_configuration(tmp_path: Path) -> None:
    config = example(tmp_path)
    said = (
        f"setup: {config}: the table [dealer] is missing, but the source of correlations is a "
        "dealer; add the table, with the dealer's address and certificate, to the file of every "
        "member, or choose another source"
    )
    # The source is named by an option, then by the file.
    assert refused(config, source="dealer") == said
    config.write_text(f'source = "dealer"\n{config.read_text()}')
    assert refused(config) == said


@contextmanager
def answering(address: str, answer: Callable[[socket.socket], Any]) -> Iterator[None]:
    """Listens at an address like a program that is not a party."""
    host, _, port = address.rpartition(":")
    over = threading.Event()
    with socket.create_server((host, int(port))) as listening:
        listening.settimeout(0.05)

        def serve() -> None:
            while not over.is_set():
                try:
                    stream, _ = listening.accept()
                except TimeoutError:
                    continue
                with stream:
                    answer(stream)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def addresses(config: Path) -> list[str]:
    return re.findall(r'address = "(.*)"', config.read_text())


def examined(config: Path, party: int = 0, wait: float = 2.0) -> dict[str, tuple[bool, str, str]]:
    """Returns the doctor's checks: whether each passes, the finding and the remedy."""
    found = _core.examine(str(config), party, False, wait)
    for check, well, detail, remedy in found:
        plain(f"{check}: {detail}; {remedy}")
        assert well == (not remedy)
    return {check: (well, detail, remedy) for check, well, detail, remedy in found}


def test_the_doctor_at_a_port_that_something_else_has(tmp_path: Path) -> None:
    config = example(tmp_path)
    with answering(
        addresses(config)[1], lambda stream: stream.sendall(b"SSH-2.0-OpenSSH_9.6\r\n" * 9)
    ):
        well, detail, remedy = examined(config)["party 1"]
    assert (well, remedy) == (False, "check the address")
    assert detail.startswith("the program there does not speak TLS")


def test_the_doctor_where_nobody_listens(tmp_path: Path) -> None:
    config = example(tmp_path)
    well, detail, _ = examined(config, wait=0.2)["party 1"]
    assert well
    assert detail == f"its machine answers; nobody listens at {addresses(config)[1]} yet"


def examined_together(configs: list[Path]) -> list[dict[str, tuple[bool, str, str]]]:
    """Runs the doctor in two parties at the same time, each with its own configuration."""
    found: list[Any] = [None, None]

    def look(party: int) -> None:
        found[party] = examined(configs[party], party, 10.0)

    threads = [threading.Thread(target=look, args=(party,)) for party in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found)
    return found


def test_the_doctor_where_the_other_was_started_otherwise(tmp_path: Path) -> None:
    config = example(tmp_path)
    other = tmp_path / "other.toml"
    other.write_text(config.read_text().replace("timeout = 20", 'timeout = 20\nsource = "he"'))
    found = examined_together([config, other])
    for party in range(2):
        well, detail, remedy = found[party][f"party {1 - party}"]
        assert not well
        assert detail.startswith('is there with "protocol additive')
        assert remedy == "start all parties with the same settings and release"


def test_the_doctor_where_another_certificate_is_in_use(tmp_path: Path) -> None:
    """The other party has made a new pair, and this party has the old certificate."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    config, other = example(here), example(there)
    other.write_text(config.read_text())
    for file in ("party-0.pem", "party-0.key"):
        (there / file).write_text((here / file).read_text())
    well, detail, remedy = examined_together([config, other])[0]["party 1"]
    assert not well
    assert detail == "it presents a certificate that is not the one configured here for party 1"
    assert remedy == "put party 1's current certificate into this party's configuration"


@contextmanager
def greeting(
    folder: Path, address: str, version: bytes = b"2", ahead: int = 0, says: str = ""
) -> Iterator[None]:
    """Simulates the greeting of party 1 to the doctor, with a version, a clock that is ahead by
    the given seconds, and settings."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "party-1.pem", folder / "party-1.key")

    def answer(stream: socket.socket) -> None:
        # The doctor disconnects when it has its answer.
        with suppress(OSError), context.wrap_socket(stream, server_side=True) as talk:
            clock = int(time.time()) + ahead
            head = b"tci" + version + bytes([1, 1, 1, 0]) + struct.pack("<QQH", clock, 0, len(says))
            talk.sendall(head + says.encode())
            talk.recv(1024)

    with answering(address, answer):
        yield


def test_the_doctor_where_the_other_has_another_release(tmp_path: Path) -> None:
    config = example(tmp_path)
    address = addresses(config)[1]
    with greeting(tmp_path, address, version=b"1"):
        found = examined(config, wait=0.5)["party 1"]
    assert found == (
        False,
        "it runs another release of tacit",
        "install the same release in every party",
    )
    # Another release with the same greeting reports its own number.
    with greeting(tmp_path, address, says="protocol additive, source ot, tacit 9.9.9"):
        well, detail, remedy = examined(config, wait=0.5)["party 1"]
    assert not well
    assert detail.startswith(
        'is there with "protocol additive, source ot, tacit 9.9.9", this party with "'
    )
    assert detail.endswith(f'tacit {tacit.__version__}"')
    assert remedy == "start all parties with the same settings and release"


@pytest.mark.parametrize(
    ("ahead", "said"),
    [(3600, "is 3600 s ahead of"), (-86_400, "is 86400 s behind"), (30, ""), (-30, "")],
)
def test_the_doctor_where_a_clock_is_off(tmp_path: Path, ahead: int, said: str) -> None:
    config = example(tmp_path)
    with greeting(tmp_path, addresses(config)[1], ahead=ahead):
        well, detail, remedy = examined(config, wait=0.5)["clock of party 1"]
    if said:
        # A new second may begin between the two clocks' readings.
        seconds = re.sub(r"\d+", lambda digits: str(round(int(digits[0]), -1)), detail)
        assert (well, seconds) == (False, f"{said} this machine's")
        assert remedy == "set both clocks, for example by NTP"
    else:
        assert (well, detail) == (True, "agrees with this machine's")


def test_the_doctor_where_keys_and_certificates_are_wrong(tmp_path: Path) -> None:
    config = example(tmp_path, 3)
    config.write_text(config.read_text().replace("additive", "replicated"))
    (tmp_path / "party-0.key").write_text((tmp_path / "party-2.key").read_text())
    (tmp_path / "party-1.key").chmod(0o604)
    found = examined(config, 0)
    assert found["key of party 0"] == (
        False,
        "the private key of party 0 does not fit its certificate",
        "use the two files that were made together",
    )
    key = tmp_path / "party-1.key"
    assert found["key of party 1"] == (
        False,
        f"the private key {key} can be read by other users of this machine (mode 604)",
        f"run: chmod 600 {key}",
    )
    assert found["key of party 2"][0]


def test_programs_that_differ_are_named_once_each() -> None:
    def program() -> None:
        torch.manual_seed(tacit.session().party)
        x = tacit.share(torch.ones(2, 3), owner=0)
        nn.Sequential(nn.Linear(3, 3))(x).reveal()

    with pytest.raises(tacit.DesyncError) as error:
        tacit.launch(program)
    text = str(error.value)
    assert text.count("run the same program with the same") == 1
    assert not said_twice(text), text
    for inside in INSIDE:
        assert not re.search(inside, text), text


def test_programs_that_differ_behind_values_that_do_are_told_each_remedy_once() -> None:
    def program() -> None:
        party = tacit.session().party
        x = tacit.share(torch.ones(3), owner=0) + torch.full((3,), float(party))
        (x.relu() if party else x.sum()).reveal()

    with pytest.raises(
        tacit.DesyncError, match="or the public values of the parties differ"
    ) as error:
        tacit.launch(program)
    assert not said_twice(str(error.value))


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (
            lambda: tacit.share(torch.ones(3), owner=7),
            "owner 7 does not exist: the parties are 0 to 2",
        ),
        (
            lambda: tacit.share([1.0], owner=0),
            "share() takes a torch.Tensor, not list; torch.as_tensor",
        ),
        (lambda: tacit.share(torch.tensor([torch.nan]), owner=0), "NaN or infinite, which has no"),
        (
            lambda: tacit.share(torch.ones(2), owner=0).tolist(),
            "call reveal() where they may be known",
        ),
        (
            lambda: torch.linalg.eigvals(tacit.share(torch.ones(2, 2), owner=0)),
            "is not supported on secret",
        ),
    ],
)
def test_mistakes_of_a_program(program: Callable[[], Any], said: str) -> None:
    with pytest.raises(tacit.TacitError) as error:
        tacit.launch(lambda: (program(), None)[1])
    text = plain(str(error.value))
    assert re.match(r"party \d: ", text), text
    assert said in text, text


def test_a_party_whose_process_ends() -> None:
    def program() -> None:
        if tacit.session().party == 1:
            import os

            os._exit(3)
        tacit.share(torch.ones(3), owner=1)

    with pytest.raises(tacit.PeerError) as error:
        tacit.launch(program, transport="tcp")
    assert plain(str(error.value)).startswith(
        "party 1: its process ended with exit code 3 before its program"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--config", "none.toml", "--party", 0, "none.py"], "none.py"),
        (
            ["correlations", "make", "--config", "parties.toml", "--party", 0, "--demand", "wrong"],
            "line 1 of the",
        ),
        (
            ["correlations", "make", "--config", "parties.toml", "--party", 0, "--demand", "none"],
            "cannot read none",
        ),
        (["dealer", "--config", "parties.toml"], "dealer"),
    ],
)
def test_commands_that_cannot_begin(tmp_path: Path, arguments: list[object], said: str) -> None:
    example(tmp_path, head="timeout = 1")
    (tmp_path / "wrong").write_bytes(to_bytes("this is no demand\n"))
    more = ["--runs", 1, "--out", "made"] if "make" in arguments else []
    code, _, errors = Command(*arguments, *more, folder=tmp_path).ended()
    assert code
    assert said in plain(errors), errors


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"name = \n", "line 1: Invalid value; docs/federated.md has an example"),
        (b"[[server]\n", "line 1: "),
        (b"\xff\xfe", "it is not text in UTF-8; docs/federated.md has an example"),
    ],
)
def test_a_federation_s_file_that_is_no_toml(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "federation.toml"
    path.write_bytes(content)
    with pytest.raises(tacit.SetupError) as error:
        Federation.read(path)
    assert f"{path}: {said}" in plain(str(error.value))
