"""Analysis is paid for by whoever asks.

Each step runs before the first query that needs it, reads and writes what it says, and nothing else runs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import conchart
from conchart import Trace, UsageError
from conchart.analysis import plan
from conchart.analysis.findings.rule import chosen_thresholds, load_rules
from conchart.store.schema import TABLE_BY_NAME, TABLES
from conchart.store.steps import Step, Steps
from conchart.store.tables import Tables
from tests.conftest import ROOT, logs_of

PROXY = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"
PLAIN = ROOT / "captures/reverse-proxy/http/input.pcap"
CAPTURES = (PROXY, ROOT / "captures/crafted/gap/input.pcap")
STEPS = plan(None, rules=(), thresholds={})  # type: ignore[arg-type]  # none of them runs
NAMES = sorted(step.name for step in STEPS)
FACTS = sorted(fact for step in STEPS for fact in step.writes)
WHILE_READING = {
    *("captures.selection", "captures.seen_from", "captures.statements", "captures.place"),
    *("places", "clocks", "paths", "place_packets.place", "place_packets.packet"),
    *("logs", "log_lines", "log_times", "log_differences", "exchanges.from_log", "spans"),
}
"""What is known beforehand: which packets, whose times, what several places saw. What access logs and spans say has a
step only where they are: ``test_the_join_of_logs_is_owed_only_where_there_are_logs``, and the same of spans."""


def steps_of(trace: Trace) -> list[Step]:
    return plan(trace, rules=load_rules(), thresholds=chosen_thresholds({}))


@contextmanager
def lone(capture: Path) -> Iterator[tuple[Trace, dict[str, Step]]]:
    """Give a trace of which nothing is worked out, and the steps that would."""
    with conchart.read(capture) as trace:
        trace.owe(())
        yield trace, {step.name: step for step in steps_of(trace)}


def content(trace: Trace, fact: str) -> object:
    """Give what stands in a table, or in a column, whatever the order of rows is."""
    table, _, column = fact.partition(".")
    declared = TABLE_BY_NAME[table]
    chosen = column or ", ".join(declared.types)
    return trace.stored(f"SELECT count(*), bit_xor(hash({declared.key}, {chosen})) FROM {table}").fetchall()


def facts_and_core() -> list[str]:
    """Every fact, and each column of the core's."""
    core = [f"{table.name}.{column}" for table in TABLES if table.name != "links" for column in table.from_core]
    return [*core, *FACTS]


@cache
def whole(capture: Path) -> dict[str, object]:
    """What all steps together make of a capture."""
    with conchart.read(capture) as trace:
        trace.provide(*FACTS)
        return {fact: content(trace, fact) for fact in FACTS}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.parent.name)
def test_a_step_reads_and_writes_what_it_says(capture: Path, name: str) -> None:
    with lone(capture) as (trace, steps):
        step = steps[name]
        Steps(steps.values()).provide(step.reads)
        # What it must not read is out of its way.
        touched = {fact.partition(".")[0] for fact in step.reads | step.writes}
        away = [table.name for table in TABLES if table.name not in touched]
        foreign = [fact.split(".") for fact in FACTS if "." in fact and fact not in step.reads | step.writes]
        hidden = [(table, column) for table, column in foreign if table not in away]
        for table in away:
            trace.execute(f"ALTER TABLE {table} RENAME TO hidden_{table}")
        for table, column in hidden:
            trace.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO hidden_{column}")
        trace.owe([step])
        trace.provide(*step.writes)
        for table in away:
            trace.execute(f"ALTER TABLE hidden_{table} RENAME TO {table}")
        for table, column in hidden:
            trace.execute(f"ALTER TABLE {table} RENAME COLUMN hidden_{column} TO {column}")
        assert {fact: content(trace, fact) for fact in step.writes}.items() <= whole(capture).items()


@pytest.mark.parametrize("name", NAMES)
def test_a_step_leaves_the_rest_as_it_is(name: str) -> None:
    with lone(PROXY) as (trace, steps):
        step = steps[name]
        Steps(steps.values()).provide(step.reads)
        others = [fact for fact in facts_and_core() if fact not in step.writes]
        before = {fact: content(trace, fact) for fact in others}
        step.run()
        assert {fact: content(trace, fact) for fact in others} == before
        left = "SELECT table_name FROM duckdb_tables() WHERE temporary UNION ALL SELECT view_name FROM duckdb_views()"
        assert trace.sql(f"{left} WHERE temporary AND NOT internal").fetchall() == []


