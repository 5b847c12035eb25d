"""What findings about databases, caches and FastCGI cost, and whom they name, in captures of real servers."""

from pathlib import Path

import pytest

import conchart
from tests.conftest import ROOT

FINDINGS = ROOT / "captures/findings"


def capture(case: str) -> Path:
    """Give the capture of a case."""
    return FINDINGS / case / "input.pcap"


def names(file: Path) -> set[str]:
    """Give the names of what is found."""
    with conchart.read(file) as trace:
        return {name for (name,) in trace.sql("SELECT finding FROM findings").fetchall()}


def changed(case: str, before: bytes, after: bytes, folder: Path) -> Path:
    """Write the capture of a case with other bytes in place of some, as many as those."""
    assert len(before) == len(after)
    packets = capture(case).read_bytes()
    assert before in packets
    file = folder / "input.pcap"
    file.write_bytes(packets.replace(before, after))
    return file


@pytest.mark.parametrize("case", ["slow-query", "slow-query-mysql"])
def test_a_slow_shape_costs_what_the_database_took_for_it_without_the_path(case: str) -> None:
    with conchart.read(capture(case)) as trace:
        service = """
            SELECT count(*), sum(response_at - request_done_at - rtt_client_ns - rtt_server_ns)::BIGINT
            FROM exchanges JOIN connections USING (stream) WHERE target LIKE 'SELECT id, page FROM visit%'
        """
        found = trace.sql("SELECT count, cost_ns FROM findings WHERE finding = 'slow-query'").fetchall()
        assert found == trace.sql(service).fetchall()
        ((evidence,),) = trace.sql("SELECT evidence FROM findings WHERE finding = 'slow-query'").fetchall()
        assert "SELECT id, page FROM visit WHERE buyer = ?" in evidence


def test_a_statement_that_sleeps_is_no_slow_query_and_no_outlier_of_the_server() -> None:
    # Most statements in this capture are fast. Each shape has its own usual time; SLEEP takes as long as it says.
    assert not {name for name in names(ROOT / "captures/stores/mysql/input.pcap") if name.startswith("slow-")}


def test_a_statement_that_is_slow_is_left_to_it_unless_it_is_run_once_in_a_while_by_nature(tmp_path: Path) -> None:
    assert "slow-query" in names(capture("slow-query-mysql"))
    file = changed("slow-query-mysql", b"SELECT id, page", b"VACUUM id, page", tmp_path)
    assert "slow-query" not in names(file)


def test_commands_behind_one_that_waits_for_an_event_cost_the_time_until_its_answer() -> None:
    with conchart.read(capture("blocking-command")) as trace:
        rows = trace.sql("""
            SELECT number, method, request_done_at, response_at, rtt_client_ns + rtt_server_ns
            FROM exchanges JOIN connections USING (stream)
            WHERE protocol = 'redis' AND method IN ('GET', 'BLPOP') AND response_at IS NOT NULL ORDER BY number
        """).fetchall()
        found = trace.sql("SELECT count, cost_ns, evidence FROM findings WHERE finding = 'blocking-command'").fetchall()
    costs, free_at = [], 0
    for _, method, done_at, response_at, rtt_ns in rows:
        if method == "BLPOP":
            free_at = response_at
        elif free_at - done_at - rtt_ns >= 5_000_000:
            costs.append(free_at - done_at - rtt_ns)
    ((count, cost_ns, evidence),) = found
    assert (count, cost_ns) == (len(costs), sum(costs))
    assert "BLPOP orders" in evidence


def test_a_row_of_reads_ends_where_something_is_written(tmp_path: Path) -> None:
    assert "serial-queries" in names(capture("serial-queries"))
    # The third of five: two reads are left before it, two behind it.
    file = changed("serial-queries", b"SELECT stars FROM review", b"UPDATE stars FROM review", tmp_path)
    assert "serial-queries" not in names(file)


def test_reads_in_a_transaction_are_no_row(tmp_path: Path) -> None:
    first = b"SELECT what FROM sold WHERE buyer = $1 ORDER BY id DESC LIMIT 3"
    file = changed("serial-queries", first, b"BEGIN".ljust(len(first)), tmp_path)
    assert "serial-queries" not in names(file)


def test_different_queries_one_after_the_other_save_all_but_the_longest_of_each_row() -> None:
    with conchart.read(capture("serial-queries")) as trace:
        queries = trace.sql("""
            SELECT front_exchange, exchanges.request_at, exchanges.response_done_at, exchanges.method = 'Execute'
            FROM links JOIN exchanges ON stream = back_stream AND number = back_exchange
            WHERE exchanges.target LIKE 'SELECT % FROM %' AND protocol = 'postgresql' ORDER BY exchanges.request_at
        """).fetchall()
        found = trace.sql(
            "SELECT severity, confidence, cost_ns FROM findings WHERE finding = 'serial-queries'"
        ).fetchall()
    rows: list[list[int]] = []
    before: tuple[int, int] | None = None
    for page, request_at, done_at, executed in queries:
        if before is None or before[0] != page or request_at - before[1] > 5_000_000:
            rows.append([])
        before = page, done_at  # also of a statement that is prepared: it is no query, and no pause
        if executed:
            rows[-1].append(done_at - request_at)
    ((severity, confidence, cost_ns),) = found
    assert (severity, round(confidence, 2)) == ("note", 0.3)
    assert cost_ns == sum(sum(row) - max(row) for row in rows if len(row) >= 3)


def test_fastcgi_gets_advice_about_fastcgi_and_http_about_http() -> None:
    advice = {}
    for case in ("fastcgi-no-keepalive", "backend-no-keepalive"):
        with conchart.read(capture(case)) as trace:
            ((advice[case],),) = trace.sql(
                "SELECT advice FROM findings WHERE finding = 'backend-no-keepalive'"
            ).fetchall()
    assert "fastcgi_keep_conn on;" in advice["fastcgi-no-keepalive"]
    assert "proxy_http_version" not in advice["fastcgi-no-keepalive"]
    assert "fastcgi" not in advice["backend-no-keepalive"].lower().replace("fastcgi: with fcgi_keep_conn", "")


def test_a_database_far_away_costs_its_greeting_too() -> None:
    with conchart.read(capture("store-far-away-mysql")) as trace:
        trips = """
            SELECT count(*) + 1 FROM exchanges WHERE protocol = 'mysql' AND response_at IS NOT NULL
        """  # each exchange, the greeting among them, and the TCP handshake
        ((count,),) = trace.sql("SELECT count FROM findings WHERE finding = 'store-far-away'").fetchall()
        assert trace.sql(trips).fetchall() == [(count,)]


def test_connections_with_a_greeting_are_not_idle_for_ever() -> None:
    assert names(capture("store-connection-per-query-mysql")) == {"store-connection-per-query"}
