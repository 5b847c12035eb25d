"""What the waits at a front consist of, in words and colours. In: the table ``splits``. Out: :class:`Split`."""

from collections.abc import Iterator
from dataclasses import dataclass

from conchart.store.tables import Tables
from conchart.telling.rows import rows
from conchart.words.phases import PHASE_BY_NAME
from conchart.words.units import count_of, format_count, format_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One part of a wait that a link explains."""

    name: str
    """Its column in ``links`` is this and ``_ns``."""
    word: str
    title: str
    """For legends."""
    colour: str
    """As the phase behind the proxy has it; the proxy's own time and the backend's stand out from the wait's colour."""
    meaning: str


STEPS: tuple[Step, ...] = (
    Step(
        name="proxy_in",
        word="proxy",
        title="proxy, before the backend",
        colour="#2E1A47",
        meaning="the proxy itself, until the backend has the request: it thinks, queues, looks for a connection",
    ),
    Step(
        name="connect",
        word="connecting",
        title="connecting",
        colour=PHASE_BY_NAME["syn"].colour,
        meaning="TCP handshake with the backend",
    ),
    Step(
        name="tls",
        word="TLS",
        title="TLS with the backend",
        colour=PHASE_BY_NAME["tls"].colour,
        meaning="TLS handshake with the backend",
    ),
    Step(
        name="request",
        word="request",
        title="request to the backend",
        colour=PHASE_BY_NAME["request"].colour,
        meaning="sending the request to the backend",
    ),
    Step(name="wait", word="backend", title="backend", colour="#E3CBF5", meaning="waiting for the backend"),
    Step(
        name="proxy_out",
        word="proxy",
        title="proxy, after the backend",
        colour="#5A3380",
        meaning="the proxy itself, after the backend's answer",
    ),
)
"""In the order in which they come about."""


POOL_WAIT = "waiting for a pooled connection"


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The waits for a front's responses, added up; the columns of ``splits``."""

    requests: int
    wait_ns: int
    backend_ns: int
    connect_ns: int
    tls_ns: int
    pool_ns: int
    """At a pooler, until a connection of its pool was free."""
    proxy_ns: int
    unlinked: int
    unlinked_ns: int

    def parts(self) -> Iterator[tuple[str, int, str]]:
        """Give what it is, how long, and what is to be added in brackets; nothing of what took no time."""
        for words, ns, note in (
            ("backend", self.backend_ns, ""),
            ("connecting", self.connect_ns, ""),
            ("TLS with the backend", self.tls_ns, ""),
            (POOL_WAIT, self.pool_ns, ""),
            ("the proxy itself", self.proxy_ns, ""),
            ("not linked", self.unlinked_ns, f"{format_count(self.unlinked)} of {count_of(self.requests, 'request')}"),
        ):
            if ns:
                yield words, ns, note

    def __str__(self) -> str:
        """``of 6.38 ms wait: backend 3.51 ms, connecting 96 µs, the proxy itself 2.77 ms``."""
        told = (f"{words} {format_ns(ns)}{f' ({note})' if note else ''}" for words, ns, note in self.parts())
        return f"of {format_ns(self.wait_ns)} wait: {', '.join(told)}"


def splits(tables: Tables, among: str = "") -> dict[tuple[str, int], Split]:
    """Give the split of each front, by its address and port; ``among``: SQL that joins those that are wanted."""
    return {
        (row.pop("server_ip"), row.pop("server_port")): Split(**row)
        for row in rows(tables, f"FROM splits {among} ORDER BY server_ip, server_port")
    }
