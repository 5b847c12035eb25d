"""Single exchanges as several places saw them: lanes of their connections by place, and each packet on its way.

In: the tables of several places. Out: :class:`RequestPath`; nothing where nobody named places.

A phase begins and ends with packets. At a place it lies between the instants at which that place saw these packets.
Where it did not see one, the next packet of the same sender stands in for it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from conchart.labels.printable import endpoint
from conchart.report.phase_places import Where, phase_places
from conchart.report.rows import Row, rows
from conchart.store.sql import OF_USERS
from conchart.store.tables import Tables

MAX_ARROWS = 300
_MOST_BESIDES = 4
"""Connections that are shown beside those of the exchange, as they went on at the same time."""
_LAST = 100
"""Of the arrows, those that are kept at the end, where the response ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """A packet on its way through the places."""

    stream: int
    frame: int
    sender: str
    bytes: int
    flags: str
    seen: tuple[tuple[str, int], ...]
    """Each place in the order of the way, and when it saw the packet."""
    lost_to: str | None
    """The place that it did not reach."""
    marks: str | None
    """``request`` or ``response``: it has the first byte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A phase as one place saw it."""

    kind: str
    start_at: int
    end_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceLane:
    """A connection as one place saw it."""

    place: str
    stream: int
    server: str
    chosen: bool
    """It belongs to the exchange; others went on at the same time."""
    bars: tuple[Bar, ...]

    def has_part_of(self, from_at: int, until_at: int) -> bool:
        """Was anything of it there between two instants?"""
        return any(bar.start_at < until_at and bar.end_at > from_at for bar in self.bars)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """Who was waited for, for how long: a host, or the path between two places. Neighbours that are alike are one."""

    kind: str
    place: str
    to_place: str | None
    start_at: int
    end_at: int
    uncertainty_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPath:
    """One exchange, with the connections that it caused."""

    stream: int
    exchange: int
    name: str
    """Method and target, or empty."""
    wait_ns: int
    wait: Where | None
    """What the wait consists of."""
    start_at: int
    end_at: int
    stays: tuple[Stay, ...]
    lanes: tuple[PlaceLane, ...]
    """Place by place, from the client on."""
    arrows: tuple[Arrow, ...]
    more: int
    """Packets that are left out in the middle; none that was lost."""


_LONGEST = f"""
    SELECT stream, exchange, wait_ns, request_at, response_done_at, method, target
    FROM (SELECT *, number AS exchange FROM exchanges)
    WHERE {OF_USERS} AND stream IN (SELECT stream FROM phase_places)
        AND wait_ns IS NOT NULL AND request_at IS NOT NULL AND response_done_at IS NOT NULL
    ORDER BY wait_ns DESC, stream, exchange LIMIT $most
"""

# A connection that a proxy opened for a request belongs to it from its SYN on.
_CAUSED = """
    CREATE OR REPLACE TEMP TABLE caused AS
    WITH RECURSIVE caused(stream, number, depth) AS (
        SELECT $stream, $exchange, 0
        UNION
        SELECT back_stream, back_exchange, depth + 1 FROM caused JOIN links
            ON front_stream = stream AND front_exchange = number WHERE back_exchange IS NOT NULL AND depth < 8)
    SELECT stream, min(depth) AS depth, max(response_done_at) AS until_at,
        min(if(depth > 0 AND number = 0 AND opened_at >= $request_at, opened_at, request_at)) AS from_at,
        list(request_frame) AS request_frames, list(response_frame) AS response_frames
    FROM caused JOIN exchanges USING (stream, number) JOIN connections USING (stream) GROUP BY stream
"""

