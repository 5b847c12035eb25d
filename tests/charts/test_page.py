"""The text of the page: escaping, what it says about the capture, limits, reproducibility."""

import re
from collections import Counter
from typing import Any

import pytest

from conchart.labels.phases import PHASES
from conchart.outputs.options import DrawOptions
from conchart.outputs.page.page import render
from conchart.report import swimlanes
from conchart.report.remarks import remarks
from tests.charts.story import MS, Story, many
from tests.charts.unpacked import Page
from tests.conftest import TellTrace, analysed, empty_trace

LADDER = ("rungs", "silences", "facts", "clocks", "fields")
TABLES = ("lanes", "phases", "stalls", "exchanges", "links", "handshakes", "packets", *LADDER)
HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "<img src=x onerror=alert(1)>",
    "\"' onmouseover=alert(1) x='",
    "<a href='javascript:alert(1)'>x</a><br><b>",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;script&gt;",
    "\u2028alert(1)\u2029",
]
BIDI = "moc.\u202eelpmaxe\u202c\u200b\x1b[31m\x00"


def hostile_story(text: str) -> Story:
    """Every column that a stranger writes holds ``text``."""
    story = Story()
    story.connect(
        ("10.0.0.1", 50_000),
        ("10.0.0.2", 443),
        0,
        [("syn", MS), ("tls", 5 * MS), ("request", MS), ("wait", 3 * MS), ("transfer", MS), ("close", MS)],
        tls={"sni": text, "alpn": text, "cipher": text, "alert": text},
        exchange={"method": text, "host": text, "target": text, "protocol": text},
    )
    story.capture(path=f"/tmp/{text}", notes=[f"frame 7: {text}"])
    return story


@pytest.fixture(scope="module")
def harmless() -> Page:
    """The page of the story whose texts are letters."""
    with empty_trace() as trace:
        hostile_story("x").fill(trace)
        return Page(render(analysed(trace)))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_adds_no_element_and_no_attribute(trace_of: TellTrace, harmless: Page, text: str) -> None:
    hostile = Page(render(trace_of(hostile_story(text))))
    assert [(tag, sorted(attributes)) for tag, attributes in hostile.elements] == [
        (tag, sorted(attributes)) for tag, attributes in harmless.elements
    ]
    assert len(hostile.blocks) == len(harmless.blocks)
    assert hostile.data["handshakes"]["sni"] == [text.replace("\u2028", "\ufffd").replace("\u2029", "\ufffd")]


def test_invisible_and_reversing_characters_are_replaced_everywhere(trace_of: TellTrace) -> None:
    page = render(trace_of(hostile_story(BIDI)))
    parsed = Page(page)
    text = page + parsed.block("data").decode()

    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\x00-\x08\x1b]", text)
    assert "moc.\ufffdelpmaxe\ufffd\ufffd\ufffd[31m\ufffd" in page
    assert parsed.data["handshakes"]["sni"] == ["moc.\ufffdelpmaxe\ufffd\ufffd\ufffd[31m\ufffd"]


def test_blocks_are_base64_which_cannot_end_them(trace_of: TellTrace, proxy_story: Story) -> None:
    page = Page(render(trace_of(proxy_story)))
    blocks = [a["id"] for _, a in page.elements if a.get("type") == "application/octet-stream"]
    assert blocks == ["data", *(f"data-{name}" for name in TABLES), "plotly"]
    assert b"* plotly.js " in page.block("plotly")[:500]


def test_same_trace_gives_the_same_bytes(trace_of: TellTrace, proxy_story: Story) -> None:
    assert render(trace_of(proxy_story)) == render(trace_of(proxy_story))


