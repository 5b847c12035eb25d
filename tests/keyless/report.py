"""What the command prints: every exchange that is not exact, the figures, and what was not compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.conftest import ROOT
from tests.keyless.charge import FRESH, HELD_OUT, TUNED, Charge
from tests.keyless.comparison import CONCURRENT, LARGE, OTHER, SMALL, Comparison, Verdict

CAPTURES = sorted(path.parent / "input.pcap" for path in (ROOT / "captures" / "handshakes").glob("*/keys.log"))
OF_HTTP_2 = [
    ROOT / "captures" / "handshakes" / "chromium-nginx-1.3-http2" / "input.pcap",
    *sorted(path.parent / "input.pcap" for path in (ROOT / "captures" / "multiplexed").glob("*/keys.log")),
    *sorted(path.parent / "input.pcap" for path in (ROOT / "captures" / "versions").glob("h2-*/keys.log")),
]
OF_HTTP_3 = [
    *(
        path.with_name("input.pcap")
        for path in sorted((ROOT / "captures").glob("**/keys.log"))
        if "http3" in path.parts and path.with_name("input.pcap").exists()
    ),
    *sorted(path.parent / "input.pcap" for path in (ROOT / "captures" / "versions").glob("h3-*/keys.log")),
]
LISTED = Path(__file__).with_name("wrong.txt")
"""The exchanges of :data:`CAPTURES` that are known not to be exact, as :class:`Verdict` prints them."""
PAGE = ROOT / "docs" / "phases.md"
"""It has the table."""
HEADER = ("traffic", "captures", "exchanges", "within one frame", "exact", "sure and not exact", "false turns")


def inexact(comparisons: Iterable[Comparison]) -> list[str]:
    """Name every verdict that is not exact."""
    return [str(verdict) for each in comparisons for verdict in each.verdicts if not verdict.exact]


def table(comparisons: Sequence[Comparison]) -> str:
    """Count by kind of traffic, as Markdown."""
    rows: list[tuple[str, ...]] = [HEADER]
    verdicts = [verdict for each in comparisons for verdict in each.verdicts]
    for kind in (SMALL, CONCURRENT, LARGE, OTHER):
        some = [verdict for verdict in verdicts if verdict.kind == kind]
        rows += [_row(kind, some)] if some else []
    rows.append(_row("all", verdicts))
    head, *body = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([head, "|---" * len(HEADER) + "|", *body])


def charges(found: Sequence[Charge], protocol: str) -> str:
    """Say of each capture what part of its connections' life is charged wrongly, as Markdown."""
    lines = [f"| {protocol} | connections | life, ms | wrong, ms | wrong |", "|---|---|---|---|---|"]
    for part in (TUNED, HELD_OUT, FRESH):
        some = [each for each in found if each.part == part]
        lines += [_charge(each.case, [each]) for each in some]
        lines += [_charge(f"all {part}", some)] if some else []
    return "\n".join(lines)


def _charge(name: str, some: Sequence[Charge]) -> str:
    life, wrong = sum(each.life_ns for each in some), sum(each.wrong_ns for each in some)
    connections = sum(each.connections for each in some)
    return f"| {name} | {connections} | {life / 1e6:,.0f} | {wrong / 1e6:,.1f} | {100 * wrong / life:.1f} % |"


def _row(name: str, verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    true = [verdict for verdict in verdicts if verdict.true]
    numbers = (
        len({verdict.case for verdict in verdicts}),
        len(true),
        sum(verdict.right for verdict in true),
        sum(verdict.exact for verdict in true),
        sum(verdict.boast for verdict in verdicts),
        len(verdicts) - len(true),
    )
    return (name, *map(str, numbers))


def skipped(comparisons: Iterable[Comparison]) -> list[str]:
    """Count what no verdict is about, by reason."""
    total = Counter(some.reason for each in comparisons for some in each.skipped)
    return [f"{count} × {reason}" for reason, count in sorted(total.items())]


def listed() -> list[str]:
    """Read :data:`LISTED`."""
    return LISTED.read_text(encoding="utf-8").splitlines()


def update(comparisons: Sequence[Comparison]) -> None:
    """Take from :data:`LISTED` what is no longer so, write the table anew. This never makes the list longer."""
    found = inexact(comparisons)
    LISTED.write_text("".join(f"{line}\n" for line in listed() if line in found), encoding="utf-8")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(f"| {HEADER[0]} | {HEADER[1]} |")
    _, blank, after = rest.partition("\n\n")
    PAGE.write_text(before + table(comparisons) + blank + after, encoding="utf-8")
