"""Which request each span of a trace is about, and which part of the span passed on the wire.

In: spans as programs wrote them (``reading/spans.py``), exchanges, links. Out: the table ``spans``.

A request that carries ``traceparent`` names the span that asked for it: no clock is needed. Those pairs tell how far
the clock of each service is from the capture's. What is left is matched by time on that clock, by method, target,
status and port. ``docs/traces.md`` says how.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from conchart.reading.spans import Span
from conchart.store.tables import Tables

CLIENTS, SERVERS = ("client", "producer"), ("server", "consumer")
"""Values of ``spans.kind`` that are about a request: who asks, who is asked."""

_EXACT = 0.99
"""Confidence of a match by ids: they are copied by mistake now and then."""
_ALONE = 0.9
"""Of a match by time, where nothing else fits."""
_LEAST = 0.5
"""Of one where another pair is as near."""
_GUESS = 0.6
"""Below it, a match by time would be a guess: it is left out."""
_CANDIDATES = 256
"""Requests around a span that are looked at; more of them at one instant and with one target are not told apart."""
_SLACK_NS = 2_000_000
"""What clocks of one machine, and programs that begin a span a little late, may differ by."""
_REQUEST_LEAD_NS = 30_000_000_000
"""How long before the span of a server its request may begin: it may be long, or wait for the program."""
_VOTERS = 200
"""Spans of a service that vote for the offset of its clock, where no ids do."""
_FARTHEST_NS = 3_600_000_000_000
"""Clocks that are further apart than an hour are not looked for without ids."""
_BIN_NS = 2_000_000
_MOST = 0.9
"""So many spans that find a request without an offset say that there is none."""
_EARLY = 4
"""How much worse it is that something comes too soon than too late."""
_SWAPS = 8
"""How often pairs are looked through for two that would do better the other way round."""
_ENOUGH = 0.4
"""So many must agree on an offset …"""
_CLEARLY, _APART = 1.4, 10
"""… and so many times more than on any that is further from it than so many bins."""
_TAIL = 50
"""One in so many pairs may be worse than the bound that is taken from all of them."""


@dataclass(slots=True)
class _Exchange:
    stream: int
    number: int
    request_at: int
    done_at: int
    """When its response is over; of one without a response, the end of the request."""
    method: str | None
    target: str | None
    status: int | None
    opened_at: int
    """When the connection was asked for, if it was for this request; else as ``request_at``."""
    client_port: int
    server_port: int
    way_client: int
    """Nanoseconds from the client to the capture point: half of the round trip."""
    way_server: int
    trace: str | None
    parent: str | None
    is_front: bool = False
    """Another exchange behind it carries the same ids."""
    is_back: bool = False
    """It was caused by an exchange with the same ids."""

    @property
    def key(self) -> tuple[int, int]:
        return self.stream, self.number


@dataclass(slots=True)
class _Match:
    exchange: _Exchange
    by: Literal["traceparent", "time"]
    confidence: float


@dataclass(frozen=True, slots=True)
class _Clock:
    """How far the capture's clock is ahead of a service's, and how wrong that may be."""

    offset: int = 0
    uncertainty: int | None = None


_EXCHANGES = """
    SELECT stream, number, coalesce(request_at, request_done_at) AS requested_at,
        coalesce(response_done_at, response_at, request_done_at, request_at),
        -- Of a turn inside TLS it is not known what it asks for.
        CASE WHEN protocol <> 'tls' THEN upper(method) END, CASE WHEN protocol <> 'tls' THEN target END,
        CASE WHEN protocol <> 'tls' THEN status END,
        if(number = 0 AND syn_at <= requested_at, syn_at, requested_at), client_port, server_port,
        coalesce(rtt_client_ns, least_rtt_client_ns, 0) // 2, coalesce(rtt_server_ns, least_rtt_server_ns, 0) // 2,
        lower(list_filter(ids, lambda id: starts_with(id, 'traceparent:'))[1][13:]), parent_span
    FROM exchanges JOIN connections USING (stream)
    WHERE requested_at IS NOT NULL AND protocol <> 'dns' ORDER BY requested_at, stream, number
