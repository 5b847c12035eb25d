"""Tunnels that a CONNECT of HTTP/2 or HTTP/3 opened: what they are, and what went through.

In: rows of ``exchanges``. Out: the sentence of the terminal and of ladders.
"""

from conchart.labels.printable import printable
from conchart.labels.units import count_of, format_bytes, format_ns
from conchart.report.rows import Row
from conchart.store.tables import Tables

COLUMNS = """
    tunnel, tunnel_done_at - request_at AS tunnel_ns, tunnel_bytes_client, tunnel_bytes_server,
    tunnel_datagrams_client, tunnel_datagrams_server
"""
"""Of ``exchanges``, what the sentence needs."""


def are_there(tables: Tables) -> bool:
    """Tell whether the capture has tunnels: most have none."""
    ((found,),) = tables.fetch("SELECT count(*) > 0 FROM (FROM exchanges WHERE tunnel IS NOT NULL LIMIT 1)")
    return bool(found)


def describe(row: Row) -> str:
    """Say it in one sentence, of a row with ``COLUMNS`` and a tunnel."""
    kind = printable(row["tunnel"])
    if row["tunnel_ns"] is None:
        return f"tunnel {kind}, not opened"
    sides = []
    for side in ("client", "server"):
        datagrams = row[f"tunnel_datagrams_{side}"]
        counted = f" ({count_of(datagrams, 'datagram')})" if datagrams else ""
        sides.append(f"{format_bytes(row[f'tunnel_bytes_{side}'])} of the {side}{counted}")
    return f"tunnel {kind}, open after {format_ns(row['tunnel_ns'])}: {', '.join(sides)}"
