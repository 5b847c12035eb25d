"""Spans of programs beside their requests: how long each lasted, and which part of it passed on the wire.

In: the table ``spans``. Out: SQL for all who tell of them, and the sentence of the terminal.
"""

from conchart.labels.printable import printable
from conchart.labels.units import format_ns
from conchart.report.rows import Row
from conchart.store.tables import Tables

_OF_SIDE = """
    arg_min(coalesce(nullif(service, ''), 'a program') || ': ' || name, number) FILTER ({which}) AS {end}_span,
    arg_min(end_at - begin_at, number) FILTER ({which}) AS {end}_span_ns,
    arg_min(before_ns, number) FILTER ({which}) AS {end}_before_ns,
    arg_min(behind_ns, number) FILTER ({which}) AS {end}_behind_ns,
    arg_min(round(100 * confidence)::UTINYINT, number) FILTER ({which}) AS {end}_sure
"""
BY_EXCHANGE = f"""
    SELECT stream, exchange AS number,
        {_OF_SIDE.format(end="client", which="kind IN ('client', 'producer')").strip()},
        arg_min(wire_ns, number) FILTER (kind IN ('client', 'producer')) AS client_wire_ns,
        {_OF_SIDE.format(end="server", which="kind IN ('server', 'consumer')").strip()}
    FROM spans WHERE stream IS NOT NULL GROUP BY stream, exchange
"""
"""One row per exchange that a span is about: the client's, the server's, or both."""
_SURE = 95
"""Percent; less is told."""


def are_there(tables: Tables) -> bool:
    """Tell whether there are spans: most captures are read without."""
    ((found,),) = tables.fetch("SELECT count(*) > 0 FROM (FROM spans LIMIT 1)")
    return bool(found)


def describe(row: Row) -> list[str]:
    """Say it in a sentence for each side that has a span, of a row of ``BY_EXCHANGE``."""
    sentences = []
    if row["client_span"] is not None:
        inside = row["client_span_ns"] - row["client_before_ns"] - row["client_wire_ns"] - row["client_behind_ns"]
        parts = [
            f"{format_ns(row['client_before_ns'])} before the request",
            f"{format_ns(row['client_wire_ns'])} on the wire"
            + (" between the programs" if inside else " and behind it"),
            *([f"{format_ns(inside)} in the span of the server"] if inside else []),
            f"{format_ns(row['client_behind_ns'])} after the response",
        ]
        sentences.append(_sentence(row, "client", parts))
    if row["server_span"] is not None:
        parts = [
            f"begun {format_ns(row['server_before_ns'])} after the request",
            f"over {format_ns(row['server_behind_ns'])} before the end of the response",
        ]
        sentences.append(_sentence(row, "server", parts))
    return sentences


def _sentence(row: Row, end: str, parts: list[str]) -> str:
    sure = row[f"{end}_sure"]
    doubt = f" ({sure} % sure)" if sure < _SURE else ""
    name = printable(row[f"{end}_span"], limit=80)
    return f"span of {format_ns(row[f'{end}_span_ns'])} ({name}){doubt}: {', '.join(parts)}"
