"""What rows take in memory: bytes per row of each table that the core fills, and of its widest columns.

    python -m tests.benchmarks.widths CAPTURE

In: a capture. Out: two tables for docs/performance.md. DuckDB gives a column room by blocks of 256 kB: each column is
copied as often as it takes to fill many blocks, and what the copy takes is divided by its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

import conchart
from conchart import Trace
from conchart.store.schema import TABLES

COPIED_ROWS = 2_000_000
LEAST_ROWS = 1_000
"""Tables with fewer rows take little memory."""
WIDEST = 6
"""Columns of each table that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Width:
    """What a column takes."""

    table: str
    column: str
    kind: str
    bytes: float
    """Per row."""
    is_empty: bool
    """No row has a value."""


def widths(trace: Trace, table: str, rows: int) -> list[Width]:
    """Measure each column of a table, the widest first."""
    times = max(1, COPIED_ROWS // rows)
    found = []
    for column, kind in trace.fetch(
        "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ?", [table]
    ):
        ((values,),) = trace.fetch(f'SELECT count("{column}") FROM {table}')
        before = _taken(trace)
        trace.execute(f'CREATE TABLE column_copy AS SELECT "{column}" FROM {table}, range({times})')
        taken = _taken(trace) - before
        trace.execute("DROP TABLE column_copy")
        # The words of an ENUM are no news here.
        name = kind.split("(")[0]
        is_empty = values == 0
        found.append(Width(table=table, column=column, kind=name, bytes=taken / rows / times, is_empty=is_empty))
    return sorted(found, key=lambda width: -width.bytes)


def _taken(trace: Trace) -> int:
    ((taken,),) = trace.fetch("SELECT sum(memory_usage_bytes) FROM duckdb_memory()")
    return int(taken)


@click.command()
@click.argument("capture", type=click.Path(path_type=Path, exists=True))
def main(capture: Path) -> None:
    """Measure the columns of all tables that have many rows."""
    with conchart.read(capture) as trace:
        counts = {table.name: trace.count(table.name) for table in TABLES if table.from_core}
        connections = max(1, counts["connections"])
        measured = {name: widths(trace, name, rows) for name, rows in counts.items() if rows >= LEAST_ROWS}
    click.echo("| table | rows per connection | bytes per row | in empty columns | bytes per connection |")
    click.echo("|---|--:|--:|--:|--:|")
    for name, columns in measured.items():
        row, empty = (sum(one.bytes for one in columns if one.is_empty or all_) for all_ in (True, False))
        often = counts[name] / connections
        share = f"{empty:.0f} in {sum(one.is_empty for one in columns)} of {len(columns)}"
        click.echo(f"| `{name}` | {often:.1f} | {row:.0f} | {share} | {row * often:.0f} |")
    click.echo("\n| table | its widest columns, bytes per row |\n|---|---|")
    for name, columns in measured.items():
        listed = ", ".join(f"`{one.column}` {one.bytes:.0f} ({one.kind})" for one in columns[:WIDEST])
        click.echo(f"| `{name}` | {listed} |")


if __name__ == "__main__":
    main()