def test_policy_loads_nothing_and_runs_only_scripts_it_knows(trace_of: TellTrace, proxy_story: Story) -> None:
    page = Page(render(trace_of(proxy_story)))
    (policy,) = [a["content"] or "" for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert "'unsafe-inline'" not in policy.partition("style-src")[0]
    assert not [a for tag, a in page.elements if "src" in a]
    assert [a["href"] for tag, a in page.elements if "href" in a] == ["data:,"]


def test_times_stay_whole_nanoseconds_since_the_first_packet(trace_of: TellTrace, proxy_story: Story) -> None:
    data = Page(render(trace_of(proxy_story))).data
    opened = dict(zip(data["lanes"]["stream"], data["lanes"]["opened"], strict=True))
    phases = zip(data["phases"]["stream"], data["phases"]["duration"], strict=True)
    assert opened[1] == 131 * MS
    assert [duration for stream, duration in phases if stream == 1][:2] == [312_001, 81 * MS + 117]


def test_a_front_comes_before_its_backends(trace_of: TellTrace, proxy_story: Story) -> None:
    groups = Page(render(trace_of(proxy_story))).data["groups"]
    assert groups["endpoint"] == ["192.168.7.1:443", "10.9.0.3:8080"]
    assert groups["role"] == ["front", "backend"]


def test_an_address_that_is_too_long_breaks_before_its_port(trace_of: TellTrace, proxy_story: Story) -> None:
    shown = re.findall(r"<code>([^<]*)<wbr>(:\d+)</code>", render(trace_of(proxy_story)))
    servers = trace_of(proxy_story).sql("SELECT DISTINCT server_ip, server_port FROM connections").fetchall()
    assert sorted(shown) == sorted((ip, f":{port}") for ip, port in servers)


def test_links_are_carried_for_the_fronts_that_are_drawn(
    trace_of: TellTrace, proxy_story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = trace_of(proxy_story)
    links = Page(render(trace)).data["links"]
    assert list(zip(links["stream"], links["back_stream"], strict=True)) == [(0, 3), (1, 4), (2, 5)]
    steps = [links[name] for name in links if name.endswith("_ns")]
    assert [sum(map(int, map(str, parts))) for parts in zip(*steps, strict=True)] == [21 * MS + 501] * 3
    monkeypatch.setattr(swimlanes, "MAX_LINKS", 2)
    page = Page(render(trace))
    assert page.data["links"]["stream"] == [0, 1]
    assert "have 3 links; the page holds the first 2" in page.text


def test_what_a_wait_consists_of_is_told_per_front_and_explained(trace_of: TellTrace, proxy_story: Story) -> None:
    page = Page(render(trace_of(proxy_story)))
    sentence = "of 63.0 ms wait: backend 54.7 ms, connecting 240 µs, the proxy itself 8.08 ms"
    assert page.text.count("wait: backend") == 1
    assert sentence in page.text
    assert "inside a front's wait:" in page.text
    alone = Story()
    alone.connect(("10.0.0.1", 1), ("10.0.0.2", 80), 0, [("request", MS), ("wait", MS), ("transfer", MS)])
    alone.capture()
    assert "inside a" not in Page(render(trace_of(alone))).text


def test_without_names_only_addresses_are_shown(trace_of: TellTrace, proxy_story: Story) -> None:
    def drawn(options: DrawOptions) -> str:
        page = Page(render(trace_of(proxy_story), options))
        return page.text + str(page.data)

    assert "www.example.com" not in drawn(DrawOptions(names=False))
    assert "www.example.com" in drawn(DrawOptions())


def test_packets_that_tell_of_trouble_are_carried_and_all_when_asked_for(
    trace_of: TellTrace, proxy_story: Story
) -> None:
    assert set(Page(render(trace_of(proxy_story))).data["packets"]["mark"]) == {"retransmit"}
    marked = Page(render(trace_of(proxy_story), DrawOptions(packets=True))).data["packets"]
    assert marked["mark"].count("retransmit") == 6
    plain = Page(render(trace_of(proxy_story), DrawOptions(packets=True, retransmits=False))).data["packets"]
    assert len(plain["mark"]) == len(marked["mark"]) > 6
    assert set(plain["mark"]) == {None}
    assert Page(render(trace_of(proxy_story), DrawOptions(retransmits=False))).data["packets"]["mark"] == []


def test_good_capture_is_said_to_be_good(trace_of: TellTrace, proxy_story: Story) -> None:
    page = Page(render(trace_of(proxy_story)))
    assert "capture complete" in page.text
    assert not [remark for remark in remarks(trace_of(proxy_story)) if remark.warning]


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"truncated": True}, "ends in the middle"),
        ({"dropped": 12}, "12 packets lost by the capturing machine"),
        ({"undecodable": 1}, "1 frame with unreadable headers"),
        ({"snapped": 3}, "3 packets cut by the snap length"),
        ({"resolution_ns": 1_000_000}, "only exact to"),
        ({"notes": ["frame 9: record too long"]}, "frame 9: record too long"),
    ],
)
def test_flaw_of_the_capture_is_named(trace_of: TellTrace, facts: dict[str, object], sentence: str) -> None:
    story = Story()
    story.connect(("10.0.0.1", 1), ("10.0.0.2", 80), 0, [("syn", MS), ("close", MS)])
    story.capture(**facts)
    page = Page(render(trace_of(story)))
    assert sentence in page.text
    assert "capture complete" not in page.text


