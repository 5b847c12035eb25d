"""What is counted, and what the counts add up to: of every finding in every capture."""

import re

from conchart import Trace
from conchart.labels.units import format_ns
from conchart.report.findings import findings

COUNTED = re.compile(
    r"\((1 delay|\S+ delays on \S+ connections?)(?:, (?:\S+ )?unfinished at the last packet)?"
    r"(?:; ([^;]+) in all)?(?:; median ([^;,]+)[^;]*)?(?:; .* sure)?\)$"
)


def test_delays_add_up_to_what_is_told(every_trace: Trace) -> None:
    for finding in (one for root in findings(every_trace) for one in (root, *root.consequences)):
        ((delays, streams),) = every_trace.fetch(
            "SELECT count, len(streams) FROM findings WHERE number = $number", {"number": finding.number}
        )
        assert (finding.count, len(finding.streams)) == (delays, streams)
        if not finding.own_ns:
            assert "delay" not in finding.cost or "no answer (" in finding.cost
            continue
        match = COUNTED.search(finding.cost)
        assert match, finding.cost
        whole = finding.own_ns + finding.shared_ns
        if match[2]:
            assert match[2] == format_ns(finding.cost_ns)
            whole = finding.cost_ns
        assert abs(whole - finding.cost_ns) <= finding.cost_ns // 50, "what is told adds up to all delays"
        if match[3]:
            assert match[3] == format_ns(finding.each_ns or 0)
            # Half of them are as long as the median, or longer.
            assert 2 * finding.cost_ns >= (finding.each_ns or 0) * (delays // 2)
            assert delays > 1


def test_nothing_is_told_as_not_known(every_trace: Trace) -> None:
    for finding in (one for root in findings(every_trace) for one in (root, *root.consequences)):
        text = " ".join((finding.title, finding.cost, finding.seen, finding.why, *finding.fixes))
        assert "not known)" not in text
        assert "None" not in text.split()
        assert finding.evidence, "there is something to be said in any case"
