"""What conchart's tables say, in the vocabulary of the comparison."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import conchart
from tests.agreement.facts import End, Exchange, Stream

FIRST_TLS_FRAMES = (
    "SELECT stream, arg_min(start_frame, start_at) AS frame FROM phases WHERE kind = 'tls' GROUP BY stream"
)


def read(capture: Path) -> list[Stream]:
    """Every connection of a capture.

    Raises:
        conchart.errors.CaptureError: Nothing could be read.
    """
    with conchart.read(capture) as trace:
        return _streams(trace)


def _streams(trace: conchart.Trace) -> list[Stream]:
    duplicates = _rows(trace, "SELECT coalesce(sum(duplicates), 0) AS n FROM captures")[0]["n"]
    streams = {row["stream"]: _stream(row, counts_packets=duplicates == 0) for row in _rows(trace, "FROM connections")}
    for row in _rows(trace, "FROM phases WHERE kind = 'syn'"):
        facts = streams[row["stream"]].facts
        if facts["syn_at"] == row["start_at"]:
            facts["syn_frame"] = row["start_frame"]
        if facts["ack_at"] == row["end_at"]:
            facts["ack_frame"] = row["end_frame"]
    for row in _rows(trace, "FROM handshakes ORDER BY stream, number DESC"):
        streams[row["stream"]].tls = _tls(row)  # the first handshake stays
    for row in _rows(trace, FIRST_TLS_FRAMES):
        if tls := streams[row["stream"]].tls:
            tls["hello_frame"] = row["frame"]
    for row in _rows(trace, "FROM exchanges WHERE protocol LIKE 'http/%' ORDER BY stream, number"):
        stream = streams[row["stream"]]
        if row["request_at"] is not None:
            stream.http = stream.http or []
            facts = {fact: row[fact] for fact in ("method", "target", "host", "status", "response_at")}
            exchange = Exchange(request_at=row["request_at"], frame=row["request_frame"], facts=facts)
            stream.http.append(exchange)
    return sorted(streams.values(), key=lambda stream: stream.number)


def _rows(trace: conchart.Trace, query: str) -> list[dict[str, Any]]:
    relation = trace.sql(query)
    return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]


def _stream(row: dict[str, Any], *, counts_packets: bool) -> Stream:
    ends: dict[str | None, End | None] = {
        "client": (row["client_ip"], row["client_port"]),
        "server": (row["server_ip"], row["server_port"]),
        None: None,
    }
    client, server = (row["client_ip"], row["client_port"]), (row["server_ip"], row["server_port"])
    by_end = {"bytes": {client: row["bytes_client"], server: row["bytes_server"]}}
    facts = {fact: row[fact] for fact in ("syn_at", "syn_ack_at", "ack_at")}
    facts |= {"client": client, "fin_by": ends[row["fin_by"]], "rst_by": ends[row["rst_by"]]}
    if counts_packets:  # second copies are no packets here, but they are for tshark
        facts["last_frame"] = row["last_frame"]
        by_end["packets"] = {client: row["packets_client"], server: row["packets_server"]}
        resent = {side: row[f"retransmits_{side}"] + row[f"out_of_order_{side}"] for side in ("client", "server")}
        resent["client"] += row["syn_retransmits"]
        by_end["resent"] = {client: resent["client"], server: resent["server"]}
    return Stream(
        number=row["stream"],
        ends=frozenset((client, server)),
        first_frame=row["first_frame"],
        facts=facts,
        by_end=by_end,
    )


def _tls(row: dict[str, Any]) -> dict[str, Any]:
    facts = (
        "hello_at", "server_hello_at", "server_done_at", "version", "cipher", "sni", "alpn", "hello_retry", "kind",
        "ja3", "ech", "client_auth", "certificates", "complete_at",
    )  # fmt: skip
    known = {fact: row[fact] for fact in facts}
    known["group"] = row["named_group"]
    known["resumed"] = None if row["kind"] is None else row["kind"] != "full"
    number = re.search(r"\((\d+)\)", row["alert"] or "")
    known["alert"] = int(number[1]) if number else None
    return known
