"""What users waited that no finding explains: divided without remainder, the largest part first."""

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from conchart.report.partition import LEAST_SHARE, MOST_DETAILS, Unexplained, partition
from conchart.report.places import Part, Spent
from conchart.report.splits import Split
from tests.by_hand import Row, connection, tables_of

Waits = dict[tuple[int, str, str], int]
"""What users waited, by the number of the server, phase and owner."""


def owned(waits: Waits) -> list[Row]:
    return [
        {"server_ip": f"10.0.0.{server}", "server_port": 80, "phase": phase, "owner": owner, "waited_ns": ns}
        for (server, phase, owner), ns in waits.items()
    ]


def divided(
    waits: Waits,
    explained: Waits | None = None,
    *,
    spent: tuple[Spent, ...] = (),
    split: dict[tuple[str, int], Split] | None = None,
    name: str = "s{}.example",
    names: bool = True,
) -> list[Unexplained]:
    tables = tables_of(
        wait_owners=owned(waits),
        explained_waits=[
            {name.replace("waited", "explained"): value for name, value in row.items()}
            for row in owned(explained or {})
        ],
        servers=[
            {"server_ip": f"10.0.0.{server}", "server_port": 80, "names": [name.format(server)]}
            for server in {server for server, _, _ in waits}
        ],
    )
    return partition(tables, sum(waits.values()), split or {}, spent, names=names)


def sizes(parts: list[Unexplained]) -> list[tuple[str, str, int]]:
    return [(part.part, part.where, part.ns) for part in parts]


def test_each_server_phase_and_owner_is_a_part() -> None:
    assert sizes(divided({(1, "tls", "client"): 300, (1, "wait", "server"): 500, (2, "syn", "path"): 200})) == [
        ("wait for the server, its own time", "s1.example:80", 500),
        ("TLS handshake, the client's own time", "s1.example:80", 300),
        ("TCP handshake", "s2.example:80", 200),
    ]


def test_what_findings_explain_is_taken_away_and_what_they_explain_wholly_is_no_part() -> None:
    waits = {(1, "tls", "client"): 300, (1, "wait", "server"): 700}
    explained = {(1, "tls", "client"): 300, (1, "wait", "server"): 100}
    assert [part.ns for part in divided(waits, explained)] == [600]


def test_small_parts_of_many_servers_are_added_up_by_phase_and_owner_first() -> None:
    small = {(server, "syn", "path"): 5 for server in range(2, 10)}
    parts = divided({(1, "wait", "server"): 955, (1, "tls", "client"): 5, **small})
    assert sizes(parts) == [
        ("wait for the server, its own time", "s1.example:80", 955),
        ("TCP handshake", "8 servers", 40),
        ("", "", 5),
    ]
    assert [part.title for part in parts] == ["Wait for the server, its own time", "TCP handshake", "Smaller parts"]


def test_a_percent_is_a_part_and_less_is_none() -> None:
    assert sizes(divided({(1, "wait", "server"): 990, (1, "syn", "path"): 10}))[1] == (
        "TCP handshake",
        "s1.example:80",
        10,
    )
    assert sizes(divided({(1, "wait", "server"): 991, (1, "syn", "path"): 9}))[1] == ("", "", 9)


@settings(max_examples=25, deadline=None)
@given(
    st.dictionaries(
        st.tuples(
            st.integers(1, 4), st.sampled_from(("syn", "tls", "wait", "transfer")),
            st.sampled_from(("client", "path", "server")),
        ),
        st.tuples(st.integers(1, 10**12), st.floats(0, 1)),
        min_size=1,
    ),
    st.booleans(),
)  # fmt: skip
def test_the_parts_and_what_is_explained_add_up_in_order_of_size(
    waited: dict[tuple[int, str, str], tuple[int, float]],
    at_places: bool,  # noqa: FBT001
) -> None:
    waits = {key: ns for key, (ns, _) in waited.items()}
    explained = {key: int(ns * share) for key, (ns, share) in waited.items() if share > 0.5}
    parts = [Part(kind="host", place="app", to_place=None, total_ns=3, uncertainty_ns=0)]
    spent = Spent(server_ip="10.0.0.1", server_port=80, total_ns=7, parts=(*parts, *parts))
    found = divided(waits, explained, spent=(spent,) if at_places else ())
    assert sum(part.ns for part in found) == sum(waits.values()) - sum(explained.values())
    worded = [part.ns for part in found if part.part]
    assert worded == sorted(worded, reverse=True)
    assert all(LEAST_SHARE * ns >= sum(waits.values()) for ns in worded)
    assert all(part.ns > 0 for part in found)
    assert [part.part for part in found].count("") <= 1
    assert max(Counter((part.part, part.where) for part in found).values(), default=1) <= 1 + at_places


