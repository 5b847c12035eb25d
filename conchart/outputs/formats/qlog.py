"""qlog: the packets and frames of QUIC connections, for viewers such as qvis.

In: a trace. Out: one trace per QUIC connection whose packets are all kept, as draft-ietf-quic-qlog-main-schema-13,
-quic-events-13 and -h3-events-13 have it: the vantage point is the network, and its flow the client's, so that the
client's packets are ``packet_sent``. Where the server lost packets, another trace of the same group has the server's
flow, since only a packet's sender has ``packet_lost``. As a sequence (``.sqlog``) there is one trace for all
connections, with the client's flow. Instants are milliseconds since 1970, to the nanosecond. A packet that was not
opened has its type and its size.

Non-goals: what only the ends know (congestion windows, timers), and what the core does not keep: contents, tokens.
"""

import json
from collections.abc import Iterator
from heapq import merge
from itertools import groupby
from typing import IO, Any

from conchart.errors import CaptureError
from conchart.labels.printable import endpoint
from conchart.outputs.formats.json import fetched, lines
from conchart.store.tables import Tables
from conchart.version import version

_SCHEMAS = ["urn:ietf:params:qlog:events:quic-13", "urn:ietf:params:qlog:events:http3-13"]
_PACKET_TYPES = {
    "Initial": "initial",
    "Handshake": "handshake",
    "0-RTT": "0RTT",
    "1-RTT": "1RTT",
    "Retry": "retry",
    "Version Negotiation": "version_negotiation",
}
_SPACES = {"initial": "initial", "handshake": "handshake", "data": "1RTT"}
_EXTENSIONS = {"TIME_STAMP": 0x02F5, "ACK_FREQUENCY": 0xAF, "IMMEDIATE_ACK": 0x1F}
"""Frames that quic-events does not name, and their types."""
_LIMITS = {"MAX_DATA": "maximum", "MAX_STREAM_DATA": "maximum", "MAX_STREAMS": "maximum"}
_BLOCKED = ("DATA_BLOCKED", "STREAM_DATA_BLOCKED", "STREAMS_BLOCKED")
_SEQUENCES = ("NEW_CONNECTION_ID", "RETIRE_CONNECTION_ID")
_CODES = {
    "RESET_STREAM": {},
    "STOP_SENDING": {},
    "CONNECTION_CLOSE": {"error_space": "transport"},
    "APPLICATION_CLOSE": {"error_space": "application"},
}
_FLAGS = frozenset({"disable_active_migration", "grease_quic_bit"})
_TEXTS = frozenset(
    {
        "original_destination_connection_id",
        "initial_source_connection_id",
        "retry_source_connection_id",
        "stateless_reset_token",
    }
)
_SETTINGS = {
    "0x1": "settings_qpack_max_table_capacity",
    "0x6": "settings_max_field_section_size",
    "0x7": "settings_qpack_blocked_streams",
    "0x8": "settings_enable_connect_protocol",
    "0x33": "settings_h3_datagram",
}
_HTTP3_SPEAKING = {
    "CANCEL_PUSH": 0x3,
    "SETTINGS": 0x4,
    "PUSH_PROMISE": 0x5,
    "GOAWAY": 0x7,
    "MAX_PUSH_ID": 0xD,
    "PRIORITY_UPDATE": 0xF0700,
}
"""Frames that say something in ``text``, and their types."""
_HTTP3_TYPES = {
    "DATA": "data",
    "HEADERS": "headers",
    "CANCEL_PUSH": "cancel_push",
    "SETTINGS": "settings",
    "PUSH_PROMISE": "push_promise",
    "GOAWAY": "goaway",
    "MAX_PUSH_ID": "max_push_id",
    "PRIORITY_UPDATE": "priority_update",
}
_STREAM_TYPES = {
    "control stream": "control",
    "push stream": "push",
    "QPACK encoder stream": "qpack_encode",
    "QPACK decoder stream": "qpack_decode",
}
_WEBTRANSPORT = {"WEBTRANSPORT_STREAM": 0x41, "WebTransport stream": 0x54}
"""Of draft-ietf-webtrans-http3, which h3-events does not name."""

