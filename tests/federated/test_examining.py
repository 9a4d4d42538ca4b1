"""``tacit doctor`` on a federation's file."""

import shutil
import textwrap
from pathlib import Path

import pytest
from worlds import written

import tacit
from commands import tacit as command
from tacit import _core
from tacit.doctor import examine_federation
from tacit.federated.service.config import Federation
from tacit.federated.service.examining import Found, examine

#: Certificates of unsupported kinds, valid for a hundred years: an Ed25519 certificate, and one of
#: an authority.
ED25519 = (
    "MIIBSTCB/KADAgECAhR4807M6aPb6HaYD88OGxUE+p+Q2TAFBgMrZXAwDDEKMAgGA1UEAwwBeDAgFw0yNjExMjcwMTUyNTJa"
    "GA8yMTI1MDYyMTAxNTI1MlowDDEKMAgGA1UEAwwBeDAqMAUGAytlcAMhAKzKUSqMRb4wPCu+LNnj0EASRB1skwbV7l/J1WrN"
    "GimAo24wbDAdBgNVHQ4EFgQUNbVBjt08h85hoWB9nb2JkZ0xkDUwHwYDVR0jBBgwFoAUNbVBjt08h85hoWB9nb2JkZ0xkDUw"
    "DwYDVR0TAQH/BAUwAwEB/zAZBgNVHREEEjAQgg5jbGllbnQtMS50YWNpdDAFBgMrZXADQQATNB2BQ0X86+vDAjNnqzcG740k"
    "XsU6LxR9Cxp8rol06zW9s62fhtC7Gm8sbyewuN8uAD8EfQf6jLR7N9bf1ysO"
)
AUTHORITY = (
    "MIIBgjCCASmgAwIBAgIUAYJkMFAT3oyoGwWxjiVqHkinVvwwCgYIKoZIzj0EAwIwDDEKMAgGA1UEAwwBeDAgFw0yNjExMjcw"
    "MTUyNTJaGA8yMTI1MDYyMTAxNTI1MlowDDEKMAgGA1UEAwwBeDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABJbcJ1W1lre+"
    "vH3fr4XSi2xGJjxYW7zIsCEa9Ekc6UIjYi+C9TOiivpAcSJ8Ju6G1Ce6RgZxy9U+1NjJX5nVZlmjZzBlMB0GA1UdDgQWBBQA"
    "BwX8ZTtpN8IQVUDz9NA6Q4yg4zAfBgNVHSMEGDAWgBQABwX8ZTtpN8IQVUDz9NA6Q4yg4zAPBgNVHRMBAf8EBTADAQH/MBIG"
    "A1UdEQQLMAmCB3gudGFjaXQwCgYIKoZIzj0EAwIDRwAwRAIgPA9WI6yqUel0ym0B+PKpQLOlnyLZhbUt+pewbJJyGi4CIGk9"
    "FejRQcGji9Hz12hUaGXHWjFray7u/vcfTVwqDKXn"
)

#: A certificate of no authority with an Ed25519 key: links accept it, but it cannot sign what
#: clients hand in.
NOT_A_CLIENTS = (
    "MIIBJTCB2KADAgECAhQod0Bns6+lOPPUXNMCFbY3+pLrpDAFBgMrZXAwDDEKMAgGA1UEAwwBeDAgFw0yNjExMjcwNTMxMjFa"
    "GA8yMTI1MDYyMTA1MzEyMVowDDEKMAgGA1UEAwwBeDAqMAUGAytlcAMhAEOrus3yfvhr1oKb0TJCU9WD69LUv206xDeitEGF"
    "Awa/o0owSDAMBgNVHRMBAf8EAjAAMBkGA1UdEQQSMBCCDmNsaWVudC0xLnRhY2l0MB0GA1UdDgQWBBTCI0/DstfOSH5GV5OW"
    "2UpItOLpxjAFBgMrZXADQQAUbmOtuYts039s/+a3A4W05ly0FXdhQXwQG3R32qBnc+heQTMChiwNGS4gxP1DINfPcQ9LxNU9"
    "WL4ilLylYA4C"
)


def pem(content: str) -> str:
    lines = "\n".join(textwrap.wrap(content, 64))
    return f"-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n"


def wrong(found: list[Found]) -> dict[str, Found]:
    return {each.check: each for each in found if not each.ok}


