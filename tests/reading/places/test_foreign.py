"""Captures that others took of the same traffic at several places, with clocks of theirs and skews of ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import conchart
from conchart import Trace
from tests.reading.places.distortions import clocks
from tests.reading.places.truth import records

CORPUS = Path(os.environ.get("CONCHART_CORPUS", "/nonexistent"))
PLACES = ("client", "relay", "server")
SKEW_NS = 37_512_345_000
"""A whole number of microseconds, the captures' resolution."""
TIMELESS = {
    "places": "place, packets, connections, shared",
    "connections": "client_ip, client_port, server_ip, server_port, state, app, closed_at - syn_at",
    "exchanges": "protocol, method, target, status, wait_ns, transfer_ns",
    "phases": "kind, end_at - start_at",
    "losses": "from_place, to_place, sender, frame, bytes",
}


CUT = {"proxydet__htran-custom_http1", "proxydet__stowaway-socks5_nopass-socks5_https1"}
"""A file ends within a packet or in zeros: its clock cannot be changed packet by packet."""


def traffic() -> list[str]:
    """Names of what was captured at client, relay and server."""
    names = {path.name.removesuffix("-relay.pcap") for path in CORPUS.glob("proxydet__*-relay.pcap")}
    return sorted(name for name in names - CUT if all((CORPUS / f"{name}-{place}.pcap").is_file() for place in PLACES))


pytestmark = [pytest.mark.thorough, pytest.mark.skipif(not traffic(), reason="CONCHART_CORPUS is not set")]
each_traffic = pytest.mark.parametrize("name", traffic())


def captures(name: str) -> dict[str, Path]:
    return {place: CORPUS / f"{name}-{place}.pcap" for place in PLACES}


def read(files: dict[str, Path]) -> Trace:
    return conchart.read(places={place: [str(path)] for place, path in files.items()})


@each_traffic
def test_a_clock_of_others_that_is_set_changes_what_is_said_of_it_and_nothing_else(name: str, tmp_path: Path) -> None:
    files = captures(name)
    zero_at = min(at for _, at, _ in records(files["server"]))
    skewed = tmp_path / "server.pcap"
    clocks().distort(files["server"], skewed, clocks().make_clock(zero_at=zero_at, offset_ns=SKEW_NS))
    with read(files) as plain, read(files | {"server": skewed}) as moved:
        expected = [
            (
                place,
                method,
                offset_ns + (SKEW_NS if place == "server" and method != "unknown" else 0),
                drift_ppb,
                doubt_ns,
            )
            for place, method, offset_ns, drift_ppb, doubt_ns in clock_rows(plain)
        ]
        # A rate of 500 ppm over half a minute of skew is a rounding of a nanosecond.
        found = clock_rows(moved)
        assert [one[2] for one in expected] == pytest.approx([one[2] for one in found], abs=1)
        assert [(*one[:2], *one[3:]) for one in expected] == [(*one[:2], *one[3:]) for one in found]
        if "unknown" in {method for _, method, *_ in clock_rows(plain)}:
            return
        for table, columns in TIMELESS.items():
            query = f"SELECT {columns} FROM {table} ORDER BY ALL"
            assert plain.sql(query).fetchall() == moved.sql(query).fetchall(), table


@each_traffic
def test_no_packet_of_others_arrives_before_it_was_sent(name: str) -> None:
    with read(captures(name)) as trace:
        doubts = dict(trace.sql("SELECT place, max(uncertainty_ns) FROM clocks GROUP BY place").fetchall())
        ways = trace.sql("""
            SELECT one.place, other.place, one.stream, one.sender,
                min(other.seen_at - one.seen_at), max(other.seen_at - one.seen_at)
            FROM place_packets one JOIN place_packets other USING (stream, packet, sender)
            WHERE one.place < other.place GROUP BY ALL
        """).fetchall()
    for here, there, stream, sender, least_ns, most_ns in ways:
        if doubts[here] is None or doubts[there] is None:
            continue
        coarse_ns = 2_000 + doubts[here] + doubts[there]
        assert least_ns >= -coarse_ns or most_ns <= coarse_ns, (here, there, stream, sender)


def clock_rows(trace: Trace) -> list[tuple[str, str, int, int, int | None]]:
    return trace.sql(
        "SELECT place, method, offset_ns, drift_ppb, uncertainty_ns FROM clocks ORDER BY place, from_at"
    ).fetchall()
