"""The documentation as a site: complete, offline, with live pages, and without links that lead nowhere."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import conchart
from conchart.cli.command import COMMANDS
from tests.conftest import ROOT

pytestmark = pytest.mark.timeout(300)
RULES = sorted((ROOT / "conchart/analysis/findings/rules").glob("*.md"))
LESSONS = sorted((ROOT / "examples").glob("*/README.md"))


class Page(HTMLParser):
    """What a page refers to, and the places that can be referred to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := found.get(name))}
        if target := found.get("src") or (found.get("href") if tag == "link" else None):
            self.loaded.append(target)
        elif target := found.get("href"):
            self.links.append(target)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for package in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(package, reason="pip install 'conchart[site]'")
    folder = tmp_path_factory.mktemp("site")
    command: list[str | Path] = [sys.executable, ROOT / "docs/build-site", "--into", folder]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    now = site / conchart.__version__
    return {path: Page(path) for path in now.rglob("*.html") if "live" not in path.parts and path.name != "404.html"}


def test_every_document_finding_lesson_and_command_has_a_place(site: Path, pages: dict[Path, Page]) -> None:
    now = site / conchart.__version__
    for path in (*(ROOT / "docs").rglob("*.md"), *RULES, *LESSONS):
        place = now / path.relative_to(ROOT).with_suffix(".html")
        assert (place if path.name != "README.md" else place.with_name("index.html")) in pages, path
    commands = pages[now / "docs/commands.html"].anchors
    assert {"conchart", *(f"conchart-{name}" for name in COMMANDS)} <= commands
    library = (now / "docs/api.html").read_text(encoding="utf-8")
    for name in (*conchart.__all__, "sql", "chart", "write", "load"):
        assert re.search(rf"\b{name}\b", library), name
    assert "Fill <code>packets</code>" in library, "docstrings are there"


def test_every_link_leads_somewhere(pages: dict[Path, Page]) -> None:
    lost = []
    for path, page in pages.items():
        for target in page.links:
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = unquote(target).partition("#")
            found = (path.parent / name).resolve() if name else path
            found = found / "index.html" if found.is_dir() else found
            if not found.is_file() or (anchor and found in pages and anchor not in pages[found].anchors | {"__skip"}):
                lost.append(f"{path.name}: {target}")
    assert not lost


def test_the_site_loads_nothing_from_other_hosts(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        assert not [target for target in page.loaded if re.match(r"(https?:)?//", target)], path
        for target in page.loaded:
            name = unquote(target).partition("?")[0].partition("#")[0]
            assert name.startswith(("data:", "javascript:")) or (path.parent / name).exists(), f"{path}: {target}"


def test_the_gallery_has_live_pages(site: Path, pages: dict[Path, Page]) -> None:
    gallery = site / conchart.__version__ / "docs/gallery.html"
    frames = re.findall(r'<iframe class="live" src="([^"]+)"', gallery.read_text(encoding="utf-8"))
    assert len(frames) == len(
        re.findall(r"^\$ conchart captures/", (ROOT / "docs/gallery.md").read_text(), re.MULTILINE)
    )
    for frame in frames:
        text = (gallery.parent / frame).read_text(encoding="utf-8")
        assert text.startswith("<!DOCTYPE html>")
        assert "Content-Security-Policy" in text


def test_search_finds_words_of_findings_offline(site: Path) -> None:
    index = json.loads((site / conchart.__version__ / "search/search_index.json").read_text(encoding="utf-8"))
    texts = [entry["text"] + entry["title"] for entry in index["docs"]]
    for word in ("server-closes-each-response", "seen_from", "Nagle"):
        assert any(word in text for text in texts), word
    assert (site / conchart.__version__ / "search/search_index.js").exists(), "a browser reads it without a server"


def test_versions_stand_side_by_side(site: Path) -> None:
    assert json.loads((site / "versions.json").read_text())[0]["version"] == conchart.__version__
    assert f"url={conchart.__version__}/index.html" in (site / "index.html").read_text()
    text = (site / conchart.__version__ / "index.html").read_text(encoding="utf-8")
    assert '"provider": "mike"' in text
    assert "prefers-color-scheme: dark" in text
