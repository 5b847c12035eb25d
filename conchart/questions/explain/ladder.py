"""The ladder of a connection: its packets in order, the silences between them, its round trips and what it computed.

In: a connection. Out: :class:`Ladder`.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from conchart.labels.printable import endpoint
from conchart.labels.stalls import stall_kind
from conchart.labels.units import count_of, format_ns
from conchart.questions.explain.clocks import Clock, clocks, last_clocked
from conchart.questions.explain.connection import Connection
from conchart.questions.explain.excerpt import excerpt, mattering
from conchart.questions.explain.pauses import Pause, silences
from conchart.questions.explain.payload_labels import cargo
from conchart.questions.explain.quic import quiet_frames, sealed
from conchart.questions.explain.sequence import LadderRow, rungs, several_places
from conchart.report import facts, races, tunnels
from conchart.report.phase_places import where
from conchart.report.rows import Row

_MOST_LISTED = 10
"""Exchanges of which it is said what messages they have."""
_MOST_LOST = 100
"""Packets that are shown because one place alone saw them."""

_OWED = (
    ("response_at", "the server has owed the rest of its response"),
    ("request_done_at", "the server has owed the response"),
    ("request_at", "the client has owed the rest of its request"),
)
"""Who owes the next byte of a request that is under way, from an instant of it on; the last first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """One connection, packet by packet."""

    stream: int
    client: str
    server: str
    filter: str
    """Wireshark's display filter."""
    opened_at: int
    rungs: list[LadderRow]
    """The packets that are shown."""
    packets: int
    """All of them."""
    left_out: dict[int, int]
    """How many packets are not shown behind a frame."""
    silences: list[Pause]
    facts: list[tuple[str, str]]
    """What it amounts to: a word or two, and a sentence."""
    clocks: list[Clock]
    last_clocked: int
    """The last exchange of which other programs would print something; -1 where there is none."""
    places: tuple[tuple[str, int | None], ...]
    """Of a connection that several places saw: their names from the client on, and ± of the clock against the one
    before; empty where one place saw it."""


def ladder(connection: Connection, *, most_clocks: int | None = None, most_rungs: int | None = None) -> Ladder:
    """Explain a connection.

    Args:
        connection: With all its packets.
        most_clocks: What other programs would print is told of so many exchanges; None for all.
        most_rungs: Of a larger connection so many packets are shown, and then what matters; None for all.
    """
    about = connection.about
    pauses = list(silences(connection, quiet_frames(connection)))
    several = len(connection.places) > 1
    matter = mattering(connection.packets, pauses)
    chosen = None
    if not several:
        chosen = excerpt([packet["frame"] for packet in connection.packets], matter, most_rungs)
    shown = None if chosen is None else chosen.frames
    carried = cargo(connection, shown)
    steps = several_places(connection, list(rungs(connection, carried, shown)))
    count = len(steps) if several else len(connection.packets)
    if several:
        # Which packets there are is known when those of every place are in order.
        lost = islice((step.frame for step in steps if step.lost_to), _MOST_LOST)
        chosen = excerpt([step.frame for step in steps], matter.union(lost), most_rungs)
        steps = [step for step in steps if chosen is None or step.frame in chosen.frames]
    return Ladder(
        stream=connection.stream,
        client=endpoint(about["client_ip"], about["client_port"]),
        server=endpoint(about["server_ip"], about["server_port"]),
        filter=f"{about['transport']}.stream eq {about['transport_stream']}",
        opened_at=about["opened_at"],
        rungs=steps,
        packets=count,
        left_out={} if chosen is None else chosen.left_out,
        silences=pauses,
        facts=list(_facts(connection, any(one.hidden for here in carried.values() for one in here))),
        clocks=list(clocks(connection, most_clocks)),
        last_clocked=last_clocked(connection),
        places=tuple((row["place"], row["doubt_ns"]) for row in connection.places)
        if len(connection.places) > 1
        else (),
    )


def every_rung(connection: Connection) -> Iterable[LadderRow]:
    """Give all packets of a connection, each when it is asked for."""
    steps = rungs(connection, cargo(connection))
    return several_places(connection, list(steps)) if len(connection.places) > 1 else steps


