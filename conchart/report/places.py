"""What captures of several places tell together: their clocks, where the time was spent, what got lost between them.

In: the tables ``places``, ``clocks``, ``paths``, ``phase_places``, ``losses``. Out: :class:`Clock`, :class:`Spent`,
:class:`Lost`; nothing where nobody named places.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from conchart.labels.printable import endpoint, printable
from conchart.labels.units import count_of, format_count, format_ns, format_share
from conchart.report.rows import rows
from conchart.store.sql import OF_USERS
from conchart.store.tables import Tables

_BETWEEN = "between"
"""What is told of two places, neither of which saw what lies between them: a proxy, and the paths to it."""
_ONE_WAY = {"loss": "losses", "pace": "pace"}
"""What is told of one direction alone: waiting for lost packets, and for acknowledgements."""
_AT_ONE = {"host": "at", "before": "before", "behind": "behind"}
"""What is told of one place: its host, and the path and the host on either side of it that no other place saw."""
PLACED = ("syn", "tls", "request", "wait", "transfer")
"""Phases of which several places may tell where the time was spent."""
KINDS = ("path", _BETWEEN, *_AT_ONE, *_ONE_WAY)
"""All kinds of parts."""
_PPM = 1000
"""Parts of 10⁹ in one of 10⁶."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A stretch of time in which the clock of a place keeps its rate."""

    place: str
    reference: str
    method: str
    offset_ns: int
    drift_ppb: int
    uncertainty_ns: int | None
    through: str | None
    """The place whose packets bound the clock."""
    through_ahead_ns: int | None
    """How far the clock is ahead of that place's."""
    through_ns: int | None
    """How much that can be wrong."""
    packets: int
    piece: int
    pieces: int
    from_ns: int
    """When the stretch begins, after the first packet of all."""
    lasts_ns: int

    @property
    def keeps_rate(self) -> bool:
        """Is the drift more than what the uncertainty of the offset, on either side, may pretend?"""
        return self.uncertainty_ns is not None and abs(self.drift_ppb) * self.lasts_ns > 2 * self.uncertainty_ns * 10**9

    def __str__(self) -> str:
        """``37.5 ms ± 310 µs ahead of client, 40 ppm fast (1,204 packets)``."""
        if self.method == "reference":
            return "all times are by this clock"
        if self.method == "trusted":
            return "taken to be right (--clock)"
        if self.method == "unknown":
            alone = f"unknown: {printable(self.place)} shares neither packets nor requests with the places before it"
            return f"{alone}; capture at the proxy between them, too"
        since = f"from {format_ns(self.from_ns)} on " if self.pieces > 1 else ""
        by = "no packet in common: by what was handed on"
        if self.method == "likeness":
            alike = f"{count_of(self.packets, 'request')} that look alike, with a wide ±"
            by = f"no packet in common: by {alike}; capture at the proxy between them for a narrow one"
        elif self.method != "causality":
            by = count_of(self.packets, "packet")
        if self.uncertainty_ns is None and self.through is not None and self.through != self.reference:
            ahead = _ahead(self.through_ahead_ns or 0, self.through_ns, self.through)
            return f"{since}{ahead}; nothing bounds both against {printable(self.reference)} ({by})"
        text = since + _ahead(self.offset_ns, self.uncertainty_ns, self.reference)
        if self.keeps_rate and (ppm := round(self.drift_ppb / _PPM)):
            text += f", {abs(ppm)} ppm {'fast' if ppm > 0 else 'slow'}"
        return f"{text} ({by})"


def _ahead(offset_ns: int, doubt_ns: int | None, other: str) -> str:
    doubt = "" if doubt_ns is None else f" ± {format_ns(doubt_ns)}"
    why = " at least: packets went in one direction alone" if doubt_ns is None else ""
    return f"{format_ns(abs(offset_ns))}{doubt} {'ahead of' if offset_ns >= 0 else 'behind'} {printable(other)}{why}"


