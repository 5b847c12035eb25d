"""What happened to packets on the way between two places: changed, overtaken, doubled, sent needlessly, in a queue.

In: the tables ``changes``, ``disorders``, ``crossings``, ``place_packets``, ``paths``. Out: a line of text for each
pair of places and direction; none where nobody named places.
"""

from collections.abc import Iterator

from conchart.labels.printable import printable
from conchart.labels.units import count_of, format_ns
from conchart.report.rows import Row, rows
from conchart.store.tables import Tables

_WORDS = {
    "mss": "maximum segment size", "window_scale": "window scale", "sack_permitted": "SACK", "dscp": "DSCP",
    "ecn": "ECN", "isn": "sequence numbers", "handshake": "handshake answered by a middlebox", "ttl": "TTL",
    "client_ip": "client's address", "server_ip": "server's address", "client_port": "client's port",
    "server_port": "server's port",
}  # fmt: skip
_VALUED = ("mss", "window_scale", "dscp", "ecn", "ttl", "client_ip", "server_ip", "client_port", "server_port")
# A translated address says enough: the port that goes with it is not told.
_CHANGED = """
    SELECT from_place, to_place, field, min(before) AS before, min(after) AS after,
        count(DISTINCT (before, after)) AS ways
    FROM changes WHERE NOT (ends_with(field, '_port') AND EXISTS (
        SELECT * FROM changes other WHERE other.stream = changes.stream AND other.from_place = changes.from_place
            AND other.to_place = changes.to_place AND other.field = replace(changes.field, '_port', '_ip')))
    GROUP BY from_place, to_place, field ORDER BY from_place, to_place, any_value(field = 'ttl'), field
"""


def changes(tables: Tables) -> Iterator[str]:
    """Say what is changed between which places: ``client → lb: DSCP 0 → 18, SACK removed, TTL 64 → 63 (1 router)``."""
    by_direction: dict[tuple[str, str], list[str]] = {}
    for row in rows(tables, _CHANGED):
        by_direction.setdefault((row["from_place"], row["to_place"]), []).append(_change(row))
    for (here, there), words in by_direction.items():
        yield f"{_way(here, there)}: {', '.join(words)}"


def _change(row: Row) -> str:
    field, before, after = row["field"], row["before"], row["after"]
    if field == "tls":
        return f"TLS ended ({printable(before or 'none')} → {printable(after or 'none')})"
    if field == "tls_passed_through":
        return f"TLS passed through ({printable(before)})"
    if field == "proxy_header":
        return "PROXY header added"
    if field == "tunnel":
        return _tunnel(before, after)
    words = _WORDS.get(field, field.replace("_", " "))
    if field in _VALUED:
        change = f"{words} {printable(before or 'none')} → {printable(after or 'none')}"
        if row["ways"] > 1:
            return f"{change} and {row['ways'] - 1} more"
        if field == "ttl":
            routers = int(before) - int(after)
            return f"{change} ({count_of(routers, 'router') if routers > 0 else 'set anew'})"
        return change
    if before == "present" and after is None:
        return f"{words} removed"
    return f"{words} added" if after == "present" and before is None else words


_TUNNELS = {"etherip": "EtherIP", "geneve": "Geneve", "srv6": "SRv6", "teredo": "Teredo"}


def _tunnel(before: str | None, after: str | None) -> str:
    had, has = (name and _TUNNELS.get(name, name.upper()) for name in (before, after))
    if had and has:
        return f"tunnel {had} → {has}"
    return f"wrapped in {has}" if has else f"{had} taken off"


def _way(here: str, there: str) -> str:
    return printable(here) if here == there else f"{printable(here)} → {printable(there)}"


_DISORDERS = """
    SELECT kind, from_place, to_place, count(*) AS packets, max(late_ns) AS late_ns, count(DISTINCT stream) AS streams,
        arg_max({'frame': frame, 'to': to_frame, 'other': other_frame}, late_ns) AS frames
    FROM disorders GROUP BY ALL ORDER BY from_place, to_place, kind
"""
_OF_KIND = {
    "reordered": ("overtaken", "overtaken by"),
    "duplicated": ("doubled on the way", "after"),
    "needless": ("sent again though it had arrived", "which had come as"),
}


def disorders(tables: Tables) -> Iterator[str]:
    """Say it of each direction and kind, with the worst one's frames, as either place saw it.

    ``client → lb: 1 packet overtaken, up to 13.5 ms late: frame 15 → 223, overtaken by 212``
    """
    for row in rows(tables, _DISORDERS):
        what, by = _OF_KIND[row["kind"]]
        if row["packets"] > 1:
            what = what.replace("it had", "they had")
        frames = row["frames"]
        example = f"frame {frames['frame']} → {frames['to']}, {by} {frames['other']}"
        yield (
            f"{_way(row['from_place'], row['to_place'])}: {count_of(row['packets'], 'packet')} {what}, "
            f"up to {format_ns(row['late_ns'])} later: {example}"
        )


_LEAST_QUEUE_NS = 10_000_000
_LEAST_PACKETS = 3
"""Fewer are late by themselves."""
# Few connections have a packet that was late: of the others, no packet is looked at.
_QUEUED = f"""
    WITH usual AS (SELECT place, to_place, min(least_ns) AS least_ns FROM crossings GROUP BY ALL),
    slow AS (
        SELECT stream FROM crossings JOIN usual USING (place, to_place)
        WHERE most_ns - usual.least_ns >= {_LEAST_QUEUE_NS}),
    hops AS (
        SELECT place, lead(place) OVER way AS to_place, seen_at AS from_at, lead(seen_at) OVER way AS to_at,
            to_at - from_at AS ns, frame, lead(frame) OVER way AS to_frame
        FROM place_packets JOIN paths USING (stream, place) WHERE packet IS NOT NULL AND stream IN (FROM slow)
        WINDOW way AS (PARTITION BY stream, packet ORDER BY if(sender = 'client', position, -position))),
    extra AS (SELECT hops.*, ns - least_ns AS queue_ns FROM hops JOIN usual USING (place, to_place)),
    -- A queue holds several packets at a time.
    crowded AS (
        SELECT * FROM extra WHERE queue_ns >= {_LEAST_QUEUE_NS}
        WINDOW abreast AS (PARTITION BY place, to_place ORDER BY from_at, to_at)
        QUALIFY coalesce(lead(from_at) OVER abreast < to_at, false)
            OR coalesce(lag(to_at) OVER abreast > from_at, false))
    SELECT place, to_place, count(*) AS packets, median(queue_ns)::BIGINT AS usual_ns, max(queue_ns) AS most_ns,
        arg_max(frame, queue_ns) AS frame, arg_max(to_frame, queue_ns) AS to_frame
    FROM crowded GROUP BY place, to_place HAVING count(*) >= {_LEAST_PACKETS} ORDER BY most_ns DESC, place, to_place
"""


def queues(tables: Tables) -> Iterator[str]:
    """Say where packets queue: ``lb → client: 216 packets took 49.7 ms longer than the fastest one (the median) …``."""
    for row in rows(tables, _QUEUED):
        yield (
            f"{_way(row['place'], row['to_place'])}: {count_of(row['packets'], 'packet')} took "
            f"{format_ns(row['usual_ns'])} longer than the fastest one (the median), "
            f"up to {format_ns(row['most_ns'])}: frame {row['frame']} → {row['to_frame']}"
        )
