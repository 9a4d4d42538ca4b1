"""Logs as lines of JSON, and spans where OpenTelemetry is installed."""

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest

from tacit import logs
from tacit.serving import spans
from tacit.serving.spans import span


def test_a_record_is_a_line_of_json() -> None:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logs.JsonFormatter())
    logger = logging.Logger("tacit.of.this.test")
    logger.addHandler(handler)
    fields = {"model": "lenet", "seconds": 0.25, "level": "not this"}
    logger.warning('a "%s"\nline', "quoted", extra={"fields": fields})
    logger.info("plain")
    first, second = map(json.loads, out.getvalue().splitlines())
    assert first.pop("time").endswith("Z")
    assert first == {
        "model": "lenet",
        "seconds": 0.25,
        "level": "warning",
        "logger": "tacit.of.this.test",
        "message": 'a "quoted"\nline',
    }
    assert second.keys() == {"time", "level", "logger", "message"}


@pytest.mark.parametrize(
    ("form", "kind", "said"),
    [
        ("", logging.Formatter, ""),
        ("text", logging.Formatter, ""),
        ("JSON", logs.JsonFormatter, ""),
        (
            "xml",
            logging.Formatter,
            "tacit: TACIT_LOG_FORMAT is 'xml', so logs are text: set it to text or json\n",
        ),
    ],
)
def test_the_form_is_chosen(
    form: str,
    kind: type,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(logs.FORMAT_VARIABLE, form)
    assert type(logs._formatter()) is kind
    assert capsys.readouterr().err == said


@pytest.fixture
def fresh() -> Iterator[None]:
    """Lets OpenTelemetry be looked for anew, in the test and after it."""
    spans._api.cache_clear()
    yield
    spans._api.cache_clear()


@pytest.mark.usefixtures("fresh")
def test_spans_have_public_words_alone() -> None:
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="`make setup` installs it")
    from opentelemetry import trace
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    with span("tacit.test", model="lenet"):
        pass
    with pytest.raises(ValueError), span("tacit.test"):
        raise ValueError("secret 4.25")
    good, bad = exporter.get_finished_spans()
    assert (good.name, dict(good.attributes), good.status.is_ok) == (
        "tacit.test",
        {"model": "lenet"},
        True,
    )
    assert (bad.status.description, bad.status.is_ok, bad.events) == ("ValueError", False, ())
    assert "secret" not in bad.to_json()


@pytest.mark.usefixtures("fresh")
def test_without_opentelemetry_spans_are_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ValueError), span("tacit.test"):
        raise ValueError
    with span("tacit.test"):
        pass
