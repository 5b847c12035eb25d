"""JSON: the answer and every table, ``{"conchart": 3, "answer": {…}, "captures": […], …}``.

The same bytes for the same capture.

``docs/command-line.md`` describes it. Other formats that are JSON are streamed by what stands here, too.
"""

import json
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any

from duckdb import DuckDBPyRelation

from conchart.store.schema import SCHEMA_VERSION, TABLES
from conchart.store.tables import Tables

if TYPE_CHECKING:
    from conchart.report.report import Report
    from conchart.report.verdict import Entry

_ROWS_AT_A_TIME = 10_000


def dump_json(tables: Tables, sink: IO[str]) -> None:
    """Write the answer and all tables, one row per line, without ever holding a whole table.

    Times are integers of nanoseconds, NULL is null. ``packets`` is left out when it is empty. Integers above 2^53
    (every instant) need a reader that keeps them, as Python's, jq's from 1.7 and DuckDB's do.
    """
    from conchart.report.report import report_of  # not above: other formats need none

    with report_of(tables) as report:
        answer = json.dumps(_answer(report), ensure_ascii=False)
    sink.write(f'{{"conchart": {SCHEMA_VERSION},\n"answer": {answer}')
    for table in TABLES:
        rows = fetched(tables.sql(f"SELECT to_json(t) FROM (FROM {table.name} ORDER BY {table.key}) t"))
        listed = lines(row for (row,) in rows)
        first = next(listed, "")
        if first or table.name != "packets":
            sink.write(f',\n"{table.name}": [{first}')
            sink.writelines(listed)
            sink.write("]")
    sink.write("}\n")


def _answer(report: "Report") -> dict[str, object]:
    """Give the answer; the rows' ``waited_ns`` add up to that of all."""
    answer = report.verdict
    return {
        "state": answer.state,
        "sentence": answer.sentence,
        "waited_ns": answer.waited_ns,
        "rows": [_row(entry) for entry in answer.rows],
        "unjudged": "; ".join(one.words for one in report.unjudged) or None,
        "in_vain": answer.in_vain or None,
        "quality": answer.quality,
        "command": answer.command or None,
    }


def _row(entry: "Entry") -> dict[str, object]:
    texts = ("severity", "title", "where", "phase", "owner", "detail", "change", "next_step", "command")
    return {
        "kind": entry.kind,
        "waited_ns": entry.cost_ns,
        **{name: getattr(entry, name) or None for name in texts},
        "server_ip": entry.server_ip,
        "server_port": entry.server_port,
        "stream": entry.stream,
        "frame": entry.frame,
        "finding": entry.name or None,
        "number": entry.number,
    }


def fetched(relation: DuckDBPyRelation) -> Iterator[tuple[Any, ...]]:
    """Give the rows of a relation; only some thousands are ever held."""
    while batch := relation.fetchmany(_ROWS_AT_A_TIME):
        yield from batch


def lines(items: Iterable[str]) -> Iterator[str]:
    """Give the items of a JSON array with what stands between them: one per line."""
    separator = "\n"
    for item in items:
        yield separator + item
        separator = ",\n"
