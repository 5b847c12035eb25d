"""A capture told in Python: connections as phases with durations, written into the tables of a trace.

Every connection tiles exactly, because its phases are laid end to end.
"""

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conchart.store.sql import PROTOCOLS
from conchart.store.tables import Tables

US = 1_000
MS = 1_000_000
START_AT = 1_700_000_000_123_456_789

Row = dict[str, Any]


@dataclass
class Story:
    """Rows of the tables, growing as the story is told."""

    captures: list[Row] = field(default_factory=list)
    connections: list[Row] = field(default_factory=list)
    handshakes: list[Row] = field(default_factory=list)
    exchanges: list[Row] = field(default_factory=list)
    phases: list[Row] = field(default_factory=list)
    stalls: list[Row] = field(default_factory=list)
    packets: list[Row] = field(default_factory=list)
    frame: int = 1

    def connect(
        self,
        client: tuple[str, int],
        server: tuple[str, int],
        opened: int,
        phases: list[tuple[str, int]],
        *,
        tls: Row | None = None,
        exchange: Row | None = None,
        inferred: frozenset[str] = frozenset(),
        **facts: Any,  # noqa: ANN401  (columns of the connection, whatever their type)
    ) -> int:
        """Add a connection ``opened`` ns after the start that goes through ``phases``; return its stream.

        Each ``request`` phase opens an exchange; ``exchange`` and ``tls`` override the columns of theirs.
        """
        stream, first_frame = len(self.connections), self.frame
        at = START_AT + opened
        number = -1
        for kind, duration in phases:
            if kind == "request":
                number += 1
                self._exchange(stream, number, at, exchange or {})
            elif kind == "tls":
                self._handshake(stream, at, duration, tls or {})
            owner = number if kind in {"request", "wait", "transfer"} and number >= 0 else None
            self.phases.append(
                {
                    "stream": stream,
                    "exchange": owner,
                    "kind": kind,
                    "start_at": at,
                    "end_at": at + duration,
                    "start_frame": self.frame,
                    "end_frame": self.frame + 2,
                    "inferred": kind in inferred,
                }
            )
            for i, sender in enumerate(("client", "server")):
                self.packets.append(
                    {
                        "stream": stream,
                        "frame": self.frame + i,
                        "seen_at": at + i * duration // 2,
                        "sender": sender,
                        "flags": "PA",
                        "bytes": 100 + i,
                        "mark": "retransmit" if kind == "transfer" and i else None,
                    }
                )
            self._time(stream, number, kind, at, duration)
            self.frame += 2
            at += duration
        self.frame += 1
        named = [row["sni"] for row in self.handshakes if row["stream"] == stream]
        named += [row["host"] for row in self.exchanges if row["stream"] == stream]
        self.connections.append(
            {
                "stream": stream,
                "server_name": next(filter(None, named), None),
                "capture": 0,
                "transport": "tcp",
                "transport_stream": stream,
                "client_ip": client[0],
                "client_port": client[1],
                "server_ip": server[0],
                "server_port": server[1],
                "opened_at": START_AT + opened,
                "closed_at": at,
                "first_frame": first_frame,
                "last_frame": self.frame - 1,
                "packets_client": 11,
                "packets_server": 9,
                "bytes_client": 1_520,
                "bytes_server": 48_300,
                **{f"{count}_{side}": 0 for count in COUNTS for side in ("client", "server")},
                "syn_retransmits": 0,
                "rtt_client_ns": 310 * US,
                "rtt_server_ns": 45 * US,
                "fin_by": "server",
                "state": "complete",
                "app": "tls" if tls is not None else "http/1.0",
                "vantage": "server",
                **facts,
            }
        )
        return stream

    def stall(
        self,
        stream: int,
        kind: str,
        start: int,
        end: int,
        **facts: Any,  # noqa: ANN401  (columns of the stall, whatever their type)
    ) -> None:
        """Let the next byte of a connection not come from ``start`` to ``end``, in ns after the start."""
        self.stalls.append(
            {
                "stream": stream,
                "kind": kind,
                "detail": None,
                "side": "client",
                "start_at": START_AT + start,
                "end_at": START_AT + end,
                "start_frame": 11,
                "released_frame": 12,
                "end_frame": 14,
                "ack_delay_ns": None,
                "confidence": 0.9,
                **facts,
            }
        )

    def capture(self, **facts: Any) -> None:  # noqa: ANN401  (columns of the capture, whatever their type)
        """Add the row of the file; its times and counts follow from the connections told so far."""
        self.captures.append(
            {
                "capture": 0,
                "path": "captures/reverse-proxy/https/input.pcap",
                "format": "pcapng",
                "link_types": "EN10MB",
                "packets": self.frame,
                "selected": self.frame,
                "bytes": 181_220,
                "first_frame": 1,
                "first_at": min((c["opened_at"] for c in self.connections), default=None),
                "last_at": max((c["closed_at"] for c in self.connections), default=None),
                "resolution_ns": 1_000,
                "truncated": False,
                "undecodable": 0,
                "other": 0,
                "snapped": 0,
                "dropped": 0,
                "duplicates": 0,
                "vantage": "mixed",
                "notes": [],
                **facts,
            }
        )

    def fill(self, tables: Tables) -> None:
        """Write the rows into the tables, which exist. Through a JSON file: row by row takes minutes for thousands."""
        with tempfile.TemporaryDirectory() as folder:
            for table in ("captures", "connections", "handshakes", "exchanges", "phases", "stalls", "packets"):
                rows: list[Row] = getattr(self, table)
                if rows:
                    path = Path(folder, f"{table}.json")
                    path.write_text(json.dumps(rows), encoding="utf-8")
                    tables.execute(f"INSERT INTO {table} BY NAME FROM read_json('{path}', sample_size = -1)")

    def _handshake(self, stream: int, at: int, duration: int, facts: Row) -> None:
        self.handshakes.append(
            {
                "stream": stream,
                "number": 0,
                "hello_at": at,
                "ready_at": at + duration,
                "version": "TLSv1.2",
                "cipher": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
                "named_group": "x25519",
                "sni": "www.example.com",
                "alpn": "http/1.1",
                "kind": "full",
                "outcome": "complete",
                "certificates": 2,
                "certificate_bytes": 2_410,
                "bytes_client": 412,
                "bytes_server": 3_204,
                "round_trips": 2,
                "inferred": False,
                **facts,
            }
        )

    def _exchange(self, stream: int, number: int, at: int, facts: Row) -> None:
        spoken = next((row for row in PROTOCOLS if row["name"] == facts.get("protocol", "http/1.0")), PROTOCOLS[-1])
        self.exchanges.append(
            {
                "stream": stream,
                "number": number,
                "request_at": at,
                "request_done_at": None,
                "response_at": None,
                "response_done_at": None,
                "protocol": "http/1.0",
                "kind": spoken["kind"],
                "store": spoken["store"],
                "shape": (facts.get("target") or facts.get("method", "GET")) if spoken["store"] else None,
                "method": "GET",
                "host": "www.example.com",
                "target": f"/page/{number}.html",
                "status": 200,
                "status_text": None if facts.get("status", 200) is None else str(facts.get("status", 200)),
                "request_bytes": 212,
                "response_bytes": 15_900,
                "request_frame": self.frame,
                "response_frame": self.frame + 4,
                "request_ns": None,
                "wait_ns": None,
                "transfer_ns": None,
                "service_ns": None,
                "inferred": False,
                "confidence": 1.0,
                **facts,
            }
        )

    def _time(self, stream: int, number: int, kind: str, at: int, duration: int) -> None:
        if number < 0 or kind not in {"request", "wait", "transfer"}:
            return
        exchange = self.exchanges[-1]
        exchange[f"{kind}_ns"] = duration
        if kind == "request":
            exchange["request_done_at"] = at + duration
        elif kind == "transfer":
            exchange["response_at"] = at
            exchange["response_done_at"] = at + duration
        else:
            exchange["service_ns"] = max(0, duration - 45 * US)


