"""The targets of speed and memory, and whether a run met them.

In: results. Out: verdicts in words, with both numbers. A shape without a target is measured, and that is all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.benchmarks.results import Quantity, Result
from tests.benchmarks.tools import CONCHART, OURS, PAGE, PAST, PEERS, REFERENCE, TEXT

MAX_RATIO = {"full": 4.0, "resumed": 4.0, "keepalive": 1.5, "bulk": 1.0, "headers": 1.0}
"""Reading, in times of tcpdump's copy."""
SHORT = ("full", "resumed")
"""Shapes of many short TLS connections."""
MAX_BUSY, MAX_TEXT, MAX_PAGE = 6.0, 12.0, 16.0
"""Of these shapes: processor time of reading, wall time of the summary and of the page, in times of tcpdump's copy."""
MAX_MEMORY = 150 * 2**20
"""Of reading so many connections, or fewer."""
MEMORY_CONNECTIONS = 37_000
PAGE_CONNECTIONS = 104_000
"""A page of as many connections, or fewer, stays within the next three."""
PAGE_MEMORY = 350 * 2**20
PAGE_BYTES = 12 * 2**20
OPEN_S = 2.0
ZOOM_S = 0.100
STEP_S = 0.080
"""Processor time of the page's thread for a step of a zoom or pan."""
FEW_CONNECTIONS = 60
FEW_STEP_S = 0.030
"""The same, of a page of as many connections or fewer."""
MAX_SLOWER = 1.10
"""How much longer anything may take than in the other checkout."""
MAX_GROWTH = 1.25
"""How much more memory four times the file may take when the connections stay as few."""

Verdict = tuple[bool, str]

if TYPE_CHECKING:
    from tests.benchmarks.browsing import Browsed  # which needs selenium


def verdicts(results: list[Result]) -> list[Verdict]:
    """The targets, each met or not, in words with both numbers."""
    judged: list[Verdict] = []
    for result in results:
        where = f"{result.name}, {result.packets:,} packets"
        judges = (_reading, _short, _memory, _page, _peers, _before)
        judged += [(met, f"{where}: {text}") for judge in judges for met, text in judge(result)]
    return judged + list(_growth(results))


def _reading(result: Result) -> Iterator[Verdict]:
    limit = MAX_RATIO.get(result.shape)
    if problem := result.problem(CONCHART):
        yield False, f"{CONCHART}: {problem}"
    elif limit is not None:
        ratio = result.ratio(CONCHART)
        if ratio is None:
            yield False, f"no time of {REFERENCE} to compare with"
        else:
            yield ratio <= limit, f"{ratio:.2f} x {REFERENCE}; target {limit} x"


def _short(result: Result) -> Iterator[Verdict]:
    if result.shape not in SHORT:
        return
    limits: tuple[tuple[str, Quantity, float], ...] = (
        (CONCHART, "busy", MAX_BUSY),
        (TEXT, "seconds", MAX_TEXT),
        (PAGE, "seconds", MAX_PAGE),
    )
    for tool, kind, limit in limits:
        ratio = result.ratio(tool, kind)
        if ratio is not None:
            what = "processor" if kind == "busy" else "wall"
            yield ratio <= limit, f"{tool} takes {ratio:.1f} x the {what} time of {REFERENCE}; target {limit} x"


def _memory(result: Result) -> Iterator[Verdict]:
    memory = result.middle(CONCHART).memory
    if memory is not None and result.shape in SHORT:
        limit = MAX_MEMORY * max(1.0, result.connections / MEMORY_CONNECTIONS)
        yield memory <= limit, f"reading takes {memory / 2**20:,.0f} MiB; target {limit / 2**20:,.0f} MiB"


def _page(result: Result) -> Iterator[Verdict]:
    page = result.middle(PAGE)
    if result.shape not in SHORT or page.memory is None or page.written is None:
        return
    times = max(1.0, result.connections / PAGE_CONNECTIONS)
    most = PAGE_MEMORY * times
    yield page.memory <= most, f"the page takes {page.memory / 2**20:,.0f} MiB; target {most / 2**20:,.0f} MiB"
    most = PAGE_BYTES * times
    yield page.written <= most, f"the page has {page.written / 2**20:.1f} MiB; target {most / 2**20:.1f} MiB"


def _peers(result: Result) -> Iterator[Verdict]:
    """Ahead of each peer in wall and processor time."""
    for peer in PEERS:
        wall, busy = result.ratio(peer, to=CONCHART), result.ratio(peer, "busy", to=CONCHART)
        if wall is not None and busy is not None:
            text = f"{peer} takes {wall:.2f} x the wall and {busy:.2f} x the processor time of {CONCHART}; target > 1 x"
            yield wall > 1 and busy > 1, text


def _before(result: Result) -> Iterator[Verdict]:
    for tool in OURS:
        slower = result.ratio(tool, to=tool + PAST)
        if slower is not None:
            yield slower <= MAX_SLOWER, f"{tool}: {slower:.2f} x the time of before; target {MAX_SLOWER} x"


def _growth(results: list[Result]) -> Iterator[Verdict]:
    """Real transfers are as many as there was time for: only the generated ones are alike."""
    sizes = [result for result in results if result.shape == "bulk" and result.name.startswith("generated")]
    memories = [memory for result in sizes if (memory := result.middle(CONCHART).memory) is not None]
    if len(memories) > 1:
        growth = memories[-1] / memories[0]
        files = sizes[-1].capture.stat().st_size / sizes[0].capture.stat().st_size
        text = f"bulk: a file {files:.1f} times as large takes {growth:.2f} times the memory; target {MAX_GROWTH}"
        yield growth <= MAX_GROWTH, text


def browsing(name: str, browsed: Browsed, connections: int) -> list[Verdict]:
    """What somebody who opens the page in Chromium waits for, and what zoom and pan cost."""
    times = max(1.0, connections / PAGE_CONNECTIONS)
    opened, zoom, step = browsed.opened, browsed.zoom, browsed.step
    most = FEW_STEP_S if connections <= FEW_CONNECTIONS else STEP_S * times
    text = f"a step of zoom or pan takes {step * 1_000:.0f} ms of processor time; target {most * 1_000:.0f} ms"
    return [
        (opened <= OPEN_S * times, f"{name}: Chromium opens the page in {opened:.2f} s; target {OPEN_S * times:.2f} s"),
        (zoom <= ZOOM_S * times, f"{name}: zoom and pan take {zoom:.3f} s (p95); target {ZOOM_S * times:.3f} s"),
        (step <= most, f"{name}: {text}"),
    ]
