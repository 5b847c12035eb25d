"""Spans of real programs are matched with their requests: by ids, and by time where there are none."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import conchart
from conchart import Trace
from tests.conftest import ROOT

CASES = ROOT / "captures/traces"
FILES = ("visitor.otlp.json", "shop.otlp.json")


def spans_of(case: str) -> Iterator[tuple[str, dict[str, object], dict[str, str]]]:
    """Give file, span and attributes of each span of a case."""
    for name in FILES:
        for line in (CASES / case / name).read_text().splitlines():
            for resource in json.loads(line)["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    for span in scope["spans"]:
                        values = {one["key"]: str(next(iter(one["value"].values()))) for one in span["attributes"]}
                        yield name, span, values


def truth(case: str) -> dict[str, int]:
    """Give the number of the request that each span says it is about, by the span's id."""
    return {
        str(span["spanId"]): int(values["lab.request"]) for _, span, values in spans_of(case) if "lab.request" in values
    }


def read(case: str, spans: list[Path] | None = None) -> Trace:
    files = spans if spans is not None else [CASES / case / name for name in FILES]
    return conchart.read(CASES / case / "input.pcap", spans=files)


def matched(trace: Trace) -> dict[str, tuple[int, bool]]:
    """Give for each matched span the number of its request, and whether that is on its side of the proxy."""
    rows = trace.fetch(
        """
        SELECT span_id, (
                SELECT any_value(id[14:]) FROM (SELECT unnest(ids) AS id) WHERE starts_with(id, 'x-request-id:'))::INT,
            server_port = if(spans.kind = 'client', 80, 8080)
        FROM spans JOIN exchanges ON exchanges.stream = spans.stream AND exchanges.number = spans.exchange
        JOIN connections ON connections.stream = spans.stream
        """
    )
    return {span: (number, side) for span, number, side in rows}


