"""What was measured and what is predicted, side by side.

In: the tables of a trace, a change. Out: :class:`Prediction`.
"""

import gc
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from conchart.analysis.sights import once
from conchart.errors import UsageError
from conchart.labels.phases import PHASES
from conchart.questions.predict.change import Change
from conchart.questions.predict.costs import held_within
from conchart.questions.predict.model import Connection, Exchange, Talk, read_talk
from conchart.questions.predict.replay import PRECONNECT_NS, Replay, Timeline, as_captured
from conchart.store.tables import Tables

_CHARGED = ("transfer", "wait", "request", "tls", "syn")
"""Where bars of a lane lie over each other, an instant is charged to the first of these, as in the phases."""
_WAITED = """
    SELECT phase, sum(users_ns)::BIGINT FROM times WHERE users_ns > 0 GROUP BY phase
"""


class Bar(NamedTuple):
    """A stretch of a timeline."""

    lane: int
    """The connection that it is drawn on."""
    stream: int
    """The captured connection that it is of."""
    exchange: int | None
    phase: str
    start_at: int
    end_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two timelines, and what it comes to."""

    bars: tuple[Bar, ...]
    """In the order of their beginnings."""
    start_at: int
    total_ns: int
    """From the first beginning to the last end."""
    requests_ns: tuple[int, ...]
    """How long each request of users took, with the opening of its connection if it was opened for it; sorted."""
    connections: int
    """How many are opened."""
    handshakes_full: int
    handshakes_resumed: int
    waits: Mapping[str, int]
    """What users waited, by phase: as everywhere in the capture; predicted, that and what the replay changes of it."""

    @property
    def waited_ns(self) -> int:
        """What users waited in all."""
        return sum(self.waits.values())

    def percentile(self, percent: int) -> int:
        """Give the least time within which so many percent of the requests were done."""
        return self.requests_ns[max(0, -(-len(self.requests_ns) * percent // 100) - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a change is predicted to bring."""

    change: Change
    measured: Side
    predicted: Side
    unanswered: int
    """Requests without a response in the capture: they take as long as they did."""
    unread: int
    """Requests of which the beginning is not in the capture: they are left out."""
    unknown_handshakes: int
    """TLS handshakes that stay as they were, as their round trips are not known."""
    unknown_paths: int
    """Connections of users whose round trip is not known: it stays."""


@once
def predict(tables: Tables, change: Change) -> Prediction:
    """Replay a capture under a change.

    Raises:
        UsageError: The capture has no request of which the times are known, or not the server that is to be changed.
    """
    with _unwatched():
        return _predict(tables, change)


@contextmanager
def _unwatched() -> Iterator[None]:
    """Let the garbage collector rest: it would look through millions of objects, over and over, for nothing."""
    watched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if watched:
            gc.enable()


def _predict(tables: Tables, change: Change) -> Prediction:
    talk = read_talk(tables)
    exchanges = [exchange for connection in talk.connections for exchange in connection.exchanges]
    if not any(exchange.is_timed for exchange in exchanges):
        raise UsageError(_why_not(tables, talk))
    if not any(change.chooses(connection.server, connection.name) for connection in talk.connections):
        raise UsageError(f"no server {change.server!r} in this capture: give a name, an address, or address and port")
    measured, predicted = as_captured(talk), Replay(talk, change).run()
    waits: dict[str, int] = dict(tables.fetch(_WAITED))
    replayed = [_waits(talk, timeline) for timeline in (measured, predicted)]
    changed = {
        phase.name: max(0, waits.get(phase.name, 0) + replayed[1][phase.name] - replayed[0][phase.name])
        for phase in PHASES
    }
    return Prediction(
        change=change,
        measured=_side(talk, measured, waits),
        predicted=_side(talk, predicted, {name: ns for name, ns in changed.items() if ns}),
        unanswered=sum(not exchange.is_timed for exchange in exchanges),
        unread=talk.unread,
        unknown_handshakes=predicted.unknown_handshakes,
        unknown_paths=0 if change.rtt_ns is None else sum(_is_nowhere(connection) for connection in talk.connections),
    )


def _is_nowhere(connection: Connection) -> bool:
    """Nobody knows how far away the user is who asks on it."""
    return connection.users and connection.rtt_ns is None and bool(connection.exchanges)


def _why_not(tables: Tables, talk: Talk) -> str:
    ((packets,),) = tables.fetch("SELECT coalesce(sum(selected), 0) FROM captures")
    if not packets:
        why = "it has no packets"
    elif not talk.connections:
        why = "it has no connections: neither TCP nor UDP was read"
    elif any(connection.exchanges for connection in talk.connections) or talk.unread:
        why = "no request of which both the beginning and the response were captured"
    else:
        why = "no requests were found in it: a replay needs requests and their responses"
    return f"nothing can be predicted of this capture: {why}"


