"""The ladder of a connection: its packets in order, the silences between them, its round trips and what it computed.

In: a connection. Out: :class:`Ladder`.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from conchart.explaining.cargo import cargo
from conchart.explaining.clocks import Clock, clocks
from conchart.explaining.connection import Connection
from conchart.explaining.rungs import Rung, rungs
from conchart.explaining.silences import Silence, silences
from conchart.printable import endpoint
from conchart.telling.rows import Row
from conchart.units import count_of, format_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """One connection, packet by packet."""

    stream: int
    client: str
    server: str
    filter: str
    """Wireshark's display filter."""
    opened_at: int
    rungs: list[Rung]
    silences: list[Silence]
    facts: list[tuple[str, str]]
    """What it amounts to: a word or two, and a sentence."""
    clocks: list[Clock]


def ladder(connection: Connection, *, most_clocks: int | None = None) -> Ladder:
    """Explain a connection; ``most_clocks``: with what other programs would print of so many exchanges, not of all."""
    about = connection.about
    carried = cargo(connection)
    steps = list(rungs(connection, carried))
    return Ladder(
        stream=connection.stream,
        client=endpoint(about["client_ip"], about["client_port"]),
        server=endpoint(about["server_ip"], about["server_port"]),
        filter=f"{about['transport']}.stream eq {about['transport_stream']}",
        opened_at=about["opened_at"],
        rungs=steps,
        silences=list(silences(connection, steps)),
        facts=list(_facts(connection, any(one.hidden for here in carried.values() for one in here))),
        clocks=list(clocks(connection, most_clocks)),
    )


def _facts(connection: Connection, hidden: bool) -> Iterator[tuple[str, str]]:
    about = connection.about
    trips = [("TCP handshake", 1)] if about["syn_at"] is not None and about["ack_at"] is not None else []
    trips += [("TLS handshake", h["round_trips"]) for h in connection.handshakes if h["round_trips"]]
    asked = sum(x["response_at"] is not None for x in connection.exchanges)
    trips += [(count_of(asked, "request"), asked)] if asked else []
    if trips:
        each = sum(connection.rtt_ns.values())
        total = sum(count for _, count in trips)
        cost = f": {total} × {format_ns(each)} = {format_ns(total * each)} of distance" if each else ""
        told = ", ".join(f"{words} {count}" for words, count in trips)
        yield "round trips", f"at least {total} ({told}){cost}"
    stalled = _Stalled(connection.stalls)
    for handshake in connection.handshakes:
        computed = [
            f"{side} {format_ns(ns)}"
            for side in ("client", "server")
            if (ns := handshake[f"{side}_compute_ns"]) is not None
        ]
        if computed:
            held = stalled.touching(handshake["hello_at"], handshake["ready_at"])
            inside = f" (stalls of {format_ns(held)} are in it)" if held else ""
            yield "computing", f"in the TLS handshake, less the distance: {', '.join(computed)}{inside}"
    if hidden:
        yield (
            "brackets",
            "what stands in them is encrypted: its place in the handshake tells what it is (--keylog opens it)",
        )
    names = [f"{kind} {format_ns(ns)}" for kind, ns in _phases(connection)]
    if names:
        yield "phases", ", ".join(names)


class _Stalled:
    """How long stalls last that lie in a stretch of time, or partly."""

    def __init__(self, stalls: list[Row]) -> None:
        self._begun, self._over = (
            sorted((int(stall[end]), int(stall["end_at"] - stall["start_at"])) for stall in stalls)
            for end in ("start_at", "end_at")
        )
        self._sums = [[0, *accumulate(took for _, took in ends)] for ends in (self._begun, self._over)]

    def touching(self, begins: int | None, ends: int | None) -> int:
        """Add up those that begin before the stretch ends, less those that end before it begins."""
        if begins is None or ends is None:
            return 0
        begun = self._sums[0][bisect_left(self._begun, (ends,))]
        return begun - self._sums[1][bisect_left(self._over, (begins + 1,))]


def _phases(connection: Connection) -> list[tuple[str, int]]:
    sums: dict[str, int] = {}
    for phase in connection.phases:
        sums[phase["kind"]] = sums.get(phase["kind"], 0) + phase["end_at"] - phase["start_at"]
    return list(sums.items())
