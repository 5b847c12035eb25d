"""OTLP: what OpenTelemetry's own messages accept, with every parent in place, and what the tables say."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.semconv import attributes as stable
from opentelemetry.semconv._incubating import attributes as incubating

import conchart
from conchart import Trace
from conchart.outputs.formats.otlp import NAMES
from tests.charts.story import Story
from tests.conftest import ROOT, TellTrace

Exchange = tuple[int, int]


class Spans:
    """The spans of a trace, after OpenTelemetry's own parser."""

    def __init__(self, trace: Trace, folder: Path) -> None:
        trace.write(folder / "out.otlp.json")
        document = json.loads((folder / "out.otlp.json").read_text(encoding="utf-8"))
        self.request = ParseDict(_bytes(document), ExportTraceServiceRequest())
        self.all: list[Span] = [
            span for resource in self.request.resource_spans for scope in resource.scope_spans for span in scope.spans
        ]
        self.by_id = {span.span_id: span for span in self.all}
        assert len(self.by_id) == len(self.all), "ids are unique"
        for span in self.all:
            assert (len(span.trace_id), len(span.span_id)) == (16, 8)
            assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
            assert span.name
            if span.parent_span_id:
                parent = self.by_id.get(span.parent_span_id)
                # That of a request may be the client's own, which is not in the capture.
                assert parent.trace_id == span.trace_id if parent else span.kind == Span.SPAN_KIND_SERVER
        self.exchanges: dict[Exchange, Span] = {
            (values["conchart.stream"], values["conchart.exchange"]): span
            for span in self.all
            if span.kind == Span.SPAN_KIND_SERVER and (values := attributes(span))
        }

    def named(self, name: str) -> list[Span]:
        return [span for span in self.all if span.name == name and span.kind == Span.SPAN_KIND_INTERNAL]

    def took(self, name: str) -> int:
        return sum(span.end_time_unix_nano - span.start_time_unix_nano for span in self.named(name))


def _bytes(value: Any) -> Any:  # noqa: ANN401  (JSON)
    """Write ids as protobuf's own JSON has bytes: OTLP has them in hexadecimal."""
    if isinstance(value, list):
        return [_bytes(item) for item in value]
    if not isinstance(value, dict):
        return value
    ids = {"traceId", "spanId", "parentSpanId"}
    return {
        key: base64.b64encode(bytes.fromhex(item)).decode() if key in ids else _bytes(item)
        for key, item in value.items()
    }


def attributes(span: Span) -> dict[str, Any]:
    return {one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in span.attributes}


def conventions() -> set[str]:
    """Give every attribute that OpenTelemetry's semantic conventions know."""
    files = [file for package in (stable, incubating) for path in package.__path__ for file in Path(path).glob("*.py")]
    return {name for file in files for name in re.findall(r'Final = "([a-z0-9_.]+)"', file.read_text())}


def spans_agree(trace: Trace, folder: Path) -> None:
    """Spans are the rows of the tables, and links are parents."""
    spans = Spans(trace, folder)
    exchanges = trace.sql("SELECT stream, number, request_at FROM exchanges").fetchall()
    links = trace.sql("SELECT back_stream, back_exchange, front_stream, front_exchange FROM links").fetchall()
    ((request, wait, transfer),) = trace.sql(
        "SELECT sum(request_ns), sum(wait_ns), sum(transfer_ns) FROM exchanges"
    ).fetchall()
    ((opening, connects),) = trace.sql(
        "SELECT coalesce(sum(end_at - start_at), 0), count(*) FROM phases WHERE kind = 'syn'"
    ).fetchall()
    ((securing, handshakes),) = trace.sql(
        "SELECT coalesce(sum(ready_at - hello_at), 0), count(*) FROM handshakes WHERE ready_at IS NOT NULL"
    ).fetchall()
    names = trace.sql("SELECT coalesce(names[1], server_ip || ':' || server_port) FROM servers").fetchall()
    assert {key: span.start_time_unix_nano for key, span in spans.exchanges.items()} == {
        (stream, number): at for stream, number, at in exchanges
    }
    parents = {row[:2]: row[2:] for row in links}
    for key, span in spans.exchanges.items():
        parent = spans.exchanges[parents[key]].span_id if key in parents else b""
        assert span.parent_span_id == parent
    assert (spans.took("request"), spans.took("wait"), spans.took("transfer")) == (request, wait, transfer)
    assert (spans.took("connect"), len(spans.named("connect"))) == (opening, connects)
    ready = [span for span in spans.named("tls handshake") if attributes(span)["tls.established"]]
    assert sum(span.end_time_unix_nano - span.start_time_unix_nano for span in ready) == securing
    assert len(ready) == handshakes
    services = {
        attribute.value.string_value for one in spans.request.resource_spans for attribute in one.resource.attributes
    }
    assert services >= {name for (name,) in names[: len(spans.request.resource_spans)]}
    used = {key for span in spans.all for key in attributes(span) if not key.startswith("conchart.")}
    assert used <= conventions()
    stalls = [span for span in spans.all if span.name.startswith("stall ")]
    ((stalled, held),) = trace.sql("SELECT count(*), coalesce(sum(end_at - start_at), 0) FROM phase_stalls").fetchall()
    assert (len(stalls), sum(one.end_time_unix_nano - one.start_time_unix_nano for one in stalls)) == (stalled, held)


