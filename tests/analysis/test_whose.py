"""Whose time a wait is: the server's own time, greetings, and resolvers that never answer."""

from typing import Any

import pytest

import conchart
from conchart.report.servers import in_vain
from conchart.report.splits import splits
from tests.conftest import ROOT

MS = 1_000_000
S = 1_000 * MS


def rows(name: str, query: str) -> list[Any]:
    with conchart.read(ROOT / f"captures/{name}/input.pcap") as trace:
        return trace.sql(query).fetchall()


@pytest.mark.parametrize("name", ["lost-request-complete-1seg", "lost-request-midstream-6seg"])
def test_a_lost_request_is_the_paths_time_and_not_the_servers(name: str) -> None:
    ((wait_ns, service_ns),) = rows(f"wild/{name}", "SELECT max(wait_ns), max(service_ns) FROM exchanges")
    assert wait_ns > 4 * S
    assert service_ns < 3 * MS
    owned = dict(rows(f"wild/{name}", "SELECT owner, waited_ns FROM wait_owners WHERE phase = 'wait'"))
    assert owned.keys() == {"path", "server"}
    assert owned["server"] < 10 * MS < 4 * S < owned["path"]


@pytest.mark.parametrize(
    "name", ["nginx-http-http-16", "h2-nginx-keys-16", "pgbouncer-transaction-1-both-8", "same-tiers-haproxy-1"]
)
def test_what_a_proxy_takes_beside_its_backend_is_the_proxys(name: str) -> None:
    with conchart.read(ROOT / f"captures/hops/{name}/input.pcap") as trace:
        owned = dict(trace.fetch("SELECT owner, sum(waited_ns) FROM wait_owners WHERE phase = 'wait' GROUP BY owner"))
        split_ns = sum(one.proxy_ns + one.pool_ns for one in splits(trace).values() if one.is_outermost)
        apart = trace.fetch(
            """
            SELECT server_ip, server_port FROM (
                SELECT server_ip, server_port, sum(users_ns) AS ns FROM times WHERE phase = 'wait' GROUP BY ALL)
            JOIN (SELECT server_ip, server_port, sum(waited_ns) AS owned_ns FROM wait_owners WHERE phase = 'wait'
                GROUP BY ALL) USING (server_ip, server_port) WHERE ns <> owned_ns
            """
        )
    assert apart == []
    assert split_ns > 0
    # Where requests are side by side, either is a share of what was waited meanwhile: of all together, or of each.
    assert 0.5 * split_ns <= owned["proxy"] <= (2 if name.startswith("h2") else 1.01) * split_ns, owned


def test_without_a_proxy_nothing_is_a_proxys() -> None:
    assert rows("findings/slow-server", "FROM wait_owners WHERE owner = 'proxy'") == []


@pytest.mark.parametrize(
    ("name", "seconds"), [("wild/mysql-greeting-10s", 10), ("wild/smtp-220-20s", 20), ("crafted/late-greeting", 10)]
)
def test_a_greeting_is_waited_for_since_the_connection_stands(name: str, seconds: int) -> None:
    greetings = rows(
        name,
        """
        SELECT end_at - start_at, start_at = syn_end_at, request_at FROM phases
        JOIN (SELECT stream, end_at AS syn_end_at FROM phases WHERE kind = 'syn') USING (stream)
        JOIN exchanges USING (stream) WHERE phases.kind = 'wait' AND exchange = 0 AND number = 0 AND request_at IS NULL
        """,
    )
    assert greetings
    for ns, follows, request_at in greetings:
        assert abs(ns - seconds * S) < 100 * MS
        assert follows
        assert request_at is None


@pytest.mark.parametrize("name", ["crafted/midstream", "crafted/pipelining", "reverse-proxy/https", "stores/redis"])
def test_where_the_client_speaks_first_nothing_is_owed_before(name: str) -> None:
    if not (ROOT / f"captures/{name}/input.pcap").exists():
        pytest.skip("no such capture")
    query = """
        SELECT * FROM phases JOIN exchanges ON phases.stream = exchanges.stream AND exchange = number
        WHERE phases.kind = 'wait' AND request_at IS NULL"""
    assert rows(name, query) == []


def test_the_lookups_of_a_server_are_named_and_nobody_else_waits_for_them() -> None:
    ((evidence, waited_ns),) = rows(
        "crafted/late-greeting", "SELECT evidence, waited_ns FROM findings WHERE finding = 'late-greeting'"
    )
    assert "1 of type PTR, 1 without an answer): PTR 10.2.0.192.in-addr.arpa" in evidence
    assert waited_ns < 10.5 * S
    with conchart.read(ROOT / "captures/crafted/late-greeting/input.pcap") as trace:
        assert in_vain(trace) == ""
        assert trace.fetch("SELECT DISTINCT front_stream, front_exchange FROM on_behalf") == [(0, 0)]


def test_queries_side_by_side_that_nobody_answers_are_waited_for_once() -> None:
    name = "wild/dns-first-resolver-dead"
    query = "SELECT count(*), sum(waited_ns) FROM connections WHERE state = 'abandoned'"
    ((abandoned, waited_ns),) = rows(name, query)
    assert abandoned == 4
    assert abs(waited_ns - 20 * S) < 100 * MS
    tiled = """
        SELECT stream FROM phases JOIN connections USING (stream) GROUP BY stream, opened_at, closed_at
        HAVING sum(end_at - start_at) <> closed_at - opened_at"""
    assert rows(name, tiled) == []


def test_one_of_a_pair_that_is_lost_is_no_failing_resolver() -> None:
    ((advice,),) = rows("wild/dns-conntrack-race", "SELECT advice FROM findings WHERE finding = 'dns-fails'")
    assert "single-request-reopen" in advice
    assert "remove the failing resolver" not in advice


def test_syns_that_nobody_answers_are_a_failure() -> None:
    found = rows("crafted/nobody-answers", "SELECT finding, severity FROM findings")
    assert found == [("connection-refused-or-filtered", "serious")]