_TIMES = {
    "time_format": "relative_to_epoch",
    "reference_time": {"clock_type": "system", "epoch": "1970-01-01T00:00:00.000Z"},
}
_RECORD = "\x1e"
"""What each record of a sequence begins with."""

_Event = tuple[int, dict[str, Any]]


def dump_qlog(tables: Tables, sink: IO[str]) -> None:
    """Write the document, one event per line.

    Raises:
        CaptureError: There is no QUIC connection in the capture, or its packets are not kept.
    """
    connections = _connections(tables)
    sink.write(f'{_head("contained", "json")[:-1]}, "traces": [')
    place = 0
    for stream, ends, flows in connections:
        for flow in flows:
            about = {
                "title": ends,
                "common_fields": {"group_id": str(stream), **_TIMES},
                "vantage_point": {"name": "conchart", "type": "network", "flow": flow},
                "event_schemas": _SCHEMAS,
            }
            sink.write(f'{"," if place else ""}\n{json.dumps(about, ensure_ascii=False)[:-1]}, "events": [')
            sink.writelines(lines(_line(at, event) for at, event in _events(tables, stream, flow)))
            sink.write("]}")
            place += 1
    sink.write("]}\n")


def dump_sqlog(tables: Tables, sink: IO[str]) -> None:
    """Write the records of a JSON text sequence (RFC 7464): one trace, whose events say of which connection they are.

    Raises:
        CaptureError: As ``dump_qlog``.
    """
    connections = _connections(tables)
    trace = {
        "common_fields": _TIMES,
        "vantage_point": {"name": "conchart", "type": "network", "flow": "client"},
        "event_schemas": _SCHEMAS,
    }
    sink.write(f'{_RECORD}{_head("sequential", "json-seq")[:-1]}, "trace": {json.dumps(trace)}}}\n')
    for stream, _, _ in connections:
        group = {"group_id": str(stream)}
        sink.writelines(f"{_RECORD}{_line(at, group | event)}\n" for at, event in _events(tables, stream, "client"))


def _head(schema: str, form: str) -> str:
    head = {
        "file_schema": f"urn:ietf:params:qlog:file:{schema}",
        "serialization_format": f"application/qlog+{form}",
        "title": "QUIC connections of a capture",
        "description": f"by conchart {version()}",
    }
    return json.dumps(head, ensure_ascii=False)


def _events(tables: Tables, stream: int, flow: str) -> Iterator[_Event]:
    """Give what happens on a connection, as ``flow`` would write it down: ``client`` or ``server``."""
    kinds = (_parameters, _packets, _http3, _losses)
    return merge(*(kind(tables, stream, flow) for kind in kinds), key=lambda it: it[0])


def _connections(tables: Tables) -> list[tuple[int, str, list[str]]]:
    """Give stream, ends and flows of those whose packets are kept."""
    found = tables.sql(
        """
        SELECT stream, client_ip, client_port, server_ip, server_port,
            stream IN (SELECT stream FROM lost_packets WHERE sender = 'server')
        FROM connections SEMI JOIN quic_frames USING (stream) ORDER BY stream
        """
    ).fetchall()
    if found:
        return [
            (stream, f"{endpoint(*ends[:2])} → {endpoint(*ends[2:])}", ["client"] + ["server"] * lost)
            for stream, *ends, lost in found
        ]
    (quic,) = tables.sql("SELECT count(*) FROM connections WHERE app = 'quic'").fetchall()[0]
    if quic:
        raise CaptureError(
            "qlog: the packets of QUIC connections were not kept\n"
            "  Read the capture itself, with packets (conchart.read(…, packets=True)), not a saved trace."
        )
    raise CaptureError(
        "qlog: there is no QUIC connection in the capture, and qlog has nothing else\n"
        "  .perfetto.json and .otlp.json have connections of every protocol."
    )


def _line(at: int, event: dict[str, Any]) -> str:
    """Give an event; a float would not hold its nanoseconds."""
    whole, rest = divmod(abs(at), 1_000_000)
    return f'{{"time": {"-" * (at < 0)}{whole}.{rest:06}, {json.dumps(event, ensure_ascii=False)[1:]}'


