"""``conchart query``: the tables of a capture, asked in SQL."""

import csv
import json
import math
import sys

import click
import duckdb
from rich.table import Table
from rich.text import Text

from conchart.cli.paths import Input
from conchart.cli.reading import Reading, ReadingCommand, read_captures, reading_options
from conchart.cli.statements import written_files
from conchart.cli.terminal import print_on, terminal
from conchart.errors import UsageError
from conchart.files.replacing import Named, refuse_inputs
from conchart.labels.printable import printable, printable_lines
from conchart.outputs.formats.flat import harmless
from conchart.store.sql import literal
from conchart.trace import Trace

_MOST_ROWS_SHOWN = 1000
_ROWS_AT_A_TIME = 10_000
_AS_WIDE_AS_IT_IS = 1_000_000
"""Width without a terminal: nothing is wrapped."""


@click.command(cls=ReadingCommand)
@click.argument("capture", type=Input(), metavar="CAPTURE")
@click.argument("sql", metavar="SQL")
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@click.option("-a", "--packets", is_flag=True, help="Fill the packets table.")
@click.option(
    "--read-only", is_flag=True, help="Let the SQL neither read nor write files, and give it no access to the network."
)
@reading_options
def query(*, capture: str, sql: str, form: str, packets: bool, read_only: bool, reading: Reading) -> None:
    """Query the tables of CAPTURE with SQL (DuckDB's dialect).

    Columns named …_at are instants in nanoseconds since 1970. Columns named …_ns are durations in nanoseconds.
    docs/tables.md describes every column. SQL runs with your permissions: it can read and write your files, but not
    replace the files that this command reads. Review a query before you run it, or use --read-only.

    \b
    Examples:
      conchart query slow.pcap 'FROM connections ORDER BY closed_at - opened_at DESC LIMIT 5'
      conchart query slow.pcap 'SELECT kind, sum(end_at - start_at) / 1e6 AS ms FROM phases GROUP BY kind'
      conchart query slow.pcap 'SELECT target, wait_ns FROM exchanges ORDER BY wait_ns DESC' --format csv
      conchart query slow.pcap "COPY exchanges TO 'requests.csv'"
      conchart query slow.pcap 'FROM findings' --read-only
    """  # noqa: D301  (click's mark for lines it must not wrap)
    with read_captures((capture,), reading, packets=packets) as trace:
        try:
            refuse_inputs((Named(option="COPY", path=file) for file in written_files(sql)), trace.inputs)
            if read_only:
                trace.forbid_files(sql)
            relation = trace.sql(sql)
            if relation is not None:
                _FORMATS[form](trace, relation)
        except UnicodeEncodeError:
            raise UsageError("query: the SQL is not valid UTF-8") from None
        except duckdb.Error as error:
            raise UsageError(f"query: {error}") from None


def _print_csv(trace: Trace, relation: duckdb.DuckDBPyRelation) -> None:
    values = (harmless(f"#{place}", kind) for place, kind in enumerate(relation.types, 1))
    rows = relation.project(", ".join(f"({value})::VARCHAR AS column{place}" for place, value in enumerate(values)))
    # PIVOT makes headings of values. Asked for first: another statement would end the rows early.
    headings = trace.fetch(f"SELECT {', '.join(harmless(literal(name)) for name in relation.columns)}")
    batch = rows.fetchmany(_ROWS_AT_A_TIME)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerows(headings)
    while batch:
        writer.writerows(batch)
        batch = rows.fetchmany(_ROWS_AT_A_TIME)


def _print_json(_: Trace, relation: duckdb.DuckDBPyRelation) -> None:
    names = _distinct(relation.columns)
    rows = [dict(zip(names, map(_jsonable, row), strict=True)) for row in relation.fetchall()]
    json.dump(rows, sys.stdout, default=str, indent=1, allow_nan=False)
    sys.stdout.write("\n")


def _distinct(names: list[str]) -> list[str]:
    """Give names of which no two are the same: of ``a``, ``a`` the second becomes ``a_1``, as DuckDB has it."""
    distinct: dict[str, None] = {}
    for name in names:
        number, candidate = 0, name
        while candidate in distinct:
            number += 1
            candidate = f"{name}_{number}"
        distinct[candidate] = None
    return list(distinct)


def _jsonable(value: object) -> object:
    """Give what JSON has for a value (RFC 8259 section 6): no NaN and no infinity, and names are strings."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(name): _jsonable(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(inner) for inner in value]
    return value


def _print_table(_: Trace, relation: duckdb.DuckDBPyRelation) -> None:
    rows = relation.fetchall()
    table = Table()
    for place, name in enumerate(relation.columns):
        is_number = all(isinstance(row[place], (int, float)) or row[place] is None for row in rows)
        table.add_column(Text(printable(name)), justify="right" if is_number else "left", overflow="fold")
    for row in rows[:_MOST_ROWS_SHOWN]:
        table.add_row(*(Text("" if value is None else printable_lines(str(value))) for value in row))
    print_on(terminal(_AS_WIDE_AS_IT_IS), lambda console: console.print(table))
    if len(rows) > _MOST_ROWS_SHOWN:
        click.echo(f"… and {len(rows) - _MOST_ROWS_SHOWN:,} more rows: --format csv prints them all")


_FORMATS = {"table": _print_table, "csv": _print_csv, "json": _print_json}