SPENT = Spent(
    server_ip="10.0.0.1", server_port=80, total_ns=50,
    parts=(
        Part(kind="path", place="client", to_place="app", total_ns=20, uncertainty_ns=0),
        Part(kind="host", place="app", to_place=None, total_ns=25, uncertainty_ns=0),
    ),
)  # fmt: skip


def test_where_captures_tell_where_a_servers_waits_were_spent_they_are_divided_so() -> None:
    """Other connections to the server wait 50 ns; a pause has an owner, and no place."""
    waits = {(1, "wait", "server"): 60, (1, "tls", "client"): 40, (1, "idle", "client"): 30}
    assert sizes(divided(waits, spent=(SPENT,))) == [
        ("not known where", "s1.example:80", 55),
        ("pause, the client's own time", "s1.example:80", 30),
        ("at app", "s1.example:80", 25),
        ("path client–app", "s1.example:80", 20),
    ]


def test_where_nobody_knows_where_findings_explain_the_rest_stands_by_phase() -> None:
    """A trace that was saved before there was a table of that."""
    parts = divided({(1, "wait", "server"): 60, (1, "tls", "client"): 40}, {(1, "wait", "server"): 40}, spent=(SPENT,))
    assert sizes(parts) == [
        ("TLS handshake, the client's own time", "s1.example:80", 40),
        ("wait for the server, its own time", "s1.example:80", 20),
    ]


def test_what_findings_explain_is_no_more_part_of_its_place() -> None:
    waits = {(1, "wait", "server"): 60, (1, "wait", "path"): 20, (1, "tls", "client"): 20}
    path, app = SPENT.parts
    spent = replace(SPENT, total_ns=100, parts=(path, replace(app, total_ns=60, explained_ns=10)))
    assert sizes(divided(waits, {(1, "wait", "server"): 10}, spent=(spent,))) == [
        ("at app", "s1.example:80", 50),
        ("path client–app", "s1.example:80", 20),
        ("not known where", "s1.example:80", 20),
    ]


def test_where_findings_explain_all_that_places_tell_nobody_knows_where_the_rest_was() -> None:
    spent = replace(SPENT, total_ns=45, parts=tuple(replace(part, explained_ns=45) for part in SPENT.parts))
    parts = divided({(1, "wait", "server"): 50}, {(1, "wait", "server"): 45}, spent=(spent,))
    assert sizes(parts) == [("not known where", "s1.example:80", 5)]


def test_two_servers_with_one_name_are_told_apart_by_their_addresses() -> None:
    found = divided(
        {(1, "wait", "server"): 60, (2, "wait", "server"): 40, (2, "tls", "client"): 20}, name="shop.example"
    )
    assert [part.where for part in found] == [
        "shop.example:80 (10.0.0.1)",
        "shop.example:80 (10.0.0.2)",
        "shop.example:80",
    ]


def test_without_names_servers_are_addresses() -> None:
    assert [part.where for part in divided({(1, "wait", "server"): 60}, names=False)] == ["10.0.0.1:80"]


def front(ip: str = "10.0.0.1", **facts: int) -> dict[tuple[str, int], Split]:
    parts: Row = {"backend_ns": 0, "connect_ns": 0, "tls_ns": 0, "pool_ns": 0, "proxy_ns": 0, "unlinked_ns": 0}
    split = Split(requests=1, wait_ns=100, unlinked=0, is_outermost=True, **parts | facts)
    return {(ip, 80): split}


def test_of_a_fronts_wait_the_largest_hop_of_the_owner_is_named() -> None:
    waits = {(1, "wait", "proxy"): 40, (1, "wait", "server"): 60}
    texts = [part.part for part in divided(waits, split=front(proxy_ns=40, pool_ns=10, backend_ns=60))]
    assert texts == ["wait for the server, the backend", "wait for the server, the proxy itself"]
    texts = [part.part for part in divided(waits, split=front(pool_ns=40, unlinked_ns=60))]
    assert texts == [
        "wait for the server, the proxy and what stands behind it",
        "wait for the server, waiting for a pooled connection",
    ]
    texts = [part.part for part in divided(waits, split=front(connect_ns=31, tls_ns=30, backend_ns=60))]
    assert texts[0] == "wait for the server, connecting to the backend"
    assert texts[1] == "wait for the server, the proxy's own time", "no part of it is known"


