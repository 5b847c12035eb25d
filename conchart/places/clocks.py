"""How far the clocks of places are apart, and which of two places a packet passed first.

In: ``crossings``. Out: of each place its :class:`Clock` against the first place, and the temporary table ``routes``: the
places of each connection, from the client on.

A packet that two places saw bounds the difference of their clocks, by its direction: ``native/src/across/clocks.rs``. Which
place is nearer to the client follows from that of each connection: what the client sends arrives there earlier, and what
the server sends later, whatever the clocks show. Of connections on which only one end is heard, hop limits decide, which
routers lower.

Places are aligned one after the other, each with that place that leaves the least uncertainty. Where a place shares packets
with none, nothing is known of its clock: it is taken as it is, and its uncertainty is NULL.
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
    """``reference``, ``packets``, ``trusted``, ``unknown``."""
    pieces: tuple[Piece, ...]
    through: str | None = None
    """The place with which it shares the packets."""

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
    while candidates := [
        (known, other) for known in aligned for other in (shared.get(known, ())) if other not in aligned
    ]:
        fitted = [_fit(tables, aligned[known], places[other]) for known, other in candidates]
        best = min(fitted, key=_worst)
        aligned[best.place.number] = best
    for place in places:
        aligned.setdefault(place.number, Clock(place, "unknown", (replace(right, uncertainty_ns=None),)))
    return [aligned[place.number] for place in places]


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


def _fit(tables: Tables, known: Clock, place: Place) -> Clock:
    """Fit the clock of a place to that of one that is aligned. Coarse clocks cut off what they do not show."""
    here, there = known.place.number, place.number
    rows = tables.stored(f"""
        WITH coarse AS (SELECT part, {_GRAIN} AS grain FROM all_sightings WHERE part IN ({here}, {there}) GROUP BY part),
        points AS (
            SELECT {known.told("one.seen_at")} AS here_at, other.seen_at AS there_at, other.frame,
                (one.sender = 'client') = (one.position < other.position) AS outward
            FROM placed one JOIN placed other USING (packet)
            WHERE one.part = {here} AND other.part = {there} AND one.alone AND other.alone)
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
    return Clock(place, "packets", tuple(pieces), known.place.name)


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
