"""A real browser: Debian's Chromium without a window, driven by its own chromedriver."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHROMEDRIVER = shutil.which("chromedriver")


def chrome(profile: Path) -> webdriver.Chrome:
    """A browser that talks to nobody, and logs what pages ask for and complain about."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={profile}",
        "--window-size=1200,1000",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(CHROMEDRIVER))


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """A browser with an empty profile."""
    if not (CHROMIUM and CHROMEDRIVER):
        pytest.skip("no chromium with chromedriver on this machine")
    driver = chrome(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


def _log(driver: webdriver.Chrome, kind: str) -> list[dict[str, Any]]:
    """What was logged since the last call."""
    entries: list[dict[str, Any]] = driver.get_log(kind)  # type: ignore[no-untyped-call]
    return entries


def prefer(driver: webdriver.Chrome, scheme: str) -> None:
    """Let pages think that somebody prefers light or dark colours; nothing, when it is empty."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


class Opened:
    """A page that the browser has open, and what was logged while it opened."""

    def __init__(self, driver: webdriver.Chrome, path: Path) -> None:
        self.driver = driver
        for kind in ("browser", "performance"):
            _log(driver, kind)  # forget what earlier pages logged
        self.visit(path.as_uri())

    def visit(self, address: str) -> None:
        """Open an address, and wait until the page has unpacked itself."""
        self.driver.get(address)
        ready = "return !document.getElementById('lanes') || document.documentElement.dataset.ready === 'true'"
        WebDriverWait(self.driver, 60, poll_frequency=0.05).until(lambda driver: driver.execute_script(ready))

    def console(self) -> list[str]:
        """Everything written to the console since the last call: errors, and what the policy refused."""
        return [entry["message"] for entry in _log(self.driver, "browser")]

    def requests(self) -> list[str]:
        """Addresses asked for since the last call; data: and blob: are no requests."""
        events = [json.loads(entry["message"])["message"] for entry in _log(self.driver, "performance")]
        urls = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        return [url for url in urls if not url.startswith(("data:", "blob:"))]

    def point_at(self, x: int, y: int) -> None:
        """Move the mouse to a place in the window, in CSS pixels."""
        chain = ActionChains(self.driver, duration=0)
        chain.w3c_actions.pointer_action.move_to_location(x, y)  # type: ignore[no-untyped-call]
        chain.perform()

    def click_at(self, x: int, y: int) -> None:
        """Click on a place in the window, in CSS pixels."""
        self.point_at(x, y)
        ActionChains(self.driver, duration=0).click().perform()

    def run(self, script: str, *arguments: object) -> Any:  # noqa: ANN401  (whatever the script returns)
        """Run a script in the page and return its value."""
        return self.driver.execute_script(script, *arguments)
