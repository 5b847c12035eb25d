"""How long somebody waits for a page: Chromium opens it, zooms and pans.

In: a page. Out: seconds until it answers, and the 95th percentile of seconds from a key to the frame that shows it.
"""

from __future__ import annotations

from math import ceil
from pathlib import Path
from time import perf_counter

from tests.browser.conftest import Opened, chrome
from tests.browser.test_budget import PRESS

KEYS = ("+", "+", "+", "ArrowRight", "ArrowRight", "ArrowLeft", "-", "-", "-", "0")
ROUNDS = 4
PATIENCE_S = 60


def browse(page: Path, folder: Path) -> tuple[float, float]:
    """Open a page, and press every key some times. ``folder`` is for the browser's profile."""
    driver = chrome(folder / "profile")
    try:
        began = perf_counter()
        opened_page = Opened(driver, page)
        opened = perf_counter() - began
        driver.set_script_timeout(PATIENCE_S)
        waits = sorted(opened_page.driver.execute_async_script(PRESS, key) for key in KEYS * ROUNDS)
    finally:
        driver.quit()
    return opened, waits[ceil(0.95 * len(waits)) - 1] / 1_000
