"""Spans that programs wrote about themselves: OTLP as JSON (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding).

In: files as the file exporter of OpenTelemetry's collector writes them: a request for export on each line, or one
document. Out: :class:`Span`, in the order of the files, and notes about what could not be read.
"""

import base64
import binascii
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from conchart.errors import CaptureError

KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")
"""By number: opentelemetry.proto.trace.v1.Span.SpanKind."""

_LONGEST = 1_024
"""Characters that are kept of a name or target."""
_MOST_NOTES = 3
_LATEST = (1 << 62) - 1
"""As far as the core has instants."""
_PORTS = 1 << 16
_ERROR = 2
"""StatusCode."""


@dataclass(slots=True)
class Span:
    """One span, with what its attributes say of the request that it is about."""

    number: int
    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits."""
    parent: str | None
    name: str
    kind: str
    """One of ``KINDS``."""
    service: str | None
    begin: int
    """Nanoseconds since the Unix epoch, on the clock of the program."""
    end: int
    method: str | None
    target: str | None
    """Path and query, as far as the attributes have them."""
    status: int | None
    failed: bool
    port: int | None
    """That of the server."""
    peer_port: int | None
    """Of a server's span, the port that its client sent from."""


@dataclass(frozen=True, slots=True)
class Spans:
    """What some files hold."""

    spans: tuple[Span, ...]
    notes: tuple[str, ...]
    """What could not be read of a file; each names it and its line."""


def read_spans(paths: Iterable[str | os.PathLike[str]]) -> Spans:
    """Read files of spans.

    Args:
        paths: Each file has an ``ExportTraceServiceRequest`` on each line, or is one.

    Returns:
        All spans, numbered from 0. Of a damaged file, what could be read; ``notes`` has the lines that could not.

    Raises:
        CaptureError: A file cannot be opened, or has no span that can be read.
    """
    spans: list[Span] = []
    notes: list[str] = []
    for path in paths:
        before, problems = len(spans), _Problems(os.fspath(path))
        for line, document in _documents(Path(path), problems):
            for resource, span in _spans(document):
                try:
                    spans.append(_span(len(spans), resource, span))
                except _Problem as problem:  # noqa: PERF203  (each span by itself)
                    problems.add(line, f"a span {problem}")
        added = len(spans) - before
        if not added:
            raise CaptureError(problems.nothing())
        notes += problems.notes(added)
    return Spans(tuple(spans), tuple(notes))


class _Problem(ValueError):
    """A span that is none."""


class _Problems:
    """What is wrong with a file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.count = 0
        self._first: list[str] = []

    def add(self, line: int, problem: str) -> None:
        self.count += 1
        if len(self._first) < _MOST_NOTES:
            self._first.append(f"line {line}: {problem}")

    def nothing(self) -> str:
        found = self._first[0] if self._first else "no span in it"
        return (
            f"{self.path}: {found}\n"
            '  Expected OTLP as JSON: {"resourceSpans": …} on each line, or as one document. Nothing was kept.\n'
            "  Try the file exporter of the OpenTelemetry collector, with its format json."
        )

    def notes(self, added: int) -> list[str]:
        rest = self.count - len(self._first)
        lines = [f"{self.path}, {one}; left out, {added:,} spans were kept" for one in self._first]
        return [*lines, f"{self.path}: {rest:,} more such lines or spans"] if rest else lines


def _documents(path: Path, problems: _Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    """Give the requests of a file, with the line on which each begins."""
    try:
        with path.open("rb") as file:
            if not (first := file.readline()):
                return
            if (document := _parsed(first)) is None:
                # One document that is written over many lines begins with a line that is none.
                whole = _parsed(first + file.read()) if first.lstrip()[:1] in (b"{", b"[") else None
                if whole is not None:
                    yield from ((1, one) for one in _requests(whole))
                    return
                file.seek(len(first))
                problems.add(1, "no JSON")
            else:
                yield from ((1, one) for one in _requests(document))
            for line, text in enumerate(file, 2):
                if not text.strip():
                    continue
                if (document := _parsed(text)) is None:
                    problems.add(line, "no JSON")
                yield from ((line, one) for one in _requests(document))
    except OSError as error:
        raise CaptureError(f"{problems.path}: cannot read spans: {error.strerror or error}") from None


def _parsed(text: bytes) -> Any:  # noqa: ANN401  (JSON)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _requests(document: Any) -> list[dict[str, Any]]:  # noqa: ANN401  (JSON)
    some = document if isinstance(document, list) else [document]
    return [one for one in some if isinstance(one, dict)]


def _listed(value: object, *names: str) -> Iterator[dict[str, Any]]:
    """Give the members of a list, under one of these names, that are objects."""
    if isinstance(value, dict):
        for name in names:
            if isinstance(found := value.get(name), list):
                yield from (one for one in found if isinstance(one, dict))


def _spans(document: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Give each span with the attributes of its resource."""
    for of_resource in _listed(document, "resourceSpans", "resource_spans"):
        resource = _attributes(of_resource.get("resource"))
        for scope in _listed(of_resource, "scopeSpans", "scope_spans", "instrumentationLibrarySpans"):
            for span in _listed(scope, "spans"):
                yield resource, span


