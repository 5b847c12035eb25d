"""What conchart's tables say, in the vocabulary of the comparison."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import conchart
from tests.agreement.facts import End, Exchange, Packets, Stream

TCP = "stream IN (SELECT stream FROM connections WHERE transport = 'tcp')"
FIRST_TLS_FRAMES = (
    f"SELECT stream, arg_min(start_frame, start_at) AS frame FROM phases WHERE kind = 'tls' AND {TCP} GROUP BY stream"
)
PACKETS = """
    SELECT stream, frame, mark, if(sender = 'client', client_ip, server_ip) AS sender_ip,
        if(sender = 'client', client_port, server_port) AS sender_port
    FROM packets JOIN connections USING (stream) WHERE transport = 'tcp' ORDER BY frame
"""


def read(capture: Path) -> list[Stream]:
    """Every connection of a capture.

    Raises:
        conchart.errors.CaptureError: Nothing could be read.
    """
    with conchart.read(capture, packets=True) as trace:
        return _streams(trace)


def _streams(trace: conchart.Trace) -> list[Stream]:
    streams = {row["stream"]: _stream(row) for row in _rows(trace, "FROM connections WHERE transport = 'tcp'")}
    for row in _rows(trace, PACKETS):
        _packet(streams[row["stream"]], row)
    for row in _rows(trace, "FROM phases WHERE kind = 'syn'"):
        facts = streams[row["stream"]].facts
        if facts["syn_at"] == row["start_at"]:
            facts["syn_frame"] = row["start_frame"]
        if facts["ack_at"] == row["end_at"]:
            facts["ack_frame"] = row["end_frame"]
    for row in _rows(trace, f"FROM handshakes WHERE {TCP} ORDER BY stream, number DESC"):
        if row["hello_at"] is not None or row["server_hello_at"] is not None:
            streams[row["stream"]].tls = _tls(row)  # the first handshake stays
    for row in _rows(trace, FIRST_TLS_FRAMES):
        if tls := streams[row["stream"]].tls:
            tls["hello_frame"] = row["frame"]
    for row in _rows(trace, "FROM exchanges WHERE protocol LIKE 'http/1%' ORDER BY stream, number"):
        stream = streams[row["stream"]]
        if row["request_at"] is not None:
            facts = {fact: row[fact] for fact in ("method", "target", "host", "status", "response_at")}
            exchange = Exchange(request_at=row["request_at"], frame=row["request_frame"], facts=facts)
            stream.http.append(exchange)
    return sorted(streams.values(), key=lambda stream: stream.number)


def _rows(trace: conchart.Trace, query: str) -> list[dict[str, Any]]:
    relation = trace.sql(query)
    return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]


def _stream(row: dict[str, Any]) -> Stream:
    client, server = (row["client_ip"], row["client_port"]), (row["server_ip"], row["server_port"])
    ends: dict[str | None, End | None] = {"client": client, "server": server, None: None}
    facts = {fact: row[fact] for fact in ("syn_at", "syn_ack_at", "ack_at", "last_frame")}
    facts |= {"client": client, "fin_by": ends[row["fin_by"]], "rst_by": ends[row["rst_by"]]}
    resent = [row[f"retransmits_{side}"] + row[f"out_of_order_{side}"] for side in ("client", "server")]
    resent[0] += row["syn_retransmits"]
    return Stream(
        number=row["transport_stream"],
        ends=frozenset((client, server)),
        first_frame=row["first_frame"],
        facts=facts,
        by_end={
            "bytes": _by_end(client, server, [row["bytes_client"], row["bytes_server"]]),
            "packets": _by_end(client, server, [row["packets_client"], row["packets_server"]]),
        },
        packets={end: Packets(counted=count) for end, count in _by_end(client, server, resent).items()},
    )


def _by_end(client: End, server: End, counts: list[int]) -> dict[End, int]:
    """A counter of each end; of one that talks to itself, both together."""
    return {client: sum(counts)} if client == server else {client: counts[0], server: counts[1]}


def _packet(stream: Stream, row: dict[str, Any]) -> None:
    """Second captures are no packets of a connection here, but they are for tshark: they are counted, and named."""
    end = (row["sender_ip"], row["sender_port"])
    assert stream.packets is not None
    packets = stream.packets[end]
    packets.frames.append(row["frame"])
    if row["mark"] == "duplicate":
        packets.copies.add(row["frame"])
        stream.by_end["packets"][end] += 1
    elif row["mark"] in ("retransmit", "out_of_order"):
        packets.resent.append(row["frame"])


def _tls(row: dict[str, Any]) -> dict[str, Any]:
    facts = (
        "hello_at", "server_hello_at", "server_done_at", "version", "version_offered", "cipher", "sni", "alpn",
        "hello_retry", "kind", "ja3", "ech", "client_auth", "certificates", "complete_at",
    )  # fmt: skip
    values = {fact: row[fact] for fact in facts}
    values["group"] = row["named_group"]
    values["resumed"] = None if row["kind"] is None else row["kind"] != "full"
    number = re.search(r"\((\d+)\)", row["alert"] or "")
    values["alert"] = int(number[1]) if number else None
    return values
