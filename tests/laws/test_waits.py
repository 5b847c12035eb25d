"""What users waited is one number, wherever it is told."""

from pathlib import Path

import pytest

import conchart
from conchart.errors import UsageError
from conchart.questions.compare import compare
from conchart.questions.compare.samples import samples
from conchart.questions.predict import Change, predict
from conchart.report.findings import findings
from conchart.report.report import Report
from conchart.report.servers import Server, totals
from conchart.store.sql import SERVED
from tests.conftest import ROOT, name_of, sampled

CAPTURES = sorted(ROOT.glob("captures/*/*/input.pcap*"))


def waited_for(listed: list[Server]) -> int:
    return sum(server.users_ns for server in listed)


@pytest.mark.parametrize("capture", sampled(CAPTURES, 6), ids=lambda path: name_of(path.parent))
@pytest.mark.thorough
def test_what_users_waited_is_one_number(capture: Path) -> None:
    with conchart.read(capture) as trace:
        waited_ns = totals(trace).waited_ns
        listed = Report(trace).servers()
        assert waited_for(listed) == waited_ns
        for server in listed:
            assert sum(part.total_ns for part in server.waited) == server.waited_ns
        found = findings(trace)
        assert {one.waited_ns for one in found} <= {waited_ns}
        assert all(0 <= one.own_ns <= one.critical_ns <= waited_ns for one in found)
        assert sum(one.own_ns for one in found) <= waited_ns
        ((explained, overdone),) = trace.sql(
            """
            SELECT coalesce(sum(explained_ns), 0), count(*) FILTER ((explained_ns BETWEEN 0 AND waited_ns) IS NOT TRUE)
            FROM explained_waits LEFT JOIN wait_owners USING (server_ip, server_port, phase, owner)
            """
        ).fetchall()
        assert overdone == 0
        assert owned_apart(trace) == []
        assert explained == sum(one.own_ns for one in found)
        no_difference_to_itself(trace, waited_ns)
        nothing_changed(trace, waited_ns)


def owned_apart(trace: conchart.Trace) -> list[tuple[object, ...]]:
    """Phases at servers whose owners do not add up to what users waited, and servers that worked longer than that."""
    return trace.sql(
        """
        SELECT * FROM (
            SELECT server_ip, server_port, phase::VARCHAR AS phase, sum(users_ns) AS waited_ns
            FROM times GROUP BY ALL HAVING sum(users_ns) > 0)
        FULL JOIN (
            SELECT server_ip, server_port, phase::VARCHAR AS phase, sum(waited_ns) AS owned_ns, min(waited_ns) AS least
            FROM wait_owners GROUP BY ALL) USING (server_ip, server_port, phase)
        WHERE waited_ns IS DISTINCT FROM owned_ns OR least < 0
        UNION ALL
        SELECT NULL, stream, NULL, wait_ns, service_ns, number FROM exchanges WHERE service_ns NOT BETWEEN 0 AND wait_ns
        """
    ).fetchall()


def no_difference_to_itself(trace: conchart.Trace, waited_ns: int) -> None:
    """A capture compared with itself does not differ, and what users waited in it is the same."""
    try:
        comparison = compare(trace, trace)
    except UsageError:  # nothing was asked in it
        return
    assert waited_for([hop.before for hop in comparison.hops]) == waited_ns
    assert not any(one.verdict.differs for hop in comparison.hops for one in hop.differences)
    assert {change.change for change in comparison.findings} <= {"same"}
    assert sum(change.after_ns or 0 for change in comparison.findings) <= waited_ns
    ((served_ns,),) = trace.sql(
        f"""
        SELECT coalesce(sum(waited_ns) FILTER ({SERVED}), 0) FROM connections SEMI JOIN exchanges USING (stream)
        """
    ).fetchall()
    assert sum(sum(measured.get("waited", ())) for measured in samples(trace).values()) == served_ns


def nothing_changed(trace: conchart.Trace, waited_ns: int) -> None:
    """What is measured in a prediction is what users waited, and without a change it stays."""
    try:
        prediction = predict(trace, Change())
    except UsageError:  # no response was seen
        return
    assert prediction.measured.waited_ns == prediction.predicted.waited_ns == waited_ns
