"""How far the clocks of places are apart, and which of two places a packet passed first.

In: what the core found of packets. Out: of each place its :class:`Clock` against the first place, and the temporary
table ``routes``: the places of each connection, from the client on.

A packet that two places saw bounds the difference of their clocks, by its direction:
``native/src/correlate/clocks.rs``. Which place is nearer to the client follows from that of each connection: what the
client sends arrives there earlier, and what the server sends later, whatever the clocks show. Of connections on which
only one end is heard, hop limits decide, which routers lower.

Places are aligned one after the other, each with that place that leaves the least uncertainty. Where a place shares no
packets with those, causality bounds its clock: a relay hands a ClientHello on after it came, and a proxy a request;
answers come back the other way round. What belongs together is told by the ClientHello's random and by identifiers of
requests. Where there is nothing of that kind, exchanges that look alike bound it (``alike``); where there are none, the
clock is taken as it is, and its uncertainty is NULL.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from conchart import _native
from conchart.reading.places.similarity import pair_places
from conchart.reading.places.views import Place
from conchart.store.tables import Rows, Tables

Step = tuple[int, int]
"""From which frame on a clock shows how much more, in nanoseconds."""
_Fitted = tuple[int, int, int, int, int | None, int, int]
"""A piece as the core tells it."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of time in which a clock keeps its rate.

    Instants are those on the axis: the reference's clock without its steps. Offsets are those of clocks without steps.
    """

    from_at: int
    to_at: int
    offset_ns: int
    """How far the clock is ahead at ``from_at``."""
    drift_ppb: int
    uncertainty_ns: int | None
    packets: int
    reference_ns: int = 0
    """By how much the reference's clock was set until then: it shows so much more."""
    own_ns: int = 0
    """By how much the clock itself was set."""

    def shown(self, at: int) -> int:
        """Give what the clock shows at an instant of this piece."""
        return at + self.offset_ns + (at - self.from_at) * self.drift_ppb // 10**9


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of a place."""

    place: Place
    method: str
    """``reference``, ``packets``, ``causality``, ``likeness``, ``trusted``, ``unknown``."""
    pieces: tuple[Piece, ...]
    through: str | None = None
    """The place with which it shares the packets."""
    through_ns: int | None = None
    """How much its difference to that place's clock can be wrong."""

    def axis_at(self, at: int) -> int:
        """Give the instant on the axis at which the clock shows that."""
        after = enumerate(self.pieces[1:])
        number = next((number for number, piece in after if at < piece.shown(piece.from_at)), len(self.pieces) - 1)
        piece = self.pieces[number]
        since = at - piece.shown(piece.from_at)
        return piece.from_at + since - since * piece.drift_ppb // (10**9 + piece.drift_ppb)

    @property
    def stretches(self) -> list[tuple[int, int, int]]:
        """Give of each piece what the clock shows when it begins, that instant, and the drift; none if it is right."""
        if not any(piece.offset_ns or piece.drift_ppb for piece in self.pieces):
            return []
        return [(piece.shown(piece.from_at), piece.from_at, piece.drift_ppb) for piece in self.pieces]

    def reference_sql(self, at: str) -> str:
        """Give SQL for what the reference showed when this clock showed ``at``."""
        stretches = self.stretches
        if not stretches:
            return at
        cases = [_stretch_sql(*stretch, at) for stretch in stretches]
        # Where a clock is set back, two pieces show the same: the earlier one has it.
        whens = (f"WHEN {at} < {shown} THEN {case}" for (shown, *_), case in zip(stretches[1:], cases, strict=False))
        return f"CASE {' '.join(whens)} ELSE {cases[-1]} END" if len(cases) > 1 else cases[0]


def _stretch_sql(shown: int, from_at: int, drift_ppb: int, at: str) -> str:
    since = f"({at} - {shown})"
    # Of what it shows since, it gained drift / (10⁹ + drift). ``telling.rs`` says the same of packets.
    gained = f" - ({since}::HUGEINT * {drift_ppb} // {10**9 + drift_ppb})::BIGINT" if drift_ppb else ""
    return f"({from_at} + {since}{gained})"