def shifted(case: str, folder: Path, by: dict[str, int]) -> list[Path]:
    """Write the spans of a case again, on clocks that are ahead by so many nanoseconds."""
    paths = []
    for name in FILES:
        lines = []
        for line in (CASES / case / name).read_text().splitlines():
            document = json.loads(line)
            for resource in document["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    for span in scope["spans"]:
                        for instant in ("startTimeUnixNano", "endTimeUnixNano"):
                            span[instant] = str(int(span[instant]) + by.get(name, 0))
            lines.append(json.dumps(document))
        paths.append(folder / name)
        paths[-1].write_text("\n".join(lines) + "\n")
    return paths


def quality(case: str, spans: list[Path] | None = None) -> tuple[float, float]:
    """Give precision and recall."""
    expected = truth(case)
    with read(case, spans) as trace:
        found = matched(trace)
    right = sum(found[span] == (expected[span], True) for span in found)
    return right / len(found), right / len(expected)


def test_by_ids_every_span_finds_its_request() -> None:
    assert quality("ids") == (1, 1)


def test_ids_need_no_clock(tmp_path: Path) -> None:
    hours = {FILES[0]: 3 * 3_600_000_000_000, FILES[1]: -7_000_000_000}
    spans = shifted("ids", tmp_path, hours)
    assert quality("ids", spans) == (1, 1)
    with read("ids", spans) as trace:
        clocks = dict(
            trace.fetch(
                "SELECT service, (any_value(clock_offset_ns), any_value(uncertainty_ns)) FROM spans GROUP BY ALL"
            )
        )
    for service, name in (("visitor", FILES[0]), ("shop", FILES[1])):
        offset, uncertainty = clocks[service]
        assert abs(offset + hours[name]) <= uncertainty


def test_without_ids_64_at_a_time_are_told_apart_as_far_as_times_tell() -> None:
    precision, recall = quality("no-ids")
    assert precision >= 0.92
    assert recall >= 0.6


def test_without_ids_servers_are_known_by_the_port_of_their_client() -> None:
    expected = truth("no-ids")
    with read("no-ids") as trace:
        found = matched(trace)
        servers = [span for (span,) in trace.fetch("SELECT span_id FROM spans WHERE kind = 'server'")]
    assert [found.get(span) for span in servers] == [(expected[span], True) for span in servers]


def test_without_ids_the_clock_of_a_service_is_found(tmp_path: Path) -> None:
    """All requests of this case without ids, on a clock that is an hour ahead."""
    expected = truth("ids")
    ahead = 1_800_000_000_000
    with read("ids", shifted("ids", tmp_path, {FILES[1]: ahead})) as trace:
        trace.execute("UPDATE exchanges SET parent_span = NULL")
        found = matched(trace)
        ((offset, uncertainty),) = trace.fetch(
            "SELECT DISTINCT clock_offset_ns, uncertainty_ns FROM spans WHERE kind = 'server'"
        )
    assert abs(offset + ahead) <= uncertainty
    right = sum(found[span] == (expected[span], True) for span in found)
    assert right / len(found) >= 0.95


def test_ids_that_nobody_sent_are_matched_by_time(tmp_path: Path) -> None:
    """Of the case with ids, without them: 16 at a time."""
    expected = truth("ids")
    with read("ids") as trace:
        trace.execute("UPDATE exchanges SET parent_span = NULL")
        found = matched(trace)
    right = sum(found[span] == (expected[span], True) for span in found)
    assert right / len(found) >= 0.95
    assert right / len(expected) >= 0.8


def test_nothing_is_dropped_and_what_is_not_matched_says_why() -> None:
    with read("ids") as trace:
        rows = dict(trace.fetch("SELECT coalesce(unmatched, matched_by), count(*) FROM spans GROUP BY ALL"))
    assert rows == {"traceparent": 256, "internal": 128}
    with conchart.read(CASES / "no-ids/input.pcap", spans=[CASES / "ids" / name for name in FILES]) as trace:
        rows = dict(trace.fetch("SELECT coalesce(unmatched, matched_by), count(*) FROM spans GROUP BY ALL"))
    assert rows == {"outside the capture": 256, "internal": 128}


def test_a_span_is_the_wire_the_server_and_the_client_itself() -> None:
    with read("ids") as trace:
        rows = trace.fetch(
            """
            SELECT client.end_at - client.begin_at, client.before_ns + client.wire_ns + client.behind_ns,
                server.end_at - server.begin_at
            FROM spans client JOIN spans server ON server.parent_span = client.span_id WHERE client.kind = 'client'
            """
        )
    assert len(rows) == 128
    for whole, parts, server in rows:
        assert whole == parts + server


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"", "no span in it"),
        (b"not json\n", "line 1: no JSON"),
        (b'{"resourceSpans": []}\n', "no span in it"),
        (b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "7"}]}]}]}\n', "line 1: a span without startTime"),
        (b"[" * 100_000, "line 1: no JSON"),
        (b"\xff\xfe\x00", "line 1: no JSON"),
    ],
)
def test_a_file_without_spans_is_refused(tmp_path: Path, text: bytes, complaint: str) -> None:
    (tmp_path / "bad.json").write_bytes(text)
    with pytest.raises(conchart.CaptureError) as caught:
        read("ids", [tmp_path / "bad.json"])
    assert complaint in str(caught.value)
    assert "Expected OTLP as JSON" in str(caught.value)
    with pytest.raises(conchart.CaptureError, match="No such file"):
        read("ids", [tmp_path / "nothing.json"])


def test_lines_that_are_damaged_are_counted_and_the_others_kept(tmp_path: Path) -> None:
    good = (CASES / "ids" / FILES[0]).read_text().splitlines()
    nonsense = json.loads(good[0])
    nonsense["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["spanId"] = "\x1b[31m"
    (tmp_path / "cut.json").write_text("\n".join([*good[:10], "{", json.dumps(nonsense), good[11][:200]]))
    with read("ids", [tmp_path / "cut.json"]) as trace:
        (((notes),),) = trace.fetch("SELECT notes FROM captures")
        assert trace.fetch("SELECT count(*) FROM spans") == [(10,)]
    assert [note.split(", ", 1)[1] for note in notes if "cut.json" in note] == [
        "line 11: no JSON; left out, 10 spans were kept",
        "line 12: a span whose spanId has no 16 hexadecimal digits; left out, 10 spans were kept",
        "line 13: no JSON; left out, 10 spans were kept",
    ]


def test_a_document_over_many_lines_and_ids_in_base64_are_read(tmp_path: Path) -> None:
    """As protobuf's own JSON has them."""
    from google.protobuf.json_format import MessageToJson, ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    from tests.exports.test_otlp import _bytes

    document = json.loads((CASES / "ids" / FILES[0]).read_text().splitlines()[0])
    (tmp_path / "whole.json").write_text(MessageToJson(ParseDict(_bytes(document), ExportTraceServiceRequest())))
    with read("ids", [tmp_path / "whole.json"]) as trace:
        assert trace.fetch("SELECT matched_by, kind, method, status FROM spans") == [
            ("traceparent", "client", "GET", 200)
        ]
