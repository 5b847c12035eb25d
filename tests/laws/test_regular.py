"""Law: what is asked at equal intervals is judged like everything else.

Programs of users poll, and retry by a timer. Only a health check is left out, and only if it succeeds and takes little.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from conchart.outputs.options import DrawOptions
from conchart.outputs.terminal.screen import first_screen
from conchart.report.remarks import remarks
from conchart.report.report import Report
from tests.conftest import ROOT, capture_of
from tests.laws.messy import EPHEMERAL, SECOND, Capture, findings_of, moved, read, read_by_conchart, renumbered
from tests.laws.test_beginning import captures

TIMES = 8
MOST_PACKETS = 2_000
APART = 10 * SECOND
FAULTS = captures("fault")[::2]
"""Every second one: what is repeated is eight times as much to read."""
OPEN = "pool-exhausted"
"""Its captures end before their connections do: repeated, these are a pool that is larger each time."""


def port_of(place: int) -> Callable[[int], int]:
    """Give each repetition ports of its own."""
    step = len(EPHEMERAL) // TIMES * place
    return lambda port: EPHEMERAL[(port - EPHEMERAL.start + step) % len(EPHEMERAL)] if port in EPHEMERAL else port


def repeated(capture: Capture) -> Capture:
    """Let all that a capture has happen again and again, at equal intervals, on connections of their own."""
    every = max(APART, capture.last_at - capture.first_at + SECOND)
    frames = [
        frame
        for place in range(TIMES)
        for frame in moved(renumbered(capture, lambda address: address, port_of(place)), place * every).frames
    ]
    return replace(capture, frames=tuple(frames))


@pytest.mark.parametrize("case", FAULTS)
def test_what_is_regular_is_found_as_what_is_not(case: Path) -> None:
    try:
        capture = read(capture_of(case))
    except ValueError as error:
        pytest.skip(str(error))
    if len(capture.frames) > MOST_PACKETS:
        pytest.skip("long enough as it is")
    with read_by_conchart(capture) as once:
        before = set(findings_of(once))
    with read_by_conchart(repeated(capture)) as often:
        after = set(findings_of(often))
    assert {found for found in before if found.rule != OPEN} <= after


@pytest.mark.parametrize(
    ("name", "rule"), [("regular-503", "error-responses"), ("small-hello-alert-all", "handshake-failure")]
)
def test_failures_at_equal_intervals_are_found(name: str, rule: str) -> None:
    with read_by_conchart(read(ROOT / "captures" / "wild" / name / "input.pcap")) as trace:
        assert rule in {found.rule for found in findings_of(trace)}


def test_health_checks_that_succeed_are_left_out_and_counted_those_that_fail_are_judged() -> None:
    with read_by_conchart(read(ROOT / "captures" / "crafted" / "health-checks-messy" / "input.pcap")) as trace:
        assert trace.fetch(
            """
            SELECT count(*), bool_and(status = 204), sum(waited_ns)::BIGINT FROM checks
            JOIN exchanges ON exchanges.stream = checks.stream AND number = checks.exchange
            JOIN connections ON connections.stream = checks.stream
            """
        ) == [(8, True, 20_400_000)]
        title = "8 health checks (20.4 ms of waits) left out of findings"
        assert title in {one.title for one in remarks(trace)}
        assert title in "".join(
            line.plain.strip() for line in first_screen(Report(trace), 200, colours=False, options=DrawOptions())
        )
        (failing,) = (found for found in findings_of(trace) if found.rule == "error-responses")
        assert failing.server == "198.51.100.32:80"
