"""How much is kept of what stores are asked: shapes, whole statements, or nothing; passwords never."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import conchart
from conchart import Trace, UsageError
from conchart.reading.options import STATEMENTS, Statements
from conchart.report.queries import queries
from tests.conftest import ROOT
from tests.laws.files import Format
from tests.laws.talk import Pause, Say, Step, Talk

STORES = ROOT / "captures" / "stores"
FINDINGS = ROOT / "captures" / "findings"
COMMAND = Path(sys.executable).with_name("conchart")
SQL = ("postgresql", "mysql")
NAMED = "('Startup', 'Connect', 'Change user', 'Init DB')"
"""Methods that name a database."""
SECRET = "hunter2"


def of(store: str, statements: Statements) -> Trace:
    return conchart.read(STORES / store / "input.pcap", statements=statements)


@pytest.mark.parametrize("store", SQL)
def test_a_whole_statement_has_its_shape_beside_it(store: str) -> None:
    with of(store, "shape") as shapes, of(store, "full") as whole:
        rows = shapes.sql("SELECT stream, number, method, shape FROM exchanges ORDER BY ALL").fetchall()
        assert rows == whole.sql("SELECT stream, number, method, shape FROM exchanges ORDER BY ALL").fetchall()
        ran = "FROM exchanges WHERE method IN ('Query', 'Execute') AND target IS NOT NULL"
        assert shapes.sql(f"SELECT bool_and(target = shape) {ran}").fetchall() == [(True,)]
        assert whole.sql(f"SELECT count_if(target <> shape) > 0 {ran}").fetchall() == [(True,)]
        assert queries(shapes) == queries(whole)
        assert whole.sql("SELECT statements FROM captures").fetchall() == [("full",)]


def test_a_whole_statement_is_as_it_was_sent() -> None:
    with of("postgresql", "full") as trace:
        sent = trace.sql("SELECT target FROM exchanges WHERE method = 'Query' AND shape <> target").fetchall()
    assert ("SELECT name FROM product WHERE id = 3 /* who asks */;",) in sent
    assert ("INSERT INTO product VALUES (1, 'tea'), (2, 'cup'), (3, 'it''s a pot');",) in sent


@pytest.mark.parametrize("store", ["postgresql", "mysql", "redis", "memcached"])
@pytest.mark.parametrize("statements", STATEMENTS)
def test_passwords_are_in_no_table(store: str, statements: Statements) -> None:
    with of(store, statements) as trace:
        if (store, statements) == ("mysql", "full"):
            # There it is the name of a product as well.
            trace.execute("UPDATE exchanges SET target = NULL WHERE contains(target, 'WHERE name = ''hunter2')")
        for table in ("exchanges", "connections", "handshakes", "findings", "messages"):
            assert SECRET not in str(trace.sql(f"FROM {table}").fetchall())
        changed = "SELECT count(*) FROM exchanges WHERE regexp_matches(target, '(?i)password')"
        assert trace.sql(changed).fetchall() == [(store in SQL and statements != "off",)]


@pytest.mark.parametrize("store", ["postgresql", "mysql", "redis", "memcached"])
def test_nothing_is_kept_of_what_is_asked_where_that_is_not_wanted(store: str) -> None:
    with of(store, "shape") as shapes, of(store, "off") as nothing:
        methods = "SELECT stream, number, method, status, request_at, response_done_at FROM exchanges ORDER BY ALL"
        assert shapes.sql(methods).fetchall() == nothing.sql(methods).fetchall()
        left = f"SELECT count(target), bool_and(shape = method) FROM exchanges WHERE method NOT IN {NAMED}"
        assert nothing.sql(left).fetchall() == [(0, True)]
        assert queries(shapes)
        assert not queries(nothing)


@pytest.mark.parametrize("case", ["repeated-queries", "redis-no-pipeline", "statement-not-prepared"])
def test_findings_about_the_same_query_need_to_know_which_that_is(case: str) -> None:
    capture = FINDINGS / case / "input.pcap"
    found = {}
    for statements in STATEMENTS:
        with conchart.read(capture, statements=statements) as trace:
            rows = trace.sql("SELECT finding, count, cost_ns, evidence FROM findings ORDER BY number").fetchall()
        found[statements] = {rule: facts for rule, *facts in rows}
    assert case in found["shape"]
    assert found["full"][case] == found["shape"][case]
    assert case not in found["off"]


def message(kind: bytes, body: bytes) -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body


def asking(*statements: str) -> Talk:
    """A connection of PostgreSQL from its middle on, on which these are asked, one after the other."""
    steps: list[Step] = []
    for statement in statements:
        steps.append(Say("client", message(b"Q", statement.encode() + b"\0")))
        steps.append(Pause(5_000_000))
        steps.append(Say("server", message(b"C", b"SELECT 1\0") + message(b"Z", b"I")))
    return Talk(steps=steps, sees_open=False)


def test_hostile_and_huge_statements_are_bounded(tmp_path: Path) -> None:
    huge = "SELECT '" + "x" * 100_000 + "'"
    deep = "SELECT " + "(" * 50_000
    (tmp_path / "input.pcap").write_bytes(Format().write(asking(huge, deep, "SELECT '\x1b[2J<script>'").packets()))
    with conchart.read(tmp_path / "input.pcap", statements="full") as trace:
        rows = trace.sql("SELECT target, shape FROM exchanges ORDER BY number").fetchall()
        trace.write(tmp_path / "out.html")
    assert [len(target.encode()) <= 4096 + 3 for target, _ in rows] == [True] * 3
    assert all(target.endswith("…") for target, _ in rows[:2])
    assert "<script>'" not in (tmp_path / "out.html").read_text()


def test_the_command_line_and_saved_traces(tmp_path: Path) -> None:
    capture, saved = STORES / "postgresql" / "input.pcap", tmp_path / "full.duckdb"
    ask = "SELECT bool_or(target <> shape) IS TRUE AS more FROM exchanges WHERE method = 'Query'"
    for words, expected in (([], "false"), (["--statements", "full"], "true"), (["--statements", "off"], "false")):
        done = subprocess.run([COMMAND, "query", capture, ask, *words], capture_output=True, text=True, check=True)
        assert expected in done.stdout.lower()
    subprocess.run([COMMAND, capture, "--statements", "full", "-w", saved], check=True, capture_output=True)
    done = subprocess.run([COMMAND, "query", saved, ask], capture_output=True, text=True, check=True)
    assert "true" in done.stdout.lower()
    words = [str(COMMAND), "query", str(saved), ask, "--statements", "off"]
    refused = subprocess.run(words, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "--statements can be used only when a capture is read" in refused.stderr


def test_parts_keep_as_much(tmp_path: Path) -> None:
    capture = STORES / "mysql" / "input.pcap"
    query = "SELECT stream, number, target, shape FROM exchanges ORDER BY ALL"
    with conchart.read(capture, packets=True, statements="full") as one:
        whole = one.sql(query).fetchall()
    for _ in range(2):
        with conchart.read(capture, packets=True, statements="full", workers=2, parts=tmp_path) as several:
            assert several.sql(query).fetchall() == whole
    with conchart.read(capture, packets=True, statements="off", workers=2, parts=tmp_path) as nothing:
        other = f"SELECT count(target) FROM exchanges WHERE method NOT IN {NAMED}"
        assert nothing.sql(other).fetchall() == [(0,)]


def test_another_choice_is_refused() -> None:
    with pytest.raises(UsageError, match="shape or full or off, not none"):
        conchart.read(STORES / "redis" / "input.pcap", statements="none")  # type: ignore[arg-type]