"""
_HANDED_ON = """
    SELECT front_stream, front_exchange, back_stream, back_exchange FROM links
    WHERE front_exchange IS NOT NULL AND back_exchange IS NOT NULL
"""


def match_spans(tables: Tables, spans: Sequence[Span]) -> None:
    """Fill the table ``spans``: a row for each span, matched or not."""
    exchanges = _exchanges(tables)
    matches: dict[int, _Match] = {}
    _by_ids(spans, exchanges, matches)
    clocks = _clocks(spans, exchanges, matches)
    _by_time(spans, exchanges, clocks, matches)
    tables.add("spans", _rows(spans, exchanges, clocks, matches))


def _exchanges(tables: Tables) -> list[_Exchange]:
    links = tables.fetch(_HANDED_ON)
    found = [_Exchange(*row) for row in tables.fetch(_EXCHANGES)]
    by_key = {one.key: one for one in found}
    for *front, back_stream, back_number in links:
        before, behind = by_key.get((front[0], front[1])), by_key.get((back_stream, back_number))
        if before and behind:
            same = before.trace is not None and (before.trace, before.parent) == (behind.trace, behind.parent)
            before.is_front |= same
            behind.is_back |= same
    return found


def _by_ids(spans: Sequence[Span], exchanges: Sequence[_Exchange], matches: dict[int, _Match]) -> None:
    """Match by ``traceparent``: it names the client's span, which is the parent of the server's.

    A proxy without instrumentation hands the field on as it came: then the request at the proxy's front belongs to the
    client, and the one behind it to the server.
    """
    by_parent: dict[tuple[str, str], list[_Exchange]] = defaultdict(list)
    for exchange in exchanges:
        if exchange.trace and exchange.parent:
            by_parent[exchange.trace, exchange.parent].append(exchange)
    wanted: dict[tuple[str, str, bool], list[Span]] = defaultdict(list)
    for span in spans:
        if span.kind in CLIENTS:
            wanted[span.trace_id, span.span_id, True].append(span)
        elif span.kind in SERVERS and span.parent:
            wanted[span.trace_id, span.parent, False].append(span)
    for (trace, parent, of_client), of_request in wanted.items():
        found = by_parent.get((trace, parent), [])
        ends = [one for one in found if not (one.is_back if of_client else one.is_front)] or found
        if not ends:
            continue
        # Attempts of a proxy come one after another, and so do the spans of those who got them.
        of_request.sort(key=lambda span: (span.begin, span.number))
        confidence = _EXACT if len(ends) == len(of_request) else max(_EXACT / max(len(ends), len(of_request)), _LEAST)
        for place, span in enumerate(of_request):
            if of_client or len(ends) >= len(of_request):
                chosen = ends[place] if of_client and place < len(ends) else ends[place - len(of_request)]
                matches[span.number] = _Match(chosen, "traceparent", confidence)
            elif place < len(ends):
                matches[span.number] = _Match(ends[place], "traceparent", confidence)


def _clocks(
    spans: Sequence[Span], exchanges: Sequence[_Exchange], matches: dict[int, _Match]
) -> dict[str | None, _Clock]:
    """Say for each service how far the capture's clock is ahead of its own."""
    of_service: dict[str | None, list[Span]] = defaultdict(list)
    for span in spans:
        if span.kind in CLIENTS or span.kind in SERVERS:
            of_service[span.service].append(span)
    clocks = {}
    for service, its in of_service.items():
        pairs = [(span, matches[span.number].exchange) for span in its if span.number in matches]
        clocks[service] = _bounded(pairs) if pairs else _voted(its, exchanges)
    return clocks


