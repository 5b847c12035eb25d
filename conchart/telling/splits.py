"""What the waits at a front consist of, in words. In: the table ``splits``. Out: :class:`Split`."""

from collections.abc import Iterator
from dataclasses import dataclass

from conchart.tables import Tables
from conchart.telling.rows import rows
from conchart.units import count_of, format_count, format_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The waits for a front's responses, added up; the columns of ``splits``."""

    requests: int
    wait_ns: int
    backend_ns: int
    connect_ns: int
    tls_ns: int
    proxy_ns: int
    unlinked: int
    unlinked_ns: int

    def parts(self) -> Iterator[tuple[str, int, str]]:
        """Give what it is, how long, and what is to be added in brackets; nothing of what took no time."""
        for words, ns, note in (
            ("backend", self.backend_ns, ""),
            ("connecting", self.connect_ns, ""),
            ("TLS with the backend", self.tls_ns, ""),
            ("the proxy itself", self.proxy_ns, ""),
            ("not linked", self.unlinked_ns, f"{format_count(self.unlinked)} of {count_of(self.requests, 'request')}"),
        ):
            if ns:
                yield words, ns, note

    def __str__(self) -> str:
        """``of 6.38 ms wait: backend 3.51 ms, connecting 96 µs, the proxy itself 2.77 ms``."""
        told = (f"{words} {format_ns(ns)}{f' ({note})' if note else ''}" for words, ns, note in self.parts())
        return f"of {format_ns(self.wait_ns)} wait: {', '.join(told)}"


def splits(tables: Tables) -> dict[tuple[str, int], Split]:
    """Give the split of each front, by its address and port."""
    return {
        (row.pop("server_ip"), row.pop("server_port")): Split(**row)
        for row in rows(tables, "FROM splits ORDER BY server_ip, server_port")
    }
