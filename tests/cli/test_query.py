"""``conchart query``: text for people and for programs, harmless and valid whatever the SQL gives."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from conchart import Trace
from conchart.cli import main
from tests.conftest import T0

Ask = Callable[..., str]


@pytest.fixture
def saved(story: Trace, tmp_path: Path) -> Path:
    story.write(tmp_path / "story.duckdb")
    return tmp_path / "story.duckdb"


@pytest.fixture
def ask(saved: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Ask the story in SQL; gives standard output, or standard error where it failed."""
    for variable in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(variable, raising=False)

    def answer(sql: str, form: str = "table", *, code: int = 0) -> str:
        with pytest.raises(SystemExit) as left:
            main(["query", str(saved), sql, "--format", form])
        assert int(left.value.code or 0) == code
        out, err = capfd.readouterr()
        assert not (err if code == 0 else out)
        return err if code else out

    return answer


def test_a_table_is_as_wide_as_it_is_where_nobody_has_a_width(ask: Ask) -> None:
    lines = ask("FROM connections").splitlines()
    assert len({len(line) for line in lines}) == 1
    assert len(lines) == 7
    for name in ("out_of_order_client", "rtt_server_ns", "vantage"):
        assert re.search(rf"┃ +{name} +┃", lines[1])
    assert str(T0) in lines[3] + lines[4] + lines[5]


def test_columns_folds_a_table(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, ask("FROM phases").splitlines())) <= 60


FORMULAS = [
    "=1+1",
    "+1",
    "@x",
    "-1+2",
    "  =1",
    "\t=1",
    "\tx",
    "\u3000=1",
    "\u00a0=1",
    "＝1",
    "＋1",
    "－1",
    "＠1",
    "﹦1",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_what_a_spreadsheet_would_run_gets_an_apostrophe_in_both_kinds_of_csv(
    ask: Ask, story: Trace, tmp_path: Path, text: str
) -> None:
    story.execute(f"UPDATE exchanges SET target = '{text}'")
    story.write(tmp_path / "out.csv", table="exchanges")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as lines:
        written = next(csv.DictReader(lines))["target"]
    (printed,) = list(csv.reader(io.StringIO(ask(f"SELECT '{text}' AS x", "csv"))))[1]
    assert written == printed == f"'{text}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\ufffd[2J"),
        ("\ufeff=1", "\ufffd=1"),
        ("\r=1", "\ufffd=1"),
        ("a\u202eb\u200bc\x9b", "a\ufffdb\ufffdc\ufffd"),
        ("-", "-"),
        ("a=b", "a=b"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("bücher ☃", "bücher ☃"),
    ],
)
def test_what_moves_a_cursor_or_hides_is_replaced_in_csv(ask: Ask, text: str, shown: str) -> None:
    rows = list(csv.reader(io.StringIO(ask(f"SELECT '{text}' AS x, ['{text}'] AS y", "csv"))))
    assert rows[1][0] == shown
    assert "\x1b" not in rows[1][1]


def test_text_of_several_lines_keeps_them_in_the_table(ask: Ask) -> None:
    rows = [line.strip("│ ") for line in ask("SELECT 'packet 8: \x1b[2J\n  Kept 7.' AS note").splitlines()]
    assert rows[3:5] == ["packet 8: \ufffd[2J", "Kept 7."]


def test_numbers_are_no_formulas_and_null_is_empty(ask: Ask) -> None:
    out = ask("SELECT -5 AS a, -0.5 AS b, NULL AS c, true AS d, [-1] AS e, DATE '2026-01-02' AS f, 1 AS a", "csv")
    assert out == "a,b,c,d,e,f,a\n-5,-0.5,,true,[-1],2026-01-02,1\n"


def test_headings_made_of_values_are_harmless(ask: Ask) -> None:
    out = ask("PIVOT (SELECT '=1+1' AS name, 1 AS n) ON name USING sum(n)", "csv")
    assert out == "'=1+1\n1\n"


def test_many_rows_come_in_order_and_whole(ask: Ask) -> None:
    assert ask("FROM range(25000)", "csv").split() == ["range", *map(str, range(25000))]


def strictly(text: str) -> object:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    return json.loads(text, parse_constant=refuse)


def test_json_has_no_nan_and_no_infinity(ask: Ask) -> None:
    sql = "SELECT 'nan'::DOUBLE AS a, ['inf'::FLOAT, 1] AS b, {'x': '-inf'::DOUBLE} AS c, MAP {1: 'nan'::DOUBLE} AS d"
    assert strictly(ask(sql, "json")) == [{"a": None, "b": [None, 1.0], "c": {"x": None}, "d": {"1": None}}]


def test_json_keeps_columns_of_one_name_apart(ask: Ask) -> None:
    assert strictly(ask("SELECT 1 AS a, 2 AS a, 3 AS a_1, 4 AS a", "json")) == [
        {"a": 1, "a_1": 2, "a_1_1": 3, "a_2": 4}
    ]


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_wrong_sql_is_2_and_prints_nothing(ask: Ask, form: str) -> None:
    for sql in ("SELEC", "SELECT 'x'::INTEGER", "SELECT error('half-way') FROM range(3)", "SELECT '\udcff'"):
        assert ask(sql, form, code=2).startswith("conchart: query: ")


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_a_statement_without_a_result_prints_nothing(ask: Ask, form: str) -> None:
    assert ask("SET threads = 1", form) == ""