def test_a_federation_that_can_be(tmp_path: Path) -> None:
    config = written(tmp_path, 2)
    found = {each.check: each for each in examine(str(config), None, None, 0.1)}
    names = [*(f"server {at}" for at in range(3)), "client 0", "client 1"]
    expected = [f"{what} of {name}" for name in names for what in ("certificate", "key")]
    assert list(found) == ["configuration", *expected]
    assert all(each.ok and not each.remedy for each in found.values())
    assert found["configuration"].detail.startswith(
        "test: 2 clients, fedavg; 60 s for what clients hand in"
    )
    as_server = {each.check: each for each in examine(str(config), 1, None, 0.1)}
    more = [
        "latest round",
        "address of server 0",
        "address of server 1",
        "address of server 2",
        "listening",
    ]
    assert list(as_server)[len(found) :] == [*more, "server 0", "server 2", "listening for clients"]
    assert all(each.ok for each in as_server.values())
    assert "nobody listens at" in as_server["server 2"].detail
    # A client does not need the other clients' files.
    (tmp_path / "client-0.pem").unlink()
    as_client = examine(str(config), None, 1, 0.1)
    assert all(each.ok for each in as_client)
    assert [each.check for each in as_client[-3:]] == ["server 0", "server 1", "server 2"]


@pytest.mark.parametrize("content", [ED25519, AUTHORITY])
def test_certificates_of_kinds_that_are_refused_are_named_by_file(
    tmp_path: Path, content: str
) -> None:
    config = written(tmp_path, 2)
    for name in ("server-2", "client-1"):
        (tmp_path / f"{name}.pem").write_text(pem(content))
    found = wrong(examine(str(config), None, None, 0.1))
    assert list(found) == ["certificate of server 2", "certificate of client 1"]
    for name, each in zip(("server-2", "client-1"), found.values(), strict=True):
        assert (
            f"{name}.pem, the certificate of {name.replace('-', ' ')}, is damaged, or of a kind"
            in each.detail
        )
        assert "have one made by `tacit federated certificates`: ECDSA" in each.remedy
    # A server and a client that read it refuse at once, with the same words.
    federation = Federation.read(str(config))
    for read in (federation.certificates_of_servers, federation.certificates_of_clients):
        with pytest.raises(
            tacit.SetupError, match=r"(server-2|client-1)\.pem, .* is damaged, or of a kind"
        ):
            read()


def test_a_key_that_cannot_sign_is_a_server_s_at_most(tmp_path: Path) -> None:
    config = written(tmp_path, 2)
    federation = Federation.read(str(config))
    (tmp_path / "server-2.pem").write_text(pem(NOT_A_CLIENTS))
    federation.certificates_of_servers()
    (tmp_path / "client-1.pem").write_text(pem(NOT_A_CLIENTS))
    said = (
        r"client-1\.pem, the certificate of client 1, has a key that cannot sign submissions; have "
    )
    with pytest.raises(
        tacit.SetupError, match=said + "one made by `tacit federated certificates`: ECDSA P-256"
    ):
        federation.certificates_of_clients()
    # The remedy of the error works.
    (tmp_path / "client-1.key").unlink()
    (tmp_path / "client-1.pem").unlink()
    _core.write_certificates(["client-1"], str(tmp_path))
    federation.certificates_of_clients()


def test_what_is_wrong_is_named_by_file_with_what_to_do(tmp_path: Path) -> None:
    config = written(tmp_path, 2)
    shutil.copy(tmp_path / "server-1.key", tmp_path / "server-0.key")
    (tmp_path / "server-2.key").chmod(0o644)
    (tmp_path / "client-0.pem").write_text("none")
    (tmp_path / "client-1.key").write_text("none")
    (tmp_path / "client-1.key").chmod(0o600)
    (tmp_path / "server-0.round").write_text("3")
    found = wrong(examine(str(config), 0, None, 0.1))
    for check, said in {
        "key of server 0": "server-0.key",
        "key of server 2": "server-2.key",
        "certificate of client 0": "client-0.pem",
        "key of client 1": "client-1.key",
        "latest round": "server-0.round",
    }.items():
        assert said in found[check].detail, found[check]
    assert all(each.remedy or "put it back" in each.detail for each in found.values())


def test_the_command(tmp_path: Path) -> None:
    config = written(tmp_path, 2)
    ended = command("doctor", "--config", config)
    assert ended.returncode == 0, ended
    assert "ok    key of client 0: fits its certificate" in ended.stdout
    assert "With --server I or --client I, tacit doctor also examines" in ended.stdout
    ended = command("doctor", "--config", config, "--party", 0)
    assert "is of a federation: give --server I or --client I, or neither" in ended.stderr
    config.write_text("[[server]]\n")
    assert [each.ok for each in examine_federation(str(config), None, None, 0.1)][-1] is False
