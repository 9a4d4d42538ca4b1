"""A party's status pages: health, readiness, and metrics as Prometheus reads them."""

import http.client
import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import tacit
from tacit.errors import SetupError
from tacit.serving import metrics
from tacit.serving.observed import BUCKETS, METRICS, Observed
from tacit.serving.status import NOT_READY, StatusPages, ask_ready


def page(
    address: tuple[str, int],
    path: str,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection(*address, timeout=10)
    connection.request(method, path, headers=dict(headers or {}))
    answer = connection.getresponse()
    try:
        return answer.status, answer.getheader("Content-Type") or "", answer.read().decode()
    finally:
        connection.close()


def samples(text: str) -> dict[tuple[Any, ...], float]:
    """Returns the values by name and labels, as a parser of Prometheus reads them."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_metrics_as_a_parser_reads_them() -> None:
    observed = Observed()
    observed.count("requests", 3, "lenet", "1", "answered")
    observed.count("requests", 1, "lenet", "1", "refused")
    observed.count("bytes_sent", 10**12)
    observed.set("queue", 7)
    for seconds in (0.0005, 0.001, 0.02, 1000.0):
        observed.time("stage_seconds", seconds, "compute")
    text = metrics.text(observed.snapshot())
    found = samples(text)
    model = (("model", "lenet"), ("outcome", "answered"), ("version", "1"))
    assert found["tacit_requests_total", *model] == 3
    assert found["tacit_bytes_sent_total",] == 10**12
    assert found["tacit_queue",] == 7
    assert found["tacit_build_info", ("version", tacit.__version__)] == 1
    # What was not observed yet is 0, if it has no labels.
    assert found["tacit_rounds_total",] == 0
    assert found["tacit_is_ready",] == 0
    stage = ("stage", "compute")
    counts = [
        found["tacit_stage_seconds_bucket", ("le", bound), stage]
        for bound in (*map(str, BUCKETS), "+Inf")
    ]
    assert counts == [2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4]
    assert found["tacit_stage_seconds_count", stage] == 4
    assert found["tacit_stage_seconds_sum", stage] == pytest.approx(1000.0215)
    families = {each.name: each for each in text_string_to_metric_families(text)}
    assert families.keys() == {"tacit_build_info", *(f"tacit_{name}" for name in METRICS)}
    for name, metric in METRICS.items():
        assert families[f"tacit_{name}"].type == metric.kind
        assert families[f"tacit_{name}"].documentation == metric.help


def test_labels_are_escaped() -> None:
    observed, name = Observed(), 'a"b\\c\nd'
    observed.count("batches", 2, name, "1")
    found = samples(metrics.text(observed.snapshot()))
    assert found["tacit_batches_total", ("model", name), ("version", "1")] == 2


def test_pages_follow_the_party() -> None:
    observed = Observed()
    with StatusPages(observed, "127.0.0.1", 0) as pages:
        assert page(pages.address, "/healthz")[::2] == (200, "ok\n")
        assert page(pages.address, "/readyz")[::2] == (503, f"{NOT_READY}\n")
        host = f"127.0.0.1:{pages.address[1]}"
        assert ask_ready(host, 5) == (False, NOT_READY)
        observed.set("is_ready", 1)
        assert page(pages.address, "/readyz")[::2] == (200, "ok\n")
        assert ask_ready(host, 5) == (True, "ok")
        status, kind, text = page(pages.address, "/metrics?x=1")
        assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert samples(text)["tacit_is_ready",] == 1
        assert page(pages.address, "/metrics", "HEAD")[::2] == (200, "")
        assert page(pages.address, "/")[0] == 404
        assert page(pages.address, "/metrics", "POST")[0] == 405
        observed.set("is_ready", 0)
        assert page(pages.address, "/readyz")[0] == 503
    is_ready, said = ask_ready(host, 1)
    assert not is_ready
    assert said.startswith(f"no answer from http://{host}/readyz: ")


def test_pages_in_a_browser_are_refused() -> None:
    """A page may ask for a loopback address, also under a name of its own."""
    with StatusPages(Observed(), "127.0.0.1", 0) as pages:
        for path in ("/healthz", "/metrics"):
            for headers in ({"Origin": "http://localhost"}, {"Host": "evil.example"}):
                assert page(pages.address, path, headers=headers)[0] == 403
            for name in ("localhost:80", "127.0.0.1", "[::1]:9400"):
                assert page(pages.address, path, headers={"Host": name})[0] == 200
    # On a network Prometheus and probes ask by names and addresses that a party does not know.
    with StatusPages(Observed(), "0.0.0.0", 0) as pages:
        here = ("127.0.0.1", pages.address[1])
        assert page(here, "/healthz", headers={"Host": "10.1.2.3:9400"})[0] == 200
        assert page(here, "/healthz", headers={"Origin": "http://10.1.2.3:9400"})[0] == 403


def test_pages_take_no_body_and_few_connections() -> None:
    with StatusPages(Observed(), "127.0.0.1", 0) as pages:
        connection = http.client.HTTPConnection(*pages.address, timeout=10)
        connection.request("POST", "/metrics", b"x")
        assert connection.getresponse().status == 413
        connection.close()
        idle = [http.client.HTTPConnection(*pages.address, timeout=10) for _ in range(40)]
        for each in idle:
            each.connect()
        for each in idle:
            each.close()
        deadline = time.monotonic() + 5
        while page(pages.address, "/healthz")[0] != 200:
            assert time.monotonic() < deadline


def test_an_address_in_use_is_an_error_and_leaves_no_thread() -> None:
    with StatusPages(Observed(), "127.0.0.1", 0) as pages:
        before = threading.active_count()
        with pytest.raises(SetupError, match=r"cannot listen on 127\.0\.0\.1:\d+: "):
            StatusPages(Observed(), *pages.address)
        assert threading.active_count() == before
    assert "http" not in [thread.name for thread in threading.enumerate()]