def _bounded(pairs: Iterable[tuple[Span, _Exchange]]) -> _Clock:
    """A client's request leaves after its span began, and is answered before it ends; a server's span lies inside."""
    most, least = [], []
    for span, exchange in pairs:
        after, before = exchange.request_at - span.begin, exchange.done_at - span.end
        if span.kind in CLIENTS:
            most.append(after)
            least.append(before)
        else:
            least.append(after)
            most.append(before)
    most.sort()
    least.sort()
    # A span may end late, when its program has looked at the answer: the few that do decide nothing.
    high, low = most[len(most) // _TAIL], least[-1 - len(least) // _TAIL]
    if low > high:
        low, high = high, low
    offset = 0 if low <= 0 <= high else (low + high) // 2
    return _Clock(offset, max(high - offset, offset - low))


def _voted(spans: Sequence[Span], exchanges: Sequence[_Exchange]) -> _Clock:
    """Without ids: none, if most spans find a request there; else the offset at which the most of them find one."""
    alike = _Index(exchanges)
    some = spans[:: max(len(spans) // _VOTERS, 1)]
    found = sum(
        any(
            _fits(span, exchange) and _distance(span, exchange, 0, _SLACK_NS) is not None
            for exchange in alike.near(span, 0, _SLACK_NS)
        )
        for span in some
    )
    if found >= _MOST * len(some):
        return _Clock()
    votes: dict[int, int] = defaultdict(int)
    for span in some:
        middle = (span.begin + span.end) // 2
        for place in {
            ((exchange.request_at + exchange.done_at) // 2 - middle) // _BIN_NS
            for exchange in alike.around(span, 0, _FARTHEST_NS, _FARTHEST_NS)
            if _fits(span, exchange) and _lasts(span, exchange)
        }:
            votes[place] += 1
    if not votes:
        return _Clock()
    near = {place: sum(votes.get(place + away, 0) for away in (-2, -1, 0, 1, 2)) for place in votes}
    best = max(near, key=lambda place: (near[place], votes[place], -abs(place)))
    # Otherwise they are of another time, and an offset would be made up.
    rival = max((count for place, count in near.items() if abs(place - best) > _APART), default=0)
    agreed = near[best] >= _ENOUGH * len(some) and near[best] >= _CLEARLY * rival
    return _Clock(best * _BIN_NS, 3 * _BIN_NS) if agreed else _Clock()


def _lasts(span: Span, exchange: _Exchange) -> bool:
    """Tell whether one of the two can lie inside the other, whatever the clocks show."""
    longer = (span.end - span.begin) - (exchange.done_at - exchange.request_at)
    return longer >= -_SLACK_NS if span.kind in CLIENTS else longer <= _SLACK_NS


class _Index:
    """Exchanges by what a span can know of them, in the order of their requests."""

    def __init__(self, exchanges: Sequence[_Exchange]) -> None:
        self._by_name: dict[tuple[str | None, str | None], list[_Exchange]] = defaultdict(list)
        for exchange in exchanges:
            self._by_name[exchange.method, _path(exchange.target)].append(exchange)
        self._starts = {key: [one.request_at for one in some] for key, some in self._by_name.items()}

    def near(self, span: Span, offset: int, slack: int) -> Iterator[_Exchange]:
        """Give the requests that a span can be about, on a clock with this offset."""
        if span.kind in CLIENTS:
            return self.around(span, offset, slack, span.end - span.begin + slack)
        return self.around(span, offset, _REQUEST_LEAD_NS, slack)

    def around(self, span: Span, offset: int, before: int, after: int) -> Iterator[_Exchange]:
        """Give the requests so long before and after the beginning of a span; of many, the nearest."""
        method = span.method.upper() if span.method else None
        keys = {(method, _path(span.target)), (None, None)}
        if span.target is None:
            keys |= {key for key in self._by_name if key[0] == method or method is None}
        at = span.begin + offset
        for key in keys & self._by_name.keys():
            starts, some = self._starts[key], self._by_name[key]
            low, high = bisect_left(starts, at - before), bisect_right(starts, at + after)
            middle = bisect_left(starts, at)
            low, high = max(low, middle - _CANDIDATES // 2), min(high, middle + _CANDIDATES // 2)
            yield from some[low:high]


def _path(target: str | None) -> str | None:
    """Give what spans have of a target: many leave the query out."""
    return target.partition("?")[0] if target is not None else None


def _fits(span: Span, exchange: _Exchange) -> bool:
    """Tell whether nothing that both say of a request differs."""
    if span.status is not None and exchange.status is not None and span.status != exchange.status:
        return False
    if span.target and exchange.target and "?" in span.target and span.target != exchange.target:
        return False
    if span.kind in CLIENTS:
        port = span.port if span.port is not None else span.peer_port
        return port is None or port == exchange.server_port
    # What a server takes for its own port stands in Host: behind a proxy that is the proxy's.
    return span.peer_port is None or span.peer_port == exchange.client_port


def _by_time(
    spans: Sequence[Span],
    exchanges: Sequence[_Exchange],
    clocks: dict[str | None, _Clock],
    matches: dict[int, _Match],
) -> None:
    """Match what is left: the pairs that lie closest first, each request with one client and one server."""
    index = _Index(exchanges)
    taken = {(matches[span.number].exchange.key, span.kind in CLIENTS) for span in spans if span.number in matches}
    pairs: list[tuple[int, int, _Exchange]] = []
    for span in spans:
        if span.number in matches or not (span.kind in CLIENTS or span.kind in SERVERS):
            continue
        clock = clocks[span.service]
        slack = _SLACK_NS + (clock.uncertainty or 0)
        for exchange in index.near(span, clock.offset, slack):
            # An instrumented request has ids, where it can be read: those of another span are not this one's.
            if exchange.parent is not None and exchange.trace != span.trace_id:
                continue
            distance = _distance(span, exchange, clock.offset, slack)
            if distance is not None and (exchange.key, span.kind in CLIENTS) not in taken and _fits(span, exchange):
                pairs.append((distance, span.number, exchange))
    pairs.sort(key=lambda pair: (pair[0], pair[1], pair[2].key))
    for number, (exchange, distance, next_best) in _assigned(pairs, spans, taken).items():
        confidence = _ALONE
        if next_best is not None:
            # As sure as the next best pair is further away than this one.
            confidence = _LEAST + (_ALONE - _LEAST) * (1 - (distance + 1) / (max(next_best, distance) + 1))
        matches[number] = _Match(exchange, "time", round(confidence, 2))


def _assigned(
    pairs: Sequence[tuple[int, int, _Exchange]], spans: Sequence[Span], taken: Collection[tuple[tuple[int, int], bool]]
) -> dict[int, tuple[_Exchange, int, int | None]]:
    """Give each span its request, no request two spans of a kind: the closest pairs first, then better ones in turn.

    Returns:
        By the span's number: the exchange, how far it is, and how far the next best pair of either is.
    """
    distances: dict[int, dict[tuple[int, int], int]] = defaultdict(dict)
    by_end: dict[tuple[tuple[int, int], bool], list[tuple[int, int]]] = defaultdict(list)
    by_key: dict[tuple[int, int], _Exchange] = {}
    for distance, number, exchange in pairs:
        distances[number][exchange.key] = distance
        by_end[exchange.key, spans[number].kind in CLIENTS].append((distance, number))
        by_key[exchange.key] = exchange
    chosen: dict[int, tuple[int, int]] = {}
    owner: dict[tuple[tuple[int, int], bool], int | None] = dict.fromkeys(taken)
    for _, number, exchange in pairs:
        end = (exchange.key, spans[number].kind in CLIENTS)
        if number not in chosen and end not in owner:
            chosen[number], owner[end] = exchange.key, number
    for _ in range(_SWAPS):
        if not _swapped(chosen, owner, distances, spans):
            break
    nearest = {}
    for number, key in chosen.items():
        distance = distances[number][key]
        others = [far for other, far in distances[number].items() if other != key]
        others += [far for far, other in by_end[key, spans[number].kind in CLIENTS] if other != number]
        nearest[number] = (by_key[key], distance, min(others, default=None))
    return nearest


def _swapped(
    chosen: dict[int, tuple[int, int]],
    owner: dict[tuple[tuple[int, int], bool], int | None],
    distances: Mapping[int, Mapping[tuple[int, int], int]],
    spans: Sequence[Span],
) -> bool:
    """Give spans each other's requests, or free ones, where the two together are closer then."""
    improved = False
    for number in list(distances):
        of_client, mine = spans[number].kind in CLIENTS, chosen.get(number)
        if mine is None:
            continue
        best, partner, wanted = 0, None, mine
        for key, far in distances[number].items():
            other = owner.get((key, of_client), -1)
            if key == mine or other is None:  # matched by its ids
                continue
            gain = distances[number][mine] - far
            if other >= 0:
                if mine not in distances[other]:
                    continue
                gain += distances[other][key] - distances[other][mine]
            if gain > best:
                best, partner, wanted = gain, other, key
        if partner is not None:
            improved = True
            del owner[mine, of_client]
            if partner >= 0:
                chosen[partner], owner[mine, of_client] = mine, partner
            chosen[number], owner[wanted, of_client] = wanted, number
    return improved


def _distance(span: Span, exchange: _Exchange, offset: int, slack: int) -> int | None:
    """Give how far the ends of span and request are apart; None where one cannot be about the other."""
    begin, end = exchange.request_at - span.begin - offset, span.end + offset - exchange.done_at
    # A client's span holds its request, a server's span lies inside it, by half a round trip on either side. What a
    # server does after the answer may take longer.
    if span.kind in SERVERS:
        if begin > slack or span.begin + offset > exchange.done_at + slack:
            return None
        return _late(-begin - exchange.way_server) + abs(end + exchange.way_server) // 2
    if begin < -slack or end < -slack:
        return None
    begin = exchange.opened_at - span.begin - offset
    return _late(begin - exchange.way_client) + _late(end - exchange.way_client) // 2


def _late(by: int) -> int:
    """Weigh a delay: programs are late now and then, and never early. The end waits for more than the beginning."""
    return by if by >= 0 else _EARLY * -by


def _rows(
    spans: Sequence[Span],
    exchanges: Sequence[_Exchange],
    clocks: dict[str | None, _Clock],
    matches: dict[int, _Match],
) -> Iterator[tuple[object, ...]]:
    first = min((one.request_at for one in exchanges), default=0)
    last = max((one.done_at for one in exchanges), default=0)
    inside = {
        (span.trace_id, span.parent): span.end - span.begin
        for span in spans
        if span.kind in SERVERS and span.parent and span.number in matches
    }
    for span in spans:
        clock = clocks.get(span.service, _Clock())
        match = matches.get(span.number)
        is_guess = match is not None and match.by == "time" and match.confidence < _GUESS
        match = None if is_guess else match
        wire = before = behind = None
        unmatched = None
        if match:
            exchange = match.exchange
            before = exchange.request_at - span.begin - clock.offset
            behind = span.end + clock.offset - exchange.done_at
            # What the capture point saw, the client had half a round trip before, or after.
            if span.kind in CLIENTS:
                before, behind = before - exchange.way_client, behind - exchange.way_client
                wire = span.end - span.begin - before - behind - inside.get((span.trace_id, span.span_id), 0)
            else:
                before, behind = -before - exchange.way_server, -behind - exchange.way_server
        elif span.kind not in CLIENTS and span.kind not in SERVERS:
            unmatched = "internal"
        elif span.end + clock.offset < first or span.begin + clock.offset > last:
            unmatched = "outside the capture"
        else:
            unmatched = "several requests fit alike" if is_guess else "no request fits"
        yield (
            span.number, span.trace_id, span.span_id, span.parent, span.name, span.kind, span.service,
            span.begin + clock.offset, span.end + clock.offset, clock.offset, clock.uncertainty,
            span.method, span.target, span.status, span.failed,
            match.exchange.stream if match else None, match.exchange.number if match else None,
            match.by if match else None, match.confidence if match else None, unmatched, wire, before, behind,
        )  # fmt: skip
