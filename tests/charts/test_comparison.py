"""The text of the page of a comparison: escaping, what it says, reproducibility."""

import pytest

from conchart.outputs.page.comparison import render_comparison
from conchart.questions.compare import compare
from tests.charts.story import many
from tests.charts.test_page import BIDI, HOSTILE, hostile_story
from tests.charts.unpacked import Page
from tests.conftest import TellTrace, analysed, empty_trace


def page_of(text: str) -> str:
    """The page of a story that is compared with itself; every text in it is this one."""
    with empty_trace() as trace:
        hostile_story(text).fill(trace)
        analysed(trace).execute(
            "INSERT INTO findings BY NAME SELECT 99 AS number, 'f' AS finding, ? AS title, 'note' AS severity, "
            "1 AS count, 1 AS critical_ns",
            [text],
        )
        return render_comparison(compare(trace, trace))


@pytest.fixture(scope="module")
def harmless() -> Page:
    return Page(page_of("x"))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_adds_no_element_and_no_attribute(harmless: Page, text: str) -> None:
    hostile = Page(page_of(text))
    assert [(tag, sorted(attributes)) for tag, attributes in hostile.elements] == [
        (tag, sorted(attributes)) for tag, attributes in harmless.elements
    ]
    assert len(hostile.blocks) == len(harmless.blocks)
    assert text.replace("\u2028", "\ufffd").replace("\u2029", "\ufffd") in hostile.text


def test_invisible_and_reversing_characters_are_replaced() -> None:
    page = page_of(BIDI)
    own = page + Page(page).block("data").decode()
    assert not set("\u202a\u202b\u202c\u202d\u202e\u200b\x00\x1b") & set(own)


def test_same_comparison_gives_the_same_bytes(trace_of: TellTrace) -> None:
    one, other = trace_of(many(40)), trace_of(many(60))
    assert render_comparison(compare(one, other)) == render_comparison(compare(one, other))


def test_bars_of_both_are_on_the_scale_of_the_longest(trace_of: TellTrace) -> None:
    one, other = trace_of(many(40)), trace_of(many(60))
    comparison = compare(one, other)
    bars = [attributes for tag, attributes in Page(render_comparison(comparison)).elements if tag == "div"]
    widths = [float((bar["style"] or "")[8:-1]) for bar in bars if bar.get("class") == "bar"]
    waited = [side.waited_ns for hop in comparison.hops for side in (hop.before, hop.after)]
    assert widths == [pytest.approx(100 * ns / max(waited), abs=1e-3) for ns in waited]


def test_lanes_of_both_are_on_the_scale_of_the_longer(trace_of: TellTrace) -> None:
    one, other = trace_of(many(2)), trace_of(many(12))
    page = Page(render_comparison(compare(one, other)))
    data = page.data
    ends = [max(phase[2] for lane in side["lanes"] for phase in lane["phases"]) for side in data["sides"]]
    assert ends[0] < ends[1] <= data["span_ns"]
    assert [len(side["lanes"]) for side in data["sides"]] == [2, 12]


def test_headings_count_all_connections_not_only_those_that_are_drawn(trace_of: TellTrace) -> None:
    trace = trace_of(many(60))
    page = Page(render_comparison(compare(trace, trace)))
    data = page.data
    assert [group["size"] for group in data["sides"][0]["groups"]] == [20, 20, 20]
    assert len(data["sides"][0]["lanes"]) == 24