def set_clocks(
    tables: Tables,
    crossings: _native.Crossings,
    places: Sequence[Place],
    trusted: Collection[str],
    steps: Mapping[int, Sequence[Step]],
) -> list[Clock]:
    """Give the clock of each place, in their order.

    Args:
        tables: With ``routes``.
        crossings: With the same routes.
        places: Read without the steps of their clocks.
        trusted: Names of those whose clocks are right.
        steps: By the number of the place.
    """
    axis = _axis(tables, crossings, steps.get(0, ()))
    aligned = {0: Clock(places[0], "reference", axis)}
    for place in places[1:]:
        if place.name in trusted:
            aligned[place.number] = Clock(place, "trusted", tuple(replace(piece, own_ns=0) for piece in axis))
    shared = _shared(tables)
    while left := [place for place in places if place.number not in aligned]:
        pairs = [(number, place) for number in aligned for place in left if place.number in shared.get(number, ())]
        fitted = [
            _fitted(
                aligned[number], place, crossings.fit(number, place.number, _sets(number, place.number, steps)), steps
            )
            for number, place in pairs
        ]
        if not fitted:
            for place in left:
                clocks = [
                    _fitted(base, place, _caused(tables, crossings, base.place.number, place.number, steps), steps)
                    for base in aligned.values()
                ]
                fitted += [replace(clock, method="causality") for clock in clocks if clock.pieces]
        if all(_worst(clock)[0] for clock in fitted) and not steps:
            alike = [
                _fitted(base, place, _alike(tables, crossings, base.place.number, place.number), steps)
                for place in left
                for base in aligned.values()
                if place.number not in shared.get(base.place.number, ())
            ]
            fitted += [replace(clock, method="likeness") for clock in alike if clock.pieces]
        if fitted:
            best = min(map(_worst, fitted))
            # Of those that are nearly as good, the nearest one.
            clock = min((one for one in fitted if _is_near(_worst(one), best)), key=lambda one: one.through_ns or 0)
        else:
            clock = Clock(left[0], "unknown", tuple(replace(piece, uncertainty_ns=None) for piece in axis))
        aligned[clock.place.number] = clock
    return [_lasting(aligned[place.number], axis[-1].to_at) for place in places]


def _lasting(clock: Clock, to_at: int) -> Clock:
    """Let the last stretch reach to the end of the reference's captures: its last packets may not be shared ones."""
    *before, last = clock.pieces
    return replace(clock, pieces=(*before, replace(last, to_at=max(last.to_at, to_at))))


def _axis(tables: Tables, crossings: _native.Crossings, steps: Sequence[Step]) -> tuple[Piece, ...]:
    """Give the pieces of the reference: one, and one for each time it was set."""
    span = tables.stored("SELECT min(opened_at), max(closed_at) FROM all_connections WHERE part = 0").fetchall()
    ((first_at, last_at),) = span
    cuts = [crossings.first_seen(0, frame) for frame, _ in steps]
    bounds = [first_at or 0, *(cut for cut in cuts if cut is not None), last_at or 0]
    sets = [*accumulate((ns for _, ns in steps), initial=0)]
    return tuple(
        Piece(from_at, to_at, 0, 0, 0, 0, shown, shown)
        for (from_at, to_at), shown in zip(pairwise(bounds), sets, strict=True)
    )


def _is_near(one: tuple[bool, int], best: tuple[bool, int]) -> bool:
    return one[0] == best[0] and one[1] * 50 <= best[1] * 51


def _worst(clock: Clock) -> tuple[bool, int]:
    """Give how uncertain a clock is, where something is known of it."""
    uncertainties = [piece.uncertainty_ns for piece in clock.pieces if piece.uncertainty_ns is not None]
    return not uncertainties, max(uncertainties, default=0)


def _shared(tables: Tables) -> dict[int, list[int]]:
    """Give, for each place, the places with which it shares packets."""
    found = tables.stored(
        "SELECT DISTINCT one.part, other.part "
        "FROM routes one JOIN routes other USING (path) WHERE one.part <> other.part"
    ).fetchall()
    shared: dict[int, list[int]] = {}
    for one, other in sorted(found):
        shared.setdefault(one, []).append(other)
    return shared


def _times_set(frame: str, steps: Sequence[Step]) -> str:
    """Give SQL for how often a clock was set before a frame."""
    return " + ".join(["0::BIGINT", *(f"({frame} >= {first})::BIGINT" for first, _ in steps)])


def _causes(here: int, there: int, steps: Mapping[int, Sequence[Step]]) -> str:
    """Give SQL for what was handed on between two places, in the shape of packets.

    What a client sends comes to the place nearer to it first, and answers come to the other one first.
    """
    here_set, there_set = _times_set("here_frame", steps.get(here, ())), _times_set("there_frame", steps.get(there, ()))
    sets = f"{here_set} AS here_set, {there_set} AS there_set"
    return f"""
        WITH messages AS (
            SELECT part, client_random AS name, hello_at AS requested_at, server_hello_at AS answered_at,
                hello_frame AS frame
            FROM all_handshakes WHERE client_random IS NOT NULL
            UNION ALL
            SELECT part, unnest(ids), request_at, response_at, request_frame FROM all_exchanges),
        single AS (
            FROM messages WHERE part IN ({here}, {there}) AND requested_at IS NOT NULL AND answered_at IS NOT NULL
            QUALIFY count(*) OVER (PARTITION BY part, name) = 1),
        pairs AS (
            SELECT one.requested_at AS here_requested_at, one.answered_at AS here_answered_at, one.frame AS here_frame,
                other.requested_at, other.answered_at, other.frame AS there_frame
            FROM single one JOIN single other USING (name) WHERE one.part = {here} AND other.part = {there}),
        nearer AS (
            SELECT coalesce(median(requested_at - here_requested_at) >= median(answered_at - here_answered_at), true)
                AS is_nearer
            FROM pairs)
        SELECT here_requested_at AS here_at, requested_at AS there_at, here_frame, there_frame, is_nearer AS outward,
            {sets}
        FROM pairs, nearer
        UNION ALL
        SELECT here_answered_at, answered_at, here_frame, there_frame, NOT is_nearer, {sets} FROM pairs, nearer
    """


