"""An exporter for OpenTelemetry's SDK that writes OTLP as JSON into a file, one request for export on each line.

The file exporter of OpenTelemetry's collector writes the same: https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

KINDS = {name: number for number, name in enumerate(("INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"), 1)}
"""opentelemetry.proto.trace.v1.Span.SpanKind."""


def _attributes(values: Mapping[str, object] | None) -> list[dict[str, object]]:
    return [
        {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)}}
        for key, value in (values or {}).items()
    ]


def _as_json(span: ReadableSpan) -> dict[str, object]:
    context = span.get_span_context()
    document: dict[str, object] = {
        "traceId": f"{context.trace_id:032x}",
        "spanId": f"{context.span_id:016x}",
        "name": span.name,
        "kind": KINDS[span.kind.name],
        "startTimeUnixNano": str(span.start_time),
        "endTimeUnixNano": str(span.end_time),
        "attributes": _attributes(span.attributes),
    }
    return document | ({"parentSpanId": f"{span.parent.span_id:016x}"} if span.parent else {})


class FileExporter(SpanExporter):
    """Appends to a file."""

    def __init__(self, path: Path) -> None:
        """Begin the file anew."""
        self._sink, self._lock = path.open("w", encoding="utf-8"), Lock()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write one line."""
        request = {
            "resourceSpans": [
                {
                    "resource": {"attributes": _attributes(span.resource.attributes)},
                    "scopeSpans": [{"scope": {"name": "examples/traces"}, "spans": [_as_json(span)]}],
                }
                for span in spans
            ]
        }
        with self._lock:
            self._sink.write(json.dumps(request) + "\n")
            self._sink.flush()
        return SpanExportResult.SUCCESS


def tracer(service: str, path: str) -> trace.Tracer:
    """Give a tracer whose spans go to a file."""
    provider = TracerProvider(resource=Resource({"service.name": service}))
    provider.add_span_processor(SimpleSpanProcessor(FileExporter(Path(path))))
    return provider.get_tracer("examples/traces")
