"""Redis: commands as the server counted them, and as tshark has them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

import conchart
from conchart.store.sql import USERS_WAITED
from tests.conftest import ROOT
from tests.tshark import ask, needs_tshark

STORY = ROOT / "captures" / "stores" / "redis"
STORES = os.environ.get("CONCHART_STORES")
"""A folder of third-party captures of databases and caches."""
OF_OTHERS = ("zeek__redis-stream", "deepflow__redis-redis", "zeek__redis-pubsub")
UNKNOWN = "nosuch"
"""A command that the story asks for, and that Redis does not count."""


def captures() -> list[Path]:
    others = [Path(STORES) / f"{name}.pcap" for name in OF_OTHERS] if STORES else []
    return [STORY / "input.pcap", *(path for path in others if path.exists())]


def test_commands_are_those_that_the_server_counted() -> None:
    with conchart.read(STORY / "input.pcap") as trace:
        commands = trace.sql("SELECT lower(method) FROM exchanges WHERE request_at IS NOT NULL").fetchall()
    lines = (line.rpartition(" ") for line in (STORY / "commands.txt").read_text().splitlines())
    counted = {name: int(count) for name, _, count in lines}
    assert Counter(name for (name,) in commands) == {**counted, UNKNOWN: 1}


def test_errors_and_waits_of_the_story() -> None:
    with conchart.read(STORY / "input.pcap") as trace:
        failed = trace.sql("SELECT method, status FROM exchanges WHERE status <> 0 ORDER BY stream, number").fetchall()
        ((blocked, *waits),) = trace.sql(
            "SELECT response_at - request_done_at, wait_ns, service_ns FROM exchanges WHERE method = 'BLPOP'"
        ).fetchall()
        ((waited,),) = trace.sql(USERS_WAITED).fetchall()
        unasked = trace.sql("SELECT method, target FROM exchanges WHERE request_at IS NULL").fetchall()
        text = str(trace.sql("SELECT * FROM exchanges").fetchall())
    assert failed == [("INCR", 2), ("NOSUCH", 1)]
    assert 300_000_000 < blocked < 600_000_000
    assert waits == [None, None]
    assert waited < 10_000_000  # nobody waited for what was not in the queue
    assert unasked == [("message", "weather")]
    assert "hunter2" not in text
    assert "rain" not in text


@needs_tshark
@pytest.mark.parametrize("capture", captures(), ids=lambda path: path.stem if path.stem != "input" else "story")
def test_commands_end_in_the_packets_in_which_tshark_has_them(capture: Path) -> None:
    """A command is one array, which tshark shows in the packet that brings its last byte, and cut short before."""
    with conchart.read(capture) as trace:
        found = trace.sql(
            "SELECT request_done_at FROM exchanges WHERE protocol = 'redis' AND request_at IS NOT NULL"
        ).fetchall()
        ports = trace.sql("SELECT DISTINCT server_port FROM connections WHERE app = 'redis'").fetchall()
    (port,) = (number for (number,) in ports)
    names = ("frame.time_epoch", "resp.array.length", "resp.reassembled_in_next_frame")
    chosen = [option for name in names for option in ("-e", name)]
    decoded = ["-d", f"tcp.port=={port},resp", "-Y", f"resp.array and tcp.dstport=={port}"]
    expected: Counter[int] = Counter()
    for line in ask(["-n", "-r", str(capture), *decoded, "-T", "fields", *chosen]).splitlines():
        time, lengths, goes_on = line.split("\t")
        expected[int(time.replace(".", ""))] += len(lengths.split(",")) - bool(goes_on)
    assert expected
    assert Counter(at for (at,) in found) == expected
