"""Where instants stand on the time axis of a picture: long silences are left out of it.

In: tables. Out: places on the axis, as SQL; what is left out where. The tables keep the dates of the files: captures of
different years, and clocks that step by years, would make an axis on which nothing can be seen.
"""

from dataclasses import dataclass

from conchart.labels.units import count_of
from conchart.store.tables import Tables

YEAR_NS = 31_557_600 * 10**9
"""Of 365.25 days. A silence so long, in which no connection is open, is left out."""
_SHOWN = 20
"""What is left of a silence is this part of the rest, so that it can be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """A silence that is left out."""

    until_at: int
    """The instant at which it ends."""
    at: int
    """Its middle on the axis, where a mark belongs."""
    left_out_ns: int
    """How much longer it is than the axis shows."""
    silent_ns: int
    """How long it is."""

    @property
    def says(self) -> str:
        """What stands beside the mark."""
        return f"{count_of(round(self.silent_ns / YEAR_NS), 'year')} left out"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAxis:
    """An axis that counts nanoseconds from an instant."""

    origin: int
    span: int
    folds: tuple[Fold, ...]

    def at(self, instant: int) -> int:
        """Give the place on the axis of an instant at which a connection was open."""
        return instant - self.origin - sum(fold.left_out_ns for fold in self.folds if fold.until_at <= instant)

    def place(self, instant: str) -> str:
        """Give the place on the axis of ``instant``, an SQL expression for one at which a connection was open."""
        left_out = sum(fold.left_out_ns for fold in self.folds)
        cases = ""
        for fold in reversed(self.folds):
            cases += f" WHEN {instant} >= {fold.until_at} THEN {left_out}"
            left_out -= fold.left_out_ns
        return f"({instant} - {self.origin}{f' - CASE{cases} ELSE 0 END' if cases else ''})"


def first_instant(tables: Tables) -> int:
    """Give the instant that pictures count from: that of the first packet, or of the first connection if it is earlier.

    Seen from an end, a connection may open before anything was captured.
    """
    ((instant,),) = tables.fetch(
        "SELECT least((SELECT min(first_at) FROM captures), (SELECT min(opened_at) FROM connections))"
    )
    return instant or 0


def time_axis(tables: Tables) -> TimeAxis:
    """Give the axis of all connections."""
    origin = first_instant(tables)
    ((closed_at,),) = tables.fetch("SELECT max(closed_at) FROM connections")
    whole = max(0, (origin if closed_at is None else closed_at) - origin)
    if whole < YEAR_NS:
        return TimeAxis(origin=origin, span=whole, folds=())
    silences = tables.fetch(
        f"""
        SELECT coalesce(silent_at, {origin}), opened_at
        FROM (SELECT opened_at, max(closed_at) OVER (
            ORDER BY opened_at, stream ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS silent_at FROM connections)
        WHERE opened_at - coalesce(silent_at, {origin}) >= {YEAR_NS} ORDER BY opened_at"""
    )
    heard = whole - sum(until - since for since, until in silences)
    shown = max(1, heard // _SHOWN)
    folds, left_out = [], 0
    for since, until in silences:
        at = since - origin - left_out + shown // 2
        folds.append(Fold(until_at=until, at=at, left_out_ns=until - since - shown, silent_ns=until - since))
        left_out += folds[-1].left_out_ns
    return TimeAxis(origin=origin, span=whole - left_out, folds=tuple(folds))


def captured_ns(tables: Tables) -> int:
    """Give how long was captured, from the first packet to the last: also what an axis leaves out of it."""
    ((first_at, last_at),) = tables.stored("SELECT min(first_at), max(last_at) FROM captures").fetchall()
    return 0 if first_at is None else int(last_at - first_at)
