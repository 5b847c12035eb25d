"""Messages of gRPC and WebSocket: as the programs wrote them down, and as tshark has them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import conchart
from conchart import Trace
from tests.conftest import ROOT
from tests.tshark import KEYLOG, ask, needs_tshark

STORIES = ROOT / "captures" / "messages"
CASES = ("grpc", "grpc-tls", "websocket", "websocket-tls")
CLOSENESS_NS = 1_000_000
"""How far the pauses that the program made and those between its packets may lie from each other, or 2 %."""
CORPUS = os.environ.get("CONCHART_CORPUS")
FOREIGN = {
    "vitaly__grpc.pcap": "tcp.port==50051",
    "suricataverify__websocket-compressed-example_websocket.pcap": None,
    "suricataverify__websocket-ping.pcap": None,
    "zeek__http-websocket.pcap": None,
    "zeek__websocket-broker-websocket.pcap": None,
    "zeek__websocket-jupyter-websocket.pcap": None,
    "zeek__websocket-message-too-big-status.pcap": None,
    "zeek__websocket-reply-ping-separate.pcap": None,
    "zeek__websocket-two-binary-fragments.pcap": None,
    "zeek__websocket-wstunnel-http.pcap": None,
    "zeek__websocket-wstunnel-https.pcap": None,
    "zeek__websocket-wstunnel-ssh.pcap": None,
}
OPCODES = {1: "text", 2: "binary", 8: "close", 9: "ping", 10: "pong"}

Written = tuple[int, str, int, str, int, int, int | None]


def read(path: Path) -> Trace:
    keys = path.with_name("keys.log")
    return conchart.read(path, keylog=keys if keys.exists() else ())


def written(case: str) -> Iterator[Written]:
    """What the programs wrote down: exchange, sender, number, kind, bytes, the instants around its way."""
    for line in (STORIES / case / "messages.txt").read_text().splitlines():
        exchange, sender, number, kind, size, sent_at, got_at = line.split()
        until = None if got_at == "-" else int(got_at)
        yield int(exchange), sender, int(number), kind, int(size), int(sent_at), until


def found(trace: Trace, case: str) -> dict[tuple[int, str, int], tuple[str, int, int, int]]:
    """The same of the tables: a WebSocket is the first exchange of its connection."""
    which = "stream" if case.startswith("websocket") else "exchange"
    rows = trace.sql(f"SELECT {which}, sender, number, kind, bytes, start_at, end_at FROM exchange_messages").fetchall()
    return {(exchange, sender, number): tuple(facts) for exchange, sender, number, *facts in rows}


@pytest.mark.parametrize("case", CASES)
def test_messages_are_those_that_the_programs_wrote_down(case: str) -> None:
    recorded = list(written(case))
    with read(STORIES / case / "input.pcap") as trace:
        messages = found(trace, case)
    for exchange, sender, number, kind, size, sent_at, got_at in recorded:
        found_kind, found_size, start_at, end_at = messages[exchange, sender, number]
        assert (found_kind, found_size) == (kind, size)
        assert sent_at <= start_at <= end_at
        assert got_at is None or end_at <= got_at
    # Programs did not write down what is compressed, nor what the package says by itself.
    recorded_keys = {key[:3] for key in recorded}
    others = {key: about[0] for key, about in messages.items() if key not in recorded_keys}
    compressed = {"grpc": 6, "websocket": 2, "websocket-tls": 2}.get(case)
    assert all(kind in ("pong", "close") or key[0] == compressed for key, kind in others.items()), others


@pytest.mark.parametrize("case", CASES)
def test_pauses_between_messages_are_those_of_the_program(case: str) -> None:
    recorded = [
        about for about in written(case) if about[:2] == (1 if case == "grpc" else 0, "server") and about[3] != "ping"
    ]
    with read(STORIES / case / "input.pcap") as trace:
        messages = found(trace, case)
    starts = [messages[about[0], about[1], about[2]][2] for about in recorded]
    pauses = [later[5] - before[5] for before, later in zip(recorded, recorded[1:], strict=False)]
    assert max(pauses) > 200_000_000
    for pause, (before, later) in zip(pauses, zip(starts, starts[1:], strict=False), strict=True):
        assert abs(later - before - pause) <= max(CLOSENESS_NS, pause // 50)


def test_calls_end_with_the_code_that_their_client_got() -> None:
    codes = [tuple(line.split()) for line in (STORIES / "grpc" / "codes.txt").read_text().splitlines()]
    with read(STORIES / "grpc" / "input.pcap") as trace:
        rows = trace.sql(
            "SELECT number::VARCHAR, split_part(target, '/', 3), status_text FROM exchanges "
            "WHERE protocol = 'grpc' AND method = 'POST' AND NOT inferred ORDER BY number"
        ).fetchall()
        compressed = trace.sql("SELECT exchange FROM exchange_messages WHERE compressed").fetchall()
        ((evidence,),) = trace.sql("SELECT evidence FROM findings WHERE finding = 'error-responses'").fetchall()
    assert rows == codes
    assert compressed == [(6,)]
    assert "DEADLINE_EXCEEDED (1)" in evidence
    assert "UNAVAILABLE (1)" in evidence


def test_pauses_of_a_websocket_are_nobodys_wait() -> None:
    with read(STORIES / "websocket" / "input.pcap") as trace:
        exchanges = trace.sql("SELECT DISTINCT number, protocol, status FROM exchanges").fetchall()
        rows = trace.sql(
            "SELECT kind, sum(end_at - start_at)::BIGINT FROM phases WHERE stream = 0 GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        ((life,),) = trace.sql("SELECT closed_at - opened_at FROM connections WHERE stream = 0").fetchall()
        ((longest,),) = trace.sql("SELECT max(end_at - start_at) FROM exchange_messages WHERE stream = 0").fetchall()
    spent = dict(rows)
    assert exchanges == [(0, "http/1.1", 101)]
    assert sum(spent.values()) == life
    assert spent["transfer"] == longest > 80_000_000
    assert spent["idle"] > 400_000_000
    assert spent["wait"] < 10_000_000


def fields(path: Path, decode: str | None, shown: str, names: tuple[str, ...]) -> Iterator[tuple[int, list[list[str]]]]:
    """What tshark has of each packet."""
    keys = path.with_name("keys.log")
    arguments: list[str | Path] = ["-n", "-r", path, "-Y", shown, "-T", "fields", "-e", "frame.number"]
    arguments += ["-o", f"{KEYLOG}{keys}"] if keys.exists() else []
    arguments += ["-d", f"{decode},http2"] if decode else []
    for name in names:
        arguments += ["-e", name]
    for line in ask(arguments).splitlines():
        frame, *values = line.split("\t")
        yield int(frame), [value.split(",") if value else [] for value in values]


def calls(path: Path, decode: str | None) -> Counter[tuple[int, int, bool]]:
    """Messages of gRPC as tshark has them: frame of the last byte, bytes, compressed."""
    names = ("grpc.message_length", "grpc.compressed_flag")
    return Counter(
        (frame, int(length), flag in ("1", "True"))
        for frame, (lengths, flags) in fields(path, decode, "grpc", names)
        for length, flag in zip(lengths, flags, strict=True)
    )


def frames(path: Path) -> Counter[tuple[int, str, int]]:
    """Messages of WebSocket as tshark has them, its frames put together: frame of the last byte, kind, bytes."""
    names = ("fin", "opcode", "payload_length", "payload_length_ext_16", "payload_length_ext_64")
    counts: Counter[tuple[int, str, int]] = Counter()
    under_way: dict[tuple[str, str], tuple[str, int]] = {}
    shown = ("tcp.stream", "tcp.srcport", *(f"websocket.{name}" for name in names))
    for frame, (stream, port, fins, opcodes, lengths, ext16, ext64) in fields(path, None, "websocket", shown):
        side = (stream[0], port[0])
        for fin, opcode, length in zip(fins, opcodes, lengths, strict=True):
            size = int(ext16.pop(0) if length == "126" else ext64.pop(0) if length == "127" else length)
            if int(opcode) >= 8:
                counts[frame, OPCODES[int(opcode)], size] += 1
                continue
            kind, before = under_way.pop(side) if opcode == "0" else (OPCODES[int(opcode)], 0)
            if fin in ("1", "True"):
                counts[frame, kind, before + size] += 1
            else:
                under_way[side] = (kind, before + size)
    return counts


def assert_as_tshark_has_them(path: Path, decode: str | None) -> int:
    with read(path) as trace:
        rows = trace.sql("SELECT end_frame, kind, bytes, compressed FROM exchange_messages").fetchall()
    here = Counter((frame, size, compressed) for frame, kind, size, compressed in rows if kind == "message")
    assert here == calls(path, decode)
    assert Counter((frame, kind, size) for frame, kind, size, _ in rows if kind != "message") == frames(path)
    return len(rows)


@needs_tshark
@pytest.mark.parametrize("case", CASES)
def test_messages_are_in_the_packets_in_which_tshark_has_them(case: str) -> None:
    decode = "tcp.port==50051" if case == "grpc" else None
    assert assert_as_tshark_has_them(STORIES / case / "input.pcap", decode) >= 12


@needs_tshark
@pytest.mark.skipif(CORPUS is None, reason="CONCHART_CORPUS names no folder of captures")
@pytest.mark.parametrize("name", FOREIGN)
def test_messages_of_foreign_captures_are_those_of_tshark(name: str) -> None:
    assert CORPUS is not None
    path = Path(CORPUS) / name
    if not path.exists():
        pytest.skip("it is not in the folder")
    assert assert_as_tshark_has_them(path, FOREIGN[name]) > 0
