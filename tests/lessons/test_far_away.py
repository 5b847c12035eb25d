"""The lesson on what TLS adds far away and to a directory: its tables, and what they are made of."""

from __future__ import annotations

import json
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest

import conchart
from conchart import Trace
from tests.captures_are_real.seen import CAPTURES
from tests.conftest import ROOT
from tests.lessons.running import make_captures, skip_unless_root_with
from tests.tshark import ask, needs_tshark

LESSON = ROOT / "examples/far-away"
RESULTS: dict[str, Any] = json.loads((LESSON / "results.json").read_text())
DIRECTORY = sorted(name for name in RESULTS if name.startswith("directory-"))
ENTRIES = [0, 10, 20, 30, 40, 50]
ENTRY, SEARCH_DONE = "4", "5"

LINES = {"modem": (0.2, 26_400), "slow-3g": (0.4, 400_000)}
"""Seconds of a round trip, bits a second."""
LINE = sorted(name for name in RESULTS if name.startswith(tuple(LINES)))
RECORDED = [0, 20]
"""Of each line, the capture of its logins and its smallest downloads is here."""
ROUND_TRIPS = {("plain", False): 2, ("tls12", False): 4, ("tls12", True): 3, ("tls13", False): 3, ("tls13", True): 3}
SESSION_MS = 5 * 60_000
"""nginx's ssl_session_timeout, unless told otherwise."""
SYN_BYTES, HEADER_BYTES = 60, 52
"""Of IP and TCP: with the options of a SYN, with a time stamp."""


def keys(case: str) -> list[Path]:
    return sorted((CAPTURES / "far-away" / case).glob("keys.log"))


def read(case: str) -> Trace:
    return conchart.read(CAPTURES / "far-away" / case / "input.pcap", keylog=keys(case), packets=True)


def test_the_page_is_what_the_results_give(tmp_path: Path) -> None:
    make_captures("far-away", "--tables", "--into", str(tmp_path / "out"), temporary=tmp_path / "temporary")
    assert (tmp_path / "out/README.md").read_text() == (LESSON / "README.md").read_text()


@pytest.mark.timeout(300)
def test_the_quick_run_makes_every_case_and_leaves_nothing_behind(tmp_path: Path) -> None:
    skip_unless_root_with(("ip", "tcpdump", "tshark", "openssl", "slapd", "ldapsearch", "nginx", "curl"))
    make_captures("far-away", "--quick", "--into", str(tmp_path / "out"), temporary=tmp_path / "temporary")
    results = json.loads((tmp_path / "out/results.json").read_text())
    assert results.keys() == RESULTS.keys()
    for case in DIRECTORY:
        assert [search["entries"] for search in results[case]] == ENTRIES
        secrets = sorted((tmp_path / "out/captures" / case).glob("keys.log"))
        with conchart.read(tmp_path / "out/captures" / case / "input.pcap", keylog=secrets) as trace:
            searches = trace.sql("SELECT count(*) FROM exchanges WHERE method = 'search' AND status = 0").fetchall()
        assert searches == [(len(ENTRIES),)]
    for case in [case for case in LINE if case.startswith("slow-3g")]:
        assert [row["what"] for row in results[case]] == [0, 0, 20, 20]
        assert_round_trips_are_those_of_the_protocol(case, results[case])
        secrets = sorted((tmp_path / "out/captures" / case).glob("keys.log"))
        with conchart.read(tmp_path / "out/captures" / case / "input.pcap", keylog=secrets) as trace:
            found = trace.sql("SELECT method, status FROM exchanges ORDER BY request_at").fetchall()
        assert found == [("POST", 200)] * 2 + [("GET", 200)] * 2


@pytest.mark.parametrize("case", DIRECTORY)
def test_the_results_are_what_the_captures_hold(case: str) -> None:
    with read(case) as trace:
        found = trace.sql(
            """
            WITH searches AS (
                SELECT stream, request_at, response_done_at, status, inferred,
                    row_number() OVER (PARTITION BY stream ORDER BY number) = 1 AS first
                FROM exchanges WHERE method = 'search'),
            binds AS (SELECT stream, request_at AS bind_at FROM exchanges WHERE method = 'bind')
            SELECT response_done_at - if(first, syn_at, request_at), if(first, bind_at - ack_at, 0),
                response_done_at - request_at, (
                    SELECT sum(bytes) FROM packets WHERE packets.stream = searches.stream
                        AND seen_at BETWEEN if(first, syn_at, request_at) AND response_done_at),
                status, searches.inferred
            FROM searches JOIN binds USING (stream) JOIN connections USING (stream) ORDER BY request_at
            """
        ).fetchall()
    figures = ("ms", "before_ms", "search_ms")
    expected = [tuple(round(search[name] * 1e6) for name in figures) for search in RESULTS[case]]
    assert [row[:3] for row in found] == expected
    assert [row[3] for row in found] == [search["bytes"] for search in RESULTS[case]]
    assert {row[4:] for row in found} == {(0, False)}