def test_every_attribute_that_can_be_written_is_in_the_registry_or_conchart_s_own() -> None:
    assert {name for name in NAMES if not name.startswith("conchart.")} <= conventions()
    assert {"process.pid", "k8s.pod.name", "container.id", "tls.cipher", "url.path", "service.name"} <= NAMES


def test_a_stall_is_a_child_of_what_it_held_up(tmp_path: Path) -> None:
    with conchart.read(ROOT / "captures/stalls/nagle-request-far-client/input.pcap") as trace:
        spans_agree(trace, tmp_path)
        spans = Spans(trace, tmp_path)
    stalls = [span for span in spans.all if span.name == "stall nagle"]
    assert stalls
    for span in stalls:
        assert spans.by_id[span.parent_span_id].kind == Span.SPAN_KIND_SERVER
        assert attributes(span)["conchart.stall.kind"] == "nagle"


def test_a_cause_that_is_unlikely_is_a_link_and_no_parent(
    trace_of: TellTrace, proxy_story: Story, tmp_path: Path
) -> None:
    trace = trace_of(proxy_story)
    trace.provide("links")
    trace.execute("UPDATE links SET confidence = 0.4, method = 'time'")
    spans = Spans(trace, tmp_path)
    links = trace.sql("SELECT back_stream, back_exchange, front_stream, front_exchange FROM links").fetchall()
    assert links
    for *back, front_stream, front_exchange in links:
        behind, before = spans.exchanges[back[0], back[1]], spans.exchanges[front_stream, front_exchange]
        assert not behind.parent_span_id
        (link,) = behind.links
        assert (link.trace_id, link.span_id) == (before.trace_id, before.span_id)
        assert {one.key for one in link.attributes} == {"conchart.link.method", "conchart.link.confidence"}


def test_a_resource_is_the_process_that_owns_the_sockets(tmp_path: Path) -> None:
    with conchart.read(ROOT / "captures/traces/processes/input.pcapng") as trace:
        request = Spans(trace, tmp_path).request
        ((pid,),) = trace.sql("SELECT DISTINCT server_pid FROM connections WHERE server_port = 80").fetchall()
    front = {
        one.key: getattr(one.value, str(one.value.WhichOneof("value")))
        for one in request.resource_spans[0].resource.attributes
    }
    assert front.items() >= {
        ("process.pid", pid),
        ("process.executable.name", "nginx"),
        ("process.executable.path", "/usr/sbin/nginx"),
        ("container.name", "front"),
        ("k8s.pod.name", "front-7d4f"),
        ("k8s.namespace.name", "shop"),
    }


def test_a_request_that_names_its_span_is_that_spans_child(tmp_path: Path) -> None:
    with conchart.read(ROOT / "captures/traces/ids/input.pcap") as trace:
        request = Spans(trace, tmp_path).request
        expected = trace.sql(
            "SELECT DISTINCT id[13:], parent_span FROM (SELECT unnest(ids) AS id, parent_span FROM exchanges) "
            "WHERE starts_with(id, 'traceparent:')"
        ).fetchall()
    front = request.resource_spans[0].scope_spans[0].spans
    found = {(span.trace_id.hex(), span.parent_span_id.hex()) for span in front if span.kind == Span.SPAN_KIND_SERVER}
    assert len(found) == 128
    assert found == set(expected)


def test_the_handshakes_of_a_connection_belong_to_its_first_request(story: Trace, tmp_path: Path) -> None:
    spans = Spans(story, tmp_path)
    exchange = spans.exchanges[0, 0]
    for name in ("connect", "tls handshake"):
        (span,) = spans.named(name)
        assert span.parent_span_id == exchange.span_id
    assert attributes(spans.named("tls handshake")[0]).items() >= {
        ("tls.protocol.version", "1.2"),
        ("tls.next_protocol", "http/1.1"),
        ("tls.resumed", False),
    }


def test_a_request_tells_what_the_conventions_ask_for(story: Trace, tmp_path: Path) -> None:
    story.execute(
        """
        UPDATE exchanges SET protocol = 'http/1.1', kind = 'web', method = 'BREW', host = 'shop.example:443',
            target = '/pot?a=b?c', status = 503, status_text = '503', user_agent = 'tea/1'
        """
    )
    exchange = Spans(story, tmp_path).exchanges[0, 0]
    assert attributes(exchange).items() >= {
        ("http.request.method", "_OTHER"),
        ("http.request.method_original", "BREW"),
        ("url.scheme", "https"),
        ("url.path", "/pot"),
        ("url.query", "a=b?c"),
        ("http.response.status_code", 503),
        ("error.type", "503"),
        ("server.address", "shop.example"),
        ("server.port", 443),
        ("client.address", "10.0.0.5"),
        ("network.protocol.version", "1.1"),
        ("user_agent.original", "tea/1"),
        ("conchart.wireshark", "tcp.stream eq 0"),
    }
    assert exchange.status.code == Status.STATUS_CODE_ERROR


