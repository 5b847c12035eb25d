"""The benchmark works: its captures are what they claim to be, and its runner measures. Nothing here is timed."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

import conchart
from tests.benchmarks import run
from tests.benchmarks.generate import PACKETS_PER_CONNECTION, Shape, generate
from tests.benchmarks.run import CONCHART, REFERENCE, Result, Run


@pytest.mark.parametrize("shape", ["short-tls", "bulk"])
def test_a_generated_capture_is_read_whole_and_clean(tmp_path: Path, shape: Shape) -> None:
    path = tmp_path / "input.pcap"
    packets = generate(shape, path, 2_000)
    with conchart.read(path) as trace:
        counts = "packets, selected, undecodable, other, snapped, duplicates, truncated"
        assert trace.sql(f"SELECT {counts} FROM captures").fetchall() == [(packets, packets, 0, 0, 0, 0, False)]
        states = "state, app, sum(retransmits_client + retransmits_server + out_of_order_client + out_of_order_server)"
        query = f"SELECT {states}, count(*) FROM connections GROUP BY state, app"
        connections = packets // PACKETS_PER_CONNECTION if shape == "short-tls" else 8
        app = "tls" if shape == "short-tls" else "http/1.1"
        assert trace.sql(query).fetchall() == [("complete", app, 0, connections)]
        finished = "handshakes WHERE outcome = 'complete'" if shape == "short-tls" else "exchanges WHERE status = 200"
        assert trace.sql(f"SELECT count(*) FROM {finished}").fetchall() == [(connections,)]


def test_connections_of_short_tls_overlap(tmp_path: Path) -> None:
    path = tmp_path / "input.pcap"
    generate("short-tls", path, 2_000)
    with conchart.read(path) as trace:
        query = """SELECT max(open) FROM (SELECT a.stream, count(*) AS open FROM connections a JOIN connections b
            ON b.opened_at <= a.opened_at AND a.opened_at < b.closed_at GROUP BY a.stream)"""
        ((most,),) = trace.sql(query).fetchall()
    assert most > 20


def test_the_same_capture_is_generated_twice(tmp_path: Path) -> None:
    for name in ("one", "two"):
        generate("short-tls", tmp_path / name, 500)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_the_runner_measures_time_and_memory_of_a_read(tmp_path: Path) -> None:
    path = tmp_path / "input.pcap"
    packets = generate("short-tls", path, 2_000)
    result = run.benchmark("short-tls", path, packets, 2, [CONCHART])
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
        for path, seconds, memory in ((small, 1.5, 100 * 2**20), (large, 2.5, 200 * 2**20))
    ]
    assert [met for met, _ in run.verdicts(results)] == [True, True, False, True, False]


def absent() -> dict[str, list[Run]]:
    """The tools that were not there."""
    return {tool: [Run(problem="not installed")] for tool in ("tcptrace -n", "tshark -z conv,tcp")}