def _attributes(of: object) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for one in _listed(of, "attributes"):
        value = one.get("value")
        if isinstance(value, dict) and isinstance(key := one.get("key"), str):
            # AnyValue: one member, whose name says the type.
            values[key] = next(iter(value.values()), None)
    return values


def _span(number: int, resource: Mapping[str, Any], span: dict[str, Any]) -> Span:
    attributes = _attributes(span)
    begin, end = _instant(span, "startTimeUnixNano"), _instant(span, "endTimeUnixNano")
    if end < begin:
        raise _Problem("ends before it begins")
    kind = span.get("kind", 0)
    if isinstance(kind, str):
        kind = kind.removeprefix("SPAN_KIND_").lower()
        kind = KINDS.index(kind) if kind in KINDS else 0
    status = span.get("status")
    code = status.get("code") if isinstance(status, dict) else None
    return Span(
        number=number,
        trace_id=_id(span, "traceId", 16),
        span_id=_id(span, "spanId", 8),
        parent=_id(span, "parentSpanId", 8) if span.get("parentSpanId") else None,
        name=_text(span.get("name")) or "",
        kind=KINDS[kind] if isinstance(kind, int) and 0 <= kind < len(KINDS) else KINDS[0],
        service=_text(resource.get("service.name")),
        begin=begin,
        end=end,
        method=_text(_first(attributes, "http.request.method", "http.method")),
        target=_target(attributes),
        status=_number(_first(attributes, "http.response.status_code", "http.status_code"), 1_000),
        failed=code in (_ERROR, "STATUS_CODE_ERROR"),
        port=_server_port(attributes),
        peer_port=_number(_first(attributes, "client.port", "network.peer.port", "net.peer.port"), _PORTS),
    )


def _instant(span: Mapping[str, Any], name: str) -> int:
    value = span.get(name)
    try:
        at = int(value) if isinstance(value, str | int) else -1
    except ValueError:
        at = -1
    if not 0 < at <= _LATEST:
        raise _Problem(f"without {name}")
    return at


def _id(span: Mapping[str, Any], name: str, length: int) -> str:
    """OTLP has ids in hexadecimal; what writes protobuf's own JSON has them in base64."""
    value = span.get(name)
    if isinstance(value, str):
        if re.fullmatch(f"[0-9a-fA-F]{{{2 * length}}}", value):
            return value.lower()
        try:
            raw = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        if len(raw) == length:
            return raw.hex()
    raise _Problem(f"whose {name} has no {2 * length} hexadecimal digits")


def _first(attributes: Mapping[str, Any], *names: str) -> Any:  # noqa: ANN401  (JSON)
    return next((attributes[name] for name in names if name in attributes), None)


def _text(value: object) -> str | None:
    return value[:_LONGEST].encode(errors="replace").decode() if isinstance(value, str) else None


def _number(value: object, below: int) -> int | None:
    try:
        number = int(value) if isinstance(value, str | int) else -1
    except ValueError:
        return None
    return number if 0 <= number < below else None


def _target(attributes: Mapping[str, Any]) -> str | None:
    """Give path and query: of the stable conventions, of the older ones, or out of the whole URL."""
    if (path := _text(attributes.get("url.path"))) is not None:
        query = _text(attributes.get("url.query"))
        return f"{path}?{query}" if query else path
    if (target := _text(attributes.get("http.target"))) is not None:
        return target
    if (url := _text(_first(attributes, "url.full", "http.url"))) is not None:
        try:
            parts = urlsplit(url)
        except ValueError:
            return None
        return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if (method := _text(attributes.get("rpc.method"))) is not None:
        service = _text(attributes.get("rpc.service"))
        return f"/{service}/{method}" if service else f"/{method}"
    return None


def _server_port(attributes: Mapping[str, Any]) -> int | None:
    if (port := _number(_first(attributes, "server.port", "net.host.port"), _PORTS)) is not None:
        return port
    if (url := _text(_first(attributes, "url.full", "http.url"))) is not None:
        try:
            parts = urlsplit(url)
            return parts.port or {"http": 80, "https": 443}.get(parts.scheme)
        except ValueError:
            return None
    return None
