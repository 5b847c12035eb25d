"""Sentences about single requests and connections that few captures have: races, tunnels, spans, lines of access logs.

In: tables. Out: :class:`Note`, for the page; ``-v`` and ladders have the same sentences.
"""

from collections.abc import Iterator
from typing import NamedTuple

from conchart.report import logs, races, spans, tunnels
from conchart.report.rows import rows
from conchart.store.tables import Tables

_TUNNELS = f"SELECT stream, number, {tunnels.COLUMNS} FROM exchanges WHERE tunnel IS NOT NULL ORDER BY stream, number"
_LINES = f"""
    FROM ({logs.BY_EXCHANGE}) JOIN (SELECT stream, number AS exchange, from_log FROM exchanges) USING (stream, exchange)
    ORDER BY log, line
"""


RACE = "Race"


class Note(NamedTuple):
    """What is said of a connection, or of one of its requests; texts are safe to print."""

    stream: int
    number: int | None
    """Of the request; None where it is about all of the connection."""
    title: str
    says: str


def notes(tables: Tables) -> Iterator[Note]:
    """Give all notes, kind by kind. A capture that has nothing of a kind is asked for nothing more than that."""
    if races.are_there(tables):
        for row in rows(tables, f"FROM ({races.OF_STREAMS}) ORDER BY stream, other"):
            yield Note(row["stream"], None, RACE, races.describe(row))
    if tunnels.are_there(tables):
        for row in rows(tables, _TUNNELS):
            yield Note(row["stream"], row["number"], "Tunnel", tunnels.describe(row))
    if spans.are_there(tables):
        for row in rows(tables, f"FROM ({spans.BY_EXCHANGE}) ORDER BY stream, number"):
            for sentence in spans.describe(row):
                yield Note(row["stream"], row["number"], "Span", sentence)
    if logs.are_there(tables):
        for row in rows(tables, _LINES):
            names = ", method, target and status are from the log" if row["from_log"] else ""
            yield Note(row["stream"], row["exchange"], "Access log", f"{logs.where(row)}: {logs.says(row)}{names}")
