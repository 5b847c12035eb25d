"""The lesson on what TLS adds to a directory: its tables, and what they are made of."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

import conchart
from conchart import Trace
from tests.agreement import tshark
from tests.captures_are_real.seen import CAPTURES
from tests.conftest import ROOT
from tests.lessons.running import make_captures, skip_unless_root_with

LESSON = ROOT / "examples/far-away"
RESULTS: dict[str, Any] = json.loads((LESSON / "results.json").read_text())
DIRECTORY = sorted(name for name in RESULTS if name.startswith("directory-"))
ENTRIES = [0, 10, 20, 30, 40, 50]
ENTRY, SEARCH_DONE = "4", "5"


def keys(case: str) -> list[Path]:
    return sorted((CAPTURES / "far-away" / case).glob("keys.log"))


def read(case: str) -> Trace:
    return conchart.read(CAPTURES / "far-away" / case / "input.pcap", keylog=keys(case), packets=True)


def test_the_page_is_what_the_results_give(tmp_path: Path) -> None:
    make_captures("far-away", "--tables", "--into", str(tmp_path / "out"), temporary=tmp_path / "temporary")
    assert (tmp_path / "out/README.md").read_text() == (LESSON / "README.md").read_text()


@pytest.mark.timeout(300)
def test_the_quick_run_makes_every_case_and_leaves_nothing_behind(tmp_path: Path) -> None:
    skip_unless_root_with(("ip", "tcpdump", "tshark", "openssl", "slapd", "ldapsearch"))
    make_captures("far-away", "--quick", "--into", str(tmp_path / "out"), temporary=tmp_path / "temporary")
    results = json.loads((tmp_path / "out/results.json").read_text())
    assert results.keys() == RESULTS.keys()
    for case in DIRECTORY:
        assert [search["entries"] for search in results[case]] == ENTRIES
        secrets = sorted((tmp_path / "out/captures" / case).glob("keys.log"))
        with conchart.read(tmp_path / "out/captures" / case / "input.pcap", keylog=secrets) as trace:
            searches = trace.sql("SELECT count(*) FROM exchanges WHERE method = 'search' AND status = 0").fetchall()
        assert searches == [(len(ENTRIES),)]


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
    said = [tuple(round(search[name] * 1e6) for name in figures) for search in RESULTS[case]]
    assert [row[:3] for row in found] == said
    assert [row[3] for row in found] == [search["bytes"] for search in RESULTS[case]]
    assert {row[4:] for row in found} == {(0, False)}


@pytest.mark.parametrize("case", DIRECTORY)
@pytest.mark.skipif(not tshark.installed(), reason="tshark is not installed")
def test_each_town_has_as_many_people_as_its_name_says(case: str) -> None:
    secrets = [option for path in keys(case) for option in ("-o", f"tls.keylog_file:{path}")]
    capture = str(CAPTURES / "far-away" / case / "input.pcap")
    text = tshark._run(["-n", *secrets, "-r", capture, "-Y", "ldap", "-T", "fields", "-e", "ldap.protocolOp"])
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