_ARROWS = """
    WITH mine AS (
        SELECT stream, packet, frame, place_packets.sender, bytes, flags, place, seen_at, depth, position,
            request_frames, response_frames
        FROM place_packets JOIN caused USING (stream) JOIN paths USING (stream, place)
        WHERE (bytes > 0 OR contains(flags, 'S') OR contains(flags, 'F')) AND packet IS NOT NULL
        QUALIFY bool_or(seen_at BETWEEN from_at AND until_at) OVER (PARTITION BY stream, packet)),
    lost AS (SELECT frame, to_place FROM losses WHERE NOT captured_elsewhere)
    SELECT stream, min(frame) AS frame, sender, max(bytes) AS bytes, any_value(flags) AS flags,
        list(place ORDER BY if(sender = 'client', position, -position)) AS places,
        list(seen_at ORDER BY if(sender = 'client', position, -position)) AS seen, any_value(to_place) AS lost_to,
        CASE WHEN bool_or(list_contains(request_frames, frame)) THEN 'request'
            WHEN bool_or(list_contains(response_frames, frame)) THEN 'response' END AS marks
    FROM mine LEFT JOIN lost USING (frame) GROUP BY stream, packet, sender, depth
    ORDER BY min(seen_at), frame
"""

_STAYS = """
    WITH changes AS (
        SELECT *, lag((kind, place, to_place, end_at)) OVER (ORDER BY start_at, end_at)
            IS DISTINCT FROM (kind, place, to_place, start_at) AS begins
        FROM phase_places WHERE stream = $stream AND exchange = $exchange),
    numbered AS (SELECT *, count(*) FILTER (begins) OVER (ORDER BY start_at, end_at) AS stay FROM changes)
    SELECT kind, place, to_place, min(start_at) AS start_at, max(end_at) AS end_at,
        if(kind = 'path' AND bool_or(uncertainty_ns IS NULL), NULL, coalesce(sum(uncertainty_ns), 0)::BIGINT)
            AS uncertainty_ns
    FROM numbered GROUP BY stay, kind, place, to_place ORDER BY start_at
"""

# Those of the same servers that were waited for at the same time, the longest first.
_BESIDES = """
    SELECT stream FROM phases JOIN connections USING (stream)
    WHERE start_at < $until_at AND end_at > $from_at AND stream NOT IN (SELECT stream FROM caused)
        AND kind IN ('syn', 'tls', 'request', 'wait', 'transfer') AND stream IN (SELECT stream FROM paths)
        AND (server_ip, server_port) IN (
            SELECT (server_ip, server_port) FROM connections JOIN caused USING (stream))
    GROUP BY stream ORDER BY sum(least(end_at, $until_at) - greatest(start_at, $from_at)) DESC, stream LIMIT $most
"""

_LANES = """
    WITH wanted AS (
        SELECT stream, depth, true AS chosen FROM caused
        UNION ALL SELECT stream, 0, false FROM besides),
    there AS (FROM place_packets WHERE stream IN (SELECT stream FROM wanted)),
    bounds AS (
        SELECT phases.stream, paths.place, position, depth, chosen, phases.kind, start_at, end_at,
            began.packet AS start_packet, ended.packet AS end_packet, began.sender AS start_by, ended.sender AS end_by
        FROM phases JOIN wanted USING (stream) JOIN paths ON paths.stream = phases.stream
        LEFT JOIN there began ON began.stream = phases.stream AND began.frame = start_frame
        LEFT JOIN there ended ON ended.stream = phases.stream AND ended.frame = end_frame
        WHERE end_at > $from_at - $margin AND start_at < $until_at + $margin),
    exact AS (
        SELECT bounds.*, starts.seen_at AS starts_at, ends.seen_at AS ends_at
        FROM bounds
        LEFT JOIN there starts ON starts.stream = bounds.stream AND starts.place = bounds.place
            AND starts.packet = start_packet
        LEFT JOIN there ends ON ends.stream = bounds.stream AND ends.place = bounds.place
            AND ends.packet = end_packet),
    next_start AS (
        SELECT exact.*, after.seen_at AS after_start_at
        FROM exact ASOF LEFT JOIN there after ON after.stream = exact.stream AND after.place = exact.place
            AND after.sender = start_by AND after.seen_at >= start_at),
    next_end AS (
        SELECT next_start.*, after.seen_at AS after_end_at
        FROM next_start ASOF LEFT JOIN there after ON after.stream = next_start.stream
            AND after.place = next_start.place AND after.sender = end_by AND after.seen_at >= end_at)
    SELECT stream, place, position, depth, chosen, kind, server_ip, server_port,
        coalesce(starts_at, after_start_at, start_at) AS start_at, coalesce(ends_at, after_end_at, end_at) AS end_at
    FROM next_end JOIN connections USING (stream) ORDER BY stream, position, next_end.start_at, next_end.end_at
"""


