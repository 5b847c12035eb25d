"""``--at`` on the command line: what it prints, writes and refuses."""

import base64
import json
import re
import zlib
from pathlib import Path

import pytest

from tests.cli.test_cli import Run
from tests.cli.test_cli import run as run  # noqa: PLC0414  (a fixture)
from tests.conftest import ROOT, places_of

PLAIN = ROOT / "captures/places/plain"
AT = [word for place, path in places_of(PLAIN).items() for word in ("--at", f"{place}={path}")]


def test_hosts_paths_and_clocks_are_told(run: Run) -> None:
    code, out, err = run(*AT, "-v")
    assert (code, err) == (0, "")
    text = " ".join(out.split())
    assert "path client–lb 302 ms" in text
    assert "path lb–app 21.8 ms" in text
    # The clocks were put wrong by this much; 10 ms and 1 ms is what the paths take in one direction.
    assert "clock lb: 37.0 ms ± 10.0 ms ahead of client" in text
    assert "clock app: 2.00 s ± 11.1 ms behind client" in text


def test_the_page_draws_the_packets_from_place_to_place(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "out.html"
    assert run(*AT, "-w", str(page))[0] == 0
    text = page.read_text(encoding="utf-8")
    (block,) = re.findall(r'<script [^>]*id="places">([^<]*)</script>', text)
    document = json.loads(zlib.decompress(base64.b64decode(block), -15))
    assert [lane["place"] for lane in document["journeys"][0]["lanes"] if lane["chosen"]] == [
        "client",
        "lb",
        "lb",
        "app",
    ]
    assert '<section id="between"' in text


def test_a_page_of_one_place_has_no_such_section(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "out.html"
    assert run(str(PLAIN / "client.pcap"), "-w", str(page))[0] == 0
    assert '<section id="between"' not in page.read_text(encoding="utf-8")


def test_query_needs_no_capture_beside_them(run: Run) -> None:
    _, out, _ = run("query", *AT, "SELECT place FROM places ORDER BY number", "--format", "json")
    assert [row["place"] for row in json.loads(out)] == ["client", "lb", "app"]


def test_a_clock_that_is_trusted_is_not_estimated(run: Run) -> None:
    query = "SELECT offset_ns, method FROM clocks WHERE place = 'lb'"
    _, out, _ = run("query", *AT, "--clock", "lb=trusted", query, "--format", "json")
    assert json.loads(out) == [{"offset_ns": 0, "method": "trusted"}]


@pytest.mark.parametrize(("words", "message"), [
    (["--at", "client"], "--at client: give a name and files (--at client=a.pcap,b.pcap)"),
    (["--at", "client=a.pcap"], "name two places at least"),
    ([*AT, "other.pcap"], "--at names all captures; give this one a place, too (--at NAME=other.pcap)"),
    ([*AT, "--clock", "lb"], "--clock lb: give a place whose clock is right (--clock lb=trusted)"),
    ([*AT, "--clock", "db=trusted"], "there is no place db; --at names client, lb, app"),
    ([*AT, "-s", "1.5"], "each place has a clock of its own"),
    (["diff", *AT, "a.pcap", "b.pcap"], "diff compares two captures"),
])  # fmt: skip
def test_what_cannot_be_done_is_refused_with_what_to_do(words: list[str], message: str, run: Run) -> None:
    code, _, err = run(*words)
    assert code == 2
    assert message in " ".join(err.split())


def test_a_file_that_is_missing_is_told(run: Run) -> None:
    code, _, err = run("--at", f"client={PLAIN / 'client.pcap'}", "--at", "lb=missing.pcap")
    assert code == 3
    assert "missing.pcap" in err


def test_captures_with_the_same_packets_are_hinted_at(run: Run) -> None:
    files = places_of(PLAIN)
    _, out, _ = run(str(files["client"]), str(files["lb"]), "-v")
    text = " ".join(out.split())
    assert "Two captures hold 3 connections in common, each of which is shown twice" in text
    assert f"conchart --at here={files['client']} --at there={files['lb']}" in text
