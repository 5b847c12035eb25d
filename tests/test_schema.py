"""docs/tables.md and the schema say the same, column by column."""

import re

import pytest

from conchart.schema import TABLES, Table
from tests.conftest import ROOT, empty_trace


def documented() -> dict[str, dict[str, str]]:
    """Table to column to type, from the Markdown; ``a_client, _server`` means ``a_client, a_server``."""
    tables: dict[str, dict[str, str]] = {}
    columns: dict[str, str] = {}
    for line in (ROOT / "docs/tables.md").read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"## (\w+)", line):
            columns = tables.setdefault(heading[1], {})
        elif (row := re.match(r"\| ([\w, ]+) \| ([A-Z]+(?:\[\])?) \|", line)) is not None:
            names = row[1].split(", ")
            for name in names:
                full = re.sub("_[a-z]+$", name, names[0]) if name.startswith("_") else name
                columns[full] = row[2]
    return tables


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_columns_and_types_are_the_documented_ones(table: Table) -> None:
    name = table.name
    with empty_trace() as trace:
        relation = trace.sql(f"FROM {name}")
        built = dict(zip(relation.columns, map(str, relation.types), strict=True))
    assert built == documented()[name]


def test_every_documented_table_exists() -> None:
    assert set(documented()) == {table.name for table in TABLES}
