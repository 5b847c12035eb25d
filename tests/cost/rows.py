"""The budget of the analysis, in rows: what its statements touch may not change unnoticed. It holds on every machine.

In: the shapes of the law of cost, at one size. Out: rows that DuckDB's operators gave or compared, by shape and module,
beside the record, `rows.json`. Within 3 % is the same; more or less fails, and asks for a new record with the reason.
Another version of DuckDB may plan otherwise: then the budget is not checked, and says so.

    python -m tests.cost.rows
    python -m tests.cost.rows --update "servers are joined by address alone"
"""

from __future__ import annotations

import json
import sys
from collections import Counter

import click
import duckdb

from conchart import Trace
from tests.conftest import ROOT, analysed
from tests.cost.instructions import departures
from tests.cost.meter import Costs, Metered
from tests.cost.shapes import SHAPES, Shape, fill

RECORD = ROOT / "tests" / "cost" / "rows.json"
SIZE = 150


def counted(shape: Shape) -> dict[str, int]:
    """The rows that analysing a capture of a shape touches, by the module that asked."""
    costs = Costs()
    with Trace(Metered(costs)) as trace:  # type: ignore[arg-type]  # a database but for its class
        trace.create()
        fill(trace, shape, SIZE)
        costs.rows.clear()
        analysed(trace)
    modules: Counter[str] = Counter()
    for place, rows in costs.rows.items():
        modules[f"{shape.name}, {place.partition(':')[0]}"] += rows
    return dict(sorted(modules.items()))


@click.command()
@click.option("--update", "why", metavar="WHY", help="Record what is counted now, with the reason for the change.")
def main(why: str | None) -> None:
    """Compare what analysis touches with the record."""
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    now = {name: rows for shape in SHAPES for name, rows in counted(shape).items()}
    click.echo(f"{sum(now.values()):,} rows touched by {len(SHAPES)} shapes of {SIZE}")
    if why:
        RECORD.write_text(json.dumps({"duckdb": duckdb.__version__, "why": why, "rows": now}, indent=1) + "\n")
        click.echo("recorded")
    elif record["duckdb"] != duckdb.__version__:
        click.echo(f"no record for DuckDB {duckdb.__version__}: the budget is skipped")
    elif changed := departures(record["rows"], now, "rows"):
        for text in changed:
            click.echo(text)
        click.echo('to record this: python -m tests.cost.rows --update "why it changed"')
        sys.exit(1)


if __name__ == "__main__":
    main()
