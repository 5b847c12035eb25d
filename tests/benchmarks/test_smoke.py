"""The benchmark works: its captures are what they claim to be, and its runner measures. Nothing here is timed."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

import pytest

import conchart
from tests.benchmarks import live, record, run
from tests.benchmarks.generate import (
    BULK_CONNECTIONS,
    PACKETS_PER_CONNECTION,
    REQUESTS,
    SHAPES,
    SNAPSHOT,
    Shape,
    generate,
)
from tests.benchmarks.results import Result
from tests.benchmarks.targets import verdicts
from tests.benchmarks.tools import CONCHART, OURS, PAGE, PAST, REFERENCE, TEXT, Run, Tool, measure
from tests.benchmarks.widths import widths
from tests.conftest import ROOT


@pytest.mark.parametrize("shape", SHAPES)
def test_a_generated_capture_is_read_whole_and_clean(tmp_path: Path, shape: Shape) -> None:
    path = tmp_path / "input.pcap"
    packets = generate(shape, path, 2_000)
    with conchart.read(path) as trace:
        counts = "packets, selected, undecodable, other, snapped, duplicates, truncated"
        snapped = sum(size > SNAPSHOT for size in wire_sizes(path)) if shape == "headers" else 0
        assert trace.sql(f"SELECT {counts} FROM captures").fetchall() == [(packets, packets, 0, 0, snapped, 0, False)]
        states = "state, app, sum(retransmits_client + retransmits_server + out_of_order_client + out_of_order_server)"
        query = f"SELECT {states}, count(*) FROM connections GROUP BY state, app"
        connections = (
            BULK_CONNECTIONS if shape in ("bulk", "headers", "small") else packets // PACKETS_PER_CONNECTION[shape]
        )
        encrypted = shape in ("full", "resumed")
        assert trace.sql(query).fetchall() == [("complete", "tls" if encrypted else "http/1.1", 0, connections)]
        handshakes = "SELECT kind, outcome, count(*) FROM handshakes GROUP BY ALL"
        kind = {"full": "full", "resumed": "psk"}.get(shape)
        assert trace.sql(handshakes).fetchall() == ([(kind, "complete", connections)] if kind else [])
        answered = "exchanges WHERE status = 200 AND response_done_at IS NOT NULL"
        requests = 0 if encrypted else connections * (REQUESTS if shape == "keepalive" else 1)
        assert trace.sql(f"SELECT count(*) FROM {answered}").fetchall() == [(requests,)]


def test_short_connections_overlap(tmp_path: Path) -> None:
    path = tmp_path / "input.pcap"
    generate("full", path, 2_000)
    with conchart.read(path) as trace:
        query = """SELECT max(open) FROM (SELECT a.stream, count(*) AS open FROM connections a JOIN connections b
            ON b.opened_at <= a.opened_at AND a.opened_at < b.closed_at GROUP BY a.stream)"""
        ((most,),) = trace.sql(query).fetchall()
    assert most > 20


def test_the_same_capture_is_generated_twice(tmp_path: Path) -> None:
    for name in ("one", "two"):
        generate("resumed", tmp_path / name, 500)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.skipif(bool(live.missing("http2")), reason="needs root, iproute2, nginx, wrk, h2load, openssl and tcpdump")
@pytest.mark.parametrize(
    ("shape", "ends", "kind", "requests"),
    [("resumed", "loopback", "psk", 1), ("full", "apart", "full", 1), ("keepalive", "apart", None, 2)]
    + [("headers", "loopback", None, 0), ("http2", "loopback", "full", 2)],
)
def test_a_live_capture_is_of_its_shape(
    tmp_path: Path, shape: live.Shape, ends: live.Ends, kind: str | None, requests: int
) -> None:
    path = tmp_path / "input.pcap"
    assert live.capture(shape, path, 3_000, ends).startswith("3000 packets captured")
    with conchart.read(path) as trace:
        kinds = "SELECT mode(kind) FROM handshakes WHERE outcome = 'complete' AND version = 'TLSv1.3'"
        assert trace.sql(kinds).fetchall() == [(kind,)]
        per_connection = "SELECT count(*) / count(DISTINCT stream) FROM exchanges"
        ((found,),) = trace.sql(per_connection).fetchall()
        assert found > 1 if requests > 1 else found <= 1
        shared = "SELECT DISTINCT client_ip = server_ip FROM connections"
        assert trace.sql(shared).fetchall() == [(ends == "loopback",)]
        ((snapped,),) = trace.sql("SELECT snapped FROM captures").fetchall()
        assert (snapped > 0) == (shape == "headers")


@pytest.mark.skipif(
    bool(live.missing("redis")), reason="needs root, iproute2, redis-server, redis-benchmark and tcpdump"
)
@pytest.mark.parametrize(("shape", "least", "most"), [("redis", 0, 1), ("pipelined", 3, 16)])
def test_a_live_capture_of_redis_has_its_pipelines(tmp_path: Path, shape: live.Shape, least: int, most: int) -> None:
    path = tmp_path / "input.pcap"
    assert live.capture(shape, path, 3_000, "loopback").startswith("3000 packets captured")
    with conchart.read(path) as trace:
        query = "SELECT count(*), count(DISTINCT stream), mode(method) FROM exchanges WHERE method <> 'CONFIG GET'"
        ((commands, connections, method),) = trace.sql(query).fetchall()
    assert (connections, method) == (20, "GET")
    assert least < commands / 3_000 <= most


@pytest.mark.timeout(300)
def test_the_runner_measures_time_and_memory_of_each_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "input.pcap"
    packets = generate("full", path, 2_000)
    result, _ = run.benchmark(path, 1, name="generated full", shape="full", only=[*OURS], before=ROOT)
    assert result.packets == packets
    for tool in OURS:
        for middle in (result.middle(tool), result.middle(tool + PAST)):
            assert middle.problem is None
            assert middle.seconds is not None
            assert 0 < middle.seconds < 30
            assert middle.busy is not None
            assert middle.busy > 0
            assert middle.memory is not None
            assert middle.memory > 2**20
            assert (middle.written or 0) > 100_000 if tool == PAGE else middle.written is None
    assert result.connections == packets // PACKETS_PER_CONNECTION["full"]
    assert result.ratio(CONCHART) is None
    assert result.problem(REFERENCE) == "left out"


def test_a_missing_tool_and_a_failing_one_are_reported() -> None:
    assert measure(Tool(["no-such-tool-anywhere"])).problem == "not installed"
    problem = measure(Tool([sys.executable, "-c", "raise SystemExit('no good')"])).problem
    assert problem == "exit 1: no good"


def test_a_ratio_is_the_median_of_the_ratios_of_the_rounds(tmp_path: Path) -> None:
    """The second round was slow for both; the slow tool ran once."""
    copies = [Run(1.0, 0.5, 1), Run(4.0, 1.0, 1), Run(1.0, 0.5, 1)]
    ours = [Run(2.0, 1.0, 1), Run(8.0, 2.0, 1), Run(1.0, 2.0, 1)]
    runs = {REFERENCE: copies, CONCHART: ours, "argus": [Run(50.0, 5.0, 1)]}
    result = Result("generated full", "full", tmp_path, 1, runs)
    assert (result.ratio(CONCHART), result.ratio(CONCHART, "busy")) == (2.0, 2.0)
    assert result.ratio("argus") == 50.0
    assert result.middle(CONCHART).seconds == 2.0


def of_one_round(name: str, path: Path, **costs: Run) -> Result:
    """A result where every tool ran once; the copy took a second."""
    named = {"read": CONCHART, "text": TEXT, "page": PAGE, "past": CONCHART + PAST, "argus": "argus"}
    runs = {REFERENCE: [Run(1.0, 1.0, 1)]} | {named[key]: [run] for key, run in costs.items()}
    return Result(name, name.split()[-1], path, 1, runs)


def missed(*results: Result) -> list[str]:
    return [text.partition(": ")[2] for met, text in verdicts(list(results)) if not met]


def test_verdicts_compare_with_the_targets(tmp_path: Path) -> None:
    mib = 2**20
    good = of_one_round(
        "loopback resumed",
        tmp_path,
        read=Run(4.0, 6.0, 150 * mib, connections=37_000),
        text=Run(12.0, 13.0, 200 * mib),
        page=Run(16.0, 17.0, 340 * mib, written=11 * mib),
        past=Run(3.8, 6.0, 1),
        argus=Run(4.1, 6.1, 1),
    )
    assert missed(good) == []
    bad = of_one_round(
        "loopback resumed",
        tmp_path,
        read=Run(4.2, 6.1, 151 * mib, connections=37_000),
        text=Run(12.1, 13.0, 200 * mib),
        page=Run(16.1, 17.0, 351 * mib, written=13 * mib),
        past=Run(3.8, 6.0, 1),
        argus=Run(4.4, 5.9, 1),
    )
    assert missed(bad) == [
        "4.20 x tcpdump -w /dev/null; target 4.0 x",
        "conchart.read takes 6.1 x the processor time of tcpdump -w /dev/null; target 6.0 x",
        "conchart F takes 12.1 x the wall time of tcpdump -w /dev/null; target 12.0 x",
        "conchart F -w F.html takes 16.1 x the wall time of tcpdump -w /dev/null; target 16.0 x",
        "reading takes 151 MiB; target 150 MiB",
        "the page takes 351 MiB; target 350 MiB",
        "the page has 13.0 MiB; target 12.0 MiB",
        "argus takes 1.05 x the wall and 0.97 x the processor time of conchart.read; target > 1 x",
        "conchart.read: 1.11 x the time of before; target 1.1 x",
    ]


def test_memory_may_not_grow_with_a_transfer(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(bytes(4))
    large.write_bytes(bytes(16))
    results = [
        of_one_round("generated quarter bulk", small, read=Run(0.4, 0.4, 100)),
        of_one_round("generated bulk", large, read=Run(0.4, 0.4, 200)),
    ]
    assert missed(*results) == ["a file 4.0 times as large takes 2.00 times the memory; target 1.25"]


def test_a_column_of_long_integers_takes_more_than_one_of_words() -> None:
    with conchart.read(ROOT / "captures/reverse-proxy/https/input.pcap") as trace:
        by_column = {width.column: width for width in widths(trace, "phases", trace.count("phases"))}
    assert 8 <= by_column["start_at"].bytes <= 16
    assert 1 <= by_column["kind"].bytes < by_column["stream"].bytes < by_column["start_at"].bytes
    assert (by_column["kind"].kind, by_column["kind"].is_empty) == ("ENUM", False)


def test_the_page_and_the_curve_agree_with_the_record() -> None:
    text = record.PAGE.read_text()
    assert f"{record.BEGIN}\n\n{record.shown(record.lines())}\n\n{record.END}" in text
    assert record.fingerprint() in record.CURVE.read_text()


def test_a_line_of_the_record_names_the_machine_and_nothing_of_whose_it_is(tmp_path: Path) -> None:
    result = of_one_round(
        "loopback resumed", tmp_path, read=Run(2.0, 3.0, 2**27, connections=5), argus=Run(4.0, 2.0, 2**20)
    )
    line = record.line("a landing", ROOT, [result], "", 1)
    assert line["machine"].keys() == {"cpu", "cores", "memory_gb", "kernel"}
    one = line["captures"]["loopback resumed"]
    assert one["tools"] == {CONCHART: {"wall": 2.0, "cpu": 3.0, "mib": 128}}
    assert one["peers"] == {"argus": {"wall": 4.0, "cpu": 2.0, "mib": 1}}
    assert str(ROOT) not in json.dumps(line)
    assert "2.00 × (3.00 ×), 128 MiB" in record.shown([line])


def wire_sizes(path: Path) -> list[int]:
    """How long the packets of a little-endian pcap file were."""
    sizes = []
    with path.open("rb") as file:
        file.seek(24)
        while len(head := file.read(16)) == 16:
            captured, size = struct.unpack_from("<II", head, 8)
            sizes.append(size)
            file.seek(captured, 1)
    return sizes
