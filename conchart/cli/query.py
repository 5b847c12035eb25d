"""``conchart query``: the tables of a capture, asked in SQL."""

import csv
import json
import sys
from typing import TYPE_CHECKING, Any

import click
import duckdb
from rich.console import Console
from rich.table import Table
from rich.text import Text

from conchart.cli.reading import read_captures, reading_options
from conchart.errors import UsageError
from conchart.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_ROWS_SHOWN = 1000


@click.command()
@click.argument("capture", metavar="CAPTURE")
@click.argument("sql", metavar="SQL")
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@click.option("-a", "--packets", is_flag=True, help="Fill the packets table.")
@reading_options
def query(*, capture: str, sql: str, form: str, packets: bool, selection: dict[str, Any]) -> None:
    """Ask the tables of CAPTURE in SQL (DuckDB's).

    Instants (…_at) are nanoseconds since 1970, durations (…_ns) nanoseconds; docs/tables.md explains every column.

    \b
    Examples:
      conchart query slow.pcap 'FROM connections ORDER BY closed_at - opened_at DESC LIMIT 5'
      conchart query slow.pcap 'SELECT kind, sum(end_at - start_at) / 1e6 AS ms FROM phases GROUP BY kind'
      conchart query slow.pcap 'SELECT target, wait_ns FROM exchanges ORDER BY wait_ns DESC' --format csv
    """  # noqa: D301  (click's mark for lines it must not wrap)
    with read_captures((capture,), selection, packets=packets) as trace:
        try:
            relation = trace.sql(sql)
            columns: list[str] = relation.columns if relation is not None else []
            rows: list[tuple[Any, ...]] = relation.fetchall() if relation is not None else []
        except duckdb.Error as error:
            raise UsageError(f"query: {error}") from None
    if form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
    elif form == "json":
        json.dump([dict(zip(columns, row, strict=True)) for row in rows], sys.stdout, default=str, indent=1)
        sys.stdout.write("\n")
    else:
        _print_table(columns, rows)


def _print_table(columns: list[str], rows: "Sequence[tuple[Any, ...]]") -> None:
    table = Table()
    numeric = [all(isinstance(row[i], (int, float)) or row[i] is None for row in rows) for i in range(len(columns))]
    for name, right in zip(columns, numeric, strict=True):
        table.add_column(Text(printable(name)), justify="right" if right else "left", overflow="fold")
    for row in rows[:_MOST_ROWS_SHOWN]:
        table.add_row(*(Text("" if value is None else printable(str(value))) for value in row))
    console = Console(highlight=False)
    with console.capture() as captured:
        console.print(table)
    click.echo(captured.get(), nl=False, color=console.is_terminal)
    if len(rows) > _MOST_ROWS_SHOWN:
        click.echo(f"… and {len(rows) - _MOST_ROWS_SHOWN:,} more rows: --format csv prints them all")