def test_every_fact_has_one_step() -> None:
    """A step writes ``links``, whose columns are the core's: its linking is asked by the analysis."""
    assert len(FACTS) == len(set(FACTS))
    worked_out = {
        f"{table.name}.{column}" if table.from_core else table.name
        for table in TABLES
        for column in table.types.keys() - set(table.from_core)
    }
    assert worked_out - WHILE_READING == set(FACTS) - {"links"}


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps that ran, in their order."""
    names: list[str] = []

    def recording_run(steps: Steps, fact: str) -> None:
        step = steps._due.get(fact)
        run(steps, fact)
        if step is not None and fact not in steps._due:
            names.append(step.name)

    run = Steps._run
    monkeypatch.setattr(Steps, "_run", recording_run)
    return names


@pytest.mark.parametrize(
    ("query", "steps"),
    [
        ("FROM phases", []),
        ("FROM exchanges", ["explain_phases", "time_servers"]),
        ("SELECT count(*) FROM phases JOIN handshakes USING (stream)", []),
        ("FROM links", ["find_sights", "link_hops"]),
        ("from LINKS", ["find_sights", "link_hops"]),
        (
            "WITH l AS (FROM links) SELECT * FROM l JOIN phases ON stream = front_stream",
            ["find_sights", "link_hops"],
        ),
        ("SELECT (SELECT count(*) FROM coverage)", ["cover", "find_sights"]),
        ("FROM splits", ["find_sights", "link_hops", "split_waits"]),
        ("FROM times", ["explain_phases", "find_races", "find_sights", "link_hops", "find_behalf", "charge_servers"]),
        ("FROM captures", ["locate"]),
        ("FROM query_table('li' || 'nks')", NAMES),
        # No rule reads what logs would have said.
        ("FROM findings", [name for name in NAMES if name != "log_exchanges"]),
    ],
)
def test_a_query_pays_for_what_it_names(query: str, steps: list[str], ran: list[str]) -> None:
    with conchart.read(PROXY) as trace:
        assert ran == []
        first = trace.sql(query).fetchall()
        assert sorted(name for name in ran if name in NAMES) == sorted(steps)
        ran.clear()
        assert trace.sql(query).fetchall() == first
        assert ran == []


def test_the_join_of_logs_is_owed_only_where_there_are_logs(ran: list[str]) -> None:
    case = ROOT / "captures/logs/nginx-near"
    with conchart.read(case / "input.pcap", **logs_of(case)) as trace:
        assert trace.sql("SELECT count(*) FROM phases").fetchall()
        assert ran == []
        assert trace.sql("SELECT count(stream) FROM log_lines").fetchall() == [(24,)]
        assert ran == ["find_sights", "link_hops", "log_exchanges", "join_logs"]
    ran.clear()
    with conchart.read(case / "input.pcap") as trace:
        assert trace.sql("FROM log_lines").fetchall() == []
        assert ran == []


def test_the_match_of_spans_is_owed_only_where_there_are_spans(ran: list[str]) -> None:
    case = ROOT / "captures/traces/ids"
    with conchart.read(case / "input.pcap", spans=sorted(case.glob("*.otlp.json"))) as trace:
        assert trace.sql("SELECT count(stream) > 0 FROM spans").fetchall() == [(True,)]
        assert ran == ["find_sights", "link_hops", "match_spans"]
    ran.clear()
    with conchart.read(case / "input.pcap") as trace:
        assert trace.sql("FROM spans").fetchall() == []
        assert ran == []


def test_files_pay_for_what_they_hold(ran: list[str], tmp_path: Path) -> None:
    with conchart.read(PROXY) as trace:
        trace.write(tmp_path / "phases.csv", table="phases")
        assert ran == []
        trace.write(tmp_path / "connections.parquet")
        assert set(ran) == {
            *("locate", "find_sights", "explain_phases", "find_races", "count_waits", "time_servers")
        } & set(NAMES)
        trace.write(tmp_path / "all.duckdb")
        assert set(NAMES) <= set(ran)


def test_evidence_that_no_rule_asks_for_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    execute = Tables.execute

    def recording_execute(tables: Tables, statement: str, params: Any = None) -> None:  # noqa: ANN401
        words = statement.split()
        if words[:3] == ["CREATE", "OR", "REPLACE"]:
            made.append(words[5])
        execute(tables, statement, params)

    monkeypatch.setattr(Tables, "execute", recording_execute)
    with conchart.read(PLAIN) as trace:
        trace.provide("findings")
    assert {"setups", "requests"} <= set(made)
    assert not {"secured", "visits"} & set(made), "there is no TLS"
    assert "waited" not in made, "nothing is found"


def test_a_step_that_fails_is_owed_still_and_leaves_no_rows() -> None:
    def fail() -> None:
        raise UsageError("no")

    steps = Steps([Step(name="fail", reads=frozenset(), writes=frozenset(("links",)), run=fail)])
    for _ in range(2):
        with pytest.raises(UsageError):
            steps.provide_named("FROM links")
    assert steps.running is None


def test_two_steps_do_not_write_the_same() -> None:
    one, other = (Step(name=n, reads=frozenset(), writes=frozenset(("links",)), run=lambda: None) for n in "ab")
    with pytest.raises(ValueError, match="b and another step write links"):
        Steps([one, other])
