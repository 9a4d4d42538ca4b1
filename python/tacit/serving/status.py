"""A party's status pages: ``/healthz``, ``/readyz`` and ``/metrics``.

They are for the party's own operator: Kubernetes, systemd, Prometheus and ``tacit doctor``. They
run in a thread of their own, so that they answer while the party computes."""

from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, build_opener

from tacit.errors import cause, printable
from tacit.serving import metrics
from tacit.serving.addresses import names_of
from tacit.serving.http_messages import Limits, Refused, Request, Response, only, refuse_pages
from tacit.serving.http_server import HttpThread
from tacit.serving.observed import Observed

#: The pages are small, and a few clients ask for them.
LIMITS = Limits(connections=32, headers=1 << 13, body=0, bodies=0, idle=60.0)

#: What ``/readyz`` says of a party that takes no requests.
NOT_READY = (
    "no session is open: it opens once all parties run and reach each other; `tacit doctor` says "
    "what is in its way"
)

_PLAIN = "text/plain; charset=utf-8"


class StatusPages(HttpThread):
    """The pages, from their start until they are closed. A context manager closes them.

    Args:
        observed: what the party counts.
        host: where to listen.
        port: with 0 the system chooses; then ``address`` says which.

    Raises:
        SetupError: the address cannot be used.
    """

    def __init__(self, observed: Observed, host: str, port: int) -> None:
        self._observed = observed
        self._hosts = names_of(host)
        super().__init__(self._answer, host, port, LIMITS)

    async def _answer(self, request: Request) -> Response:
        refuse_pages(request, self._hosts, "a party's status")
        only(request, "GET", "HEAD")
        match request.target.partition("?")[0]:
            case "/healthz":
                # A party that waits for the others is healthy: to restart it would not help.
                return _plain(200, "ok")
            case "/readyz":
                is_ready = self._observed.value("is_ready") == 1
                return _plain(200, "ok") if is_ready else _plain(503, NOT_READY)
            case "/metrics":
                page = metrics.text(self._observed.snapshot())
                return Response(200, page.encode(), metrics.CONTENT_TYPE)
        raise Refused(404, "no such page: there are /healthz, /readyz and /metrics")


def ask_ready(address: str, wait: float) -> tuple[bool, str]:
    """Asks a party's ``/readyz``, and returns whether it is ready, and what it said.

    Args:
        address: host and port of its status pages.
        wait: seconds for the answer.
    """
    # Proxies are for other networks; a party's pages are asked from its own.
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(f"http://{address}/readyz", timeout=wait) as answer:
            return True, printable(answer.read(1000).decode("utf-8", "replace"))
    except HTTPError as error:
        with error:
            return False, printable(error.read(1000).decode("utf-8", "replace"))
    except (URLError, OSError, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        said = cause(reason) if isinstance(reason, OSError) else type(error).__name__
        return False, f"no answer from http://{address}/readyz: {said}"


def _plain(status: int, text: str) -> Response:
    return Response(status, f"{text}\n".encode(), _PLAIN)
