"""What handshakes cost that need not be so long, worked out from the times that tshark gives the frames."""

from pathlib import Path

import pytest

import conchart
from tests.conftest import ROOT

CAPTURES = ROOT / "captures" / "findings"
NEEDLESS = """\
---
title: What a resumed handshake would not have had
about: server
seen: "{full:full handshake}"
who: the client
why: It computes.
fixes:
  - {line: resume sessions}
---
# What a resumed handshake would not have had

## Detect

```sql
SELECT server_ip, server_port, flatten(list(needless)) AS delays, {'full': count(*)} AS facts
FROM secured WHERE kind = 'full' GROUP BY ALL
```
"""


def found(case: str, finding: str) -> tuple[int, int, str]:
    """Give cost, cost on users' paths and who did it."""
    with conchart.read(CAPTURES / case / "input.pcap") as trace:
        rows = trace.sql("SELECT cost_ns, critical_ns, who FROM findings WHERE finding = ?", [finding]).fetchall()
    ((cost_ns, critical_ns, who),) = rows
    return cost_ns, critical_ns, who


def test_a_full_handshake_of_tls12_costs_from_the_end_of_the_servers_flight_to_its_finished() -> None:
    # Frames 24 to 27, 42 to 45, 60 to 63: ServerHelloDone to NewSessionTicket and Finished; the first visit is free.
    turns_ns = (296_836_996 - 275_229_966) + (572_801_832 - 551_208_923) + (849_374_722 - 827_136_082)
    name = "full-handshakes-never-resumed"
    assert found(name, name)[:2] == (turns_ns, turns_ns)


def test_tls12_costs_the_second_round_trip_without_what_the_client_computed_in_it() -> None:
    with conchart.read(CAPTURES / "tls12-where-13-possible" / "input.pcap") as trace:
        # Of each connection: ServerHelloDone, and the Finished of the client and of the server, as the client saw them.
        rows = trace.sql("SELECT server_done_at, client_finished_at, ready_at FROM handshakes").fetchall()
    cost_ns, critical_ns, who = found("tls12-where-13-possible", "tls12-where-13-possible")
    waits_ns = sum(ready_at - finished_at for _, finished_at, ready_at in rows)
    # The capture point lies a few dozen microseconds from the client's program: that is not its computing.
    assert 0 <= cost_ns - waits_ns <= 300_000
    assert critical_ns == cost_ns
    assert who == "the server: it was offered TLSv1.3 and chose less"


def test_a_hello_retry_request_costs_one_round_trip() -> None:
    # SYN to SYN-ACK and SYN-ACK to ACK, of three connections.
    rtt_ns = (796_471_147 - 776_246_494) + (75_911_345 - 55_695_285) + (354_954_412 - 334_731_953)
    assert found("hello-retry-request", "hello-retry-request")[:2] == (rtt_ns, rtt_ns)


def test_a_heavy_chain_costs_the_pause_in_the_flight_and_is_the_root_of_it() -> None:
    with conchart.read(CAPTURES / "certificate-chain-heavy" / "input.pcap") as trace:
        rows = trace.sql("SELECT finding, cost_ns, because FROM findings ORDER BY root NULLS FIRST").fetchall()
        ((pauses_ns,),) = trace.sql(
            "SELECT sum(end_at - start_at)::BIGINT FROM stalls WHERE kind = 'slow-start'"
        ).fetchall()
    assert rows == [
        ("certificate-chain-heavy", pauses_ns, None),
        ("server-flight-exceeds-initcwnd", pauses_ns, "certificate-chain-heavy"),
    ]


@pytest.mark.parametrize(("case", "finding", "who"), [
    ("resumption-refused", "resumption-refused", "the server: it does not take the ticket and issues another one"),
    ("resumption-refused-tls13", "resumption-refused", "the server: its ServerHello has no pre_shared_key"),
    ("no-ticket-issued", "no-ticket-issued", "the server: no session_ticket extension and no session id"),
    ("full-handshakes-never-resumed", "full-handshakes-never-resumed", "the client: the server issues sessions"),
    ("full-handshakes-never-resumed-tls13", "full-handshakes-never-resumed", "the client offers none; whether"),
    ("proxy-backend-leg-tls12", "proxy-backend-leg-tls12", "the proxy: its ClientHello offers no more than TLSv1.2"),
    ("early-data-rejected", "early-data-rejected", "the server: it resumes the session and ignores"),
])  # fmt: skip
def test_it_says_who_declined(case: str, finding: str, who: str) -> None:
    assert found(case, finding)[2].startswith(who)


@pytest.mark.parametrize("case", ["full-handshakes-never-resumed-tls13", "resumption-refused-tls13"])
def test_a_full_handshake_of_tls13_costs_what_both_ends_compute_more_than_in_a_resumed_one(case: str) -> None:
    with conchart.read(CAPTURES / case / "input.pcap") as trace:
        # One packet is the server's whole flight. None resumes: the usual 0.4 ms of either end are taken off.
        rows = trace.sql("SELECT server_compute_ns, client_compute_ns FROM handshakes WHERE stream > 0").fetchall()
    cost_ns, critical_ns, _ = found(case, case.removesuffix("-tls13"))
    assert cost_ns == critical_ns == sum(ns - 400_000 for row in rows for ns in row)


def test_full_handshakes_are_held_against_what_the_server_and_its_clients_compute_in_resumed_ones(
    tmp_path: Path,
) -> None:
    case = CAPTURES / "resumption-refused-tls13-near"
    rule = tmp_path / "needless.md"
    rule.write_text(NEEDLESS, encoding="utf-8")
    with conchart.read(case.with_name(case.name + "-clean") / "input.pcap", findings=[tmp_path]) as trace:
        ((needless_ns,),) = trace.sql("SELECT cost_ns FROM findings WHERE finding = 'needless'").fetchall()
        ((resumed_server_ns, resumed_client_ns),) = trace.sql(
            "SELECT median(server_compute_ns)::BIGINT, median(client_compute_ns)::BIGINT "
            "FROM handshakes WHERE kind = 'psk'"
        ).fetchall()
        ((hello_ns, server_ns, client_ns),) = trace.sql(
            "SELECT server_done_at - server_hello_at, server_compute_ns, client_compute_ns "
            "FROM handshakes WHERE kind = 'full'"
        ).fetchall()
    assert needless_ns == hello_ns + server_ns - resumed_server_ns + client_ns - resumed_client_ns