def described(
    requests: int = 2,
    *,
    phase: str = "wait",
    owner: str = "server",
    names: bool = True,
    **facts: Any,  # noqa: ANN401
) -> Unexplained:
    """A wait of 90 ns of two requests on one connection.

    Args:
        requests: Of these, so many.
        phase: In which they wait.
        owner: Whose time that is.
        names: With names found in the capture.
        facts: Columns of the connection, but for ``response_bytes``, and rows of ``splits``, ``on_behalf`` and
            ``phase_stalls``.
    """
    size = facts.pop("response_bytes", None)
    splits, on_behalf, stalls = (facts.pop(name, []) for name in ("splits", "on_behalf", "phase_stalls"))
    tables = tables_of(
        wait_owners=owned({(9, phase, owner): 90}),
        servers=[{"server_ip": "10.0.0.9", "server_port": 80, "names": ["shop.example"]}],
        splits=splits,
        on_behalf=on_behalf,
        phase_stalls=stalls,
        connections=[connection(4, **facts)],
        phases=[
            {"stream": 4, "exchange": number, "kind": phase, "start_at": start, "end_at": end, "start_frame": frame}
            for number, start, end, frame in ((0, 0, 60, 5), (1, 100, 130, 9))[:requests]
        ],
        exchanges=[
            {"stream": 4, "number": number, "request_at": 0, "method": "GET", "target": f"/{number}", "confidence": 1.0,
             "protocol": "http/1.1", "response_at": 5, "response_bytes": size}
            for number in range(requests)
        ],
    )  # fmt: skip
    (part,) = partition(tables, 90, front(ip="10.0.0.9", proxy_ns=70) if splits else {}, (), names=names)
    return part


def test_a_large_part_says_what_it_consists_of_and_where_to_look() -> None:
    part = described()
    assert (part.stream, part.frame) == (4, 5)
    assert part.detail == "2 requests; the longest GET /0 60 ns at frame 5"


def test_a_single_request_is_named_where_names_are_wanted() -> None:
    assert described(1).detail == "1 request; GET /0 60 ns at frame 5"
    assert described(1, names=False).detail == "1 request"
    assert described(names=False).detail == "2 requests; the longest 60 ns at frame 5"


def test_what_was_made_for_others_is_not_where_to_look() -> None:
    part = described(on_behalf=[{"stream": 4, "exchange": 0}])
    assert part.frame == 9
    assert part.detail.startswith("1 request; GET /1 30 ns")


def test_the_path_of_few_bytes_needs_no_bandwidth() -> None:
    """What a new connection may send at once: ten segments for each request."""
    few, many = (described(1, phase="transfer", owner="path", response_bytes=size) for size in (14_599, 14_600))
    assert (few.next_step, few.detail[:22]) == ("", "1 request; 14.6 kB; GE")
    assert "bandwidth" in many.next_step


def test_what_to_look_at_is_that_of_whose_time_it_is() -> None:
    """Also where the network made a host's timer run."""
    hosts, paths = (
        described(
            1,
            phase="transfer",
            owner=owner,
            response_bytes=20_000,
            phase_stalls=[
                {"stream": 4, "exchange": 0, "phase": "transfer", "owner": owner, "kind": "rto", "start_at": 10,
                 "end_at": 90}
            ],
        )
        for owner in ("server", "path")
    )  # fmt: skip
    assert "timer" in hosts.detail
    assert hosts.next_step.startswith("look at the server")
    assert paths.next_step.startswith("look for where packets are lost")


def test_what_a_proxy_itself_took_is_told_with_how_many_requests_it_had_at_a_time() -> None:
    part = described(owner="proxy", splits=[{"server_ip": "10.0.0.9", "server_port": 80}])
    assert "the proxy itself took 70 ns of 100 ns wait (70 %), up to 2 requests at a time" in part.detail
    part = described(1, owner="proxy", splits=[{"server_ip": "10.0.0.9", "server_port": 80}])
    assert "at a time" not in part.detail


def test_a_second_sight_of_the_connection_is_not_where_to_look() -> None:
    part = described(same_as=0)
    assert (part.stream, part.frame, part.detail) == (None, None, "")


def test_only_the_largest_parts_are_described() -> None:
    waits = {(server, "wait", "server"): 100 - server for server in range(1, 6)}
    tables = tables_of(
        wait_owners=owned(waits),
        connections=[connection(server, server=f"10.0.0.{server}:80") for server in range(1, 6)],
        phases=[
            {"stream": server, "exchange": 0, "kind": "wait", "start_at": 0, "end_at": 1, "start_frame": server}
            for server in range(1, 6)
        ],
        exchanges=[{"stream": server, "number": 0} for server in range(1, 6)],
    )
    found = partition(tables, sum(waits.values()), {}, ())
    assert [part.frame for part in found] == [1, 2, 3, None, None]
    assert MOST_DETAILS == 3
