"""memcached: commands as the server logged them, and as tshark has them."""

from __future__ import annotations

import conchart
from tests.conftest import ROOT
from tests.tshark import ask, needs_tshark

STORY = ROOT / "captures" / "stores" / "memcached"
PORT = 11311
LONGEST_KEY = 250
UNKNOWN = "nosuch"
"""A command that the story asks for, and that memcached does not know: its line may be a value, and is not told."""
WITHOUT_KEY = {"version", "mn", "stats", "quit", UNKNOWN}


def logged() -> list[tuple[str | None, str | None]]:
    lines = [line.split() for line in (STORY / "commands.txt").read_text().splitlines()]
    keys = (None if words[0] in WITHOUT_KEY else words[1] for words in lines)
    cut = (key if key is None or len(key) <= LONGEST_KEY else key[:LONGEST_KEY] + "…" for key in keys)
    names = (None if words[0] == UNKNOWN else words[0] for words in lines)
    return list(zip(names, cut, strict=True))


def test_commands_are_those_that_the_server_logged() -> None:
    with conchart.read(STORY / "input.pcap") as trace:
        found = trace.sql("SELECT method, target FROM exchanges ORDER BY stream, number").fetchall()
        protocols = trace.sql("SELECT DISTINCT protocol, inferred, confidence FROM exchanges").fetchall()
    assert found == logged()
    assert len(found) == 135
    assert protocols == [("memcached", False, 1.0)]


def test_what_the_story_asks() -> None:
    with conchart.read(STORY / "input.pcap") as trace:
        failed = trace.sql("SELECT method, status FROM exchanges WHERE status <> 0 ORDER BY stream, number").fetchall()
        silent = trace.sql(
            "SELECT method, count(*) FROM exchanges WHERE response_at IS NULL GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        hits = trace.sql(
            "SELECT target FROM exchanges WHERE stream = 2 AND method = 'mg' AND target LIKE 'product:%' "
            "AND response_at IS NOT NULL ORDER BY number"
        ).fetchall()
        text = str(trace.sql("SELECT * FROM exchanges").fetchall())
    assert failed == [("incr", 2), (None, 1), ("get", 2)]
    assert silent == [("mg", 5), ("quit", 1), ("set", 100)]
    assert hits == [(f"product:{number:03}",) for number in range(95, 100)]
    assert "hunter2" not in text
    assert UNKNOWN not in text


@needs_tshark
def test_commands_are_in_the_packets_in_which_tshark_has_them() -> None:
    """Of a packet, tshark has the first command, if it knows that: no meta commands, no `touch`."""
    with conchart.read(STORY / "input.pcap") as trace:
        found = trace.sql(
            "SELECT DISTINCT ON (request_frame) request_frame, method, target FROM exchanges "
            "WHERE request_frame IS NOT NULL ORDER BY request_frame, number"
        ).fetchall()
    chosen = [option for name in ("frame.number", "memcache.command", "memcache.key") for option in ("-e", name)]
    decoded = ["-d", f"tcp.port=={PORT},memcache", "-Y", f"memcache.command and tcp.dstport=={PORT}"]
    lines = ask(["-n", "-r", str(STORY / "input.pcap"), *decoded, "-T", "fields", *chosen]).splitlines()
    first = {frame: (method, (target or "").rstrip("…")) for frame, method, target in found}
    assert len(lines) == 15
    for line in lines:
        frame, command, keys = line.split("\t")
        method, target = first[int(frame)]
        assert method == command
        assert keys.split(",")[0][:LONGEST_KEY] == target
