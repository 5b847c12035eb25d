"""How much of TLS the keys given opened. In: a trace. Out: one :class:`Coverage`, or none where there were no keys."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conchart.printable import printable
from conchart.units import count_of, format_count

if TYPE_CHECKING:
    from conchart.trace import Trace

_MOST_NAMED = 3
"""Servers and connections that are named; the others are counted."""

_LACKS = {
    "none": "none for",
    "wrong": "wrong for",
    "unsupported": "cipher suite not supported for",
}
"""Values of ``handshakes.keys`` that mean that nothing could be read, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What the keys opened and what they did not."""

    opened: int
    total: int
    lacks: tuple[str, ...]
    """What is missing, for whom; empty when all was opened."""

    @property
    def title(self) -> str:
        """``12 of 14 TLS connections decrypted``."""
        return f"{format_count(self.opened)} of {count_of(self.total, 'TLS connection')} decrypted"

    def __str__(self) -> str:
        """All of it, in one line."""
        return "; ".join((self.title, *self.lacks))


def coverage(trace: "Trace") -> Coverage | None:
    """Say how many TLS connections were decrypted; ``None`` when no secrets were given."""
    rows = trace.sql(
        """
        SELECT keys, missing_keys, server_ip, server_port, stream
        FROM (SELECT stream, arg_min(keys, number) AS keys, arg_min(missing_keys, number) AS missing_keys
            FROM handshakes GROUP BY stream)
        JOIN connections USING (stream) WHERE keys IS NOT NULL ORDER BY stream
        """
    ).fetchall()
    if not rows:
        return None
    lacking: dict[str, dict[str, int]] = {}
    for keys, missing, ip, port, stream in rows:
        if keys in _LACKS:
            servers = lacking.setdefault(_LACKS[keys], {})
            server = f"{printable(f'[{ip}]' if ':' in ip else ip)}:{port}"
            servers[server] = servers.get(server, 0) + 1
        elif keys == "partial":
            names = printable((missing or "").replace(",", ", "), limit=200)
            lacking.setdefault(f"missing {names} for", {})[f"#{stream}"] = 1
    lacks = tuple(f"{lack} {_named(places)}" for lack, places in lacking.items())
    return Coverage(opened=sum(row[0] == "all" for row in rows), total=len(rows), lacks=lacks)


def _named(places: dict[str, int]) -> str:
    """``10.0.0.2:8443 (2), #7 and 4 others``."""
    most = sorted(places.items(), key=lambda place: -place[1])
    named = ", ".join(place if place.startswith("#") else f"{place} ({count})" for place, count in most[:_MOST_NAMED])
    others = len(most) - _MOST_NAMED
    return named if others <= 0 else f"{named} and {count_of(others, 'other')}"