def test_a_note_of_several_lines_is_read_as_one_that_says_what_to_do(trace_of: TellTrace) -> None:
    story = Story()
    story.connect(("10.0.0.1", 1), ("10.0.0.2", 80), 0, [("syn", MS), ("close", MS)])
    story.capture(truncated=True, notes=["packet 9: the file ends\n  at byte 70\n  Usual causes: a copy."])
    page = Page(render(trace_of(story)))
    assert "packet 9: the file ends. at byte 70 · Usual causes: a copy." in " ".join(page.text.split())
    assert "\ufffd" not in page.text


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"missing_server": 1_460}, "acknowledged but not captured, on 1 connection"),
        ({"state": "midstream"}, "1 connection already open"),
        ({"packets_server": 0, "state": "open"}, "1 connection with one direction only"),
    ],
)
def test_flaw_of_a_connection_is_named(trace_of: TellTrace, facts: dict[str, Any], sentence: str) -> None:
    story = Story()
    story.connect(("10.0.0.1", 1), ("10.0.0.2", 80), 0, [("unseen", MS)], **facts)
    story.capture()
    assert sentence in Page(render(trace_of(story))).text


def test_beyond_the_limit_the_connections_waited_for_longest_are_kept(
    trace_of: TellTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swimlanes, "MAX_LANES", 5)
    story = many(30)
    page = Page(render(trace_of(story)))
    waited = {
        c["stream"]: sum(
            p["end_at"] - p["start_at"]
            for p in story.phases
            if p["stream"] == c["stream"] and p["kind"] not in {"idle", "close", "unseen"}
        )
        for c in story.connections
    }
    assert set(page.data["lanes"]["stream"]) == set(sorted(waited, key=lambda s: (-waited[s], s))[:5])
    assert page.data["lanes"]["waited_ns"] == [waited[stream] for stream in page.data["lanes"]["stream"]]
    assert "5 of 30 connections are drawn" in page.text


def test_lanes_of_a_server_come_in_the_order_of_time(trace_of: TellTrace) -> None:
    story = Story()
    for at, took in ((300, 5), (0, 10), (100, 90), (200, 1)):
        story.connect(("10.0.0.1", 1 + at), ("10.0.0.2", 80), at * MS, [("wait", took * MS)])
    story.capture()
    lanes = Page(render(trace_of(story))).data["lanes"]
    assert lanes["opened"] == sorted(lanes["opened"])
    assert lanes["waited_ns"] != sorted(lanes["waited_ns"], reverse=True)


def test_a_connection_that_was_stalled_between_requests_did_not_idle(
    trace_of: TellTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swimlanes, "MAX_LANES", 1)
    story = Story()
    story.connect(("10.0.0.1", 1), ("10.0.0.2", 80), 0, [("wait", 90 * MS), ("idle", 910 * MS)])
    story.connect(("10.0.0.1", 2), ("10.0.0.2", 80), 0, [("wait", 10 * MS), ("idle", 990 * MS)])
    story.stall(1, "nagle", 10 * MS, 100 * MS)
    story.capture()
    assert Page(render(trace_of(story))).data["lanes"]["stream"] == [1]


