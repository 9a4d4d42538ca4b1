"""Spans of OpenTelemetry, if a program has installed it; otherwise nothing.

A span has names, counts and times. It never has a value of a tensor, nor the text of an error,
which may quote one."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


@contextmanager
def span(name: str, **attributes: str | int | float) -> Iterator[None]:
    """Makes the block a span. An error is noted by its type alone.

    Args:
        name: what the block does, such as ``tacit.gateway.infer``.
        attributes: public words and counts.
    """
    trace = _api()
    if trace is None:
        yield
        return
    tracer = trace.get_tracer("tacit")
    with tracer.start_as_current_span(
        name, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield
        except BaseException as error:
            current.set_status(trace.StatusCode.ERROR, type(error).__name__)
            raise


@cache
def _api() -> Any:
    """Returns OpenTelemetry's module for spans, or None. A module that is not there is looked for
    once, since the search takes longer than a span."""
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace
