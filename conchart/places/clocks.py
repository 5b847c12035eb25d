"""How far the clocks of places are apart, and which of two places a packet passed first.

In: ``crossings``. Out: of each place its :class:`Clock` against the first place, and the temporary table ``routes``: the
places of each connection, from the client on.

A packet that two places saw bounds the difference of their clocks, by its direction: ``native/src/across/clocks.rs``. Which
place is nearer to the client follows from that of each connection: what the client sends arrives there earlier, and what
the server sends later, whatever the clocks show. Of connections on which only one end is heard, hop limits decide, which
routers lower.

Places are aligned one after the other, each with that place that leaves the least uncertainty. Where a place shares no packets
with those, causality bounds its clock: a relay hands a ClientHello on after it came, and a proxy a request; answers come back
the other way round. What belongs together is told by the ClientHello's random and by identifiers of requests. Where there is
nothing of that kind, the clock is taken as it is, and its uncertainty is NULL.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from conchart import _native
from conchart.places.views import Place
from conchart.store.sql import literal
from conchart.store.tables import Rows, Tables


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of time in which a clock keeps its rate. Instants are the reference's."""

    from_at: int
    to_at: int
    offset_ns: int
    """How far the clock is ahead at ``from_at``."""
    drift_ppb: int
    uncertainty_ns: int | None
    packets: int

    def shown(self) -> int:
        """Give what the clock shows at ``from_at``."""
        return self.from_at + self.offset_ns


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of a place."""

    place: Place
    method: str
    """``reference``, ``packets``, ``causality``, ``trusted``, ``unknown``."""
    pieces: tuple[Piece, ...]
    through: str | None = None
    """The place with which it shares the packets."""
    through_ns: int | None = None
    """How much its difference to that place's clock can be wrong."""

    def told(self, at: str) -> str:
        """Give SQL for what the reference showed when this clock showed ``at``."""
        if not any(piece.offset_ns or piece.drift_ppb for piece in self.pieces):
            return at
        cases = [_told(piece, at) for piece in self.pieces]
        # Where a clock is set back, two pieces show the same: the earlier one has it.
        whens = (
            f"WHEN {at} < {after.shown()} THEN {case}" for after, case in zip(self.pieces[1:], cases, strict=False)
        )
        return f"CASE {' '.join(whens)} ELSE {cases[-1]} END" if len(cases) > 1 else cases[0]

    def doubt(self, at: str) -> str:
        """Give SQL for how much that can be wrong."""
        doubts = ["NULL" if piece.uncertainty_ns is None else str(piece.uncertainty_ns) for piece in self.pieces]
        whens = (
            f"WHEN {at} < {after.from_at} THEN {doubt}" for after, doubt in zip(self.pieces[1:], doubts, strict=False)
        )
        return f"CASE {' '.join(whens)} ELSE {doubts[-1]} END" if len(doubts) > 1 else doubts[0]


def _told(piece: Piece, at: str) -> str:
    since = f"({at} - {piece.shown()})"
    # Of what it shows since, it gained drift / (10⁹ + drift).
    gained = (
        f" - ({since}::HUGEINT * {piece.drift_ppb} // {10**9 + piece.drift_ppb})::BIGINT" if piece.drift_ppb else ""
    )
    return f"({piece.from_at} + {since}{gained})"


def set_clocks(tables: Tables, places: Sequence[Place], trusted: Collection[str]) -> list[Clock]:
    """Give the clock of each place, in their order, and make ``routes``."""
    _order(tables)
    span = tables.stored("SELECT min(opened_at), max(closed_at) FROM all_connections WHERE part = 0").fetchall()
    ((first_at, last_at),) = span
    right = Piece(first_at or 0, last_at or 0, 0, 0, 0, 0)
    aligned = {0: Clock(places[0], "reference", (right,))}
    for place in places[1:]:
        if place.name in trusted:
            aligned[place.number] = Clock(place, "trusted", (right,))
    shared = _shared(tables)
    while left := [place for place in places if place.number not in aligned]:
        pairs = [(known, place) for known in aligned for place in left if place.number in shared.get(known, ())]
        fitted = [_fit(tables, aligned[known], place, _packets(aligned[known], place)) for known, place in pairs]
        if not fitted:
            for place in left:
                points = (_fit(tables, known, place, _causes(known, place)) for known in aligned.values())
                fitted += [replace(clock, method="causality") for clock in points if clock.pieces]
        if fitted:
            best = min(map(_worst, fitted))
            # Of those that are nearly as good, the nearest one.
            clock = min((one for one in fitted if _is_near(_worst(one), best)), key=lambda one: one.through_ns or 0)
        else:
            clock = Clock(left[0], "unknown", (replace(right, uncertainty_ns=None),))
        aligned[clock.place.number] = clock
    return [aligned[place.number] for place in places]


def _is_near(one: tuple[bool, int], best: tuple[bool, int]) -> bool:
    return one[0] == best[0] and one[1] * 50 <= best[1] * 51


def _worst(clock: Clock) -> tuple[bool, int]:
    """Give how uncertain a clock is."""
    known = [piece.uncertainty_ns for piece in clock.pieces if piece.uncertainty_ns is not None]
    return len(known) < len(clock.pieces), max(known, default=0)


def _shared(tables: Tables) -> dict[int, list[int]]:
    """Give, for each place, the places with which it shares packets."""
    found = tables.stored(
        "SELECT DISTINCT one.part, other.part FROM routes one JOIN routes other USING (path) WHERE one.part <> other.part"
    ).fetchall()
    shared: dict[int, list[int]] = {}
    for one, other in sorted(found):
        shared.setdefault(one, []).append(other)
    return shared


def _packets(known: Clock, place: Place) -> str:
    """Give SQL for the packets that two places saw."""
    here, there = known.place.number, place.number
    return f"""
            SELECT {known.told("one.seen_at")} AS here_at, other.seen_at AS there_at, other.frame,
                (one.sender = 'client') = (one.position < other.position) AS outward
            FROM placed one JOIN placed other USING (packet)
            WHERE one.part = {here} AND other.part = {there} AND one.alone AND other.alone
    """


def _causes(known: Clock, place: Place) -> str:
    """Give SQL for what was handed on between two places, in the shape of packets.

    What a client sends comes to the place nearer to it first, and answers come to the other one first.
    """
    here, there = known.place.number, place.number
    return f"""
        WITH told AS (
            SELECT part, client_random AS name, hello_at AS asked_at, server_hello_at AS answered_at, hello_frame AS frame
            FROM all_handshakes WHERE client_random IS NOT NULL
            UNION ALL
            SELECT part, unnest(ids), request_at, response_at, request_frame FROM all_exchanges),
        single AS (
            FROM told WHERE part IN ({here}, {there}) AND asked_at IS NOT NULL AND answered_at IS NOT NULL
            QUALIFY count(*) OVER (PARTITION BY part, name) = 1),
        pairs AS (
            SELECT {known.told("one.asked_at")} AS here_asked_at, {known.told("one.answered_at")} AS here_answered_at,
                other.asked_at, other.answered_at, other.frame
            FROM single one JOIN single other USING (name) WHERE one.part = {here} AND other.part = {there}),
        nearer AS (
            SELECT coalesce(median(asked_at - here_asked_at) >= median(answered_at - here_answered_at), true) AS is_nearer
            FROM pairs)
        SELECT here_asked_at AS here_at, asked_at AS there_at, frame, is_nearer AS outward FROM pairs, nearer
        UNION ALL
        SELECT here_answered_at, answered_at, frame, NOT is_nearer FROM pairs, nearer
    """


def _fit(tables: Tables, known: Clock, place: Place, points: str) -> Clock:
    """Fit the clock of a place to that of one that is aligned. Coarse clocks cut off what they do not show."""
    here, there = known.place.number, place.number
    rows = tables.stored(f"""
        WITH coarse AS (SELECT part, {_GRAIN} AS grain FROM all_sightings WHERE part IN ({here}, {there}) GROUP BY part),
        points AS ({points})
        SELECT here_at, there_at - here_at + if(outward,
                (SELECT grain - 1 FROM coarse WHERE part = {there}), -(SELECT grain - 1 FROM coarse WHERE part = {here}))
                AS ahead_ns, outward
        FROM points ORDER BY frame
    """)
    own = max((piece.uncertainty_ns or 0 for piece in known.pieces), default=0)
    unsure = any(piece.uncertainty_ns is None for piece in known.pieces)
    found = _native.fit_clock(Rows(rows))
    pieces = [Piece(*piece) for piece in found]
    pieces = [
        replace(piece, uncertainty_ns=None if unsure or piece.uncertainty_ns is None else piece.uncertainty_ns + own)
        for piece in pieces
    ]
    widths = [uncertainty_ns for _, _, _, _, uncertainty_ns, _ in found]
    near = None if None in widths else max((width for width in widths if width is not None), default=None)
    return Clock(place, "packets", tuple(pieces), known.place.name, near)


_GRAIN = """
    CASE WHEN count(*) FILTER (seen_at % 1000000 <> 0) = 0 THEN 1000000
        WHEN count(*) FILTER (seen_at % 1000 <> 0) = 0 THEN 1000 ELSE 1 END
"""
"""What a clock shows at least: milliseconds, microseconds or nanoseconds. It cuts off the rest."""


def _order(tables: Tables) -> None:
    """Make ``routes``, and ``placed``: the crossings with the position of their place."""
    tables.execute("""
        CREATE TEMP TABLE nearer AS
        WITH ahead AS (
            SELECT path, one.part AS one, other.part AS other,
                median(other.seen_at - one.seen_at) FILTER (one.sender = 'client') AS of_client,
                median(other.seen_at - one.seen_at) FILTER (one.sender = 'server') AS of_server,
                median(one.ttl - other.ttl) FILTER (one.sender = 'client') AS hops_client,
                median(one.ttl - other.ttl) FILTER (one.sender = 'server') AS hops_server
            FROM crossings one JOIN crossings other USING (path, packet)
            WHERE one.part <> other.part AND one.alone AND other.alone
            GROUP BY ALL),
        judged AS (
            SELECT path, one, other, hops_client, hops_server,
                -- Clocks that cut off microseconds differ by as much.
                CASE WHEN abs(of_client - of_server) > 2000 THEN of_client > of_server
                    WHEN coalesce(hops_client, -hops_server, 0) <> 0 THEN coalesce(hops_client, -hops_server) > 0
                    WHEN of_client <> of_server THEN of_client > of_server END AS nearer
            FROM ahead),
        usual AS (
            SELECT one, other, server_ip, server_port, mode(nearer) AS nearer
            FROM judged JOIN members USING (path) JOIN all_connections rows
                ON rows.part = members.part AND rows.stream = members.local
            WHERE members.part = one GROUP BY ALL)
        SELECT judged.path, one, other, coalesce(judged.nearer, usual.nearer, one < other) AS nearer
        FROM judged JOIN members ON members.path = judged.path AND members.part = one
        JOIN all_connections rows ON rows.part = members.part AND rows.stream = members.local
        JOIN usual USING (one, other, server_ip, server_port)
    """)
    tables.execute("""
        CREATE TEMP TABLE routes AS
        SELECT path, part, local, turned,
            (row_number() OVER (PARTITION BY path ORDER BY coalesce(ahead, 0), part) - 1)::INTEGER AS position
        FROM members LEFT JOIN (
            SELECT path, one AS part, count(*) FILTER (NOT nearer) AS ahead FROM nearer GROUP BY ALL) USING (path, part)
    """)
    tables.execute("""
        CREATE TEMP VIEW placed AS
        SELECT crossings.*, position FROM crossings JOIN routes USING (path, part, local)
    """)
