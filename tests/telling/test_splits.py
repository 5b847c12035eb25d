"""What is said of the waits at a front."""

from dataclasses import replace

from conchart.telling.splits import Split

KNOWN = Split(
    requests=20,
    wait_ns=6_380,
    backend_ns=3_510,
    connect_ns=96,
    tls_ns=0,
    pool_ns=0,
    proxy_ns=2_774,
    unlinked=0,
    unlinked_ns=0,
)


def test_parts_that_took_no_time_are_not_told() -> None:
    assert str(KNOWN) == "of 6.38 µs wait: backend 3.51 µs, connecting 96 ns, the proxy itself 2.77 µs"


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
    )
    assert str(split) == "of 30 ns wait: TLS with the backend 10 ns, not linked 20 ns (3 of 20 requests)"


def test_an_application_has_a_part_for_each_store() -> None:
    split = replace(KNOWN, stores=(("PostgreSQL 10.0.0.3:5432", 3_000), ("Redis 10.0.0.4:6379", 510)))
    assert str(split) == (
        "of 6.38 µs wait: PostgreSQL 10.0.0.3:5432 3.00 µs, Redis 10.0.0.4:6379 510 ns, connecting 96 ns, "
        "the application itself 2.77 µs"
    )
