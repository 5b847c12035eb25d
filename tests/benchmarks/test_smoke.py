"""The benchmark works: its captures are what they claim to be, and its runner measures. Nothing here is timed."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

import conchart
from tests.benchmarks import live, run
from tests.benchmarks.generate import (
    BULK_CONNECTIONS,
    PACKETS_PER_CONNECTION,
    REQUESTS,
    SHAPES,
    SNAPSHOT,
    Shape,
    generate,
)
from tests.benchmarks.run import BEFORE, CONCHART, PAGE, PAST, REFERENCE, SUMMARY, Result, Run
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


@pytest.mark.skipif(bool(live.missing()), reason="needs root, iproute2, nginx, wrk, openssl and tcpdump")
@pytest.mark.parametrize(("shape", "kind"), [("resumed", "psk"), ("full", "full"), ("keepalive", None)])
def test_a_live_capture_is_of_its_shape(tmp_path: Path, shape: Shape, kind: str | None) -> None:
    path = tmp_path / "input.pcap"
    assert live.capture(shape, path, 3_000).startswith("3000 packets captured")
    with conchart.read(path) as trace:
        kinds = "SELECT mode(kind) FROM handshakes WHERE outcome = 'complete' AND version = 'TLSv1.3'"
        assert trace.sql(kinds).fetchall() == [(kind,)]
        per_connection = "SELECT count(*) / count(DISTINCT stream) > 2 FROM exchanges"
        assert trace.sql(per_connection).fetchall() == [(shape == "keepalive",)]


def test_the_runner_measures_time_and_memory_of_a_read(tmp_path: Path) -> None:
    path = tmp_path / "input.pcap"
    packets = generate("full", path, 2_000)
    result = run.benchmark("full", path, packets, 2, [CONCHART])
    best = result.best(CONCHART)
    assert best.problem is None
    assert best.seconds is not None
    assert 0 < best.seconds < 30
    assert best.busy is not None
    assert best.busy > 0
    assert best.memory is not None
    assert best.memory > 2**20
    assert f"{packets:,} packets" in best.note
    assert result.best(REFERENCE).problem == "left out"


def test_a_missing_tool_and_a_failing_one_are_reported(tmp_path: Path) -> None:
    assert run.measure(["no-such-tool-anywhere"]).problem == "not installed"
    problem = run.measure([sys.executable, "-c", "raise SystemExit('no good')"]).problem
    assert problem == "exit 1: no good"


def test_verdicts_compare_with_the_targets(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(struct.pack("<I", 0))
    large.write_bytes(bytes(16))
    results = [
        Result("bulk", path, 1, {REFERENCE: [Run(1.0, 1.0, 1)], CONCHART: [Run(seconds, seconds, memory)]} | absent())
        for path, seconds, memory in ((small, 0.7, 100 * 2**20), (large, 0.9, 200 * 2**20))
    ]
    assert [met for met, _ in run.verdicts(results)] == [True, True, False, True, False]
    results[1].runs[BEFORE] = [Run(1.0, 1.0, 150 * 2**20)]
    assert [met for met, _ in run.verdicts(results)] == [True, True, False, False, True, False]
    results[1].runs |= {PAGE: [Run(1.2, 1.2, 1)], PAGE + PAST: [Run(1.0, 1.0, 1)]}
    assert [met for met, _ in run.verdicts(results)] == [True, True, False, False, True, False, False]


@pytest.mark.parametrize("tool", [PAGE, SUMMARY])
def test_what_is_drawn_is_measured_without_the_reading(tmp_path: Path, tool: str) -> None:
    path = tmp_path / "input.pcap"
    packets = generate("keepalive", path, 2_000)
    result = run.benchmark("keepalive", path, packets, 1, [tool, tool + PAST], before=ROOT)
    for best in (result.best(tool), result.best(tool + PAST)):
        assert best.problem is None
        assert best.seconds is not None
        assert f"{packets:,} packets" in best.note
        assert best.seconds < float(best.note.split()[-2]), "less than its process took"


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


def absent() -> dict[str, list[Run]]:
    """The tools that were not there."""
    return {tool: [Run(problem="not installed")] for tool in ("tcptrace -n", "tshark -z conv,tcp")}
