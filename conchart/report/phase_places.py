"""Where the time of phases was spent, as page and terminal both tell it: each host and each path once.

In: the tables ``phase_places``, ``phases``, ``paths``. Out: :class:`Where`; nothing where nobody named places.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from conchart.labels.units import format_ns
from conchart.report.places import TURNED, Part
from conchart.report.rows import Row, rows
from conchart.store.tables import Tables

PARTS = f"""
    WITH turned AS ({TURNED}),
    lasted AS (
        SELECT stream, exchange, kind AS phase, sum(end_at - start_at)::BIGINT AS whole_ns
        FROM phases GROUP BY ALL)
    SELECT turned.stream, turned.exchange, turned.phase, any_value(whole_ns) AS whole_ns, turned.kind, place, to_place,
        sum(end_at - start_at)::BIGINT AS total_ns, min(start_at) AS since_at,
        if(bool_or(turned.kind IN ('path', 'between') AND uncertainty_ns IS NULL), NULL,
            coalesce(abs(sum(if(is_back, -uncertainty_ns, uncertainty_ns))), 0)::BIGINT) AS uncertainty_ns
    FROM turned JOIN lasted ON lasted.stream = turned.stream AND lasted.phase = turned.phase
        AND lasted.exchange IS NOT DISTINCT FROM turned.exchange
    GROUP BY ALL ORDER BY stream, since_at, kind DESC, place
"""
"""Of each phase, and of its ``whole_ns``, what each host and path has; who was waited for first comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """A phase of an exchange, or of a connection, divided into hosts and paths."""

    phase: str
    exchange: int | None
    """None: of the whole connection."""
    total_ns: int
    parts: tuple[Part, ...]

    @property
    def consists(self) -> str:
        """``path client–lb 21.3 ms ± 310 µs, at app 62.4 ms``."""
        parts = [f"{part.words} {part.length}" for part in self.parts]
        rest = self.total_ns - sum(part.total_ns for part in self.parts)
        if rest:
            parts.append(f"not known {format_ns(rest)}")
        return ", ".join(parts)

    def __str__(self) -> str:
        """``wait 84.0 ms = path client–lb 21.3 ms, at app 62.4 ms``."""
        return f"{self.phase} {format_ns(self.total_ns)} = {self.consists}"


def where(part_rows: list[Row]) -> Iterator[Where]:
    """Give the phases of a connection's exchanges from its rows of ``PARTS``."""
    phases: dict[tuple[str, int | None, int], list[Part]] = {}
    for row in part_rows:
        part = Part(**{name: row[name] for name in ("kind", "place", "to_place", "total_ns", "uncertainty_ns")})
        phases.setdefault((row["phase"], row["exchange"], row["whole_ns"]), []).append(part)
    for (phase, exchange, total_ns), parts in phases.items():
        yield Where(phase=phase, exchange=exchange, total_ns=total_ns, parts=tuple(parts))


def phase_places(tables: Tables, stream: int) -> list[Where]:
    """Give the phases of one connection."""
    return list(where(list(rows(tables, f"SELECT * FROM ({PARTS}) WHERE stream = $stream", {"stream": stream}))))
