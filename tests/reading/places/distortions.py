"""Captures of the same packets with clocks that are wrong at random: a seed is a case.

In: the folders of ``captures/places``. Out: pcap files in a folder of the test's, and their :class:`Truth`.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from tests.conftest import ROOT
from tests.reading.places.truth import Clock, Truth, records

CAPTURES = ROOT / "captures" / "places"
OF_CHANGES = {
    "clock-set", "containers", "detour", "doubled", "firewall", "proxy-header", "reordered", "syn-proxy", "tunnel",
}  # fmt: skip
"""Cases of which ``test_changes.py`` and ``test_topologies.py`` know the truth: packets are changed, or go
another way."""
CASES = sorted(path.parent for path in CAPTURES.glob("*/truth.json") if path.parent.name not in OF_CHANGES)
APART = [case for case in CASES if case.name not in ("one-host", "http3")]
"""Places with a line in between. On one host there is one clock, and packets take less than a microsecond."""
MS, SECOND = 1_000_000, 10**9
LEAST_OFFSET_NS, MOST_OFFSET_NS = 100_000, 12 * 3_600 * SECOND
LEAST_STEP_NS, MOST_STEP_NS = 500 * MS, 3_600 * SECOND
"""Less than a round trip cannot be told from another delay."""
MOST_DRIFT_PPB = 100_000
RESOLUTIONS_NS = (1, 1, 1, 1_000, 1_000, MS)


def clocks() -> ModuleType:
    """Import ``examples/places/clocks.py``."""
    name = "examples_places_clocks"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / "examples/places/clocks.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def restored(folder: Path, to: Path) -> Truth:
    """Write the captures of a case with true times."""
    to.mkdir(parents=True, exist_ok=True)
    truth = Truth(folder)
    right = {}
    for place, capture in truth.captures.items():
        clocks().restore(capture, to / capture.name, truth.document["clocks"][place])
        right[place] = clocks().distort(to / capture.name, to / "again", clocks().make_clock(zero_at=0))
    (to / "again").unlink()
    return Truth(folder, {place: to / path.name for place, path in truth.captures.items()}, right)


def distorted(right: Truth, seed: int, to: Path) -> Truth:
    """Write the captures of a case with true times anew, each place with the clock that ``seed`` chooses for it."""
    to.mkdir(parents=True, exist_ok=True)
    written_clocks: dict[str, Mapping[str, Any]] = {}
    for place, capture in right.captures.items():
        times = sorted(at for _, at, _ in records(capture))
        clock = clocks().make_clock(**wrong_clock(Random(f"{seed} {place}"), times))
        written_clocks[place] = clocks().distort(capture, to / capture.name, clock)
    return Truth(right.folder, {place: to / path.name for place, path in right.captures.items()}, written_clocks)


def wrong_clock(chance: Random, times: list[int]) -> dict[str, Any]:
    """Choose a clock: offset, drift, steps, slews, resolution; ``times`` are those of a capture's packets."""
    kind = chance.choice(("straight", "straight", "step", "steps", "slew", "both"))
    zero_at = times[0]

    def between(least: float, most: float) -> int:
        """An instant between two packets, at a share of them, since the first."""
        number = int(len(times) * chance.uniform(least, most))
        return (times[number] + times[number + 1]) // 2 - zero_at

    steps = (
        {between(0.3, 0.45): signed(chance, LEAST_STEP_NS, MOST_STEP_NS)} if kind in ("step", "steps", "both") else {}
    )
    steps |= {between(0.6, 0.7): signed(chance, LEAST_STEP_NS, MOST_STEP_NS)} if kind == "steps" else {}
    slews = {between(0.2, 0.8): drift(chance)} if kind in ("slew", "both") else {}
    return {
        "zero_at": zero_at,
        "offset_ns": chance.choice((0, *(signed(chance, LEAST_OFFSET_NS, MOST_OFFSET_NS) for _ in range(7)))),
        "drift_ppb": drift(chance),
        "steps": steps,
        "slews": slews,
        "resolution_ns": chance.choice(RESOLUTIONS_NS),
    }


def drift(chance: Random) -> int:
    """Choose a drift, now and then none."""
    return chance.choice((0, *(chance.randint(-MOST_DRIFT_PPB, MOST_DRIFT_PPB) for _ in range(4))))


def signed(chance: Random, least: int, most: int) -> int:
    """Choose a number of either sign, each order of magnitude as often as the others."""
    size: float = least * (most / least) ** chance.random()
    return round(size) * chance.choice((-1, 1))


def stretches(clocks: Iterable[Clock]) -> list[tuple[int, int]]:
    """Cut the true time where a clock was set: pairs of instants."""
    cuts = sorted(
        piece.true_at for clock in clocks for piece in clock.pieces if clock.jumps(piece.true_at - 1, piece.true_at)
    )
    return list(zip([-(1 << 63), *cuts], [*cuts, 1 << 63], strict=True))
