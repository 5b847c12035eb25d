"""The replay: every instant of the capture, in order, computed again under a change.

In: a :class:`~conchart.questions.predict.model.Talk`, a :class:`~conchart.questions.predict.change.Change`. Out:
:class:`Timeline`, the predicted instants. What follows what was measured first, so one walk in the order of the capture
is enough: when an instant is told, all that it waits for has been. ``docs/what-if.md`` has the rules in words.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from conchart.questions.predict.change import Change
from conchart.questions.predict.costs import Handshake, Window, handshake, held_within, learn_compute
from conchart.questions.predict.model import Connection, Exchange, Talk

THINKING_NS = 1_000_000_000
"""A client that does something else meanwhile does not take longer than this to go on."""
PRECONNECT_NS = 100_000_000
"""A first request that comes later than this was not what the connection was opened for."""
KEEPALIVE_NS = 60_000_000_000
"""How long a connection is kept open for the next request: less than most servers do (nginx 75 s, ALB 60 s)."""
OWN_GAPS = 4
"""A client goes on where it was, unless another of its responses came so many times closer to its next request."""
AT_ONCE_NS = 1_000_000
_MOST_ENDS = 256
"""Responses of a client that nothing has followed yet: older ones are forgotten."""

_ANSWER, _DONE, _OPEN, _ASK, _ANSWER_AT_ONCE, _DONE_AT_ONCE = range(6)
"""What happens first of what happens at the same instant."""


@dataclass(slots=True, kw_only=True)
class Opening:
    """How a connection is opened in the prediction."""

    stream: int
    """The captured connection that carries it."""
    syn_at: int
    accepted_at: int
    hello_at: int | None
    ready_at: int
    resumed: bool = False
    reused: bool = False
    later_ns: int = 0
    """What its first response comes later by: 0-RTT leaves the server's part of the handshake to it."""


@dataclass(slots=True)
class Asking:
    """An exchange in the prediction."""

    stream: int
    requested_at: int
    sent_at: int
    answered_at: int
    done_at: int


@dataclass(slots=True, kw_only=True)
class Timeline:
    """The prediction, instant by instant."""

    openings: dict[int, Opening] = field(default_factory=dict)
    """By captured stream."""
    exchanges: dict[Exchange, Asking] = field(default_factory=dict)
    unknown_handshakes: int = 0
    """Handshakes that stay as they were because their round trips are not known."""


@dataclass(slots=True)
class _Wire:
    """What carries exchanges: a captured connection, or in the prediction one that was kept open."""

    stream: int
    up: Window = field(default_factory=Window)
    down: Window = field(default_factory=Window)
    free_at: int = 0
    """Predicted end of the last exchange on it."""


@dataclass(slots=True)
class _Client:
    """What a client did so far: pairs of a measured and a predicted instant."""

    ends: list[tuple[int, int]] = field(default_factory=list)
    """Ends of responses that nothing has followed yet."""
    latest: tuple[int, int] | None = None
    busy: int = 0
    """Exchanges on their way."""

    def follow(self, at: int) -> int:
        """Tell when something begins that began at a measured instant: as long after what it followed as it did."""
        if self.ends and (at - self.ends[-1][0] <= THINKING_NS or not self.busy):
            measured, predicted = self.ends.pop()
        elif self.latest:
            measured, predicted = self.latest
        else:
            return at
        return predicted + at - measured

    def go_on(self, at: int, own: tuple[int, int]) -> int:
        """The same for the next request on a connection whose last response ended at ``own``."""
        gap = at - own[0]
        if own in self.ends and (gap <= AT_ONCE_NS or gap <= OWN_GAPS * (at - self.ends[-1][0])):
            self.ends.remove(own)
            return own[1] + gap
        return max(own[1], self.follow(at))

    def end(self, measured: int, predicted: int) -> None:
        """Note the end of a response."""
        self.busy -= 1
        self.ends.append((measured, predicted))
        del self.ends[:-_MOST_ENDS]
        self.latest = (measured, predicted)


