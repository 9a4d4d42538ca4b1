"""Expired certificates: the error at each peer names the owner, the date and the remedy."""

import datetime
from pathlib import Path

import pytest
import torch
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from worlds import Servers, written

from tacit.errors import PeerError
from tacit.federated import Client

REMEDY = "make a new one and give it to all servers"


def expired(path: Path) -> str:
    """Replaces a certificate and its key with one that expired an hour ago. Returns the date of
    expiry."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tacit")])
    end = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(end - datetime.timedelta(days=1)).not_valid_after(end)
    names = x509.SubjectAlternativeName([x509.DNSName("tacit")])
    certificate = builder.add_extension(names, critical=False).sign(key, hashes.SHA256())
    path.with_suffix(".pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    path.with_suffix(".key").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    return f"{end:%Y-%m-%d %H:%M} UTC"


def test_a_client_reads_that_its_certificate_expired_and_servers_report_it(tmp_path: Path) -> None:
    config = written(tmp_path, 3, seconds=15.0)
    at = expired(tmp_path / "client-0")
    servers = Servers(config, lambda server: server.round(torch.zeros(4)))
    said = f"the certificate of client 0 expired at {at}; {REMEDY}"
    with pytest.raises(PeerError) as refused:
        Client(config, 0).join(5.0)
    assert str(refused.value).endswith(f"it refused this client's certificate: {said}")
    others = [Client(config, number) for number in (1, 2)]
    for client in others:
        client.join(20.0)
    for client in others:
        client.submit(torch.ones(4))
    for report in servers.ended():
        assert report.accepted == [1, 2]
        assert {(client, reason) for client, reason, _ in report.refused} == {(0, said)}


def test_all_servers_name_the_one_whose_certificate_expired(tmp_path: Path) -> None:
    config = written(tmp_path, 2)
    at = expired(tmp_path / "server-1")
    for error in Servers(config, lambda server: server.round(torch.zeros(4))).failed():
        assert str(error) == f"setup: the certificate of server 1 expired at {at}; {REMEDY}"
