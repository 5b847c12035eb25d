"""Facts of connections, requests, stalls: the page and the terminal write the same ones, the page no others."""

import re

import pytest

from conchart import read
from conchart.labels.filling import Fact
from conchart.outputs.page.page import render
from conchart.report.facts import FACTS, HANDSHAKE, MESSAGES, PANEL, REQUEST, request_columns
from conchart.report.report import report_of
from tests.by_hand import Row, connection, tables_of
from tests.charts.unpacked import Page
from tests.conftest import ROOT

SCRIPTS = ROOT / "conchart/outputs/page/scripts"


def request(columns: Row, *, names: bool = True) -> str:
    exchange: Row = {"stream": 0, "number": 3, "protocol": "http/1.1"} | columns
    tables = tables_of(connections=(connection(0),), exchanges=[exchange])
    query = f"SELECT *, status_text AS answer, {request_columns(names=names)} FROM exchanges"
    names_of_columns, rows = tables.fetch_named(query, None)
    (row,) = (dict(zip(names_of_columns, values, strict=True)) for values in rows)
    return REQUEST.of(row)


def test_a_host_stands_before_a_path_and_before_nothing_else() -> None:
    get: Row = {"method": "GET", "host": "shop.example", "target": "/a", "status_text": "200"}
    assert request(get) == "GET shop.example/a → 200"
    assert request(get, names=False) == "GET /a → 200"
    assert request(get | {"target": "http://shop.example/a"}) == "GET http://shop.example/a → 200"
    assert request({"method": "CONNECT", "host": "a.example:443", "target": "a.example:443"}) == "CONNECT a.example:443"


def test_a_request_that_is_not_seen_is_a_turn() -> None:
    assert request({"protocol": "tls"}) == "tls turn 3"
    assert request({"protocol": None}) == "unknown turn 3"


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"n": None, "took_ns": None, "is": None}, ""),
        ({"n": 0, "took_ns": 0, "is": False}, "0 ns"),
        ({"n": 1, "took_ns": 1_500, "is": True}, "1 packet, 1.50 µs, yes"),
    ],
)
def test_a_text_is_left_out_where_a_row_has_no_value_for_it(row: Row, text: str) -> None:
    assert Fact("", ("{n:packet}", "{took_ns}", "yes{is:flag}")).of(row) == text


@pytest.mark.parametrize("name", ["reverse-proxy/https", "messages/grpc", "crafted/reordering"])
def test_the_page_says_what_the_terminal_says(name: str) -> None:
    with read(ROOT / "captures" / name / "input.pcap") as trace:
        with report_of(trace) as report:
            lines = [line for one in report.details() for line in one.lines]
        data = Page(render(trace)).data
    for table, fact in (("handshakes", HANDSHAKE), ("exchanges", REQUEST), ("exchanges", MESSAGES)):
        columns = re.findall(r"\{(\w+)", "".join(fact.texts))
        rows = [dict(zip(data[table], values, strict=True)) for values in zip(*data[table].values(), strict=True)]
        for row in rows:
            text = fact.of({column: row.get(column) for column in columns})
            assert any(text in line for line in lines), text


def test_scripts_have_none_of_these_words() -> None:
    script = (SCRIPTS / "describe.js").read_text(encoding="utf-8")
    declared = " ".join(text for fact in (*FACTS.values(), *PANEL) for text in fact.texts)
    for words in ("SNI", "certificate", "round trip", "of the client", "longest pause", "byte did not", " up, ", "FIN"):
        assert words not in script
        assert words in declared
