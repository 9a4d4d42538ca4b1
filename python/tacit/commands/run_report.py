"""``tacit run --json``: reports how a party's run ended, for machines.

Each party writes its own report, about what it sent itself. The other parties need not report
anything for it."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.commands.options import write_json
from tacit.errors import TacitError, told

if TYPE_CHECKING:
    from tacit.sessions import Session


class Report:
    """What is known of a run while it is in progress."""

    def __init__(self, program: str, party: int) -> None:
        self.program = program
        self.party = party
        self.session: Session | None = None
        #: Error that keeps the program from running, if it is found before the parties connect: its
        #: kind, and the message to the other parties.
        self.wrong: tuple[str, str] | None = None
        self._began = self._waited = 0.0

    def opened(self, session: "Session") -> None:
        """Records that the session begins."""
        self.session = session
        self._began = time.monotonic()
        # The wait for the other parties to connect came before the session began.
        self._waited = session.meter.total.waiting_seconds

    def as_json(self, error: BaseException | None) -> dict[str, Any]:
        """Returns the report. Fields about the session are ``None`` if it did not begin."""
        here = self.session
        spent = None if here is None else here.meter.total
        verified = None if here is None else here.meter.verification
        return {
            "program": self.program,
            "party": self.party,
            "parties": None if here is None else here.parties,
            "protocol": None if here is None else here.protocol,
            "threat_model": None if here is None else here.threat_model,
            "status": "ended" if error is None else "failed",
            "error": None if error is None else self._named(error),
            "seconds": None if here is None else time.monotonic() - self._began,
            "seconds_waiting": None if spent is None else spent.waiting_seconds - self._waited,
            "rounds": None if spent is None else spent.rounds,
            "bytes_sent": None if spent is None else spent.bytes_sent,
            "bytes_received": None if spent is None else spent.bytes_received,
            **({} if verified is None else {"verification": asdict(verified)}),
        }

    def _named(self, error: BaseException) -> dict[str, str]:
        """Returns the name of an error, and the reason that the other parties are told.

        There is no message of a program in it, because that may contain secrets."""
        if self.wrong is not None:
            name, reason = self.wrong
        elif isinstance(error, SystemExit):
            name, reason = "SystemExit", "its program ended with an exit code; see its own output"
        else:
            name, reason = type(error).__name__, told(error)[0]
        return {"name": name, "reason": reason}


@contextmanager
def reported(path: Path | None, program: str, party: int) -> Iterator[Report]:
    """Writes the report of what is done within this context, however it ends."""
    report = Report(program, party)
    try:
        yield report
    except BaseException as error:
        is_left = isinstance(error, SystemExit) and error.code in (None, 0)
        try:
            write_json(path, report.as_json(None if is_left else error))
        except TacitError as unwritten:
            # The error that ended the run is more important than this one.
            print(f"tacit: {unwritten}", file=sys.stderr)
        raise
    write_json(path, report.as_json(None))
