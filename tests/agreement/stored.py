"""Reference facts stored beside a capture (`NAME.oracle.json.gz`), in the vocabulary of the comparison."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from tests.agreement.facts import End, Exchange, Stream, Value
from tests.agreement.tshark import TUNNELS, cipher_names, nanoseconds


def beside(capture: Path) -> Path:
    """Where the stored facts of a capture are."""
    return capture.with_name(capture.name + ".oracle.json.gz")


def read(capture: Path) -> list[Stream]:
    """Every stream of the stored facts.

    Raises:
        OSError: There are none.
    """
    with gzip.open(beside(capture)) as file:
        return [_stream(stored) for stored in json.load(file)["streams"]]


def _ns(text: str | None) -> int | None:
    return None if text is None else nanoseconds(text)


def _end(text: str) -> End:
    address, _, port = text.rpartition(":")
    return address.strip("[]"), int(port)


def _stream(stored: dict[str, Any]) -> Stream:
    client, server = _end(stored["client"]), _end(stored["server"])
    sides = {"client": client, "server": server}
    outer = [name for path in stored["protocols"] for name in path.split(":tcp")[0].split(":")]
    stream = Stream(
        number=stored["stream"],
        ends=frozenset((client, server)),
        first_frame=stored["first_frame"],
        tunnel=next((name for name in outer if name in TUNNELS), ""),
    )
    tcp, facts = stored["tcp"], stream.facts
    facts["syn_at"] = _ns(tcp["syn_time"])
    if stored["client_known"]:
        facts["client"] = client
        facts["syn_ack_at"] = _ns(tcp["synack_time"])
        if tcp["syn_time"] and tcp["synack_time"]:
            facts["ack_at"] = _ns(tcp["ack_time"])
        for fact in ("fin_by", "rst_by"):
            facts[fact] = sides[stored[fact][0]] if stored[fact] else None
    if client != server:
        both = {client: stored["c2s"], server: stored["s2c"]}
        stream.by_end["packets"] = {end: way["packets"] for end, way in both.items()}
        stream.by_end["bytes"] = {end: way["payload_bytes_unique"] for end, way in both.items()}
    if (tls := stored["tls"]) and (tls["client_hello_first_time"] or tls["server_hello_first_time"]):
        whole = tls["client_hello_first_time"] and not tls["sslv2_hello"]
        stream.tls = _tls(tls) if whole else {}  # else other fields, or half of them
    if (http := stored["http"]) and http["requests"] and not any(one["over_tls"] for one in http["requests"]):
        stream.http = [_exchange(one) for one in http["requests"]]
    return stream


def _tls(stored: dict[str, Any]) -> dict[str, Value]:
    facts: dict[str, Value] = {
        "hello_at": _ns(stored["client_hello_first_time"]),
        "server_hello_at": _ns(stored["server_hello_first_time"]),
        "sni": stored["sni"],
        "hello_retry": stored["hrr"],
    }
    if stored["server_hellos"] == 0:
        return facts
    version = stored["version"].split("-")[0]  # drafts and experiments
    facts["version"] = version
    if stored["cipher"]:
        code = int(stored["cipher"], 0)
        facts["cipher"] = cipher_names().get(code, f"0x{code:04x}")
    if version != "TLSv1.3":
        facts["alpn"] = stored["alpn_selected"]
    if stored["resumed"] is not None:
        facts["resumed"] = stored["resumed"]
    return facts


def _exchange(stored: dict[str, Any]) -> Exchange:
    facts = {"method": stored["method"], "target": stored["uri"] or None, "host": stored["host"] or None}
    if stored["status"] is not None:  # otherwise there was none, or tshark did not recognize it
        facts |= {"status": stored["status"], "response_at": _ns(stored["response_first_time"])}
    at = _ns(stored["request_first_time"])
    if at is None:
        raise ValueError("a stored request has no time")
    return Exchange(request_at=at, frame=stored["request_frame"], facts=facts)
