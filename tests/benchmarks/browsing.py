"""How long somebody waits for a page, and what zoom and pan cost: Chromium opens the page and presses keys.

In: a page. Out: seconds until it answers, from a key to the frame that shows it, and of processor time per step.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from pathlib import Path
from time import perf_counter, sleep

import conchart
from conchart.outputs.options import DrawOptions
from conchart.outputs.page.page import write_html
from tests.browser.conftest import Opened, chrome
from tests.conftest import ROOT

KEYS = ("+", "+", "+", "ArrowRight", "ArrowRight", "ArrowLeft", "-", "-", "-", "0")
ROUNDS = 4
PATIENCE_S = 60
REST_S = 0.6
"""Until what is postponed while somebody zooms has been done."""
FEW = ROOT / "captures" / "reverse-proxy" / "https-no-keepalive" / "input.pcap"
FEW_CONNECTIONS = 6
"""Of that capture."""

# From a key to the frame after the one for which the lanes have changed: milliseconds.
STEP = """
    const [key, done] = arguments;
    const began = performance.now();
    document.getElementById("lanes").dispatchEvent(new KeyboardEvent("keydown", { key }));
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began)));
"""


@dataclass(frozen=True)
class Browsed:
    """Seconds."""

    opened: float
    zoom: float
    """95th percentile, from a key to the frame that shows it."""
    step: float
    """Processor time of the page's thread per key, with what it does when the keys rest."""


def browse(page: Path, folder: Path) -> Browsed:
    """Open a page, and press every key some times, one after the other. ``folder`` is for the browser's profile."""
    driver = chrome(folder / "profile")

    def busy() -> float:
        metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))

    try:
        began = perf_counter()
        Opened(driver, page)
        opened = perf_counter() - began
        driver.set_script_timeout(PATIENCE_S)
        driver.execute_script("document.getElementById('lanes').scrollIntoView()")
        driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        waits, steps = [], []
        for _ in range(ROUNDS):
            sleep(REST_S)
            before = busy()
            waits += [driver.execute_async_script(STEP, key) for key in KEYS]
            sleep(REST_S)
            steps.append((busy() - before) / len(KEYS))
    finally:
        driver.quit()
    return Browsed(opened, sorted(waits)[ceil(0.95 * len(waits)) - 1] / 1_000, sorted(steps)[len(steps) // 2])


def browse_few(folder: Path) -> Browsed:
    """Browse the page of few connections, which is written into ``folder``."""
    page = folder / "few.html"
    with conchart.read(FEW) as trace:
        write_html(trace, page, DrawOptions())
    return browse(page, folder)
