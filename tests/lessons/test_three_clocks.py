"""The lesson of three clocks: a user's stopwatch, nginx's log and the application agree with what conchart says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import conchart
from tests.conftest import ROOT, logs_of
from tests.lessons.running import conchart_commands, run_conchart

LESSON = ROOT / "examples/logs/three-clocks.md"
CASE = ROOT / "captures/logs/three-clocks"
MS = 1_000_000
SMALL, LARGE = "/wait-20/bytes-500", "/wait-20/bytes-200000"


@pytest.mark.parametrize("command", conchart_commands(LESSON))
def test_commands_of_the_page_run(command: str, tmp_path: Path) -> None:
    assert run_conchart(command, tmp_path)


def test_the_wire_says_what_the_users_stopwatch_said() -> None:
    """Of small answers; a large one stands in the queue of the slow line after it was seen to leave."""
    users = json.loads((CASE / "client.json").read_text())
    with conchart.read(CASE / "input.pcap", **logs_of(CASE)) as trace:
        rows = trace.sql("""
            SELECT target, wire_ns FROM log_differences JOIN log_lines USING (log, line) ORDER BY line
        """).fetchall()
    assert [target for target, _ in rows] == [user["target"] for user in users]
    for (target, wire), user in zip(rows, users, strict=True):
        beyond = user["took_ns"] - wire
        assert 0 < beyond < (10 if target == SMALL else 250) * MS, (target, beyond)
        assert (beyond > 150 * MS) == (target == LARGE)


def test_the_table_has_the_times_of_log_and_stopwatch() -> None:
    users = json.loads((CASE / "client.json").read_text())
    rows = [line.split("|") for line in LESSON.read_text().splitlines() if line.startswith("| ") and " ms |" in line]
    lines = (CASE / "access.log").read_text().splitlines()
    assert len(rows) == 3
    for row, user, line in zip(rows, users, lines, strict=False):
        assert row[3].strip() == f"{user['took_ns'] / MS:.0f} ms"
        assert row[4].strip() == f"{float(line.split()[-4]) * 1000:.0f} ms"


def test_what_explains_the_difference_is_what_the_lesson_says() -> None:
    with conchart.read(CASE / "input.pcap", **logs_of(CASE)) as trace:
        rows = trace.sql("SELECT explained FROM log_differences ORDER BY line").fetchall()
        assert [explained for (explained,) in rows] == ["setup", "network", "buffered"] * 2
        found = {finding for (finding,) in trace.sql("SELECT finding FROM findings").fetchall()}
        assert {"far-backend", "log-hides-transfer"} <= found
