"""MySQL and MariaDB: commands and their times as the server measured them, and as tshark has them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

import conchart
from tests.conftest import ROOT
from tests.tshark import ask, needs_tshark

STORY = ROOT / "captures" / "stores" / "mysql"
STORES = os.environ.get("CONCHART_STORES")
"""A folder of third-party captures of databases and caches."""
UNLIKE = ("compressed", "binary-in-sql")
"""Captures of compression, and of one direction from the middle on."""
BEGINNING = ("Greeting", "Connect", "SSLRequest", "Authenticate", "Error")
"""What the server does not count as commands."""
NOT_READ = [("Query", 0), ("Quit", 0)] * 2
"""What the story asks for at the end: with compression, and inside TLS."""
COMMANDS = {
    1: "Quit", 2: "Init DB", 3: "Query", 4: "Field List", 9: "Statistics", 14: "Ping", 17: "Change user", 22: "Prepare",
    23: "Execute", 25: "Close stmt", 26: "Reset stmt", 28: "Fetch",
}  # fmt: skip


def captures() -> list[Path]:
    others = sorted(Path(STORES).glob("*__mysql-*.pcap*")) if STORES else []
    return [STORY / "input.pcap", *(path for path in others if not any(word in path.name for word in UNLIKE))]


def name_of(path: Path) -> str:
    return path.parent.name if path.parent == STORY else path.stem


def measured() -> list[tuple[str, int, int]]:
    rows = (line.split("\t") for line in (STORY / "statements.txt").read_text().splitlines())
    # Long data are part of their Execute.
    return [(method, int(error), 1000 * int(time)) for method, error, time in rows if method != "Long Data"]


def test_commands_are_those_that_the_server_measured() -> None:
    with conchart.read(STORY / "input.pcap") as trace:
        found = trace.sql(
            "SELECT method, coalesce(status, 0), wait_ns, "
            # The server answers before it has written the table of users, or takes a file meanwhile.
            "wait_ns IS NULL OR continued_at IS NOT NULL OR coalesce(target LIKE 'SET PASSWORD%', false) "
            f"FROM exchanges WHERE protocol = 'mysql' AND method NOT IN {BEGINNING} ORDER BY stream, number"
        ).fetchall()
    expected = measured()
    assert [row[:2] for row in found] + NOT_READ == [row[:2] for row in expected]
    times = [
        (at_server, wait) for (*_, at_server), (*_, wait, apart) in zip(expected, found, strict=False) if not apart
    ]
    assert len(times) == 51
    assert all(abs(wait - at_server) <= max(1_000_000, at_server / 50) for at_server, wait in times)


def test_what_the_story_asks() -> None:
    with conchart.read(STORY / "input.pcap") as trace:
        shapes = dict(
            trace.sql("SELECT target, count(*) FROM exchanges WHERE method = 'Execute' GROUP BY ALL").fetchall()
        )
        ((slept,),) = trace.sql("SELECT wait_ns FROM exchanges WHERE target LIKE '%SLEEP%'").fetchall()
        ((copied,),) = trace.sql("SELECT count(*) FROM exchanges WHERE continued_at IS NOT NULL").fetchall()
        failed = trace.sql("SELECT status FROM exchanges WHERE status > 0 ORDER BY stream, number").fetchall()
        begun = trace.sql(
            "SELECT stream, list(method ORDER BY number) FROM exchanges WHERE number < 3 AND protocol = 'mysql' "
            "AND method IS NOT NULL GROUP BY stream ORDER BY stream"
        ).fetchall()
        text = str(trace.sql("SELECT * FROM exchanges").fetchall())
        apps = trace.sql("SELECT DISTINCT app FROM connections").fetchall()
        turns = trace.sql("SELECT count(*) FROM exchanges WHERE inferred AND protocol = 'mysql'").fetchall()
        tls = trace.sql("SELECT stream, outcome FROM handshakes").fetchall()
    assert shapes == {
        "SELECT name FROM product WHERE id = ?": 20,
        "INSERT INTO product VALUES (?, ...)": 2,
        "SELECT id FROM product ORDER BY id": 1,
    }
    assert 200_000_000 < slept < 260_000_000
    assert copied == 1
    assert failed == [(1062,), (1054,), (1045,), (1062,), (1054,)]
    assert [methods[:3] for _, methods in begun] == [
        ["Greeting", "Connect", "Query"],
        ["Greeting", "Connect", "Authenticate"],
        ["Greeting", "Connect"],
        ["Greeting", "Connect", "Prepare"],
        ["Greeting", "Connect"],
        ["Greeting", "SSLRequest"],
    ]
    assert (apps, turns, tls) == ([("mysql",)], [(2,)], [(5, "complete")])
    assert all(secret not in text for secret in ("hunter2", "it''s", "spoon"))


@needs_tshark
@pytest.mark.parametrize("capture", captures(), ids=name_of)
def test_commands_and_errors_are_those_of_tshark(capture: Path) -> None:
    """Each command by the time of the packet in which it ends, each error in its order."""
    with conchart.read(capture) as trace:
        found = trace.sql(
            f"SELECT request_done_at, method FROM exchanges WHERE protocol = 'mysql' AND NOT inferred "
            f"AND method NOT IN {BEGINNING} AND continued_at IS NULL"
        ).fetchall()
        failed = trace.sql(
            "SELECT status FROM exchanges WHERE protocol = 'mysql' AND status > 0 ORDER BY response_at"
        ).fetchall()
        ports = trace.sql("SELECT DISTINCT server_port FROM connections WHERE app = 'mysql'").fetchall()
        apart = trace.sql("SELECT request_at FROM exchanges WHERE continued_at IS NOT NULL OR inferred").fetchall()
    (port,) = (number for (number,) in ports)
    names = ("frame.time_epoch", "mysql.command", "mysql.error_code")
    chosen = ["-d", f"tcp.port=={port},mysql", "-Y", "mysql", "-T", "fields"]
    chosen += [option for name in names for option in ("-e", name)]
    commands: Counter[tuple[int, str]] = Counter()
    errors = []
    for line in ask(["-n", "-r", str(capture), *chosen]).splitlines():
        time, numbers, codes = line.split("\t")
        at = int(time.replace(".", ""))
        if (at,) not in apart:
            commands.update(
                (at, COMMANDS[int(number)]) for number in numbers.split(",") if number and int(number) in COMMANDS
            )
        errors += [(int(code),) for code in codes.split(",") if code and code != "65535"]
    assert Counter(found) == commands
    assert failed == errors