@pytest.mark.parametrize("case", DIRECTORY)
@needs_tshark
def test_each_town_has_as_many_people_as_its_name_says(case: str) -> None:
    secrets = [option for path in keys(case) for option in ("-o", f"tls.keylog_file:{path}")]
    capture = str(CAPTURES / "far-away" / case / "input.pcap")
    text = ask(["-n", *secrets, "-r", capture, "-Y", "ldap", "-T", "fields", "-e", "ldap.protocolOp"])
    operations = [tag for line in text.splitlines() for tag in line.split(",") if tag in (ENTRY, SEARCH_DONE)]
    answers = [list(group) for done, group in groupby(operations, lambda tag: tag == SEARCH_DONE) if not done]
    assert [0, *map(len, answers)] == ENTRIES
    assert operations.count(SEARCH_DONE) == len(ENTRIES)


@pytest.mark.parametrize("case", [case for case in DIRECTORY if case.startswith("directory-plain")])
def test_eleven_entries_come_at_once_on_a_new_connection(case: str) -> None:
    """Of fifty: ten segments, and one for the answer to the bind. A connection that was used before has more room."""
    with read(case) as trace:
        gaps = trace.sql(
            """
            SELECT packets.seen_at - lag(packets.seen_at) OVER (ORDER BY frame)
            FROM packets JOIN (SELECT * FROM exchanges WHERE method = 'search' ORDER BY request_at DESC LIMIT 1)
                USING (stream)
            WHERE sender = 'server' AND bytes > 0 AND seen_at BETWEEN request_at AND response_done_at ORDER BY frame
            """
        ).fetchall()
    waits = [number for number, (gap,) in enumerate(gaps) if gap is not None and gap > 300_000]
    assert waits == ([] if case.endswith("kept") else [11])


def assert_round_trips_are_those_of_the_protocol(case: str, rows: list[dict[str, Any]]) -> None:
    protocol = case.rpartition("-")[2]
    assert [row["round_trips"] for row in rows] == [ROUND_TRIPS[protocol, row["second"]] for row in rows]


@pytest.mark.parametrize("case", LINE)
def test_the_round_trips_are_those_of_the_protocol(case: str) -> None:
    sessions_live = [row for row in RESULTS[case] if row not in too_late(case)]
    assert_round_trips_are_those_of_the_protocol(case, sessions_live)


def too_late(case: str) -> list[dict[str, Any]]:
    """The second of two downloads, when the first took longer than nginx keeps a session."""
    rows = RESULTS[case]
    return [row for first, row in pairwise(rows) if row["second"] and first["ms"] > SESSION_MS]


def test_a_session_of_nginx_is_gone_after_the_first_mb_over_the_modem() -> None:
    assert [row["what"] for row in too_late("modem-tls12")] == [1_000]
    assert [row["round_trips"] for row in too_late("modem-tls12")] == [ROUND_TRIPS["tls12", False]]
    (full,) = [row for row in RESULTS["modem-tls13"] if row["what"] == 1_000 and not row["second"]]
    assert all(abs(row["bytes"] - full["bytes"]) < 500 for row in too_late("modem-tls13"))


@pytest.mark.parametrize("case", LINE)
def test_the_figures_of_a_line_are_what_its_capture_holds(case: str) -> None:
    with read(case) as trace:
        answers = trace.sql(
            """
            SELECT stream, syn_at, response_done_at, status, coalesce(handshakes.kind <> 'full', false)
            FROM exchanges JOIN connections USING (stream) LEFT JOIN handshakes USING (stream) ORDER BY request_at
            """
        ).fetchall()
        packets = trace.sql(
            """
            SELECT stream, seen_at, sender, contains(flags, 'S'), bytes, mark IS NOT DISTINCT FROM 'retransmit'
            FROM packets WHERE bytes > 0 OR contains(flags, 'S') ORDER BY frame
            """
        ).fetchall()
    rows = [row for row in RESULTS[case] if row["what"] in RECORDED]
    for row, (stream, syn_at, done_at, status, resumed) in zip(rows, answers, strict=True):
        mine = [packet[2:] for packet in packets if packet[0] == stream and packet[1] <= done_at]
        spoken = [(sender, syn, size) for sender, syn, size, again in mine if not again]
        assert (status, resumed, done_at - syn_at) == (200, row["second"], round(row["ms"] * 1e6))
        assert len(mine) - len(spoken) == row["copies"]
        assert sum(SYN_BYTES if syn else HEADER_BYTES + size for _, syn, size in spoken) == row["bytes"]
        turns = [sender for sender, _ in groupby(spoken, lambda packet: packet[0])]
        assert turns == ["client", "server"] * row["round_trips"]


@pytest.mark.parametrize("case", LINE)
def test_what_the_formula_predicts_is_what_was_measured(case: str) -> None:
    """Round trips and bytes are nearly all of it. What is left is TCP's: its window, its copies."""
    line, _, protocol = case.rpartition("-")
    rtt, rate = LINES[line]
    for row in RESULTS[case]:
        predicted = ROUND_TRIPS[protocol, row["second"]] * rtt + row["bytes"] * 8 / rate
        assert -0.05 * predicted < row["ms"] / 1000 - predicted < 0.12 * predicted