def _rows(tables: Tables, query: str) -> Iterator[dict[str, Any]]:
    relation = tables.sql(query)
    names = relation.columns
    return (dict(zip(names, row, strict=True)) for row in fetched(relation))


def _parameters(tables: Tables, stream: int, flow: str) -> Iterator[_Event]:
    """Give the transport parameters of both sides: when their hellos came, as far as they could be read."""
    query = f"""
        SELECT unnest(['client', 'server']) AS side, unnest([hello_at, server_hello_at]) AS at,
            unnest([parameters_client, parameters_server]) AS parameters
        FROM handshakes WHERE stream = {stream} ORDER BY number, side"""
    for row in sorted(_rows(tables, query), key=lambda row: row["at"] or 0):
        if row["at"] is None or row["parameters"] is None:
            continue
        data: dict[str, Any] = {"initiator": "local" if row["side"] == flow else "remote"}
        # The drafts let it be absent; the reader of quiche does not.
        unknown = data["unknown_parameters"] = []
        for one in row["parameters"]:
            name, _, value = one.partition("=")
            if name.startswith("0x"):
                unknown.append({"id": int(name, 16), "value": value})
            elif name in _FLAGS:
                data[name] = True
            elif name in _TEXTS:
                data[name] = value
            elif value.isdecimal():
                data[name] = int(value)
        yield row["at"], {"name": "quic:parameters_set", "data": data}


def _packets(tables: Tables, stream: int, flow: str) -> Iterator[_Event]:
    query = f"FROM quic_frames WHERE stream = {stream} ORDER BY seen_at, frame, packet, number"
    for (datagram, _), rows in groupby(_rows(tables, query), key=lambda row: (row["frame"], row["packet"])):
        frames = list(rows)
        first = frames[0]
        header = {"packet_type": _PACKET_TYPES.get(first["packet_type"], "unknown")}
        if first["packet_number"] is not None:
            header["packet_number"] = first["packet_number"]
        data: dict[str, Any] = {"header": header, "raw": {"length": first["packet_bytes"]}, "datagram_id": datagram}
        if first["kind"] is not None:
            data["frames"] = [_frame(row) for row in frames]
        name = "packet_sent" if first["sender"] == flow else "packet_received"
        yield first["seen_at"], {"name": f"quic:{name}", "data": data}


