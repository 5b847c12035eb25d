"""Every finding fires where its fault is, and is silent where it is not; and the laws that hold of all of them.

`pytest tests/findings --update-golden` writes `matrix.txt` anew, a line per capture; a person reads the difference.
"""

import fcntl
import re
from pathlib import Path

import pytest

from conchart import Trace
from conchart.analysis.findings.rule import Rule, load_rules
from conchart.report.report import Report
from conchart.store.schema import SEVERITIES
from tests.conftest import CASES, IN_PLACES, name_of
from tests.findings.matrix import Row, line, rows_of

MATRIX = Path(__file__).with_name("matrix.txt")
RULES = load_rules()
QUALITY = {rule.name for rule in RULES if rule.severity == "quality"}
NAMES = {name_of(case) for case in (*CASES, *IN_PLACES)}


def golden() -> dict[str, str]:
    """Give the line of each capture."""
    text = MATRIX.read_text(encoding="utf-8") if MATRIX.exists() else ""
    return dict(row.split(": ", 1) for row in text.splitlines())


def update(case: str, findings: str) -> None:
    """Write the line of a capture, beside other processes that write theirs; those of captures that are gone go too."""
    with MATRIX.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lines = {name: text for name, text in (golden() | {case: findings}).items() if name in NAMES}
        MATRIX.write_text("".join(f"{name}: {lines[name]}\n" for name in sorted(lines)), encoding="utf-8")


def test_the_findings_of_a_capture_are_those_of_the_matrix_and_keep_the_laws(
    every_case: Path, every_trace: Trace, pytestconfig: pytest.Config
) -> None:
    the_findings_are_those_of_the_matrix(name_of(every_case), every_trace, pytestconfig)


def test_the_findings_of_several_places_are_those_of_the_matrix_and_keep_the_laws(
    every_place: Path, placed_trace: Trace, pytestconfig: pytest.Config
) -> None:
    the_findings_are_those_of_the_matrix(name_of(every_place), placed_trace, pytestconfig)


def the_findings_are_those_of_the_matrix(case: str, trace: Trace, pytestconfig: pytest.Config) -> None:
    rows = rows_of(trace)
    costs_add_up_to_no_more_than_users_waited(rows)
    consequences_name_what_is_shown_and_may_cause_them(rows)
    the_worst_come_first_but_for_the_quality_of_the_capture(rows)
    texts_name_no_fact_that_is_missing(rows)
    for rule in RULES:
        if case in rule.fault:
            a_fault_is_found_and_besides_only_what_it_brings_with_it(rule, rows)
            a_fault_is_first_or_second_in_the_answer(rule, rows, trace)
        if case in rule.clean:
            in_a_clean_twin_nothing_is_wrong(rule, rows)
    if pytestconfig.getoption("--update-golden"):
        update(case, line(rows))
        return  # another process may be writing just now
    assert golden().get(case) == line(rows)


def test_the_matrix_has_no_capture_that_is_gone() -> None:
    assert golden().keys() <= NAMES


def test_the_captures_of_every_rule_are_there() -> None:
    assert {case for rule in RULES for case in (*rule.fault, *rule.clean)} <= NAMES


def a_fault_is_found_and_besides_only_what_it_brings_with_it(rule: Rule, rows: tuple[Row, ...]) -> None:
    assert rule.name in {row.finding for row in rows}
    named = {rule.name, *rule.implies, *QUALITY}
    assert [row for row in rows if row.finding not in named and row.because not in named] == []


def a_fault_is_first_or_second_in_the_answer(rule: Rule, rows: tuple[Row, ...], trace: Trace) -> None:
    """By what users waited for it. Notes cost too little to be in the answer; what stands inside another has no row."""
    shown = [row for row in rows if row.finding == rule.name and row.because is None and row.severity != "note"]
    first = [entry.name for entry in Report(trace).verdict.entries if entry.kind == "finding"][:2]
    assert not shown or rule.name in first or rule.name in QUALITY, first


def in_a_clean_twin_nothing_is_wrong(rule: Rule, rows: tuple[Row, ...]) -> None:
    rows = tuple(row for row in rows if row.finding not in QUALITY - {rule.name})
    assert [row for row in rows if row.severity != "note" or row.finding == rule.name] == []


def costs_add_up_to_no_more_than_users_waited(rows: tuple[Row, ...]) -> None:
    assert len({row.waited_ns for row in rows}) <= 1
    for row in rows:
        assert 0 <= row.shared_ns <= row.critical_ns <= row.waited_ns
        if row.low_ns is not None and row.each_ns is not None and row.high_ns is not None:
            assert 0 < row.low_ns <= row.each_ns <= row.high_ns
        assert sum(row.critical_ns - row.shared_ns for row in rows if row.root is None) <= row.waited_ns


def consequences_name_what_is_shown_and_may_cause_them(rows: tuple[Row, ...]) -> None:
    assert [row.number for row in rows] == list(range(len(rows)))
    for row in rows:
        assert (row.root is None) == (row.because is None)
        if row.root is not None:
            root = rows[row.root]
            assert root.root is None
            assert row.because == root.finding
            assert row.because in causes(row.finding)


def causes(name: str) -> set[str]:
    """Give what a finding may be a consequence of, by steps too."""
    by_name = {rule.name: rule for rule in RULES}
    found: set[str] = set()
    todo = [name]
    while todo:
        new = set(by_name[todo.pop()].because) - found
        found |= new
        todo += new
    return found


def the_worst_come_first_but_for_the_quality_of_the_capture(rows: tuple[Row, ...]) -> None:
    order = [
        (row.finding not in QUALITY, -SEVERITIES.index(row.severity), row.shared_ns - row.critical_ns - row.vain_ns)
        for row in rows
    ]
    assert order == sorted(order)


def texts_name_no_fact_that_is_missing(rows: tuple[Row, ...]) -> None:
    for row in rows:
        # Fields of a filter of MongoDB stand in braces: `find shop.items {sku}`.
        without_conditions = re.sub(r"(\w\.\w+|\$match) \{[^{}]*\}", r"\1", f"{row.evidence} {row.who}")
        assert not re.search(r"\(not known\)|[{}]", without_conditions), row
        assert row.count >= len(row.streams)
        assert list(row.streams) == sorted(set(row.streams))
