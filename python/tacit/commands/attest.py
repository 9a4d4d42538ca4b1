"""``tacit attest``: evidence of this machine, and verification of another's."""

import argparse
import sys
from pathlib import Path
from typing import Any

from tacit import _core
from tacit.commands.options import add_json, write_json
from tacit.errors import MisuseError, SetupError, cause, setup_error

#: Name of the file of evidence.
EVIDENCE = "evidence.bin"

#: Name of the file with the challenge that the evidence answers.
CHALLENGE = "challenge.txt"


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "attest",
        help="make evidence of this machine, or judge another's",
        description="Makes evidence of what runs on this machine, which needs a guest of TDX or "
        "SEV-SNP. `tacit attest verify FILE --policy policy.toml` judges evidence offline.",
    )
    parser.add_argument("action", nargs="?", choices=["verify"], help="judge a file of evidence")
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="the file to judge")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where evidence is written")
    parser.add_argument("--policy", type=Path, metavar="policy.toml", help="what is accepted")
    parser.add_argument(
        "--challenge",
        metavar="TEXT",
        help="with --out: what the verifier asked this machine to attest, drawn if not given; with "
        "verify: what the evidence must answer, without which it may be an old one",
    )
    parser.add_argument(
        "--program",
        type=Path,
        metavar="FILE",
        help="print the digest of a program, or of what the servers of a federation.toml or the "
        "parties of a service.toml run, as `programs` of a policy names it",
    )
    parser.add_argument(
        "--simulated",
        action="store_true",
        help="with --out: make simulated evidence, which proves nothing",
    )
    add_json(parser)
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    if parsed.action == "verify":
        _verify(parsed)
    elif parsed.program is not None:
        print(_digest(parsed.program))
    elif parsed.out is not None:
        _make(parsed)
    else:
        raise MisuseError(
            "say what: --out DIR makes evidence of this machine, verify FILE --policy policy.toml "
            "judges another's, --program FILE prints the digest of a program"
        )


def _digest(path: Path) -> str:
    """Returns the digest of a program, or of the rules of a federation or a service."""
    from tacit.doctor import is_federation, is_service

    if is_service(str(path)):
        from tacit.serving.attesting import digest_of as digest_of_service
        from tacit.serving.config import Service

        return digest_of_service(Service.read(path))
    if not is_federation(str(path)):
        return _core.program_digest(_read(path)).hex()
    from tacit.federated.service.attesting import digest_of
    from tacit.federated.service.config import Federation

    return digest_of(Federation.read(path))


def _make(parsed: argparse.Namespace) -> None:
    challenge, evidence = _core.make_evidence(parsed.challenge, simulated=parsed.simulated)
    try:
        parsed.out.mkdir(parents=True, exist_ok=True)
        (parsed.out / EVIDENCE).write_bytes(evidence)
        (parsed.out / CHALLENGE).write_text(challenge + "\n")
    except OSError as error:
        raise setup_error(
            f"cannot write evidence in {parsed.out}: {cause(error)}; give another folder"
        ) from None
    print(f"Wrote {EVIDENCE} and {CHALLENGE} in {parsed.out}.")
    if parsed.simulated:
        print("This evidence is simulated, and proves nothing.")
    write_json(parsed.json, {"challenge": challenge, "bytes": len(evidence)})


def _verify(parsed: argparse.Namespace) -> None:
    if parsed.file is None or parsed.policy is None:
        raise MisuseError("tacit attest verify takes FILE and --policy policy.toml")
    try:
        kind, measurement, tcb = _core.judge_evidence(
            _read(parsed.file), str(parsed.policy), parsed.challenge
        )
    except SetupError as error:
        write_json(parsed.json, {"accepted": False, "reason": str(error)})
        raise
    is_fresh = parsed.challenge is not None
    found = {"kind": kind, "measurement": measurement, "tcb": tcb, "answers_challenge": is_fresh}
    write_json(parsed.json, {"accepted": True, **found})
    print(f"Accepted: {kind}, firmware {tcb}, measurement {measurement}.")
    if not is_fresh:
        print(
            "It may be old: --challenge TEXT checks that it answers your challenge.",
            file=sys.stderr,
        )


def _read(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise setup_error(f"cannot read {path}: {cause(error)}; check the path") from None
    return content
