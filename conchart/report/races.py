"""Races between ways to a server: what a connection won or lost against.

In: the table ``races``. Out: a sentence of the terminal, of ladders and of the page, for either connection.
"""

from conchart.labels.printable import printable
from conchart.labels.units import count_of, format_bytes, format_ns
from conchart.report.rows import Row
from conchart.store.tables import Tables

OF_STREAMS = """
    SELECT races.*, loser_stream AS stream, winner_stream AS other, false AS won,
        concat(winner.transport, ' ', winner.server_ip) AS against,
        decided_at - loser_began_at AS decided_ns, loser_answered_at - loser_began_at AS answered_ns,
        loser.state = 'refused' AS refused
    FROM races JOIN connections winner ON winner.stream = winner_stream
    JOIN connections loser ON loser.stream = loser_stream
    UNION ALL
    SELECT races.*, winner_stream, loser_stream, true, concat(loser.transport, ' ', loser.server_ip),
        decided_at - winner_began_at, loser_answered_at - loser_began_at, loser.state = 'refused'
    FROM races JOIN connections loser ON loser.stream = loser_stream
"""
"""A row for the loser and one for the winner of each race; ``stream`` is whose row it is."""


def are_there(tables: Tables) -> bool:
    """Tell whether the capture has races: most have none."""
    return tables.count("races") > 0


def describe(row: Row) -> str:
    """Say it in one sentence, of a row of ``OF_STREAMS``."""
    transport, _, address = printable(row["against"]).partition(" ")
    way = "QUIC" if transport == "udp" else "TCP"
    other = (
        f"{way} to {address} (stream {row['other']})" if row["kind"] == "address" else f"{way} (stream {row['other']})"
    )
    if not row["won"]:
        later = row["packets"] is None
        cost = "" if later else f"; {count_of(row['packets'], 'packet')}, {format_bytes(row['bytes'])} in vain"
        answered = "no answer" if row["answered_ns"] is None else f"answered after {format_ns(row['answered_ns'])}"
        answer = "refused" if row["refused"] else answered
        ready = format_ns(row["decided_ns"])
        return f"lost the race against {other}, which was ready {ready} after this one began; {answer}{cost}"
    earlier = f", which began {format_ns(row['delay_ns'])} earlier" if row["delay_ns"] else ""
    return f"won the race against {other}{earlier}: this one was ready after {format_ns(row['decided_ns'])}"
