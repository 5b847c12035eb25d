"""LDAP, message by message as tshark has it: numbers that belong together, operations, result codes, times."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest

import conchart
from tests.conftest import ROOT
from tests.tshark import ask, needs_tshark

CORPUS = os.environ.get("CONCHART_CORPUS")
OF_OTHERS = ("arkime__ldap-ssl.pcap", "zeek__ldap-ldap-starttls.pcap")
"""Without those whose SASL layer only tshark reads, or whose clock steps by a decade."""

REQUESTS = {
    0: "bind",
    2: "unbind",
    3: "search",
    6: "modify",
    8: "add",
    10: "delete",
    12: "modify DN",
    14: "compare",
    16: "abandon",
    23: "extended",
}
"""The tags of RFC 4511."""
RESULTS = {1: 0, 5: 3, 7: 6, 9: 8, 11: 10, 13: 12, 15: 14, 24: 23}
"""Of responses that end an operation: its request. An entry (4) and a reference (19) do not end theirs."""

pytestmark = needs_tshark


def captures() -> list[Path]:
    ours = (ROOT / "captures" / "far-away").glob("directory-*/input.pcap")
    others = [Path(CORPUS) / name for name in OF_OTHERS] if CORPUS else []
    return [*sorted(ours), *(path for path in others if path.exists())]


class Operation(NamedTuple):
    """Times are those of the packets that bring a message's last byte, of ``answered_at`` the first message's."""

    name: str
    request_done_at: int | None = None
    answered_at: int | None = None
    done_at: int | None = None
    code: int | None = None


def tshark_operations(capture: Path, keys: Path) -> list[Operation]:
    """The operations of a capture by tshark: messages of one number on one connection, until one ends them."""
    secrets = ["-o", f"tls.keylog_file:{keys}"] if keys.exists() else []
    names = ("tcp.stream", "frame.time_epoch", "ldap.messageID", "ldap.protocolOp", "ldap.resultCode")
    chosen = [option for name in names for option in ("-e", name)]
    text = ask(["-n", *secrets, "-r", str(capture), "-Y", "ldap", "-T", "fields", *chosen])
    operations: dict[int, Operation] = {}
    under_way: dict[tuple[int, str], int] = {}
    for line in text.splitlines():
        stream, time, ids, tags, results = line.split("\t")
        at = int(time.replace(".", ""))
        codes = iter(results.split(","))
        for number, tag in zip(ids.split(","), map(int, tags.split(",")), strict=True):
            key = (int(stream), number)
            if tag in REQUESTS:
                under_way[key] = len(operations)
                operations[under_way[key]] = Operation(REQUESTS[tag], request_done_at=at)
                continue
            name = REQUESTS[RESULTS.get(tag, 3)]
            place = under_way.setdefault(key, len(operations))
            operation = operations.get(place, Operation(name))
            operation = operation._replace(answered_at=operation.answered_at or at)
            if tag in RESULTS:
                operation = operation._replace(done_at=at, code=int(next(codes)))
                del under_way[key]
            operations[place] = operation
    return list(operations.values())


@pytest.mark.parametrize(
    "capture", captures(), ids=lambda path: path.parent.name if "far-away" in path.parts else path.stem
)
def test_operations_are_those_of_tshark(capture: Path) -> None:
    keys = capture.with_name("keys.log")
    with conchart.read(capture, keylog=[keys] if keys.exists() else []) as trace:
        found = trace.sql(
            "SELECT method, request_done_at, response_at, response_done_at, status FROM exchanges "
            "WHERE protocol = 'ldap'"
        ).fetchall()
    expected = tshark_operations(capture, keys)
    assert expected
    assert sorted(map(str, (Operation(*row) for row in found))) == sorted(map(str, expected))
