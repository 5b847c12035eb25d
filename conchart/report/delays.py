"""How much longer than the fastest packet others took from one place to the next: queues on the way show so.

In: the tables ``place_packets``, ``paths``, ``losses``. Out: :class:`Delays`, one for each path and direction; nothing
where nobody named places.

A delay above the least one needs no offset of a clock, only that its drift is known.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from conchart.labels.printable import printable
from conchart.labels.units import count_of, format_count, format_ns
from conchart.report.axis import TimeAxis
from conchart.report.rows import rows
from conchart.store.tables import Tables

MOST_POINTS = 120
"""Parts of time into which the capture is divided: as many as can be told apart at a glance."""
_STEPS = (1, 2, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Packets that left within the same part of time."""

    start_ns: int
    """On the axis of the page."""
    packets: int
    median_ns: int | None
    """None: all were lost."""
    most_ns: int | None
    lost: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """One direction of the way between two neighbouring places."""

    from_place: str
    to_place: str
    packets: int
    lost: int
    median_ns: int
    """Above the least delay, as all that follow."""
    most_ns: int
    bucket_ns: int
    points: tuple[Point, ...]

    @property
    def name(self) -> str:
        """``client → lb``."""
        return f"{printable(self.from_place)} → {printable(self.to_place)}"

    def __str__(self) -> str:
        """``1,204 packets, 3 of them lost: half took up to 1.20 ms longer than the fastest, one 80.1 ms``."""
        lost = f", {format_count(self.lost)} of them lost" if self.lost else ""
        packets = count_of(self.packets + self.lost, "packet")
        return (
            f"{packets}{lost}: half took up to {format_ns(self.median_ns)} longer than the fastest, the slowest "
            f"{format_ns(self.most_ns)} longer"
        )


_DELAYS = """
    WITH ways AS (
        -- A place that saw nothing of a direction is not on its way.
        SELECT stream, sender, place AS from_place, position,
            lead(place) OVER (PARTITION BY stream, sender ORDER BY if(sender = 'client', position, -position))
                AS to_place
        FROM (SELECT DISTINCT stream, sender, place FROM place_packets WHERE packet IS NOT NULL) JOIN paths
            USING (stream, place)),
    took AS (
        SELECT from_place, to_place, ways.sender, position, left_at.seen_at,
            came.seen_at - left_at.seen_at AS ns
        FROM ways
        JOIN place_packets left_at ON left_at.stream = ways.stream AND left_at.place = from_place
            AND left_at.sender = ways.sender
        JOIN place_packets came ON came.stream = ways.stream AND came.place = to_place
            AND came.packet = left_at.packet),
    above AS (
        SELECT from_place, to_place, sender, position, {place} // $bucket AS part,
            ns - min(ns) OVER (PARTITION BY from_place, to_place, sender) AS ns
        FROM took),
    whole AS (
        SELECT from_place, to_place, sender, min(position) AS position, count(*) AS packets,
            quantile_disc(ns, 0.5) AS median_ns, max(ns) AS most_ns FROM above GROUP BY ALL),
    parts AS (
        SELECT from_place, to_place, sender, part, count(*) AS part_packets, quantile_disc(ns, 0.5) AS part_median_ns,
            max(ns) AS part_most_ns FROM above GROUP BY ALL),
    missing AS (
        SELECT from_place, to_place, sender, {place} // $bucket AS part, count(*) AS lost
        FROM losses WHERE NOT captured_elsewhere GROUP BY ALL)
    SELECT from_place, to_place, packets, median_ns, most_ns, part, part_packets, part_median_ns, part_most_ns, lost
    FROM parts FULL JOIN missing USING (from_place, to_place, sender, part)
    JOIN whole USING (from_place, to_place, sender)
    ORDER BY position, sender, from_place, to_place, part
"""


def delays(tables: Tables, axis: TimeAxis) -> Iterator[Delays]:
    """Give each direction of each path between neighbouring places, from the client on."""
    bucket_ns = _bucket(axis.span)
    query = _DELAYS.format(place=axis.place("seen_at"))
    buckets = rows(tables, query, {"bucket": bucket_ns})
    for _, group in groupby(buckets, key=lambda row: (row["from_place"], row["to_place"])):
        points = list(group)
        first = points[0]
        yield Delays(
            **{name: first[name] for name in ("from_place", "to_place", "packets", "median_ns", "most_ns")},
            lost=sum(row["lost"] or 0 for row in points),
            bucket_ns=bucket_ns,
            points=tuple(
                Point(
                    start_ns=row["part"] * bucket_ns,
                    packets=row["part_packets"] or 0,
                    median_ns=row["part_median_ns"],
                    most_ns=row["part_most_ns"],
                    lost=row["lost"] or 0,
                )
                for row in points
            ),
        )


def _bucket(span_ns: int) -> int:
    """Give the least round length of which no more than so many fill the capture."""
    least = max(1, -(-span_ns // MOST_POINTS))
    power: int = 10 ** (len(str(least)) - 1)
    return next(step * power for step in (*_STEPS, 10) if step * power >= least)