def as_captured(talk: Talk) -> Timeline:
    """Tell what was measured, in the same form."""
    timeline = Timeline()
    for connection in talk.connections:
        stream, syn_at, accepted_at = connection.stream, connection.syn_at, connection.accepted_at
        if syn_at is not None and accepted_at is not None:
            begun_at = accepted_at if connection.hello_at is None else connection.hello_at
            timeline.openings[stream] = Opening(
                stream=stream,
                syn_at=syn_at,
                accepted_at=max(syn_at, accepted_at),
                hello_at=connection.hello_at,
                ready_at=begun_at if connection.ready_at is None else max(begun_at, connection.ready_at),
                resumed=connection.resumed,
            )
        for exchange in connection.exchanges:
            requested_at, sent_at, answered_at = exchange.requested_at, exchange.sent_at, exchange.answered_at
            timeline.exchanges[exchange] = Asking(
                stream, requested_at, sent_at, answered_at, max(answered_at, exchange.done_at)
            )
    return timeline


class Replay:
    """One walk through what was captured."""

    def __init__(self, talk: Talk, change: Change) -> None:
        """Look at everything once."""
        self._talk = talk
        self._change = change
        self._elsewhere = Change(rtt_ns=change.rtt_ns)
        self._timeline = Timeline()
        self._clients: dict[object, _Client] = {}
        self._idle_wires: dict[object, list[_Wire]] = {}
        self._sessions_at: dict[object, int] = {}
        self._measured = {connection: _Wire(connection.stream) for connection in talk.connections}
        self._wires: dict[Connection, _Wire] = {}
        self._last = {connection: connection.exchanges[-1] for connection in talk.connections if connection.exchanges}
        self._resumed_compute = learn_compute(talk.connections)

    def run(self) -> Timeline:
        """Tell every instant."""
        steps = {_OPEN: self._open, _ASK: self._ask, _ANSWER: self._answer, _ANSWER_AT_ONCE: self._answer}
        steps |= {_DONE: self._end, _DONE_AT_ONCE: self._end}
        for _, kind, _, _, what in sorted(self._instants(), key=lambda instant: instant[:4]):
            steps[kind](what)  # type: ignore[operator]
        return self._timeline

    def _instants(self) -> Iterator[tuple[int, int, int, int, Connection | Exchange]]:
        for connection in self._talk.connections:
            stream = connection.stream
            if connection.syn_at is not None:
                yield connection.syn_at, _OPEN, stream, -1, connection
            for exchange in connection.exchanges:
                number, requested_at = exchange.number, exchange.requested_at
                yield requested_at, _ASK, stream, number, exchange
                answered_at, done_at = exchange.answered_at, exchange.done_at
                yield answered_at, _ANSWER if answered_at > requested_at else _ANSWER_AT_ONCE, stream, number, exchange
                yield done_at, _DONE if done_at > requested_at else _DONE_AT_ONCE, stream, number, exchange

    def _client(self, connection: Connection) -> _Client:
        return self._clients.setdefault(connection.client, _Client())

    def _changes(self, connection: Connection) -> Change:
        """Give what is changed for a connection."""
        chosen = self._change.chooses(connection.server, connection.name)
        return self._change if chosen else self._elsewhere

    def _rtt(self, connection: Connection) -> int:
        """The predicted round trip."""
        if connection.users and self._change.rtt_ns is not None and connection.rtt_ns is not None:
            return self._change.rtt_ns
        return connection.rtt_ns or 0

    def _caused_at(self, exchange: Exchange, at: int) -> int | None:
        """Tell when what a front caused begins: as long after the front's request, or the last back's end."""
        front = exchange.front
        if front is None or at < front.requested_at:
            return None
        asking = self._timeline.exchanges[front]
        before, predicted = (
            (front.sent_at, asking.sent_at) if front.sent_at <= at else (front.requested_at, asking.requested_at)
        )
        place = bisect_right(front.backs, at, key=_end_of)
        # Nothing follows itself, or what ends at the same instant and is told later.
        while place and front.backs[place - 1] not in self._timeline.exchanges:
            place -= 1
        if place and front.backs[place - 1].done_at > before:
            back = front.backs[place - 1]
            before, predicted = back.done_at, self._timeline.exchanges[back].done_at
        return predicted + at - before

    def _open(self, connection: Connection) -> None:
        syn_at = connection.syn_at
        assert syn_at is not None
        assert connection.accepted_at is not None
        client = self._client(connection)
        first = connection.exchanges[0] if connection.exchanges else None
        caused_at = self._caused_at(first, syn_at) if first else None
        opened_at = client.follow(syn_at) if caused_at is None else caused_at
        client.latest = (syn_at, opened_at)
        change, rtt_ns = self._changes(connection), self._rtt(connection)
        pool = (connection.client, connection.server, connection.name)
        if change.keepalive and first and connection.ready_at is not None and self._take(pool, connection, opened_at):
            return
        accepted_at = opened_at + max(0, connection.accepted_at - syn_at + rtt_ns - (connection.rtt_ns or 0))
        opening = Opening(
            stream=connection.stream, syn_at=opened_at, accepted_at=accepted_at, hello_at=None, ready_at=accepted_at
        )  # fmt: skip
        if connection.hello_at is not None and not change.tls_off:
            opening.hello_at = accepted_at + connection.hello_at - connection.accepted_at
            cost = self._handshake(connection, change, rtt_ns, pool)
            opening.ready_at = opening.hello_at + cost.tls_ns
            opening.later_ns, opening.resumed = cost.wait_ns, cost.resumed
            if connection.complete and connection.ready_at is not None:
                self._sessions_at.setdefault(pool, connection.ready_at)
        self._wires[connection] = _Wire(connection.stream)
        self._timeline.openings[connection.stream] = opening

    def _handshake(self, connection: Connection, change: Change, rtt_ns: int, pool: object) -> Handshake:
        assert connection.hello_at is not None
        if connection.ready_at is None or connection.round_trips is None:
            self._timeline.unknown_handshakes += 1
            return Handshake((connection.ready_at or connection.hello_at) - connection.hello_at, 0, connection.resumed)
        session_at = self._sessions_at.get(pool)
        return handshake(
            connection, change, rtt_ns, has_session=session_at is not None and session_at <= connection.hello_at,
            resumed_compute=self._resumed_compute,
        )  # fmt: skip

    def _take(self, pool: object, connection: Connection, at: int) -> bool:
        """Let a connection be one that was kept, if there is one that is free by then."""
        idle = self._idle_wires.get(pool, [])
        for place in range(len(idle) - 1, -1, -1):
            wire = idle[place]
            if wire.free_at < at - KEEPALIVE_NS:
                del idle[place]
            elif wire.free_at <= at:
                del idle[place]
                self._wires[connection] = wire
                self._timeline.openings[connection.stream] = Opening(
                    stream=wire.stream, syn_at=at, accepted_at=at, hello_at=None, ready_at=at, reused=True
                )
                return True
        return False

    def _ask(self, exchange: Exchange) -> None:
        connection, requested_at = exchange.connection, exchange.requested_at
        client = self._client(connection)
        wire = self._wires.setdefault(connection, _Wire(connection.stream))
        begins_at = self._begin(exchange, client, wire)
        client.busy += 1
        client.latest = (requested_at, begins_at)
        longer_ns = self._longer(exchange, requested_at, exchange.sent_at, begins_at, exchange.request_bytes, up=True)
        sent_at = begins_at + max(0, exchange.sent_at - requested_at + longer_ns)
        self._timeline.exchanges[exchange] = Asking(
            stream=wire.stream, requested_at=begins_at, sent_at=sent_at, answered_at=sent_at, done_at=sent_at
        )

    def _begin(self, exchange: Exchange, client: _Client, wire: _Wire) -> int:
        """Tell when a request begins."""
        connection, requested_at = exchange.connection, exchange.requested_at
        opening = self._timeline.openings.get(connection.stream)
        first = exchange is connection.exchanges[0]
        ready_at = connection.ready_at
        patience_ns = PRECONNECT_NS + (connection.rtt_ns or 0)
        if first and opening and ready_at is not None and requested_at - ready_at <= patience_ns:
            # Without the handshake, or with 0-RTT, there is no end of one that the request is held back behind.
            if connection.hello_at is not None and (opening.hello_at is None or opening.later_ns):
                gone_ns = held_within(connection, ready_at, requested_at)[0]
            else:
                gone_ns = self._unheld(connection, self._changes(connection), ready_at, requested_at)
            return opening.ready_at + max(min(0, requested_at - ready_at), requested_at - ready_at - gone_ns)
        free_at = max(wire.free_at, opening.ready_at if opening else requested_at - (1 << 62))
        caused_at = self._caused_at(exchange, requested_at)
        if caused_at is not None:
            return max(caused_at, free_at)
        if connection.multiplexed:
            followed_at = client.follow(requested_at)
            return max(followed_at, opening.ready_at) if opening else followed_at
        if first:
            return max(client.follow(requested_at), free_at)
        before = connection.exchanges[exchange.place - 1]
        return client.go_on(requested_at, (before.done_at, self._timeline.exchanges[before].done_at))

    def _answer(self, exchange: Exchange) -> None:
        connection = exchange.connection
        asking = self._timeline.exchanges[exchange]
        change = self._changes(connection)
        longer_ns = self._rtt(connection) - (connection.rtt_ns or 0)
        opening = self._timeline.openings.get(connection.stream)
        if exchange is connection.exchanges[0] and opening:
            longer_ns += opening.later_ns
        longer_ns -= self._unheld(connection, change, exchange.sent_at, exchange.answered_at)
        if not exchange.is_timed:
            longer_ns = 0
        waited_for = [(self._point(back, exchange), back) for back in exchange.backs]
        ended = [(point, predicted) for (point, predicted), _ in waited_for if point <= exchange.answered_at]
        if exchange.answered_at < exchange.sent_at:
            answered_at = asking.requested_at + exchange.answered_at - exchange.requested_at
        elif ended:
            answered_at = (
                max(predicted for _, predicted in ended) + exchange.answered_at - max(point for point, _ in ended)
            )
        else:
            answered_at = asking.sent_at + exchange.answered_at - exchange.sent_at
        asking.answered_at = max(asking.requested_at, answered_at + longer_ns)
        self._client(connection).latest = (exchange.answered_at, asking.answered_at)

    def _point(self, back: Exchange, front: Exchange) -> tuple[int, int]:
        """The last thing of a back that a front's answer can have waited for: measured, predicted."""
        asking = self._timeline.exchanges.get(back)
        if asking is None:  # it begins after the front was answered
            return back.requested_at, 0
        if back.done_at <= front.answered_at:
            return back.done_at, asking.done_at
        return back.answered_at, asking.answered_at

    def _end(self, exchange: Exchange) -> None:
        connection = exchange.connection
        asking = self._timeline.exchanges[exchange]
        answered_at, done_at = exchange.answered_at, exchange.done_at
        # A server that answers before it has the whole request does so then, too.
        early = answered_at < exchange.sent_at
        begins_at = asking.answered_at if early else max(asking.answered_at, asking.sent_at)
        longer_ns = 0
        if exchange.is_timed:
            longer_ns = self._longer(exchange, answered_at, done_at, begins_at, exchange.response_bytes, up=False)
        streamed = [back for back in exchange.backs if answered_at < back.done_at <= done_at]
        if streamed:  # it hands on what it gets: it is over as long after that as it was
            ended_at = max(self._timeline.exchanges[back].done_at for back in streamed)
            ended_at += done_at - max(back.done_at for back in streamed)
        else:
            ended_at = begins_at + done_at - answered_at
        asking.done_at = max(begins_at, ended_at + longer_ns)
        wire = self._wires[connection]
        wire.free_at = max(wire.free_at, asking.done_at)
        self._client(connection).end(done_at, asking.done_at)
        if exchange is self._last[connection] and not connection.multiplexed and connection.syn_at is not None:
            self._idle_wires.setdefault((connection.client, connection.server, connection.name), []).append(wire)

    def _longer(self, exchange: Exchange, start_at: int, end_at: int, predicted_at: int, size: int, *, up: bool) -> int:
        """Tell how much longer a message takes to pass."""
        connection = exchange.connection
        was_ns, rtt_ns, took_ns = connection.rtt_ns, self._rtt(connection), end_at - start_at
        moved_ns, rounds = 0, 0
        if was_ns is not None and not connection.multiplexed:
            before, after = self._measured[connection], self._wires[connection]
            old = (before.up if up else before.down).send(size, start_at, end_at, connection.mss, was_ns)
            rounds = (after.up if up else after.down).send(
                size, predicted_at, predicted_at + took_ns, connection.mss, rtt_ns
            )
            # Flights wait for acknowledgements, each for a round trip; no more often than there was time for.
            seen = min(old, (2 * took_ns + was_ns) // (2 * was_ns) if was_ns else old)
            wanted = rounds - old + seen if rounds > old or seen == old else min(rounds, seen)
            moved_ns = wanted * rtt_ns - seen * was_ns
        return moved_ns - self._unheld(connection, self._changes(connection), start_at, end_at, windowed=rounds > 0)

    def _unheld(
        self, connection: Connection, change: Change, start_at: int, end_at: int, *, windowed: bool = False
    ) -> int:
        """Tell what of a stretch falls away: negative where what is held back waits for a longer round trip."""
        if not connection.held:
            return 0
        held_ns, times = held_within(connection, start_at, end_at, windowed=windowed)
        return held_ns if change.nodelay else times * ((connection.rtt_ns or 0) - self._rtt(connection))


def _end_of(exchange: Exchange) -> int:
    return exchange.done_at
