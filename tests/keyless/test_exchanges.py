"""Without secrets, conchart finds the requests and responses that tshark finds with them; where not, it is listed.

``wrong.txt`` lists every exchange that is not exact, and only those. It can get shorter: ``python -m tests.keyless
--update``. What gets longer is written by hand, and defended.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from tests.conftest import MS
from tests.keyless.comparison import CONCURRENT, KINDS, LARGE, SILENT, SMALL, Comparison, Turn, Verdict, compare
from tests.keyless.report import CAPTURES, PAGE, inexact, listed, skipped, table
from tests.keyless.truth import (
    OVER_HTTP_2,
    UNANSWERED,
    UNASKED,
    VALUE,
    Exchange,
    Message,
    Skipped,
    Truth,
    _read,
    installed,
    read,
)

SKIPPED = {SILENT: 7, OVER_HTTP_2: 5, UNANSWERED: 1}
TURNS_SKIPPED = {OVER_HTTP_2: 5, UNANSWERED: 1}
"""By what tshark shows on the connection. The unanswered request has a response without a length, which inside TLS
tshark does not end."""
REFUSED = "413"
MESSAGE_OF_MANY_SEGMENTS = 6
"""Frames; the request heads of 8 kB have so many."""

every_capture = pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.parent.name)
needs_tshark = pytest.mark.skipif(not installed(), reason="tshark is not installed")


def kind(capture: Path) -> str:
    return KINDS.get(capture.parent.name.split("-")[0], SMALL)


def of_kind(wanted: str) -> pytest.MarkDecorator:
    some = [capture for capture in CAPTURES if kind(capture) == wanted]
    return pytest.mark.parametrize("capture", some, ids=lambda path: path.parent.name)


@cache
def truths() -> dict[Path, Truth]:
    return read(CAPTURES)


@cache
def comparisons() -> list[Comparison]:
    return [compare(capture, truth) for capture, truth in truths().items()]


# The traffic


def test_many_stacks_are_captured() -> None:
    words = {word for path in CAPTURES for word in path.parent.name.split("-")[:2]}
    assert words >= {"openssl", "curl", "gnutls", "go", "rustls", "java", "chromium", "python"}


def request_count(readme: Path) -> int:
    """Count the requests that the commands of a case make."""
    text = readme.read_text(encoding="utf-8")
    commands = [shlex.split(line) for line in re.findall(r"^    (\S.*)$", text, flags=re.MULTILINE)]
    many = 0
    for words in commands:
        times = 1
        if "CLIENTS/threads.py" in words:
            times = int(words[5])
        elif together := [word for word in words if word.startswith("together-")]:
            times = int(together[0].partition("-")[2])
        many += times * sum(bool(re.match(r"https://|[A-Z]+:/", word)) for word in words)
    return many


@needs_tshark
@pytest.mark.parametrize(
    "capture",
    [path for path in CAPTURES if re.match("concurrent|large", path.parent.name)],
    ids=lambda p: p.parent.name,
)
def test_every_request_of_the_commands_is_an_exchange_or_skipped(capture: Path) -> None:
    truth = truths()[capture]
    skips = sum(each.reason == UNANSWERED for each in truth.skipped)
    assert len(truth.exchanges) + skips == request_count(capture.with_name("README.md"))


@needs_tshark
@every_capture
def test_secrets_open_every_capture(capture: Path) -> None:
    truth = truths()[capture]
    assert truth.exchanges or {each.reason for each in truth.skipped} == {OVER_HTTP_2}


@needs_tshark
@every_capture
def test_frames_are_told_apart_by_their_timestamps(capture: Path) -> None:
    frames = truths()[capture].frame_at.values()
    assert len(frames) == max(frames)


@needs_tshark
@every_capture
def test_no_response_is_there_before_the_backend_has_thought(capture: Path) -> None:
    truth = truths()[capture]
    for exchange in truth.exchanges:
        if exchange.response.text == REFUSED:
            continue  # by the server in front of the backend
        (think_ms,) = re.findall(r"/wait-(\d+)/", exchange.request.text)
        assert truth.at[exchange.response.first] - truth.at[exchange.request.last] > int(think_ms) * MS


def overlaps(truth: Truth) -> int:
    """Count the exchanges that begin before an earlier one is over."""
    spans = sorted((each.request.first, each.response.last) for each in truth.exchanges)
    return sum(begin <= end for (_, end), (begin, _) in pairwise(spans))


@needs_tshark
@of_kind(CONCURRENT)
def test_exchanges_of_concurrent_traffic_overlap(capture: Path) -> None:
    truth = truths()[capture]
    assert overlaps(truth) or {each.reason for each in truth.skipped} == {OVER_HTTP_2}


@needs_tshark
@of_kind(SMALL)
def test_exchanges_of_small_traffic_come_one_after_another(capture: Path) -> None:
    assert not overlaps(truths()[capture])


@needs_tshark
@of_kind(LARGE)
def test_large_traffic_has_a_message_of_many_segments(capture: Path) -> None:
    messages = [message for each in truths()[capture].exchanges for message in (each.request, each.response)]
    assert max(message.last - message.first for message in messages) + 1 >= MESSAGE_OF_MANY_SEGMENTS


# What tshark says


def row(number: int, *, stream: int = 7, segments: str = "", records: str = "", **http: str) -> list[str]:
    text = [http.get(name, "") for name in ("method", "target", "status", "over_http_2")]
    return [str(stream), str(number), f"1.{number:09}", segments, records, *text]


def joined(*values: str) -> str:
    return VALUE.join(values)


def test_a_message_begins_where_its_first_record_does() -> None:
    rows = [
        row(41, method="GET", target="/"),
        row(42),
        row(43, segments=joined("42", "43")),
        row(44, records=joined("43", "44"), status="200"),
    ]
    request, response = Message(text="GET /", first=1, last=1), Message(text="200", first=2, last=4)
    assert _read(rows).exchanges == [Exchange(stream=0, request=request, response=response)]


def test_messages_that_end_in_one_frame_are_several() -> None:
    rows = [
        row(1),
        row(2, records=joined("1", "2"), method=joined("GET", "POST"), target=joined("/a,b", "/c")),
        row(3, status=joined("100", "204")),
        row(4, status="200"),
    ]
    truth = _read(rows)
    assert [(each.request.text, each.request.first, each.response.text) for each in truth.exchanges] == [
        ("GET /a,b", 1, "204"),
        ("POST /c", 2, "200"),
    ]
    assert not truth.skipped


def test_a_response_may_be_there_before_its_request_is_over() -> None:
    rows = [
        row(1),
        row(2, status="413"),
        row(3, records=joined("1", "3"), method="POST", target="/"),
    ]
    request, response = Message(text="POST /", first=1, last=3), Message(text="413", first=2, last=2)
    assert _read(rows).exchanges == [Exchange(stream=0, request=request, response=response)]


def test_what_is_in_no_exchange_is_skipped_with_a_reason() -> None:
    rows = [
        row(1, status="200"),
        row(2, stream=8, over_http_2=joined("GET", "GET")),
        row(3, stream=9, method="GET", target="/"),
    ]
    truth = _read(rows)
    assert not truth.exchanges
    skips = [Skipped(1, OVER_HTTP_2), Skipped(1, OVER_HTTP_2), Skipped(2, UNANSWERED), Skipped(0, UNASKED)]
    assert truth.skipped == skips


# What conchart says


def verdict(*frames: int, confidence: float = 0.9) -> Verdict:
    """Judge a turn with these frames; the truth is 10, 12, 20, 29."""
    request, response = Message(text="GET /", first=10, last=12), Message(text="200", first=20, last=29)
    true = Exchange(stream=0, request=request, response=response)
    turn = Turn(0, frames, confidence) if frames else None
    return Verdict(case="x", kind=SMALL, stream=0, true=true, turn=turn)


@pytest.mark.parametrize(
    ("found", "exact", "right", "boast"),
    [
        (verdict(10, 12, 20, 29), True, True, False),
        (verdict(10, 12, 19, 29), False, True, True),
        (verdict(10, 12, 19, 29, confidence=0.8), False, True, False),
        (verdict(10, 12, 18, 29, confidence=0.5), False, False, False),
        (verdict(), False, False, True),
    ],
)
def test_a_verdict_is_exact_or_within_one_frame_or_wrong(found: Verdict, exact: bool, right: bool, boast: bool) -> None:
    assert (found.exact, found.right, found.boast) == (exact, right, boast)


@needs_tshark
def test_only_what_is_listed_is_not_exact() -> None:
    worse = Counter(inexact(comparisons())) - Counter(listed())
    assert sorted(worse) == [], "no longer exact, or in another way"


@needs_tshark
def test_nothing_is_listed_that_is_exact() -> None:
    better = Counter(listed()) - Counter(inexact(comparisons()))
    assert sorted(better) == [], "no longer so: python -m tests.keyless --update"


@needs_tshark
def test_nothing_is_skipped_that_is_not_counted_here() -> None:
    turns = {f"a turn on a connection with {reason}": count for reason, count in TURNS_SKIPPED.items()}
    assert skipped(comparisons()) == [f"{count} × {reason}" for reason, count in sorted({**SKIPPED, **turns}.items())]


@needs_tshark
def test_the_page_has_the_figures() -> None:
    assert f"\n{table(comparisons())}\n\n" in PAGE.read_text(encoding="utf-8"), "python -m tests.keyless --update"


CORPUS = os.environ.get("CONCHART_CORPUS")
FOREIGN = {
    "envoymtls__trace-trace.cap": 1,
    "wsnotes__tls-all-dump.pcapng": 39,
    "zeek__tls-tls-1.2-stream-keylog.pcap": 16,
}
"""Captures with a key log whose TLS carries HTTP/1, by exchanges."""


@needs_tshark
@pytest.mark.skipif(not CORPUS, reason="CONCHART_CORPUS names no folder of captures")
@pytest.mark.parametrize("name", FOREIGN)
def test_exchanges_of_foreign_captures_are_found_within_a_frame(name: str) -> None:
    capture = Path(CORPUS or "") / name
    found = compare(capture, read([capture])[capture]).verdicts
    assert len(found) == FOREIGN[name]
    assert [str(verdict) for verdict in found if not verdict.right] == []