def test_a_call_of_grpc_tells_what_the_conventions_ask_for(tmp_path: Path) -> None:
    with conchart.read(ROOT / "captures/messages/grpc/input.pcap") as trace:
        spans_agree(trace, tmp_path)
        spans = Spans(trace, tmp_path).exchanges
    full = spans[0, 4]
    assert full.name == "shop.Orders/Full"
    assert attributes(full).items() >= {
        ("rpc.system.name", "grpc"),
        ("rpc.method", "shop.Orders/Full"),
        ("rpc.response.status_code", "UNAVAILABLE"),
        ("http.response.status_code", 200),
        ("network.protocol.version", "2"),
        ("error.type", "UNAVAILABLE"),
    }
    assert full.status.code == Status.STATUS_CODE_ERROR
    assert spans[0, 1].status.code == Status.STATUS_CODE_UNSET


@pytest.mark.parametrize(
    ("ids", "taken"),
    [
        (["x-request-id:7", f"traceparent:{'0af7651916cd43dd8448eb211c80319c'}"], "0af7651916cd43dd8448eb211c80319c"),
        ([f"traceparent:{'0' * 32}"], None),
        (["traceparent:0af7"], None),
        ([f"x-traceparent:{'a' * 32}"], None),
    ],
)
def test_the_clients_own_trace_goes_on(story: Trace, tmp_path: Path, ids: list[str], taken: str | None) -> None:
    ordinary = Spans(story, tmp_path).exchanges[0, 0].trace_id
    story.execute("UPDATE exchanges SET ids = ?", [ids])
    spans = Spans(story, tmp_path)
    assert {span.trace_id for span in spans.all if attributes(span)["conchart.stream"] == 0} == {
        bytes.fromhex(taken) if taken else ordinary
    }


def test_a_refused_connection_is_a_failed_span(story: Trace, tmp_path: Path) -> None:
    story.execute(
        """
        INSERT INTO phases BY NAME SELECT stream, 'syn' AS kind, opened_at AS start_at, closed_at AS end_at,
            3 AS start_frame, 3 AS end_frame, false AS inferred FROM connections WHERE stream = 2
        """
    )
    (span,) = (one for one in Spans(story, tmp_path).named("connect") if attributes(one)["conchart.stream"] == 2)
    assert (span.status.code, span.status.message) == (Status.STATUS_CODE_ERROR, "unanswered")
    assert not span.parent_span_id


def test_a_connection_that_opens_in_two_stretches_has_a_span_for_each(story: Trace, tmp_path: Path) -> None:
    """As where packets are stored in any order."""
    story.execute(
        """
        INSERT INTO phases BY NAME
        SELECT * REPLACE (start_at + 300_000_000 AS start_at, end_at + 300_000_000 AS end_at)
        FROM phases WHERE kind = 'syn'
        """
    )
    assert len(Spans(story, tmp_path).named("connect")) == 2


def test_a_connection_that_a_request_asked_for_belongs_to_that_request(
    trace_of: TellTrace, proxy_story: Story, tmp_path: Path
) -> None:
    trace = trace_of(proxy_story)
    trace.execute("UPDATE links SET back_exchange = NULL")
    spans = Spans(trace, tmp_path)
    links = trace.sql("SELECT back_stream, front_stream, front_exchange FROM links").fetchall()
    connects = {attributes(span)["conchart.stream"]: span for span in spans.named("connect")}
    assert links
    for back, *front in links:
        assert connects[back].parent_span_id == spans.exchanges[front[0], front[1]].span_id


def test_of_a_response_before_the_end_of_its_request_nobody_waited(story: Trace, tmp_path: Path) -> None:
    story.execute(
        """
        UPDATE exchanges SET request_done_at = request_at + 7, response_at = request_at + 3,
            response_done_at = request_at + 5
        """
    )
    spans = Spans(story, tmp_path)
    assert (spans.took("request"), spans.took("wait"), spans.took("transfer")) == (7, 0, 2)
    exchange = spans.exchanges[0, 0]
    assert exchange.end_time_unix_nano - exchange.start_time_unix_nano == 7


def test_the_same_capture_has_the_same_ids_and_another_has_others(story: Trace, tmp_path: Path) -> None:
    before = set(Spans(story, tmp_path).by_id)
    assert set(Spans(story, tmp_path).by_id) == before
    story.execute("UPDATE connections SET opened_at = opened_at + 1")
    assert not set(Spans(story, tmp_path).by_id) & before
