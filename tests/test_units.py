"""Numbers become text, and people's times become nanoseconds, to the nanosecond."""

import json
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conchart.errors import UsageError
from conchart.labels.units import (
    When,
    count_of,
    format_bytes,
    format_count,
    format_difference,
    format_instant,
    format_ns,
    format_share,
    format_tick,
    parse_bytes,
    parse_when,
    tick_step,
)
from tests.conftest import ROOT

MS, S = 1_000_000, 1_000_000_000


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (336_600_000, 149_400_000, "-188 ms"),
        (149_400_000, 336_600_000, "+188 ms"),
        (1_234_000, 1_236_000, "+10.0 µs"),
        (1_201_000_000, 149_400_000, "-1.05 s"),
        (200_400_000, 199_600_000, "="),
        (192_000_000_000, 3_700_400_000_000, "+58 min 48 s"),
        (0, 5, "+5 ns"),
        (0, 0, "="),
    ],
)
def test_a_difference_is_that_of_the_numbers_shown(before: int, after: int, text: str) -> None:
    assert format_difference(before, after) == text


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (812_345, "812 µs"),
        (999_499, "999 µs"),
        (999_500, "1.00 ms"),
        (1_630_000, "1.63 ms"),
        (9_995_000, "10.0 ms"),
        (156 * MS, "156 ms"),
        (2_049_999_999, "2.05 s"),
        (59_949_999_999, "59.9 s"),
        (59_999_999_999, "1 min"),
        (192 * S, "3 min 12 s"),
        (3_599_600_000_000, "1 h"),
        (5_430 * S, "1 h 31 min"),
        (-1_630_000, "-1.63 ms"),
    ],
)
def test_durations(duration: int, text: str) -> None:
    assert format_ns(duration) == text


def test_the_page_writes_durations_as_the_rest_does() -> None:
    """``tests/scripts/format.test.js`` holds ``format.js`` to the same list."""
    durations = json.loads((ROOT / "tests/scripts/durations.json").read_text(encoding="utf-8"))
    assert [format_ns(duration) for duration, _ in durations] == [text for _, text in durations]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.00 kB"),
        (12_345, "12.3 kB"),
        (999_950, "1.00 MB"),
        (3 * 10**18, "3.00 EB"),
    ],
)
def test_bytes(count: int, text: str) -> None:
    assert format_bytes(count) == text


def test_counts_are_grouped_by_thin_spaces() -> None:
    assert format_count(1234567) == "1\u2009234\u2009567"
    assert count_of(1, "packet") == "1 packet"
    assert count_of(0, "packet") == "0 packets"
    assert count_of(2, "copy", "copies") == "2 copies"


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 10, "0 %"),
        (1, 1000, "<1 %"),
        (995, 1000, ">99 %"),
        (999, 1000, ">99 %"),
        (1, 3, "33 %"),
        (3, 3, "100 %"),
        (0, 0, "0 %"),
    ],
)
def test_shares(part: int, whole: int, text: str) -> None:
    assert format_share(part, whole) == text


def test_instants_are_utc() -> None:
    assert format_instant(1_700_000_000_123_999_999) == "2023-11-14 22:13:20.123 UTC"
    assert format_instant(2**63 - 1) == "2262-04-11 23:47:16.854 UTC"


@given(st.integers(1, 10**17), st.integers(2, 40))
def test_ticks_are_few_but_not_too_few(span: int, most: int) -> None:
    step = tick_step(span, most)
    assert span <= step * most
    assert step == 1 or span * 5 > step * most or span < most, "a much finer step would have done"


@pytest.mark.parametrize(
    ("value", "step", "text"),
    [
        (0, S, "0"),
        (500 * MS, 500 * MS, "500 ms"),
        (1_500 * MS, 500 * MS, "1.5 s"),
        (2_000_050, 50, "2.00005 ms"),
        (120 * S, 60 * S, "2 min"),
    ],
)
def test_tick_labels_are_exact(value: int, step: int, text: str) -> None:
    assert format_tick(value, step) == text


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0", 0),
        ("2.5", 2_500 * MS),
        ("250ms", 250 * MS),
        ("1m30s", 90 * S),
        ("1h2m3.000000004s", 3_723 * S + 4),
        ("1.5us", 1_500),
        ("7 µs", 7_000),
        ("2min", 120 * S),
        ("0.000000001", 1),
    ],
)
def test_times_after_the_first_packet(text: str, ns: int) -> None:
    assert parse_when(text) == When(ns=ns, relative=True)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("@1700000000.5", 1_700_000_000_500_000_000),
        ("@1700000000.123456789", 1_700_000_000_123_456_789),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000_000_000),
        ("2023-11-14 22:13:20.123456789Z", 1_700_000_000_123_456_789),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000_000_000_000),
        ("2023-11-14T23:13:20+0100", 1_700_000_000_000_000_000),
        ("2023-11-14T22:13Z", 1_699_999_980_000_000_000),
        ("2023-11-14Z", 1_699_920_000_000_000_000),
    ],
)
def test_instants(text: str, ns: int) -> None:
    assert parse_when(text) == When(ns=ns, relative=False)


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "EST5EDT")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("new_york")
@pytest.mark.parametrize("text", ["2023-11-14T17:13:20", "2023-11-14 17:13:20.0"])
def test_without_a_zone_an_instant_is_local(text: str) -> None:
    assert parse_when(text) == When(ns=1_700_000_000_000_000_000, relative=False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "1.5.2",
        "-3",
        "1m30",
        "30 1m",
        "5 parsecs",
        "2023-13-01T00:00:00Z",
        "@",
        "1e3",
        "2023-11-14T25:00Z",
        "@9223372037",
        "9999-01-01T00:00Z",
    ],
)
def test_what_is_no_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(UsageError, match="cannot read the time"):
        parse_when(text)


@given(st.integers(0, 9_223_372_035), st.integers(0, S - 1))
def test_no_nanosecond_is_lost(seconds: int, rest: int) -> None:
    assert parse_when(f"@{seconds}.{rest:09}").ns == seconds * S + rest


@pytest.mark.parametrize(
    ("text", "amount"),
    [("512MB", 512_000_000), ("2 GiB", 2 << 30), ("1.5g", 1_500_000_000), ("0.5KiB", 512), ("4096", 4096), ("7b", 7)],
)
def test_amounts_of_memory_read_as_people_write_them(text: str, amount: int) -> None:
    assert parse_bytes(text) == amount


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "50%", "1 XB", "1e9", "9" * 20, "1,5GB"])
def test_what_is_no_amount_of_memory_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="cannot read the amount"):
        parse_bytes(text)
