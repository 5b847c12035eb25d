"""What the ends of a connection logged, reduced to what tests ask: requests, their first bytes, and what was lost.

In: qlogs (0.3, as aioquic writes them), or Chromium's netlog. Out: ``truth.json``. For each connection: ``requests``,
each with ``stream``, ``path``, ``status``, ``bytes`` of the body, ``first_at`` (when the client had the first byte of
the answer, nanoseconds since the Unix epoch by its clock), ``first_number`` (in which packet; null where the log has no
numbers), ``datagrams``: how many datagrams the client had received by then, and ``read_at``: when its program had the
header section; null where no answer came. ``lost``:
what each end took for lost, ``by`` (that end), ``space`` and ``number`` of the packet. ``sent``: packets that each end
sent, by space.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Event = dict[str, Any]
UNANSWERED: Event = {"first_at": None, "first_number": None, "datagrams": None}


def of_qlogs(client: Sequence[Path], server: Sequence[Path], requests: Iterable[Event]) -> dict[str, Any]:
    """Reduce the qlogs of both ends, a file a connection, and what ``ask.py`` said of its requests."""
    listed = list(requests)
    servers = [_events(path) for path in server] or [[] for _ in client]
    return {
        "how": "qlogs of aioquic, reduced by examples/http3/truth.py",
        "connections": [
            _connection(
                {"client": _events(path), "server": there}, [each for each in listed if each["connection"] == number]
            )
            for number, (path, there) in enumerate(zip(client, servers, strict=True))
        ],
    }


def of_netlog(netlog: Path) -> dict[str, Any]:
    """Reduce Chromium's netlog: its clock has milliseconds."""
    log = json.loads(netlog.read_text())
    types = {number: name for name, number in log["constants"]["logEventTypes"].items()}
    offset_ms, streams, datagrams, lost = log["constants"]["timeTickOffset"], dict[int, Event](), 0, list[Event]()
    for event in log["events"]:
        name, params = types[event["type"]], event.get("params", {})
        if name == "HTTP3_HEADERS_SENT":
            streams[params["stream_id"]] = {"stream": params["stream_id"], "path": _field(params["headers"], ":path")}
        elif name == "QUIC_SESSION_PACKET_RECEIVED":
            datagrams += 1
        elif name == "QUIC_SESSION_STREAM_FRAME_RECEIVED" and params["offset"] == 0 and params["stream_id"] in streams:
            at = (int(event["time"]) + offset_ms) * 1_000_000
            streams[params["stream_id"]] |= {"first_at": at, "first_number": None, "datagrams": datagrams}
        elif name == "HTTP3_HEADERS_DECODED":
            streams[params["stream_id"]]["status"] = int(_field(params["headers"], ":status"))
        elif name == "QUIC_SESSION_PACKET_LOST":
            lost.append({"by": "client", "number": params["packet_number"]})
    how = "Chromium's netlog, reduced by examples/http3/truth.py"
    return {"how": how, "connections": [{"requests": [streams[key] for key in sorted(streams)], "lost": lost}]}


def _field(headers: Iterable[str], name: str) -> str:
    return next(line.removeprefix(f"{name}: ") for line in headers if line.startswith(f"{name}: "))


def _events(path: Path) -> list[Event]:
    (trace,) = json.loads(path.read_text())["traces"]
    found: list[Event] = trace["events"]
    return found


def _connection(ends: dict[str, list[Event]], requests: Iterable[Event]) -> dict[str, Any]:
    firsts = _firsts(ends["client"])
    lost, sent = [], Counter[tuple[str, str]]()
    for end, events in ends.items():
        for event in events:
            if event["name"] == "recovery:packet_lost":
                lost.append({"by": end, "space": event["data"]["type"], "number": event["data"]["packet_number"]})
            if event["name"] == "transport:packet_sent":
                sent[end, event["data"]["header"]["packet_type"]] += 1
    return {
        "requests": [
            {key: each[key] for key in ("stream", "path", "status", "bytes")}
            | {"read_at": each["first_at"]}
            | firsts.get(each["stream"], UNANSWERED)
            for each in sorted(requests, key=lambda each: each["stream"])
        ],
        "lost": lost,
        "sent": [{"by": end, "space": space, "packets": count} for (end, space), count in sorted(sent.items())],
    }


def _firsts(events: Iterable[Event]) -> dict[int, Event]:
    """Find the packet with the first byte of each stream that the server sent on."""
    found, datagrams = dict[int, Event](), 0
    for event in events:
        if event["name"] == "transport:datagrams_received":
            datagrams += event["data"]["count"]
        if event["name"] != "transport:packet_received":
            continue
        for frame in event["data"]["frames"]:
            if frame["frame_type"] == "stream" and frame["offset"] == 0:
                at, number = round(event["time"] * 1_000_000), event["data"]["header"]["packet_number"]
                found.setdefault(frame["stream_id"], {"first_at": at, "first_number": number, "datagrams": datagrams})
    return found