def _facts(connection: Connection, hidden: bool) -> Iterator[tuple[str, str]]:
    about = connection.about
    for race in connection.races[:_MOST_LISTED]:
        yield "race", races.describe(race)
    trips = [("TCP handshake", 1)] if about["syn_at"] is not None and about["ack_at"] is not None else []
    trips += [("TLS handshake", h["round_trips"]) for h in connection.handshakes if h["round_trips"]]
    trips += [
        ("QUIC handshake", 1 + (h["retry_at"] is not None))
        for h in connection.handshakes
        if h["quic_version"] and h["outcome"] == "complete" and not h["early_data"]
    ]
    answered = sum(x["response_at"] is not None for x in connection.exchanges)
    trips += [(count_of(answered, "request"), answered)] if answered else []
    if trips:
        each = sum(connection.rtt_ns.values())
        total = sum(count for _, count in trips)
        cost = f": {total} × {format_ns(each)} = {format_ns(total * each)} of distance" if each else ""
        each_of = ", ".join(f"{words} {count}" for words, count in trips)
        yield "round trips", f"at least {total} ({each_of}){cost}"
    stalled = _Stalled(connection.stalls)
    for handshake in connection.handshakes:
        computed = [
            _computed(side, ns, stalled.within(side, handshake["hello_at"], handshake["ready_at"]))
            for side in ("client", "server")
            if (ns := handshake[f"{side}_compute_ns"]) is not None
        ]
        if computed:
            yield "computing", f"in the TLS handshake, less the distance: {', '.join(computed)}"
    for exchange in [row for row in connection.exchanges if row["tunnel"] is not None][:_MOST_LISTED]:
        yield "tunnels", f"request {exchange['number']}: {tunnels.describe(exchange)}"
    for messages in connection.message_counts[:_MOST_LISTED]:
        yield "messages", f"request {messages['number']}: {facts.MESSAGES.of(messages)}"
    if hidden:
        yield (
            "brackets",
            "what stands in them is encrypted: its place in the handshake tells what it is (--keylog opens it)",
        )
    if closed := sealed(connection):
        yield (
            "brackets",
            f"{count_of(closed, 'packet')} of QUIC stay closed: type, size and time are seen; packet number, frames, "
            "acknowledgements and losses are encrypted (--keylog opens them)",
        )
    yield from (("unfinished", says) for says in _unfinished(connection))
    names = [f"{kind} {format_ns(ns)}" for kind, ns in _phases(connection)]
    if names:
        yield "phases", ", ".join(names)
    spent = [one for one in where(connection.parts) if one.phase in ("syn", "tls", "wait")]
    for one in spent[:_MOST_LISTED]:
        yield "where", f"{one}" if one.exchange is None else f"request {one.exchange}: {one}"
    if len(spent) > _MOST_LISTED:
        yield "where", f"{len(spent) - _MOST_LISTED} more: conchart query … 'FROM phase_places'"


def _unfinished(connection: Connection) -> Iterator[str]:
    """Say of each request that was under way at the last packet who owed what, since when, and what held it up."""
    last_at = connection.about["closed_at"]
    held = [stall for stall in connection.stalls if stall["unfinished"]]
    for exchange in [row for row in connection.exchanges if row["unfinished"] and row["request_at"]][:_MOST_LISTED]:
        since, owed = next((name, owed) for name, owed in _OWED if exchange[name] is not None)
        why = "".join(f"; {stall_kind(stall['kind'], stall['detail']).meaning}" for stall in held[-1:])
        state = f"for {format_ns(last_at - exchange[since])}, {owed}"
        yield f"request {exchange['number']}, at the last packet: {state}{why}"


def _computed(side: str, ns: int, stalled: Mapping[str, int]) -> str:
    """Tell what a side computed, and what it did not compute in: the time of its silence that stalls explain."""
    shares: dict[str, int] = {}
    for word, lasts in sorted(stalled.items(), key=lambda one: -one[1]):
        shares[word] = min(lasts, ns - sum(shares.values()))
    besides = ", ".join(f"{word} {format_ns(lasts)}" for word, lasts in shares.items() if lasts)
    return f"{side} {format_ns(ns - sum(shares.values()))}{f' (and {besides})' if besides else ''}"


class _Stalled:
    """How long stalls of each side last within a stretch of time, by word."""

    def __init__(self, stalls: list[Row]) -> None:
        self._stalls: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
        """Start, end, and how long those before it lasted."""
        for stall in sorted(stalls, key=lambda stall: int(stall["start_at"])):
            word = stall_kind(stall["kind"], stall["detail"]).word
            intervals = self._stalls.setdefault((stall["side"], word), [])
            before = intervals[-1][2] + intervals[-1][1] - intervals[-1][0] if intervals else 0
            intervals.append((stall["start_at"], stall["end_at"], before))

    def within(self, side: str, begins: int | None, ends: int | None) -> dict[str, int]:
        """Add up what lies in a stretch."""
        if begins is None or ends is None:
            return {}
        return {
            word: lasts
            for (whose, word), intervals in self._stalls.items()
            if whose == side and (lasts := _until(intervals, ends) - _until(intervals, begins)) > 0
        }


def _until(stalls: list[tuple[int, int, int]], at: int) -> int:
    """Tell how long stalls lasted by an instant."""
    place = bisect_right(stalls, (at, 0, 0)) - 1
    if place < 0:
        return 0
    start_at, end_at, before = stalls[place]
    return before + min(at, end_at) - start_at


def _phases(connection: Connection) -> list[tuple[str, int]]:
    sums: dict[str, int] = {}
    for phase in connection.phases:
        sums[phase["kind"]] = sums.get(phase["kind"], 0) + phase["end_at"] - phase["start_at"]
    return list(sums.items())