def journeys(tables: Tables, most: int) -> Iterator[RequestPath]:
    """Give the exchanges whose users waited the longest, of those that are known by place."""
    for found in list(rows(tables, _LONGEST, {"most": most})):
        yield _journey(tables, found)
    tables.execute("DROP TABLE IF EXISTS caused; DROP TABLE IF EXISTS besides")


def _journey(tables: Tables, found: Row) -> RequestPath:
    which = {"stream": found["stream"], "exchange": found["exchange"]}
    tables.execute(_CAUSED, which | {"request_at": found["request_at"]})
    arrows = [_arrow(row) for row in rows(tables, _ARROWS)]
    instants = [at for arrow in arrows for _, at in arrow.seen]
    from_at = min([found["request_at"], *instants])
    until_at = max([found["response_done_at"], *instants])
    window = {"from_at": from_at, "until_at": until_at}
    tables.execute(f"CREATE OR REPLACE TEMP TABLE besides AS {_BESIDES}", window | {"most": _MOST_BESIDES})
    lanes = list(_lanes(rows(tables, _LANES, window | {"margin": (until_at - from_at) // 20})))
    middle = range(MAX_ARROWS - _LAST, len(arrows) - _LAST)
    shown = [arrow for number, arrow in enumerate(arrows) if number not in middle or arrow.lost_to]
    of_wait = [one for one in phase_places(tables, found["stream"]) if one.exchange == found["exchange"]]
    return RequestPath(
        stream=found["stream"],
        exchange=found["exchange"],
        name=" ".join(word for word in (found["method"], found["target"]) if word),
        wait_ns=found["wait_ns"],
        wait=next((one for one in of_wait if one.phase == "wait"), None),
        start_at=from_at,
        end_at=until_at,
        stays=tuple(Stay(**row) for row in rows(tables, _STAYS, which)),
        lanes=tuple(lane for lane in lanes if lane.chosen or lane.has_part_of(from_at, until_at)),
        arrows=tuple(shown),
        more=len(arrows) - len(shown),
    )


def _arrow(row: Row) -> Arrow:
    return Arrow(
        **{name: row[name] for name in ("stream", "frame", "sender", "bytes", "flags", "lost_to", "marks")},
        seen=tuple(zip(row["places"], row["seen"], strict=True)),
    )


def _lanes(lane_rows: Iterator[Row]) -> Iterator[PlaceLane]:
    """Sort lanes by place, so that arrows cross as little as possible.

    Within a place, those whose packets come from the places above stand at the top, those whose packets go to the
    places below at the bottom.
    """
    lanes: dict[tuple[int, str], PlaceLane] = {}
    ranks: dict[tuple[int, str], tuple[int, int, int]] = {}
    orders: dict[str, int] = {}
    for row in lane_rows:
        key = (row["stream"], row["place"])
        lane = lanes.get(key) or PlaceLane(
            place=row["place"],
            stream=row["stream"],
            server=endpoint(row["server_ip"], row["server_port"]),
            chosen=row["chosen"],
            bars=(),
        )
        # At a place phases touch, too: a packet that comes late does not end what began after it.
        start_at = max(row["start_at"], lane.bars[-1].end_at) if lane.bars else row["start_at"]
        bar = Bar(kind=row["kind"], start_at=start_at, end_at=max(start_at, row["end_at"]))
        lanes[key] = replace(lane, bars=(*lane.bars, bar))
        ranks[key] = (1 if not row["chosen"] else 2 if row["position"] == 0 else 0, row["depth"], row["stream"])
        if row["chosen"]:
            # Depth by depth: a proxy is the last place of its front and the first one of its backend.
            rank = row["depth"] * 1000 + row["position"]
            orders[row["place"]] = min(rank, orders.get(row["place"], rank))
    seen = sorted(orders, key=lambda place: (orders[place], place))
    for place in seen:
        for key in sorted((key for key in lanes if key[1] == place), key=lambda key: ranks[key]):
            yield lanes[key]