def test_stalls_are_carried_for_the_lanes_that_are_drawn(trace_of: TellTrace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swimlanes, "MAX_LANES", 1)
    monkeypatch.setattr(swimlanes, "MAX_STALLS", 2)
    story = Story()
    story.connect(("10.0.0.1", 1), ("10.0.0.2", 80), 0, [("wait", 90 * MS)])
    story.connect(("10.0.0.1", 2), ("10.0.0.2", 80), 0, [("wait", 100 * MS)])
    story.stall(0, "sender", 0, 50 * MS)
    for i in range(3):
        story.stall(1, "sender", i * MS, (i + 1) * MS)
    story.capture()
    page = Page(render(trace_of(story)))
    assert page.data["stalls"]["stream"] == [1, 1]
    assert "have 3 stalls; the page holds the first 2" in page.text


def test_what_kept_the_next_byte_from_coming_is_told_in_a_sentence(trace_of: TellTrace, proxy_story: Story) -> None:
    assert "(Nagle)" not in Page(render(trace_of(proxy_story))).text.partition("Reading guide")[0]
    proxy_story.stall(0, "nagle", 10 * MS, 60 * MS, detail="delayed-ack", ack_delay_ns=40 * MS)
    text = " ".join(Page(render(trace_of(proxy_story))).text.split())
    assert "held: 50.0 ms on 1 connection, a small segment waits for a delayed acknowledgement (Nagle)" in text
    assert "TLS handshake 243 ms 75 % (held 50.0 ms)" in text


def test_one_endless_connection_does_not_blow_up_the_page(trace_of: TellTrace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swimlanes, "MAX_PHASES", 50)
    story = Story()
    story.connect(("10.0.0.1", 1), ("10.0.0.2", 80), 0, [("request", MS), ("wait", MS), ("transfer", MS)] * 40)
    story.connect(("10.0.0.1", 2), ("10.0.0.2", 80), 0, [("syn", MS)])
    story.capture()
    page = Page(render(trace_of(story)))
    assert len(page.data["phases"]["stream"]) == 50
    assert page.data["lanes"]["stream"] == [0]
    assert "have 120 phases; the page holds the first 50" in page.text


def test_capture_without_connections_gives_a_page(trace_of: TellTrace) -> None:
    story = Story()
    story.capture(other=79)
    page = Page(render(trace_of(story)))
    assert "holds neither TCP connections nor UDP conversations" in page.text
    assert "79 frames neither TCP nor UDP" in page.text


def test_what_a_page_does_not_draw_is_there_as_sums(trace_of: TellTrace, monkeypatch: pytest.MonkeyPatch) -> None:
    story = many(300)
    whole = Page(render(trace_of(story))).data
    assert "left_levels" not in whole
    monkeypatch.setattr(swimlanes, "MAX_LANES", 40)
    monkeypatch.setattr(swimlanes, "_OF_EACH", 3)
    part = Page(render(trace_of(story))).data
    drawn = set(part["lanes"]["stream"])
    assert len(drawn) == 40
    kinds = [kind.name for kind in PHASES]
    left: Counter[str] = Counter()
    for phase in story.phases:
        if phase["stream"] not in drawn:
            left[phase["kind"]] += phase["end_at"] - phase["start_at"]
    sums: Counter[str] = Counter()
    for kind, ns in zip(part["left_levels"]["kind"], part["left_levels"]["ns"], strict=True):
        sums[kinds[kind]] += ns
    assert +sums == +left
    times = part["left_times"]
    counted = {
        measure: sum(n for one, n in zip(times["measure"], times["count"], strict=True) if one == measure)
        for measure in set(times["measure"])
    }
    assert counted["connection"] == 300 - 40
    assert all(counted[f"phase-{kind}"] > 0 for kind in left if left[kind])
    # The worst of each server are there, however short their waits are beside those of other servers.
    ends = {c["stream"]: (c["server_ip"], c["server_port"]) for c in story.connections}
    shown = Counter(ends[stream] for stream in drawn)
    assert all(shown[end] >= min(3, count) for end, count in Counter(ends.values()).items())
