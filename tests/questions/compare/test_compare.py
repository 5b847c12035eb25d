"""Two captures compared: laws, the story of the article, and what cannot be compared."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import conchart
from conchart import Trace, UsageError
from conchart.questions.compare import compare
from conchart.questions.compare.headline import headlines
from conchart.questions.compare.lanes import MOST_LANES
from conchart.questions.compare.model import Comparison
from conchart.questions.compare.noise import Verdict
from tests.charts.story import MS, Story, many
from tests.conftest import ROOT, TellTrace, empty_trace

ARTICLE = ("reverse-proxy/https-no-keepalive", "reverse-proxy/https-keepalive")
SAME = "shop.example: no difference: users waited 304 ms before and after, for 3 requests each"
KINDS = ("hops/nginx-http-http-16", "multiplexed/curl-apache-together", "udp/dns-before-http", *ARTICLE)

Read = Callable[[str], Trace]


@pytest.fixture(scope="module")
def read() -> Iterator[Read]:
    """Read a capture once."""
    traces: dict[str, Trace] = {}

    def read_once(name: str) -> Trace:
        if name not in traces:
            traces[name] = conchart.read(next((ROOT / "captures" / name).glob("input.pcap*")))
        return traces[name]

    yield read_once
    for trace in traces.values():
        trace.close()


def moved(name: str, folder: Path) -> Path:
    """Write a capture again in which every address and no name has changed: 10.77.x.y becomes 10.99.x.y."""
    path = folder / "moved.pcap"
    path.write_bytes((ROOT / "captures" / name / "input.pcap").read_bytes().replace(b"\x0a\x4d", b"\x0a\x63"))
    return path


def test_the_articles_sentence(read: Read) -> None:
    comparison = compare(*map(read, ARTICLE))
    (headline,) = comparison.headlines
    assert headline.sentence == (
        "shop.example: users waited 304 ms before, 112 ms after (63 % less): 1 TLS handshake instead of 3, "
        "for 3 requests each"
    )
    assert headline.remark == "Too few requests to tell their times from noise: only what was counted is sure."
    front, backend = comparison.hops
    assert (front.before.handshakes_full, front.after.handshakes_full) == (3, 1)
    assert (front.before.connections, front.after.connections) == (3, 1)
    assert (backend.before.endpoint, backend.tier) == ("10.77.2.20:8080", 1)
    assert [one.measure.name for one in front.differences] == (
        ["waited", "whole", "syn", "tls", "wait", "backend", "connect", "proxy", "transfer"]
    )


def test_what_a_request_waited_has_the_handshakes_of_its_connection_in_it(read: Read) -> None:
    front, _ = compare(*map(read, ARTICLE)).hops
    waited, whole = front.differences[:2]
    assert waited.measure.name == "waited"
    for side in ("before", "after"):
        assert getattr(waited, side).p95 > getattr(whole, side).p95
    assert whole.after.p95 is not None
    assert waited.after.median == whole.after.p95, "two of three requests came later on their connection"


@pytest.mark.parametrize("name", KINDS)
def test_a_capture_does_not_differ_from_itself(read: Read, name: str) -> None:
    comparison = compare(read(name), read(name))
    assert comparison.hops
    assert {one.verdict for hop in comparison.hops for one in hop.differences} == {Verdict.SAME}
    assert {hop.by for hop in comparison.hops} == {"address"}
    assert all(hop.same_work for hop in comparison.hops)
    assert not comparison.before.only + comparison.after.only
    assert {change.change for change in comparison.findings} <= {"same"}
    assert comparison.headlines
    for headline in comparison.headlines:
        assert ": no difference: users waited " in headline.sentence
        assert not headline.remark


MIRROR = {Verdict.LESS: Verdict.MORE, Verdict.ONLY_BEFORE: Verdict.ONLY_AFTER}
MIRROR |= {there: here for here, there in MIRROR.items()}


@pytest.mark.parametrize("pair", [ARTICLE, ("hops/nginx-http-http-16", "hops/nginx-close-http-https-16")])
def test_swapped_captures_are_mirrored(read: Read, pair: tuple[str, str]) -> None:
    one, other = map(read, pair)
    forth, back = compare(one, other), compare(other, one)
    assert (forth.before, forth.after) == (back.after, back.before)
    mirrored = {(hop.after.endpoint, hop.before.endpoint): hop for hop in back.hops}
    for hop in forth.hops:
        mirror = mirrored.pop((hop.before.endpoint, hop.after.endpoint))
        assert (hop.by, hop.tier, hop.same_work) == (mirror.by, mirror.tier, mirror.same_work)
        for here, there in zip(hop.differences, mirror.differences, strict=True):
            assert (here.before, here.after) == (there.after, there.before)
            assert here.verdict is MIRROR.get(there.verdict, there.verdict)
    assert not mirrored
    turned = {"gone": "new", "new": "gone"}
    assert sorted((change.finding, change.change) for change in forth.findings) == sorted(
        (change.finding, turned.get(change.change, change.change)) for change in back.findings
    )


def test_where_the_work_differs_everything_is_told_per_request(read: Read) -> None:
    comparison = compare(read("hops/nginx-http-http-16"), read("hops/nginx-close-http-https-16"))
    (headline,) = comparison.headlines
    assert headline.sentence == (
        "shop.example: users waited 7.90 ms per request before, 17.7 ms after (2.2 times as long): "
        "TLS with the backend 6.20 ms per request more, the proxy itself 3.97 ms per request more, "
        "for 40 requests before and 30 after"
    )
    front, backend = comparison.hops
    assert not front.same_work
    assert list(front.counts())[:2] == [("waited per request", "7.90 ms", "17.7 ms"), ("connections", "17", "17")]
    assert (backend.by, backend.before.server_port, backend.after.server_port) == ("place", 8080, 8443)
    assert backend.verdict("tls") is Verdict.ONLY_AFTER


def test_servers_are_found_again_by_name_where_addresses_have_changed(read: Read, tmp_path: Path) -> None:
    with conchart.read(moved(ARTICLE[0], tmp_path)) as after:
        comparison = compare(read(ARTICLE[0]), after)
    assert [(hop.before.endpoint, hop.after.endpoint, hop.by) for hop in comparison.hops] == [
        ("10.77.1.1:443", "10.99.1.1:443", "name"),
        ("10.77.2.20:8080", "10.99.2.20:8080", "place"),
    ]
    assert [headline.sentence for headline in comparison.headlines] == [SAME]
    assert {change.change for change in comparison.findings} == {"same"}


def test_names_that_are_not_wanted_match_and_are_not_told(read: Read, tmp_path: Path) -> None:
    with conchart.read(moved(ARTICLE[0], tmp_path)) as after:
        comparison = compare(read(ARTICLE[0]), after, names=False)
    assert comparison.hops[0].by == "name"
    assert [headline.sentence for headline in comparison.headlines] == [SAME.replace("shop.example", "10.99.1.1:443")]
    assert not comparison.hops[0].before.names


def test_backends_have_a_headline_only_where_no_front_is_in_both(read: Read) -> None:
    front, backend = compare(*map(read, ARTICLE)).hops
    assert headlines([front, backend]) == headlines([front])
    (headline,) = headlines([backend])
    assert headline.sentence == (
        "10.77.2.20:8080: too few requests to tell a difference from noise: "
        "users waited 4.27 ms before, 3.95 ms after, for 3 requests each"
    )


def test_each_capture_starts_at_zero_on_its_own_clock(read: Read) -> None:
    comparison = compare(*map(read, ARTICLE))
    for side, streams in ((comparison.before, [0, 2, 4, 1, 3, 5]), (comparison.after, [0, 1, 2, 3])):
        assert min(lane.start_ns for lane in side.lanes.drawn) == 0
        assert [lane.stream for lane in side.lanes.drawn] == streams
        for lane in side.lanes.drawn:
            assert lane.pieces[0].start_ns == lane.start_ns
            assert lane.pieces[-1].end_ns == lane.end_ns
        assert side.lanes.besides == 0
    assert comparison.span_ns == comparison.before.span_ns


def test_of_many_connections_the_costliest_are_drawn(trace_of: TellTrace) -> None:
    trace = trace_of(many(100))
    lanes = compare(trace, trace).before.lanes
    assert (len(lanes.drawn), lanes.besides) == (MOST_LANES, 100 - MOST_LANES)
    costliest = trace.sql(f"SELECT stream FROM connections ORDER BY waited_ns DESC LIMIT {MOST_LANES}").fetchall()
    assert {lane.stream for lane in lanes.drawn} == {stream for (stream,) in costliest}


def asking(waits: list[int], *, target: str = "/") -> Story:
    """One request on each of several connections."""
    story = Story()
    for number, wait in enumerate(waits):
        phases = [("syn", MS), ("request", 1000), ("wait", wait), ("transfer", 1000)]
        story.connect(
            ("10.0.0.1", 40_000 + number), ("10.0.0.2", 80), number * 50 * MS, phases, exchange={"target": target}
        )
    story.capture()
    return story


def compared(trace_of: TellTrace, before: Story, after: Story) -> Comparison:
    return compare(trace_of(before), trace_of(after))


def test_a_longer_wait_that_is_more_than_noise_is_named(trace_of: TellTrace) -> None:
    before, after = [(10 + n % 3) * MS for n in range(10)], [(15 + n % 3) * MS for n in range(10)]
    comparison = compared(trace_of, asking(before), asking(after))
    (hop,) = comparison.hops
    assert hop.verdict("wait") is hop.verdict("waited") is Verdict.MORE
    assert hop.verdict("syn") is Verdict.SAME
    (headline,) = comparison.headlines
    assert headline.sentence.endswith(
        ": users waited 119 ms before, 169 ms after (42 % more): wait for the server 50.0 ms more, for 10 requests each"
    )
    assert not headline.remark


def test_a_longer_wait_that_is_noise_is_said_to_be(trace_of: TellTrace) -> None:
    before, after = [(10 + n % 5) * MS for n in range(10)], [(10 + n % 4) * MS + 500_000 for n in range(10)]
    comparison = compared(trace_of, asking(before), asking(after))
    assert comparison.hops[0].verdict("waited") is Verdict.NOISE
    assert ": no difference beyond noise: users waited " in comparison.headlines[0].sentence


def test_too_few_requests_are_said_to_be(trace_of: TellTrace) -> None:
    comparison = compared(trace_of, asking([MS] * 3), asking([90 * MS] * 3))
    assert ": too few requests to tell a difference from noise: " in comparison.headlines[0].sentence


def test_as_many_requests_for_other_things_are_other_work(trace_of: TellTrace) -> None:
    comparison = compared(trace_of, asking([MS] * 8), asking([MS] * 8, target="/other"))
    assert not comparison.hops[0].same_work
    assert comparison.headlines[0].sentence.endswith("for 8 requests each, not the same ones")
    assert " per request " in comparison.headlines[0].sentence


def test_findings_gone_and_new_and_none_at_all(trace_of: TellTrace) -> None:
    before, after = trace_of(asking([MS] * 3)), trace_of(asking([MS] * 3))
    for trace in (before, after):
        trace.execute("DELETE FROM findings")
    assert compare(before, after).findings == ()
    before.execute(
        """
        INSERT INTO findings BY NAME
        SELECT n AS number, 'slow' AS finding, 'It is slow' AS title, 'warning' AS severity, '10.0.0.2' AS server_ip,
            80 AS server_port, '10.0.0.' || n AS client_ip, 2 AS count, 5000000 AS cost_ns, 5000000 AS critical_ns,
            1000000 AS shared_ns,
            CASE WHEN n = 9 THEN 3 END AS root FROM (VALUES (3), (4), (9)) AS t(n)
        """
    )
    (gone,) = compare(before, after).findings
    assert (gone.change, gone.server, gone.before_ns, gone.before_count) == (
        "gone",
        "www.example.com (10.0.0.2:80)",
        8 * MS,
        6,
    )
    (new,) = compare(after, before).findings
    assert (new.change, new.before_ns, new.after_ns) == ("new", None, 8 * MS)


def test_an_empty_capture_cannot_be_compared(read: Read) -> None:
    with empty_trace() as nothing:
        nothing.execute("INSERT INTO captures BY NAME SELECT 0 AS capture, 'nothing.pcap' AS path, 0 AS packets")
        with pytest.raises(UsageError) as refused:
            compare(read(ARTICLE[0]), nothing)
    assert str(refused.value).splitlines() == [
        "these captures cannot be compared: one of them contains no connection",
        f"before ({ROOT}/captures/{ARTICLE[0]}/input.pcap) has 6 connections, 6 requests: "
        "10.77.1.1:443 (shop.example), 10.77.2.20:8080",
        "after (nothing.pcap) has 0 connections, 0 requests",
    ]


def test_a_capture_in_which_nothing_was_asked_cannot_be_compared(read: Read) -> None:
    with pytest.raises(UsageError, match="one of them contains no request\nbefore .* 2 connections, 0 requests: 198"):
        compare(read("crafted/refused"), read(ARTICLE[0]))


def test_captures_without_a_server_in_common_cannot_be_compared(read: Read, trace_of: TellTrace) -> None:
    story = Story()
    for number in range(2):
        phases = [("syn", MS), ("request", 1000), ("wait", MS)]
        story.connect(("10.0.0.1", 40_000), (f"10.0.1.{number}", 80), 0, phases, exchange={"host": f"{number}.example"})
    story.capture()
    with pytest.raises(UsageError, match="no server in one matches a server in the other"):
        compare(trace_of(story), read(ARTICLE[0]))