def _frame(row: dict[str, Any]) -> dict[str, Any]:
    """Give a frame with the fields that quic-events names."""
    kind = row["kind"]
    if kind in _EXTENSIONS:
        return {"frame_type": "unknown", "frame_type_bytes": _EXTENSIONS[kind]}
    fields: dict[str, Any] = {"frame_type": kind.lower()}
    if row["stream_id"] is not None:
        fields["stream_id"] = row["stream_id"]
    if kind == "ACK":
        ranges = (text.split("-") for text in row["text"].split())
        fields["acked_ranges"] = [[int(number) for number in one] for one in ranges]
    elif kind in _LIMITS:
        fields["maximum"] = row["value"]
    elif kind in _BLOCKED:
        fields["limit"] = row["value"]
    elif kind in _SEQUENCES:
        fields["sequence_number"] = row["value"]
    elif kind in _CODES:
        fields |= {"error": "unknown", "error_code": row["value"], **_CODES[kind]}
    if kind in ("MAX_STREAMS", "STREAMS_BLOCKED"):
        fields["stream_type"] = row["text"]
    elif kind == "NEW_CONNECTION_ID":
        identifier, _, retired = row["text"].partition(" ")
        fields |= {"connection_id_length": len(identifier) // 2, "connection_id": identifier}
        fields["retire_prior_to"] = int(retired or 0)
    elif kind == "NEW_TOKEN":
        fields["token"] = {"raw": {"length": row["bytes"]}}
    elif kind in ("CONNECTION_CLOSE", "APPLICATION_CLOSE"):
        fields |= {"frame_type": "connection_close", "reason": row["text"]}
    elif kind == "RESET_STREAM":
        fields["final_size"] = row["bytes"]
    if row["start_byte"] is not None:
        fields["offset"] = row["start_byte"]
    if row["fin"] is not None:
        fields["fin"] = row["fin"]
    if kind in ("CRYPTO", "STREAM", "DATAGRAM"):
        # Of these, raw.length is what their field Length says, not the length of the frame.
        fields["raw"] = {"length": row["bytes"], "payload_length": row["bytes"]}
    elif kind == "PADDING":
        fields["raw"] = {"payload_length": row["bytes"]}
    return fields


def _http3(tables: Tables, stream: int, flow: str) -> Iterator[_Event]:
    query = f"FROM http3_frames WHERE stream = {stream} ORDER BY seen_at, frame, stream_id, start_byte"
    for row in _rows(tables, query):
        data: dict[str, Any] = {"stream_id": row["stream_id"]}
        created = row["sender"] == flow
        if "stream" in row["kind"]:
            data["initiator"] = "local" if created else "remote"
            kind = _STREAM_TYPES.get(row["kind"])
            data |= {"stream_type": kind} if kind else _unnamed(row, "stream_type")
            yield row["seen_at"], {"name": "http3:stream_type_set", "data": data}
            continue
        data["frame"] = _http3_frame(row) | {"raw": {"payload_length": row["bytes"]}}
        yield row["seen_at"], {"name": f"http3:frame_{'created' if created else 'parsed'}", "data": data}


def _http3_frame(row: dict[str, Any]) -> dict[str, Any]:
    """Give a frame with the fields that h3-events demands; of HTTP's fields, which no table has, an empty list."""
    kind, text = row["kind"], row["text"]
    if kind not in _HTTP3_TYPES:
        return _unnamed(row, "frame_type")
    fields: dict[str, Any] = {"frame_type": _HTTP3_TYPES[kind]}
    if kind in ("HEADERS", "PUSH_PROMISE"):
        fields["headers"] = []
    if kind not in _HTTP3_SPEAKING:
        return fields
    if text is None:
        # Without them it is a frame that was not read.
        return {"frame_type": "unknown", "frame_type_bytes": _HTTP3_SPEAKING[kind]}
    if kind == "SETTINGS":
        fields["settings"] = [_setting(*one.split("=")) for one in text.split()]
    elif kind == "PRIORITY_UPDATE":
        of_push = text.startswith("push ")
        number, _, priority = text.removeprefix("push ").partition(" ")
        fields |= {"push_id" if of_push else "stream_id": int(number), "priority_field_value": priority}
    else:
        fields["id" if kind == "GOAWAY" else "push_id"] = int(text)
    return fields


def _setting(identifier: str, value: str) -> dict[str, Any]:
    if name := _SETTINGS.get(identifier):
        return {"name": name, "value": int(value)}
    number = int(identifier, 16)
    return {"name": "reserved" if _is_reserved(number) else "unknown", "name_bytes": number, "value": int(value)}


def _unnamed(row: dict[str, Any], field: str) -> dict[str, Any]:
    """Give the type of a frame or stream that h3-events does not name."""
    if row["kind"] not in _WEBTRANSPORT and row["text"] is None:
        # A trace that was saved by an earlier version.
        return {field: "unknown"}
    number = _WEBTRANSPORT.get(row["kind"]) or int(row["text"], 16)
    return {field: "reserved" if _is_reserved(number) else "unknown", f"{field}_bytes": number}


def _is_reserved(number: int) -> bool:
    """Tell whether it is one of those without a meaning (RFC 9114 section 7.2.8)."""
    return number >= 0x21 and (number - 0x21) % 0x1F == 0


def _losses(tables: Tables, stream: int, flow: str) -> Iterator[_Event]:
    """Give the losses of that side: those of the other one are no events of this flow."""
    query = f"""
        FROM lost_packets WHERE stream = {stream} AND sender = '{flow}' ORDER BY reported_at, space, number"""
    for row in _rows(tables, query):
        header = {"packet_type": _SPACES[row["space"]], "packet_number": row["number"]}
        data = {"header": header, "trigger": "reordering_threshold"}
        yield row["reported_at"], {"name": "quic:packet_lost", "data": data}
