"""Findings gone, new, changed: matched by finding and server."""

from types import SimpleNamespace
from typing import Any

from conchart.questions.compare.changes import finding_changes
from conchart.questions.compare.model import FindingChange
from conchart.store.tables import Tables
from tests.by_hand import Row, tables_of


def finding(name: str, ns: int, *, server: str | None = "10.0.0.9", number: int = 0, **facts: Any) -> Row:  # noqa: ANN401
    return {
        "number": number, "finding": name, "title": name.title(), "severity": "warning", "server_ip": server,
        "server_port": 80 if server else None, "count": 2, "critical_ns": ns, "shared_ns": 0, **facts,
    }  # fmt: skip


def found(*rows: Row) -> Tables:
    return tables_of(findings=rows)


def changes(before: Tables, after: Tables, hops: Any = (), names: Any = None) -> list[FindingChange]:  # noqa: ANN401
    return finding_changes(before, after, hops, names or {})


def change_rows(before: Tables, after: Tables, **more: Any) -> list[tuple[str, str, int | None, int | None]]:  # noqa: ANN401
    return [(one.finding, one.change, one.before_ns, one.after_ns) for one in changes(before, after, **more)]


def test_findings_are_gone_new_changed_or_the_same_the_largest_difference_first() -> None:
    before = found(finding("a", 100), finding("b", 50), finding("c", 70))
    after = found(finding("b", 90), finding("c", 70), finding("d", 60))
    assert change_rows(before, after) == [
        ("a", "gone", 100, None),
        ("d", "new", None, 60),
        ("b", "changed", 50, 90),
        ("c", "same", 70, 70),
    ]


def test_another_number_of_delays_is_a_change_though_they_cost_as_much() -> None:
    assert change_rows(found(finding("a", 5)), found(finding("a", 5, count=3)))[0][1] == "changed"


def test_what_is_about_several_clients_of_a_server_is_one_thing() -> None:
    rows = [
        finding("a", 100, client_ip="10.0.0.1"),
        finding("a", 30, client_ip="10.0.0.2", severity="serious", number=1),
    ]
    (one,) = changes(found(*rows), found())
    assert (one.before_ns, one.before_count, one.severity, one.title) == (130, 4, "serious", "A")


def test_what_findings_share_is_counted_with_one_of_them() -> None:
    assert change_rows(found(finding("a", 100, shared_ns=40)), found())[0][2] == 60


def test_a_consequence_is_told_inside_its_root() -> None:
    assert change_rows(found(finding("a", 100), finding("b", 10, root=0, number=1)), found()) == [
        ("a", "gone", 100, None)
    ]
    # In the other capture it stands for itself.
    after = found(finding("b", 10))
    assert change_rows(found(finding("b", 10, root=0)), after) == [("b", "changed", 0, 10)]


def test_findings_of_different_servers_are_different_but_where_these_are_one() -> None:
    before, after = found(finding("a", 10)), found(finding("a", 10, server="10.0.0.8"))
    assert [change for _, change, *_ in change_rows(before, after)] == ["gone", "new"]
    ends = [SimpleNamespace(server_ip=ip, server_port=80) for ip in ("10.0.0.9", "10.0.0.8")]
    hop = SimpleNamespace(before=ends[0], after=ends[1])
    assert change_rows(before, after, hops=[hop]) == [("a", "same", 10, 10)]


def test_a_finding_names_its_server_where_it_is_about_one() -> None:
    names = {("10.0.0.9", 80): "shop.example"}
    rows = (finding("a", 10), finding("b", 5, server=None), finding("c", 1, server="10.0.0.8"))
    assert [one.server for one in changes(found(*rows), found(), names=names)] == [
        "shop.example (10.0.0.9:80)",
        "",
        "10.0.0.8:80",
    ]
