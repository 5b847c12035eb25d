"""What lessons share: results that come back as they were written, tables, and their places in a page."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import ROOT
from tests.lessons.running import program

PAGE = """Before.

<!-- table: one -->
old
<!-- end of table -->

Between.

<!-- table: two-b -->
<!-- end of table -->
After.
"""


@pytest.fixture(scope="module")
def lesson() -> ModuleType:
    return program(ROOT / "examples/lab/lesson.py")


def test_tables_go_between_their_comments_and_the_rest_stays(lesson: ModuleType) -> None:
    filled = lesson.fill(PAGE, {"one": "| 1 |", "two-b": "| 2 |"})
    assert filled == PAGE.replace("old", "| 1 |").replace("two-b -->\n", "two-b -->\n| 2 |\n")
    assert lesson.fill(filled, {"one": "old", "two-b": ""}).replace("\n\n<!-- end", "\n<!-- end") == PAGE


@pytest.mark.parametrize("tables", [{"one": ""}, {"one": "", "two-b": "", "three": ""}])
def test_a_table_without_a_place_or_a_place_without_a_table_is_an_error(
    lesson: ModuleType, tables: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match="two-b|three"):
        lesson.fill(PAGE, tables)


def test_columns_of_numbers_are_set_to_the_right(lesson: ModuleType) -> None:
    rows = [["curl", "1,024 B", "0.70 / 1.27", "+ 3 µs"], ["2 clients", "–", "12 %", "1.5 ×"]]
    assert lesson.table(["who", "bytes", "times", "more"], rows).splitlines() == [
        "| who | bytes | times | more |",
        "|---|---:|---:|---:|",
        "| curl | 1,024 B | 0.70 / 1.27 | + 3 µs |",
        "| 2 clients | – | 12 % | 1.5 × |",
    ]


def test_results_come_back_as_they_were_written_a_row_a_line(lesson: ModuleType, tmp_path: Path) -> None:
    results = {"machine": {"processors": 2}, "rows": [{"ns": 1, "of": "a"}, {"ns": None, "of": "ä"}], "none": []}
    lesson.write_results(tmp_path / "results.json", results)
    assert lesson.read_results(tmp_path / "results.json") == results
    assert '  {"ns": 1, "of": "a"},' in (tmp_path / "results.json").read_text().splitlines()
