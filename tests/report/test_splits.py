"""What is said of the waits at a front."""

from dataclasses import replace

import conchart
from conchart.report.report import Report
from conchart.report.splits import Split, splits
from tests.conftest import ROOT

SPLIT = Split(
    requests=20,
    wait_ns=6_380,
    backend_ns=3_510,
    connect_ns=96,
    tls_ns=0,
    pool_ns=0,
    proxy_ns=2_774,
    unlinked=0,
    unlinked_ns=0,
    is_outermost=True,
)


def test_parts_that_took_no_time_are_not_told() -> None:
    assert str(SPLIT) == "of 6.38 µs wait: backend 3.51 µs, connecting 96 ns, the proxy itself 2.77 µs"


def test_what_is_not_linked_is_told_with_its_requests() -> None:
    split = Split(
        requests=20,
        wait_ns=30,
        backend_ns=0,
        connect_ns=0,
        tls_ns=10,
        pool_ns=0,
        proxy_ns=0,
        unlinked=3,
        unlinked_ns=20,
        is_outermost=True,
    )
    assert str(split) == "of 30 ns wait: TLS with the backend 10 ns, not linked 20 ns (3 of 20 requests)"


def test_requests_side_by_side_wait_no_longer_than_their_users() -> None:
    """Shares stay, and parts add up: 20 requests that waited 6.38 µs, in 1 µs."""
    split = SPLIT.within(1_001)
    assert sum(ns for _, ns, _ in split.parts()) == split.wait_ns == 1_001
    assert str(split) == "of 1.00 µs wait: backend 551 ns, connecting 15 ns, the proxy itself 435 ns"
    assert SPLIT.within(7_000) == SPLIT


def test_a_hop_has_no_more_than_users_waited() -> None:
    """Sixteen requests of one HTTP/2 connection at a time wait for 350 ms, added up, in 42.6 ms."""
    case = ROOT / "captures/hops/h2-nginx-keys-16"
    with conchart.read(case / "input.pcap", keylog=[case / "keys.log"]) as trace:
        ((summed,),) = trace.fetch("SELECT wait_ns FROM splits")
        ((waited,),) = trace.fetch("SELECT sum(waited_ns) FROM times WHERE phase = 'wait' AND server_port = 443")
        (split,) = splits(trace).values()
        assert split.wait_ns == waited < summed
        wait, own, *_ = Report(trace).unexplained
    assert (wait.part, own.part) == ("wait for the server, the backend", "wait for the server, the proxy itself")
    assert "the backend took 35.5 ms of 42.6 ms wait (83 %)" in wait.detail
    assert own.detail.count("up to 16 requests at a time") == 1


def test_an_application_has_a_part_for_each_store() -> None:
    split = replace(SPLIT, stores=(("PostgreSQL 10.0.0.3:5432", 3_000), ("Redis 10.0.0.4:6379", 510)))
    assert str(split) == (
        "of 6.38 µs wait: PostgreSQL 10.0.0.3:5432 3.00 µs, Redis 10.0.0.4:6379 510 ns, connecting 96 ns, "
        "the application itself 2.77 µs"
    )
