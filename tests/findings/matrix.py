"""Which finding fires in which capture. In: captures. Out: rows of ``findings``, and lines of text about them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from conchart import Trace
from conchart.analysis.findings.rule import load_rules
from conchart.store.schema import SEVERITIES

NOTHING = "-"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of ``findings``."""

    number: int
    finding: str
    severity: str
    streams: tuple[int, ...]
    frames: tuple[int, ...]
    count: int
    cost_ns: int
    critical_ns: int
    shared_ns: int
    vain_ns: int
    waited_ns: int
    each_ns: int | None
    low_ns: int | None
    high_ns: int | None
    evidence: str
    who: str | None
    because: str | None
    root: int | None


def rows_of(trace: Trace) -> tuple[Row, ...]:
    """Give what is found in a capture, worst first."""
    found = trace.sql(f"SELECT {', '.join(Row.__slots__)} FROM findings ORDER BY number").fetchall()
    return tuple(Row(*map(_hashable, row)) for row in found)


def _hashable(value: Any) -> Any:  # noqa: ANN401  (whatever a column holds)
    return tuple(value) if isinstance(value, list) else value


def line(rows: Iterable[Row]) -> str:
    """Say what fires, how grave at the most and how often: ``client-no-reuse note 1, nagle-delayed-ack warning 2``."""
    worst: dict[str, int] = {}
    times: Counter[str] = Counter()
    for row in rows:
        worst[row.finding] = max(worst.get(row.finding, 0), SEVERITIES.index(row.severity))
        times[row.finding] += 1
    return ", ".join(f"{name} {SEVERITIES[worst[name]]} {times[name]}" for name in sorted(worst)) or NOTHING


def table(rows: dict[str, tuple[Row, ...]]) -> Iterator[str]:
    """Give, for each finding, the number of captures in which it fires, of firings, and these by severity."""
    yield f"{'finding':<32} {'captures':>8} {'firings':>8} " + " ".join(f"{word:>8}" for word in reversed(SEVERITIES))
    for name in sorted(rule.name for rule in load_rules()):
        fired = {case: [row for row in found if row.finding == name] for case, found in rows.items()}
        severities = Counter(row.severity for found in fired.values() for row in found)
        numbers = [sum(map(bool, fired.values())), severities.total(), *(severities[w] for w in reversed(SEVERITIES))]
        yield f"{name:<32} " + " ".join(f"{number:>8}" for number in numbers)
