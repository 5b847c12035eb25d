"""Links: those of the lab's captures are right, foreign chains are found, and every wait is split to the nanosecond."""

import json
import os
import struct
from collections import Counter
from pathlib import Path

import pytest

import conchart
from conchart.questions.predict import Change, predict
from tests.benchmarks.generate import generate
from tests.conftest import ROOT
from tests.hops.__main__ import CAPTURES, LEAST_SURE, MOST_OFF
from tests.hops.comparison import compare, together

CORPUS = os.environ.get("CONCHART_CORPUS")
CASES = sorted(path.parent for path in CAPTURES.glob("*/truth.csv"))
PROXIED = sorted(
    {*(ROOT / "captures/hops").glob("*/input.pcap*"), *(ROOT / "captures/reverse-proxy").glob("*/input.pcap*")}
)
HARD = {
    "tiers-beside-16": 0.5, "retries-16": 0.7,
    "nginx-http-http-16": 0.85, "nginx-close-http-https-16": 0.55, "apache-http-http-16": 0.85,
    "local-nginx-16": 0.85, "local-chain-16": 0.85, "same-nginx-close-16": 0.85,
    "caddy-16": 0.85, "same-squid-16": 0.85, "varnish-16": 0.65,
}  # fmt: skip
"""Of a few dozen requests, 16 at a time, no habits can be learned where times vary much: these are found less often."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_the_lab_made_is_linked(case: Path) -> None:
    outcome = compare(case)
    assert outcome.recall >= HARD.get(case.name, 0.95)
    if case.name not in HARD:
        assert outcome.sure_precision >= LEAST_SURE
        assert outcome.calibration_error <= MOST_OFF


def test_confidence_is_to_be_taken_at_its_word() -> None:
    """All captures together: each alone has too few links to tell."""
    all_of_them = together(compare(case) for case in CASES)
    assert all_of_them.sure_precision >= 0.975
    assert all_of_them.calibration_error <= 0.035


@pytest.mark.parametrize("capture", PROXIED, ids=lambda path: path.parent.name)
def test_the_parts_of_a_wait_add_up_to_it(capture: Path) -> None:
    with conchart.read(capture) as trace:
        sums = trace.sql(
            """
            SELECT wait_ns, parts FROM exchanges e JOIN (
                SELECT front_stream AS stream, front_exchange AS number,
                    sum(proxy_in_ns + connect_ns + tls_ns + request_ns + wait_ns + proxy_out_ns) AS parts
                FROM links GROUP BY ALL) USING (stream, number)
            WHERE e.wait_ns IS NOT NULL
            """
        ).fetchall()
    assert sums
    assert all(wait == parts for wait, parts in sums)


def test_programs_of_one_address_have_roles_of_their_own() -> None:
    with conchart.read(CAPTURES / "same-nginx-close-16/input.pcap") as trace:
        nodes = trace.nodes.order("port").fetchall()
        roles = trace.sql("SELECT server_port, role FROM servers ORDER BY ALL").fetchall()
        rules = trace.sql("SELECT DISTINCT finding FROM findings").fetchall()
    assert [(address, port, role) for address, port, _, role, *_ in nodes] == [
        ("127.0.0.1", 80, "proxy"), ("127.0.0.1", 8080, "server"), ("127.0.0.1", None, "proxy"),
    ]  # fmt: skip
    assert roles == [(80, "front"), (8080, "backend")]
    assert ("backend-no-keepalive",) in rules


def test_a_relay_behind_a_proxy_is_in_the_middle_of_one_chain() -> None:
    with conchart.read(CAPTURES / "relayed-1/input.pcap") as trace:
        pairs = trace.sql(
            """
            SELECT f.server_port, b.server_port, count(back_exchange)
            FROM links JOIN connections f ON f.stream = front_stream JOIN connections b ON b.stream = back_stream
            GROUP BY ALL ORDER BY ALL
            """
        ).fetchall()
    assert pairs == [(1080, 1234, 24), (1234, 8000, 24)]


def test_a_prediction_counts_what_users_ask_of_one_machine() -> None:
    with conchart.read(CAPTURES / "local-nginx-16/input.pcap") as trace:
        assert len(predict(trace, Change(keepalive=True)).measured.requests_ns) == 40


def test_addresses_of_one_proxy_are_one_node() -> None:
    with conchart.read(ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap") as trace:
        nodes = {(address, port): (node, role) for address, port, node, role, *_ in trace.nodes.fetchall()}
    assert nodes["10.77.1.1", 443] == nodes["10.77.2.1", None]
    assert nodes["10.77.1.1", 443][1] == "proxy"
    assert (nodes["10.77.1.10", None][1], nodes["10.77.2.20", 8080][1]) == ("client", "server")


def test_whoever_knows_the_addresses_of_a_proxy_is_believed() -> None:
    capture = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"
    with conchart.read(capture, proxies=[("10.77.1.1", "10.77.2.1")]) as trace:
        assert trace.sql("SELECT DISTINCT method FROM nodes WHERE role = 'proxy'").fetchall() == [("given",)]


def replayed(capture: Path, path: Path) -> Path:
    """Make a copy of a little-endian pcap file whose packets come a minute later."""
    packed = bytearray(capture.read_bytes())
    at = 24
    while at < len(packed):
        seconds, _, captured, _ = struct.unpack_from("<IIII", packed, at)
        struct.pack_into("<I", packed, at, seconds + 60)
        at += 16 + captured
    path.write_bytes(packed)
    return path


def test_what_is_played_back_is_not_handed_on(tmp_path: Path) -> None:
    capture = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"
    with conchart.read(capture) as once, conchart.read(capture, replayed(capture, tmp_path / "again.pcap")) as twice:
        links = "SELECT method, count(*) FROM links GROUP BY ALL ORDER BY ALL"
        expected = [(method, 2 * count) for method, count in once.sql(links).fetchall()]
        assert twice.sql("SELECT count(*), count(DISTINCT client_random) FROM handshakes").fetchall() == [(6, 3)]
        assert twice.sql(links).fetchall() == expected


def test_what_many_connections_have_alike_was_not_handed_on(tmp_path: Path) -> None:
    generate("full", tmp_path / "full.pcap", 17 * 2_000)
    with conchart.read(tmp_path / "full.pcap") as trace:
        assert trace.sql("SELECT count(*), count(DISTINCT client_random) FROM handshakes").fetchall() == [(2_000, 200)]
        assert trace.sql("FROM links WHERE method = 'client-hello'").fetchall() == []


@pytest.mark.skipif(CORPUS is None, reason="CONCHART_CORPUS names no folder of captures")
@pytest.mark.timeout(120)
def test_chains_in_foreign_captures_are_linked() -> None:
    """29 of 30: the other is a connection that one request opens and another one uses."""
    assert CORPUS is not None
    corpus = Path(CORPUS)
    counts: Counter[bool] = Counter()
    for capture in json.loads((corpus / "proxy_chains.json").read_text()):
        with conchart.read(corpus / capture["file"]) as trace:
            links = set(
                trace.sql(
                    """
                    SELECT f.transport_stream, b.transport_stream
                    FROM links JOIN connections f ON f.stream = front_stream
                    JOIN connections b ON b.stream = back_stream
                    UNION
                    -- A connection on both sides of a translation is one.
                    SELECT f.transport_stream, b.transport_stream
                    FROM connections f JOIN connections b ON f.stream = b.same_as
                    """
                ).fetchall()
            )
        counts.update((chain["front"]["stream"], chain["back"]["stream"]) in links for chain in capture["chains"])
    assert counts == {True: 29, False: 1}
