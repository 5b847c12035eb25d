"""MongoDB: commands as the driver saw them, and messages as tshark has them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import conchart
from tests.conftest import ROOT
from tests.tshark import ask, needs_tshark

STORY = ROOT / "captures" / "stores" / "mongodb"
CORPUS = os.environ.get("CONCHART_CORPUS")
"""A folder of third-party captures."""
OF_OTHERS = ("deepflow__flow_generator-mongo-mongo",)
OPENING = ("ismaster", "hello")
"""Commands of which a driver tells its listener nothing."""


def captures() -> list[Path]:
    others = [Path(CORPUS) / f"{name}.pcap" for name in OF_OTHERS] if CORPUS else []
    return [STORY / "input.pcap", *(path for path in others if path.exists())]


def listened() -> list[list[str]]:
    return [line.split() for line in (STORY / "commands.txt").read_text().splitlines()]


def test_commands_are_those_that_the_driver_saw() -> None:
    with conchart.read(STORY / "input.pcap") as trace:
        found = trace.sql(
            f"SELECT method, target, status, response_done_at - request_at FROM exchanges "
            f"WHERE method NOT IN {OPENING} ORDER BY request_at"
        ).fetchall()
        protocols = trace.sql("SELECT DISTINCT protocol, inferred, confidence FROM exchanges").fetchall()
    lines = listened()
    assert [(method, str(status)) for method, _, status, _ in found] == [(line[2], line[5]) for line in lines]
    assert len(found) == 53
    assert protocols == [("mongodb", False, 1.0)]
    for (method, target, _, ns), (_, database, _, collection, us, _) in zip(found, lines, strict=True):
        # The listener's time begins before the message is sent, and ends when its reply was read.
        assert abs(int(us) * 1000 - ns) <= max(1_000_000, int(us) * 20), (method, us, ns)
        is_collection = method not in ("nosuch", "saslStart", "saslContinue", "listCollections", "endSessions")
        assert target.split(" ")[0] == (f"{database}.{collection}" if is_collection else database)


def test_what_the_story_asks() -> None:
    with conchart.read(STORY / "input.pcap") as trace:
        failed = trace.sql("SELECT method, status FROM exchanges WHERE status <> 0 ORDER BY request_at").fetchall()
        awaited = trace.sql(
            "SELECT method, target, response_at - request_done_at FROM exchanges WHERE wait_ns IS NULL ORDER BY 3"
        ).fetchall()
        shapes = trace.sql(
            "SELECT method, target, count(*) FROM exchanges WHERE target LIKE '% %' "
            "GROUP BY ALL ORDER BY min(request_at)"
        ).fetchall()
        text = str(trace.sql("SELECT * FROM exchanges").fetchall())
    assert failed == [("insert", 11000), ("find", 2), ("nosuch", 59), ("endSessions", 59)]
    assert [(method, target) for method, target, _ in awaited] == [("getMore", "shop.news")] * 2
    assert all(ms * 1_000_000 <= ns < ms * 1_100_000 for ms, (_, _, ns) in zip((400, 1000), awaited, strict=True))
    assert shapes == [
        ("find", "shop.carts {customer}", 1),
        ("find", "shop.items {sku}", 25),
        ("find", "shop.items {price.$gt}", 1),
        ("aggregate", "shop.items [$match {price.$lt}, $group]", 1),
        ("aggregate", "shop.items [$match {price}, $group]", 1),
        ("distinct", "shop.items {sku.$ne}", 1),
        ("update", "shop.items {price, sku.$exists}", 1),
        ("findAndModify", "shop.items {_id}", 1),
        ("delete", "shop.carts {_id}", 1),
        ("find", "shop.items {price.$nosuch}", 1),
    ]
    assert "hunter2" not in text


@needs_tshark
@pytest.mark.parametrize("capture", captures(), ids=lambda path: path.stem if path.stem != "input" else "story")
def test_messages_end_in_the_packets_in_which_tshark_has_them(capture: Path) -> None:
    """A message is in the packet that brings its last byte; its command is the first name in its document."""
    with conchart.read(capture) as trace:
        (port,) = trace.sql("SELECT DISTINCT server_port FROM connections WHERE app = 'mongodb'").fetchall()[0]
        found = trace.sql(
            "SELECT request_done_at, response_done_at, method FROM exchanges WHERE protocol = 'mongodb' "
            "ORDER BY request_done_at"
        ).fetchall()
    names = (
        "frame.time_epoch",
        "tcp.stream",
        "tcp.dstport",
        "mongo.request_id",
        "mongo.response_to",
        "mongo.element.name",
    )
    chosen = [option for name in names for option in ("-e", name)]
    decoded = ["-d", f"tcp.port=={port},mongo", "-Y", "mongo"]
    pending: dict[tuple[str, str], tuple[int, str]] = {}
    expected = []
    for line in ask(["-n", "-r", str(capture), *decoded, "-T", "fields", *chosen]).splitlines():
        time, stream, to, request_id, response_to, elements = line.split("\t")
        at = int(time.replace(".", ""))
        if int(to) == port:
            pending[stream, request_id] = (at, elements.split(",")[0])
        else:
            request_at, method = pending.pop((stream, response_to))
            expected.append((request_at, at, method))
    assert not pending
    assert expected
    assert found == sorted(expected)