def _waits(talk: Talk, timeline: Timeline) -> Counter[str]:
    """Tell what users wait in a timeline, by phase. It is as the client's end sees it: only differences of it count."""
    bars = [bar for connection in talk.connections if connection.users for bar in _bars(connection, timeline)]
    sums: Counter[str] = Counter()
    for _, lane in groupby(sorted(bars, key=lambda bar: bar.lane), key=lambda bar: bar.lane):
        _charge(lane, sums)
    sums["idle"] = sum(_held_before(connection, timeline) for connection in talk.connections if connection.users)
    return sums


def _charge(lane: Iterable[Bar], sums: Counter[str]) -> None:
    """Add up the time of each phase on a lane, where an instant counts once."""
    events = sorted(event for bar in lane for event in ((bar.start_at, 1, bar.phase), (bar.end_at, -1, bar.phase)))
    lasting: Counter[str] = Counter()
    before = 0
    for at, step, phase in events:
        charged = next((name for name in _CHARGED if lasting[name]), None)
        if charged:
            sums[charged] += at - before
        lasting[phase] += step
        before = at


def _held_before(connection: Connection, timeline: Timeline) -> int:
    """Tell how long the first request is held back behind the opening of its connection, which is idle meanwhile."""
    opening = timeline.openings.get(connection.stream)
    if not connection.held or not connection.exchanges or connection.ready_at is None:
        return 0
    first = connection.exchanges[0]
    held_ns, _ = held_within(connection, connection.ready_at, first.requested_at)
    if not opening or not _opened_for(connection, first):
        return held_ns
    longer_ns = timeline.exchanges[first].requested_at - opening.ready_at - (first.requested_at - connection.ready_at)
    return 0 if opening.reused else max(0, held_ns + longer_ns)


def _side(talk: Talk, timeline: Timeline, waits: Mapping[str, int]) -> Side:
    bars: list[Bar] = []
    for connection in talk.connections:
        bars.extend(_bars(connection, timeline))
    bars.sort(key=lambda bar: (bar.start_at, bar.end_at, bar.stream))
    start_at = min(bar.start_at for bar in bars)
    openings = [opening for opening in timeline.openings.values() if not opening.reused]
    secured = [opening for opening in openings if opening.hello_at is not None]
    complete = {connection.stream for connection in talk.connections if connection.complete}
    resumed = sum(opening.resumed for opening in secured)
    return Side(
        bars=tuple(bars),
        start_at=start_at,
        total_ns=max(bar.end_at for bar in bars) - start_at,
        requests_ns=tuple(sorted(_requests(talk, timeline))),
        connections=len(openings),
        handshakes_full=sum(opening.stream in complete for opening in secured) - resumed,
        handshakes_resumed=resumed,
        waits=waits,
    )


def _bars(connection: Connection, timeline: Timeline) -> Iterator[Bar]:
    stream = connection.stream
    opening = timeline.openings.get(stream)
    if opening and not opening.reused:
        yield Bar(stream, stream, None, "syn", opening.syn_at, opening.accepted_at)
        if opening.hello_at is not None:
            yield Bar(stream, stream, None, "tls", opening.hello_at, opening.ready_at)
    for exchange in connection.exchanges:
        asking = timeline.exchanges[exchange]
        sent_at = min(asking.sent_at, asking.answered_at)
        yield Bar(asking.stream, stream, exchange.number, "request", asking.requested_at, sent_at)
        yield Bar(asking.stream, stream, exchange.number, "wait", sent_at, asking.answered_at)
        yield Bar(asking.stream, stream, exchange.number, "transfer", asking.answered_at, asking.done_at)


def _requests(talk: Talk, timeline: Timeline) -> Iterator[int]:
    for connection in talk.connections:
        opening = timeline.openings.get(connection.stream)
        for exchange in connection.exchanges:
            if not connection.users or exchange.front is not None or not exchange.is_timed:
                continue
            asking = timeline.exchanges[exchange]
            start_at = asking.requested_at
            if opening and exchange is connection.exchanges[0] and _opened_for(connection, exchange):
                start_at = min(start_at, opening.syn_at)
            yield asking.done_at - start_at


def _opened_for(connection: Connection, exchange: Exchange) -> bool:
    return connection.ready_at is not None and exchange.requested_at - connection.ready_at <= PRECONNECT_NS