def _sets(here: int, there: int, steps: Mapping[int, Sequence[Step]]) -> list[list[int]]:
    """Give from which frames on each of two clocks was set."""
    return [[frame for frame, _ in steps.get(part, ())] for part in (here, there)]


def _caused(
    tables: Tables, crossings: _native.Crossings, here: int, there: int, steps: Mapping[int, Sequence[Step]]
) -> list[_Fitted]:
    grains = (crossings.grain(here), crossings.grain(there))
    return _native.fit_clock(Rows(tables.stored(_points(grains, _causes(here, there, steps)))))


def _alike(tables: Tables, crossings: _native.Crossings, here: int, there: int) -> list[_Fitted]:
    """Give the piece in which exchanges look alike; it bounds the difference of the clocks on either side."""
    found = pair_places(tables, here, there, (crossings.grain(here), crossings.grain(there)))
    if found is None:
        return []
    if found.front_is_first:
        return [found.ahead]
    # Told the other way round: by the clock of the place in front, which is now the one that is asked for.
    from_at, to_at, offset_ns, drift_ppb, uncertainty_ns, pairs, segment = found.ahead
    end_ns = offset_ns + (to_at - from_at) * drift_ppb // 10**9
    start, end = from_at + offset_ns, to_at + end_ns
    gained_ppb = (offset_ns - end_ns) * 10**9 // max(end - start, 1)
    return [
        (start, end, -offset_ns, gained_ppb, None if uncertainty_ns is None else uncertainty_ns + 2, pairs, segment)
    ]


def _fitted(base: Clock, place: Place, found: Sequence[_Fitted], steps: Mapping[int, Sequence[Step]]) -> Clock:
    """Give the clock of a place, as it was fitted to that of one that is aligned."""
    there = place.number
    sets = [*accumulate((ns for _, ns in steps.get(there, ())), initial=0)]
    pieces = [
        Piece(from_at, to_at, offset_ns, drift_ppb, uncertainty_ns, packets, own_ns=sets[segment % SETS])
        for from_at, to_at, offset_ns, drift_ppb, uncertainty_ns, packets, segment in found
    ]
    widths = [piece.uncertainty_ns for piece in pieces if piece.uncertainty_ns is not None]
    return Clock(place, "packets", tuple(_composed(base, pieces)), base.place.name, max(widths, default=None))


SETS = 1_000
"""More than a clock is set."""


def _points(grains: tuple[int, int], of: str) -> str:
    """Give SQL for the points that the core fits. Coarse clocks cut off what they do not show."""
    return f"""
        SELECT here_at, there_at - here_at + if(outward, {grains[1] - 1}, {1 - grains[0]}) AS ahead_ns, outward,
            here_frame, there_frame, here_set * {SETS} + there_set AS segment
        FROM ({of}) points ORDER BY here_set + there_set, segment, there_frame
    """


def _composed(base: Clock, pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Give pieces against the reference, of those against a clock that is aligned."""
    if not pieces:
        return
    starts = [base.axis_at(piece.from_at) for piece in pieces]
    end = max(base.axis_at(pieces[-1].to_at), *starts)
    cuts = {at for at in (*starts[1:], *(piece.from_at for piece in base.pieces[1:])) if starts[0] < at < end}
    for from_at, to_at in pairwise([starts[0], *sorted(cuts), end]):
        through = max((piece for piece in base.pieces if piece.from_at <= from_at), key=lambda piece: piece.from_at,
            default=base.pieces[0])  # fmt: skip
        own = max(zip(starts, range(len(pieces)), strict=True), key=lambda one: (one[0] <= from_at, one))[1]
        piece, shown = pieces[own], through.shown(from_at)
        doubts = (through.uncertainty_ns, piece.uncertainty_ns)
        yield Piece(
            from_at,
            to_at,
            shown - from_at + piece.shown(shown) - shown,
            through.drift_ppb + piece.drift_ppb + through.drift_ppb * piece.drift_ppb // 10**9,
            None if None in doubts else sum(doubt for doubt in doubts if doubt is not None),
            piece.packets,
            through.reference_ns,
            piece.own_ns,
        )


def order_places(tables: Tables, crossings: _native.Crossings) -> None:
    """Make ``routes``, and tell them to the core."""
    tables.lend_batch("apart", crossings.apart())
    tables.execute("""
        CREATE TEMP TABLE nearer AS
        WITH judged AS (
            SELECT path, one, other, hops_client, hops_server,
                -- Clocks that cut off microseconds differ by as much.
                CASE WHEN abs(slower_ns) > 2000 THEN slower_ns > 0
                    WHEN coalesce(hops_client, -hops_server, 0) <> 0 THEN coalesce(hops_client, -hops_server) > 0
                    WHEN slower_ns <> 0 THEN slower_ns > 0 END AS nearer
            FROM apart),
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
    crossings.route(Rows(tables.stored("SELECT path, part, position::BIGINT AS position FROM routes")))
