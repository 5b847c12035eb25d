"""What it costs that connections are not used again, worked out by hand."""

import pytest

import conchart
from tests.conftest import ROOT

MS = 1_000_000


def costs(case: str) -> dict[str, tuple[int, int, int]]:
    with conchart.read(ROOT / "captures" / case / "input.pcap") as trace:
        rows = trace.sql("SELECT finding, count, cost_ns, critical_ns FROM findings WHERE root IS NULL").fetchall()
    return {finding: (count, cost_ns, critical_ns) for finding, count, cost_ns, critical_ns in rows}


def test_a_request_that_crossed_the_close_costs_until_the_client_knew_and_the_new_handshake() -> None:
    # Crafted: the FIN arrives 15 ms after the request; the new TCP handshake takes 20 ms and 50 us. Three times.
    assert costs("findings/keepalive-race")["keepalive-race"] == (6, 3 * 35_050_000, 3 * 35_050_000)


def test_refused_attempts_cost_until_the_refusal() -> None:
    # Crafted: two attempts, 20 ms each until the RST; nobody else was asked. That is no wait for a response.
    assert costs("crafted/refused") == {"connection-refused-or-filtered": (2, 40 * MS, 0)}
    with conchart.read(ROOT / "captures/crafted/refused/input.pcap") as trace:
        assert trace.sql("SELECT vain_ns, waited_ns FROM findings").fetchall() == [(40 * MS, 0)]


def test_keepalive_refused_in_front_is_serious_and_at_the_backend_a_note() -> None:
    with conchart.read(ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap") as trace:
        found = trace.sql("SELECT finding, (severity, server_ip, server_port, count) FROM findings").fetchall()
        front_ns = trace.sql(
            """
            SELECT sum(ready_at - syn_at)::BIGINT FROM connections JOIN handshakes USING (stream) WHERE stream IN (2, 4)
            """
        ).fetchall()
    severities = dict(found)
    assert severities["server-closes-each-response"] == ("serious", "10.77.1.1", 443, 2)
    assert severities["backend-no-keepalive"] == ("note", "10.77.2.20", 8080, 2)
    assert front_ns == [(costs("reverse-proxy/https-no-keepalive")["server-closes-each-response"][1],)]


@pytest.mark.parametrize(("case", "finding"), [
    ("backend-no-keepalive", "backend-no-keepalive"),
    ("client-no-reuse", "client-no-reuse"),
    ("server-closes-each-response", "server-closes-each-response"),
    ("keepalive-request-cap", "keepalive-request-cap"),
    ("keepalive-idle-too-short", "keepalive-idle-too-short"),
])  # fmt: skip
def test_every_connection_after_the_first_costs_its_set_up(case: str, finding: str) -> None:
    # Plain HTTP, one request at a time: the server that should have kept the connection is the one with several.
    with conchart.read(ROOT / "captures" / "findings" / case / "input.pcap") as trace:
        ((count, cost_ns),) = trace.sql(
            """
            SELECT n - 1, total - first FROM (
                SELECT count(*) AS n, sum(end_at - start_at)::BIGINT AS total,
                    arg_min(end_at - start_at, start_at) AS first
                FROM phases JOIN connections USING (stream) WHERE kind = 'syn' GROUP BY server_ip, server_port)
            WHERE n > 1
            """
        ).fetchall()
    assert costs(f"findings/{case}")[finding] == (count, cost_ns, cost_ns)


@pytest.mark.parametrize("finding", [
    "server-closes-each-response", "keepalive-request-cap", "keepalive-idle-too-short",
])  # fmt: skip
def test_what_is_asked_after_the_servers_fin_is_no_request_that_the_connection_served(finding: str) -> None:
    # Each connection that the server closed is asked once more, and answers by RST: a set-up and that time each.
    case = f"findings/{finding}-heedless"
    with conchart.read(ROOT / "captures" / case / "input.pcap") as trace:
        ((refused, until_rst_ns, setups_ns),) = trace.sql(
            """
            SELECT count(*) FILTER (number IS NOT NULL), sum(rst_at - request_at)::BIGINT,
                sum(ack_at - syn_at) FILTER (stream > 0)::BIGINT
            FROM connections LEFT JOIN (FROM exchanges WHERE response_at IS NULL) USING (stream)
            """
        ).fetchall()
    assert refused >= 4
    assert costs(case) == {finding: (2 * refused, setups_ns + until_rst_ns, setups_ns + until_rst_ns)}
