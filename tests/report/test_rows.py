"""How a table is read to be shown: every text is harmless to read, and everything else as it is."""

from conchart.report.rows import MAX_TEXT, columns, rows
from tests.by_hand import connection, tables_of

HOSTILE = "a\x1b[31m\u202eb"


def test_rows_are_dictionaries_with_clean_texts() -> None:
    tables = tables_of(connections=[connection(1, server_name=HOSTILE), connection(0)])
    found = list(rows(tables, "SELECT stream, server_name AS name FROM connections ORDER BY stream DESC"))
    assert found == [{"stream": 1, "name": "a\ufffd[31m\ufffdb"}, {"stream": 0, "name": None}]


def test_parameters_are_named() -> None:
    tables = tables_of(connections=[connection(1), connection(0)])
    query = "SELECT stream FROM connections WHERE stream = $stream"
    assert list(rows(tables, query, {"stream": 1})) == [{"stream": 1}]


def test_columns_are_lists_with_clean_texts() -> None:
    tables = tables_of(connections=[connection(1, server_name=HOSTILE), connection(0)])
    assert columns(tables, "SELECT stream, server_name AS name FROM connections ORDER BY stream") == {
        "stream": [0, 1],
        "name": [None, "a\ufffd[31m\ufffdb"],
    }
    assert columns(tables, "SELECT stream FROM connections WHERE false") == {"stream": []}


def test_texts_in_lists_are_clean_too() -> None:
    tables = tables_of()
    ((row),) = rows(tables, "SELECT ['a\x1bb', 'c'] AS one, [['\x1b']] AS two, [1, 2] AS three, [] AS four")
    assert row == {"one": ["a\ufffdb", "c"], "two": [["\ufffd"]], "three": [1, 2], "four": []}


def test_a_long_text_is_cut() -> None:
    ((row),) = rows(tables_of(), f"SELECT repeat('a', {MAX_TEXT}) AS fits, repeat('b', {MAX_TEXT + 1}) AS cut")
    assert row["fits"] == "a" * MAX_TEXT
    assert len(row["cut"]) == MAX_TEXT
    assert row["cut"][:-1] == "b" * (MAX_TEXT - 1)
    assert row["cut"][-1] != "b", "it says that it was cut"
