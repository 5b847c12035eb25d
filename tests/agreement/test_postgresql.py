"""PostgreSQL: statements as the server logged them, and as tshark has them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

import conchart
from tests.conftest import ROOT
from tests.tshark import ask, needs_tshark

STORY = ROOT / "captures" / "stores" / "postgresql"
STORES = os.environ.get("CONCHART_STORES")
"""A folder of third-party captures of databases and caches."""
IN_TLS = Counter({"Query 00000": 1})
"""What the story asks for where nobody can read it."""
METHODS = {"Simple query": "Query", "Execute": "Execute"}


def captures() -> list[Path]:
    others = sorted(Path(STORES).glob("zeek__postgresql-*.pcap")) if STORES else []
    return [STORY / "input.pcap", *(path for path in others if "mysql" not in path.name)]


def name_of(path: Path) -> str:
    return path.parent.name if path.parent == STORY else path.stem


def test_statements_are_those_that_the_server_logged() -> None:
    with conchart.read(STORY / "input.pcap") as trace:
        rows = trace.sql(
            "SELECT method || ' ' || status_text FROM exchanges WHERE method IN ('Query', 'Execute')"
        ).fetchall()
    logged = Counter((STORY / "statements.txt").read_text().splitlines())
    assert Counter(row for (row,) in rows) + IN_TLS == logged


def test_what_the_story_asks() -> None:
    with conchart.read(STORY / "input.pcap") as trace:
        shapes = dict(
            trace.sql("SELECT target, count(*) FROM exchanges WHERE method = 'Execute' GROUP BY ALL").fetchall()
        )
        ((slept,),) = trace.sql("SELECT wait_ns FROM exchanges WHERE target LIKE '%sleep%'").fetchall()
        ((copied,),) = trace.sql("SELECT count(*) FROM exchanges WHERE continued_at IS NOT NULL").fetchall()
        begun = trace.sql(
            "SELECT stream, list(method ORDER BY number) FROM exchanges WHERE number < 3 AND protocol = 'postgresql' "
            "GROUP BY stream ORDER BY stream"
        ).fetchall()
        text = str(trace.sql("SELECT * FROM exchanges").fetchall())
        tls = trace.sql("SELECT stream, outcome FROM handshakes").fetchall()
    assert shapes == {"SELECT name FROM product WHERE id = ?": 20}
    assert 200_000_000 < slept < 260_000_000
    assert copied == 1
    scram = ["Startup", "Authenticate", "Authenticate"]
    assert begun == [(0, scram), (1, scram), (2, scram), (3, ["SSLRequest"])]
    assert tls == [(3, "complete")]
    assert all(secret not in text for secret in ("hunter2", "it''s", "spoon"))


@needs_tshark
@pytest.mark.parametrize("capture", captures(), ids=name_of)
def test_statements_and_sqlstates_are_those_of_tshark(capture: Path) -> None:
    """Each statement by the time of the packet in which its last message ends, each SQLSTATE in its order."""
    with conchart.read(capture) as trace:
        found = trace.sql(
            "SELECT request_done_at, method FROM exchanges WHERE method IN ('Query', 'Execute') AND NOT inferred "
            "AND continued_at IS NULL"
        ).fetchall()
        failed = trace.sql("SELECT status_text FROM exchanges WHERE status > 0 ORDER BY response_at").fetchall()
        ports = trace.sql("SELECT DISTINCT server_port FROM connections WHERE app = 'postgresql'").fetchall()
        copying = trace.sql("SELECT request_at FROM exchanges WHERE continued_at IS NOT NULL").fetchall()
    (port,) = (number for (number,) in ports)
    names = ("frame.time_epoch", "pgsql.type", "pgsql.code")
    chosen = ["-d", f"tcp.port=={port},pgsql", "-Y", "pgsql", "-T", "fields"]
    chosen += [option for name in names for option in ("-e", name)]
    statements: Counter[tuple[int, str]] = Counter()
    states = []
    for line in ask(["-n", "-r", str(capture), *chosen]).splitlines():
        time, types, codes = line.split("\t")
        at = int(time.replace(".", ""))
        if (at,) not in copying:
            statements.update((at, METHODS[kind]) for kind in types.split(",") if kind in METHODS)
        states += [(code,) for code in codes.split(",") if code and code != "00000"]
    assert Counter(found) == statements
    assert failed == states
