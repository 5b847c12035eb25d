"""What a trace says, exactly: one line per row, for texts that pin every nanosecond.

In: a trace. Out: text. Where `expected.txt` rounds to three digits for a person, this rounds nothing. Columns are named
here, so that a new one changes no text. No sentence is here: of those of a finding stand the figures, so that other
words change no text either.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator

from conchart import Trace

COLUMNS = {
    "connections": "stream transport transport_stream client_ip client_port server_ip server_port first_frame "
    "last_frame opened_at closed_at state app packets_client packets_server bytes_client bytes_server "
    "rtt_client_ns rtt_server_ns",
    "handshakes": "stream number hello_at server_hello_at server_done_at client_finished_at ready_at complete_at "
    "version cipher kind outcome sni alpn round_trips inferred",
    "exchanges": "stream number request_at request_done_at response_at response_done_at request_frame response_frame "
    "protocol method host target status request_bytes response_bytes inferred confidence",
    "phases": "stream start_at end_at start_frame end_frame kind exchange inferred",
    "stalls": "stream start_at end_at start_frame released_frame end_frame kind detail side ack_delay_ns confidence",
    "findings": "number root finding severity server_ip server_port client_ip streams count cost_ns critical_ns "
    "shared_ns vain_ns waited_ns each_ns low_ns high_ns unfinished confidence frames evidence who",
}
"""Table to columns, in the order of the line, by which the lines are sorted."""

FIGURE = re.compile(r"[^\s(:;,]*\d[^\s);,]*(?: (?:%|[nµm]?s|min|h|[kMG]?B)(?!\w))?|(?<!\S)/[^\s);,]+")
"""A number with its unit, a word with a digit, a path of a URL."""
PARTY = re.compile(r"client|server|proxy|backend|application|path")
"""Whose doing something is."""

MOST_ROWS = 200
"""Of a table; the others are one line with their number and their hash."""


def exact(trace: Trace) -> str:
    """Write the rows of every table; instants are nanoseconds after the first packet."""
    return "".join(f"{line}\n" for table in COLUMNS for line in _lines(trace, table))


def _lines(trace: Trace, table: str) -> Iterator[str]:
    columns = COLUMNS[table].split()
    first = "(SELECT min(first_at) FROM captures)"
    values = (f"{column} - {first} AS {column}" if column.endswith("_at") else column for column in columns)
    rows = trace.sql(f"SELECT {', '.join(values)} FROM {table} ORDER BY ALL").fetchall()
    lines = [" ".join(map(_word, map(_pinned, columns, row))) for row in rows]
    yield f"{table}: {' '.join(columns)}"
    yield from lines[:MOST_ROWS]
    if others := lines[MOST_ROWS:]:
        yield f"… {len(others)} more, SHA-256 {hashlib.sha256(chr(10).join(others).encode()).hexdigest()}"


def _pinned(column: str, value: object) -> object:
    """Give what is pinned of a value: of a sentence, the figures, and of those about who does it, the first one named.

    ``6 of 6 requests take 326 ms: GET /a`` has ``6 6 326 ms /a``.
    """
    if column not in ("evidence", "who") or value is None:
        return value
    party = PARTY.search(str(value)) if column == "who" else None
    return " ".join([*([party[0]] if party else []), *FIGURE.findall(str(value))]) or None


def _word(value: object) -> str:
    """Write a value without spaces around it: as it is where that is plain, as JSON where it is not."""
    if value is None:
        return "-"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    plain = text.isascii() and text.isprintable() and not set(text) & {" ", '"', "\\"} and text not in ("", "-")
    return text if plain else json.dumps(text)
