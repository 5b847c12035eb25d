"""Links through PgBouncer, and what is said of the wait for one of its connections, beside what it says itself."""

import re
from pathlib import Path

import pytest

import conchart
from conchart.report.splits import splits
from tests.conftest import ROOT
from tests.hops.comparison import compare

POOLED = sorted((ROOT / "captures/hops").glob("pgbouncer-*"))
FULL = [case for case in POOLED if "-8-" not in case.name.removesuffix("-8")]
"""Their pools have their connections from the start on."""
each_case = pytest.mark.parametrize("case", POOLED, ids=lambda case: case.name)


@each_case
def test_every_statement_is_linked_and_nothing_else(case: Path) -> None:
    outcome = compare(case)
    assert (outcome.missed, outcome.wrong) == ([], [])
    assert outcome.made == 86


@each_case
def test_what_a_pooler_sends_by_itself_has_no_link(case: Path) -> None:
    with conchart.read(case / "input.pcap") as trace:
        own = trace.sql(
            """
            SELECT count(*), count(*) FILTER ((stream, number) IN (SELECT (back_stream, back_exchange) FROM links))
            FROM exchanges JOIN connections USING (stream)
            WHERE server_port = 5432 AND (method IN ('Startup', 'Authenticate') OR target = 'DISCARD ALL')
            """
        ).fetchall()
    assert own[0][0] > 0
    assert own[0][1] == 0


@pytest.mark.parametrize("case", FULL, ids=lambda case: case.name)
def test_the_wait_for_a_connection_is_what_pgbouncer_counted(case: Path) -> None:
    """It counts the wait of a client's start-up for the first connection, too, which is no statement."""
    match = re.search(r"waited ([\d.]+) ms", (case / "README.md").read_text())
    assert match is not None
    with conchart.read(case / "input.pcap") as trace:
        ((pool_ns, unlinked_ns),) = trace.sql("SELECT pool_ns, unlinked_ns FROM splits").fetchall()
    assert pool_ns / 1e6 <= 1.05 * float(match[1])
    assert (pool_ns + unlinked_ns) / 1e6 >= 0.95 * float(match[1])


def test_a_pooler_says_what_a_statement_waited_for() -> None:
    with conchart.read(ROOT / "captures/findings/pool-exhausted/input.pcap") as trace:
        assert "waiting for a pooled connection" in str(splits(trace)["10.98.1.20", 6432])
