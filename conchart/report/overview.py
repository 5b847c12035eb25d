"""What was captured, in numbers: the same on page, terminal, picture and in comparisons.

In: tables. Out: one :class:`Overview`.
"""

from dataclasses import dataclass

from conchart.store.sql import RESUMED
from conchart.store.tables import Tables

_OVERVIEW = f"""
    SELECT * FROM
    (SELECT coalesce(sum(packets), 0)::BIGINT AS packets, coalesce(sum(selected), 0)::BIGINT AS selected,
        coalesce(sum(bytes), 0)::BIGINT AS bytes, min(first_at) AS first_at, any_value(seen_from) AS seen_from,
        any_value(selection) AS selection, coalesce(list(path ORDER BY capture), []) AS paths
        FROM captures),
    (SELECT count(*) AS connections, count(DISTINCT client_ip) AS clients, count(DISTINCT server_ip) AS servers
        FROM connections),
    (SELECT count(*) AS hosts FROM (SELECT client_ip FROM connections UNION SELECT server_ip FROM connections)),
    (SELECT count(*) AS requests, count(DISTINCT stream) AS with_requests FROM exchanges),
    (SELECT count(*) AS handshakes, count(*) FILTER ({RESUMED}) AS resumed
        FROM handshakes)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Counts of a trace."""

    packets: int
    """In the files."""
    selected: int
    """Those of them that a filter or a range of time chose; all where there is neither."""
    bytes: int
    first_at: int | None
    """The instant of the first packet."""
    seen_from: str | None
    selection: str | None
    """What chose packets, in words."""
    paths: list[str]
    """As given, text of the user's."""
    connections: int
    clients: int
    """Addresses that opened connections."""
    servers: int
    """Addresses that accepted them."""
    hosts: int
    """Addresses of either kind."""
    requests: int
    with_requests: int
    """Connections with requests."""
    handshakes: int
    resumed: int
    """Complete handshakes that were no full ones."""


def overview(tables: Tables) -> Overview:
    """Count what was captured."""
    names, (values,) = tables.fetch_named(_OVERVIEW)
    return Overview(**dict(zip(names, values, strict=True)))