COUNTS = ("retransmits", "out_of_order", "zero_windows", "missing")


def reverse_proxy() -> Story:
    """Three TLS connections to a proxy without keepalive, and the three connections it opens to its backend."""
    story = Story()
    for i in range(3):
        opened = i * 131 * MS
        story.connect(
            ("192.168.7.20", 51_344 + i),
            ("192.168.7.1", 443),
            opened,
            [
                ("syn", 312 * US + i),
                ("tls", (84 - 3 * i) * MS + 117),
                ("request", 95 * US),
                ("wait", 21 * MS + 501),
                ("transfer", 6 * MS),
                ("idle", 2 * MS),
                ("close", 700 * US),
            ],
            tls={},
            exchange={
                "protocol": "tls",
                "method": None,
                "host": None,
                "target": None,
                "status": None,
                "inferred": True,
                "confidence": 0.9,
            },
            inferred=frozenset({"request", "wait"}),
            retransmits_server=i,
        )
    for i in range(3):
        story.connect(
            ("192.168.7.1", 40_012 + 2 * i),
            ("10.9.0.3", 8_080),
            (86 + i * 129) * MS,
            [
                ("syn", 80 * US),
                ("request", 31 * US),
                ("wait", 19 * MS + 40 * i * US),
                ("transfer", 1_200 * US),
                ("close", 350 * US),
            ],
        )
    story.capture()
    return story


def many(connections: int) -> Story:
    """As many connections as asked for, eight phases each, over two servers behind one front."""
    story = Story()
    servers = [("192.168.7.1", 443), ("10.9.0.3", 8_080), ("10.9.0.4", 8_080)]
    for i in range(connections):
        server = servers[i % 3]
        client = (f"172.16.{i % 7}.{i % 200 + 1}", 20_000 + i) if server[1] == 443 else ("192.168.7.1", 20_000 + i)
        pace = 1 + (i * 7_919) % 23
        story.connect(
            client,
            server,
            i * 11 * MS + (i % 5) * 313 * US,
            [
                ("syn", 300 * US + i),
                ("tls", pace * 4 * MS + 117),
                ("request", 95 * US),
                ("wait", pace * 11 * MS + 501),
                ("transfer", pace * MS),
                ("idle", pace * 20 * MS),
                ("unseen", 2 * MS) if i % 9 == 0 else ("transfer", 3 * MS),
                ("close", 700 * US),
            ],
            tls={"kind": "full" if i % 4 else "ticket", "sni": f"shop{i % 5}.example.com"},
            inferred=frozenset({"request", "wait"}) if i % 2 else frozenset(),
        )
    story.capture()
    return story
