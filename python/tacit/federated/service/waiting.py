"""How the servers wait for clients together, until a round ends for all of them."""

import time

from tacit import _core
from tacit.errors import DeviationError
from tacit.federated.service.config import Federation
from tacit.sessions import Session

#: Interval, in seconds, at which servers that wait for clients tell each other that they do.
TOGETHER = 5.0

#: Messages between servers that wait for clients: some clients may still submit, none will, or the
#: coordinator says that none will.
WAITING, READY, CLOSED = b"waiting", b"ready", b"closed"


def until_ready(session: Session, intake: _core.Intake, federation: Federation) -> bool:
    """Waits until every server is done waiting for clients, and returns whether the coordinator
    ended the round at one of them.

    A server is done if it holds the submissions of all clients, or of ``enough``, completely,
    its deadline is over, or the coordinator has told it that no other client will submit. The
    servers tell each other. The first and the third server have whatever the second one holds
    completely, so as many count.

    A coordinator that tells servers different things changes when the round ends, and nothing
    else: the servers compare afterwards which clients count.

    Raises:
        PeerError: a server is not ready long after the deadline.
    """
    until = time.monotonic() + federation.seconds + federation.timeout
    is_past, enough = False, federation.settings.enough_of(federation.submitting)
    while True:
        # On a machine that was busy or asleep, the others' answers may be from before their
        # deadline, however late it is now. So only an exchange that begins past the time limit
        # counts: they answer it after their deadline.
        was_past, is_past = is_past, time.monotonic() > until
        ready = intake.wait(enough, min(TOGETHER, federation.timeout / 4))
        own = WAITING if not ready else CLOSED if intake.is_closed() else READY
        told = session.told_by_all(own)
        late = [server for server, each in enumerate(told) if each not in (READY, CLOSED)]
        if not late:
            return CLOSED in told
        if was_past:
            raise DeviationError.of(
                late[0], "was not ready after the deadline of the round", "server"
            )
