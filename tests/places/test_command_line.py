"""``--at`` on the command line: what it prints, writes and refuses."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, places_of

PLAIN = ROOT / "captures/places/plain"
AT = [word for place, path in places_of(PLAIN).items() for word in ("--at", f"{place}={path}")]


def conchart(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "conchart.cli", *words], capture_output=True, text=True, check=False)


def test_hosts_paths_and_clocks_are_told() -> None:
    ended = conchart(*AT)
    assert ended.returncode == 0, ended.stderr
    told = " ".join(ended.stdout.split())
    assert "path client–lb 302 ms" in told
    assert "path lb–app 21.8 ms" in told
    # The clocks were put wrong by this much; 10 ms and 1 ms is what the paths take in one direction.
    assert "clock lb: 37.0 ms ± 10.0 ms ahead of client" in told
    assert "clock app: 2.00 s ± 11.1 ms behind client" in told


def test_the_page_draws_the_packets_from_place_to_place(tmp_path: Path) -> None:
    page = tmp_path / "out.html"
    assert conchart(*AT, "-w", str(page)).returncode == 0
    text = page.read_text(encoding="utf-8")
    assert all(f'class="place">{place}</text>' in text for place in places_of(PLAIN))
    assert '<section id="between"' in text


def test_a_page_of_one_place_has_no_such_section(tmp_path: Path) -> None:
    page = tmp_path / "out.html"
    assert conchart(str(PLAIN / "client.pcap"), "-w", str(page)).returncode == 0
    assert '<section id="between"' not in page.read_text(encoding="utf-8")


def test_query_needs_no_capture_beside_them() -> None:
    ended = conchart("query", *AT, "SELECT place FROM places ORDER BY number", "--format", "json")
    assert [row["place"] for row in json.loads(ended.stdout)] == ["client", "lb", "app"]


def test_a_clock_that_is_trusted_is_not_estimated() -> None:
    asked = "SELECT offset_ns, method FROM clocks WHERE place = 'lb'"
    ended = conchart("query", *AT, "--clock", "lb=trusted", asked, "--format", "json")
    assert json.loads(ended.stdout) == [{"offset_ns": 0, "method": "trusted"}]


@pytest.mark.parametrize(("words", "said"), [
    (["--at", "client"], "--at client: give a name and files (--at client=a.pcap,b.pcap)"),
    (["--at", "client=a.pcap"], "name two places at least"),
    ([*AT, "other.pcap"], "--at names all captures; give this one a place, too (--at NAME=other.pcap)"),
    ([*AT, "--clock", "lb"], "--clock lb: give a place whose clock is right (--clock lb=trusted)"),
    ([*AT, "--clock", "db=trusted"], "there is no place db; --at names client, lb, app"),
    ([*AT, "-s", "1.5"], "each place has a clock of its own"),
    (["diff", *AT, "a.pcap", "b.pcap"], "diff compares two captures"),
])  # fmt: skip
def test_what_cannot_be_done_is_refused_with_what_to_do(words: list[str], said: str) -> None:
    ended = conchart(*words)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_file_that_is_missing_is_told() -> None:
    ended = conchart("--at", f"client={PLAIN / 'client.pcap'}", "--at", "lb=missing.pcap")
    assert ended.returncode == 3
    assert "missing.pcap" in ended.stderr
    assert "Traceback" not in ended.stderr