def words_of(kind: str, place: str, to_place: str | None) -> str:
    """Name a part of a wait: ``path client–lb``, ``at app``, ``behind lb`` or ``losses lb → client``."""
    if kind in _AT_ONE:
        return f"{_AT_ONE[kind]} {printable(place)}"
    if kind in _ONE_WAY:
        word = _ONE_WAY[kind]
        return f"{word} {printable(place)} → {printable(to_place)}" if to_place else word
    if kind == _BETWEEN:
        return f"between {printable(place)} and {printable(to_place or '')}"
    return f"path {printable(place)}–{printable(to_place or '')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What users waited for in one host, or on the way between two places."""

    kind: str
    place: str
    to_place: str | None
    total_ns: int
    uncertainty_ns: int | None
    """How much longer or shorter the clocks may make it; None if nothing is known of a clock."""
    explained_ns: int = 0
    """What of it findings explain."""

    @property
    def words(self) -> str:
        """``path client–lb``, ``at app``, ``behind lb``, ``losses lb → client`` or ``pace lb → client``."""
        return words_of(self.kind, self.place, self.to_place)

    @property
    def spent(self) -> str:
        """``on the path client–lb``, ``at app`` or ``until lost packets came again (losses lb → client)``."""
        if self.kind == "loss":
            return f"until lost packets came again ({self.words})"
        if self.kind == "pace":
            return f"waiting for acknowledgements ({self.words})"
        return self.words if self.kind in _AT_ONE or self.kind == _BETWEEN else f"on the {self.words}"

    @property
    def length(self) -> str:
        """``21.3 ms ± 310 µs``."""
        if self.uncertainty_ns is None:
            return f"{format_ns(self.total_ns)} (clocks unknown)"
        return format_ns(self.total_ns) + (f" ± {format_ns(self.uncertainty_ns)}" if self.uncertainty_ns else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Where the time of one server's connections was spent."""

    server_ip: str
    server_port: int
    total_ns: int
    parts: tuple[Part, ...]

    @property
    def endpoint(self) -> str:
        """Address and port."""
        return endpoint(self.server_ip, self.server_port)

    @property
    def rest_ns(self) -> int:
        """Time of which the captures do not tell where it was spent."""
        return self.total_ns - sum(part.total_ns for part in self.parts)

    def __str__(self) -> str:
        """``of 84.0 ms: path client–lb 21.3 ms, at lb 1.10 ms, at app 61.6 ms``."""
        parts = [f"{part.words} {part.length}" for part in self.parts]
        if self.rest_ns:
            parts.append(f"not known {format_ns(self.rest_ns)}")
        return f"of {format_ns(self.total_ns)}: {', '.join(parts)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Packets that one place saw and the next one did not."""

    from_place: str
    to_place: str
    packets: int
    """That the first one saw."""
    lost: int
    uncaptured: int
    """That the next one's capture lacks, though they arrived."""
    frame: int
    streams: int

    def __str__(self) -> str:
        """``client → lb: 12 of 1,204 packets lost (1.0 %), on 3 connections, the first at frame 812``."""
        facts = []
        if self.lost:
            share = format_share(self.lost, self.packets)
            facts.append(f"{format_count(self.lost)} of {count_of(self.packets, 'packet')} lost ({share})")
        if self.uncaptured:
            facts.append(
                f"{format_count(self.uncaptured)} arrived, but {printable(self.to_place)}'s capture lacks them"
            )
        where = f"on {count_of(self.streams, 'connection')}, the first at frame {self.frame}"
        return f"{printable(self.from_place)} → {printable(self.to_place)}: {', '.join([*facts, where])}"


def clocks(tables: Tables) -> list[Clock]:
    """List the clocks, in the order of the places."""
    return [
        Clock(**row)
        for row in rows(
            tables,
            """
            SELECT place, clocks.reference, method, offset_ns, drift_ppb, uncertainty_ns, through, through_ns,
                offset_ns - (
                    SELECT coalesce(
                        arg_max(other.offset_ns, other.from_at) FILTER (other.from_at <= clocks.from_at),
                        arg_min(other.offset_ns, other.from_at))
                    FROM clocks other WHERE other.place = clocks.through) AS through_ahead_ns,
                clocks.packets,
                row_number() OVER (PARTITION BY place ORDER BY from_at) AS piece,
                count(*) OVER (PARTITION BY place) AS pieces,
                from_at - (SELECT min(opened_at) FROM connections) AS from_ns, to_at - from_at AS lasts_ns
            FROM clocks JOIN places USING (place) ORDER BY number, from_at
            """,
        )
    ]


TURNED = """
    SELECT part.* EXCLUDE (place, to_place), coalesce(there.position, 0) AS position,
        part.kind = 'path' AND coalesce(there.position > back.position, false)
            OR part.kind = 'between' AND there.position IS NULL AS is_back,
        if(is_back, part.to_place, part.place) AS place, if(is_back, part.place, part.to_place) AS to_place
    FROM phase_places part
    LEFT JOIN paths there ON there.stream = of_stream AND there.place = part.place
    LEFT JOIN paths back ON back.stream = of_stream AND back.place = part.to_place
"""
"""Rows of ``phase_places``, with both directions of a path as one way, from the client on.

A clock's error adds to one direction and lacks in the other, which is marked: ``is_back``.
"""

_SPENT = f"""
    WITH waits AS (
        SELECT server_ip, server_port, stream, start_at, end_at FROM phases JOIN connections USING (stream)
        WHERE phases.kind IN {PLACED}
            AND {OF_USERS}),
    totals AS (
        SELECT server_ip, server_port, sum(end_at - start_at)::BIGINT AS total_ns FROM waits
        WHERE stream IN (SELECT stream FROM phase_places) GROUP BY ALL),
    parts AS ({TURNED}),
    ways AS (
        SELECT server_ip, server_port, kind, place, to_place, sum(end_at - start_at)::BIGINT AS total_ns,
            coalesce(sum(explained_ns), 0)::BIGINT AS explained_ns,
            (abs(sum(if(is_back, -1, 1) * uncertainty_ns)))::BIGINT AS uncertainty_ns,
            count(*) FILTER (kind IN ('path', 'between') AND uncertainty_ns IS NULL) AS unknown,
            min(of_stream) AS of_stream, min(position) AS position
        FROM parts JOIN connections USING (stream) LEFT JOIN explained_places USING (stream, start_at)
        GROUP BY server_ip, server_port, kind, place, to_place)
    SELECT server_ip, server_port, totals.total_ns AS whole_ns, kind, place, to_place, ways.total_ns,
        if(unknown > 0, NULL, coalesce(uncertainty_ns, 0)) AS uncertainty_ns, explained_ns
    FROM totals JOIN ways USING (server_ip, server_port)
    ORDER BY whole_ns DESC, server_ip, server_port, of_stream, position, kind <> 'host', kind,
        place
"""

WORST_AT = f"""
    WITH here AS (
        SELECT stream, phase, start_at, end_at FROM ({TURNED}) JOIN connections USING (stream)
        WHERE server_ip = $ip AND server_port = $port AND kind = $kind AND place = $place
            AND to_place IS NOT DISTINCT FROM $to_place),
    worst AS (
        SELECT *, end_at - start_at AS ns, count(*) OVER () AS pieces FROM here
        ORDER BY ns DESC, stream, start_at LIMIT 1)
    SELECT stream, start_frame AS frame, ns, pieces, NULL AS request
    FROM worst JOIN phases USING (stream)
    WHERE phases.kind = worst.phase AND phases.start_at <= worst.start_at AND worst.end_at <= phases.end_at
"""
"""The longest stretch of time at a place, or on a path, in the waits at a server."""


def spent(tables: Tables) -> list[Spent]:
    """Say of each server that users wait for where the time was spent, the longest first."""
    by_server: dict[tuple[str, int, int], list[Part]] = {}
    for row in rows(tables, _SPENT):
        whole = (row.pop("server_ip"), row.pop("server_port"), row.pop("whole_ns"))
        by_server.setdefault(whole, []).append(Part(**row))
    return [
        Spent(server_ip=ip, server_port=port, total_ns=total_ns, parts=tuple(parts))
        for (ip, port, total_ns), parts in by_server.items()
    ]


def losses(tables: Tables) -> Iterator[Lost]:
    """Say what got lost between which places, the most first."""
    for row in rows(
        tables,
        """
        WITH lost AS (
            SELECT from_place, to_place, count(*) FILTER (NOT captured_elsewhere) AS lost,
                count(*) FILTER (captured_elsewhere) AS uncaptured, min(frame) AS frame,
                count(DISTINCT stream) AS streams, any_value(sender) AS sender
            FROM losses GROUP BY ALL)
        SELECT from_place, to_place, (
            SELECT count(*) FROM place_packets WHERE place = from_place AND place_packets.sender = lost.sender
                AND (stream IN (SELECT stream FROM paths WHERE place = to_place)
                    OR frame IN (SELECT frame FROM losses WHERE losses.to_place = lost.to_place))) AS packets,
            lost, uncaptured, frame, streams
        FROM lost ORDER BY lost DESC, uncaptured DESC, from_place, to_place
        """,
    ):
        yield Lost(**row)
