"""How good the capture is: what is wrong with it, and by how much. ``labels/quality.py`` has the sentences.

In: captures, connections, exchanges, phases, phase_stalls, on_behalf, checks, coverage, spans.
Out: the table ``remarks``, in the order in which they matter.
"""

from collections.abc import Iterator
from dataclasses import astuple
from typing import Any

from conchart.analysis.waits import USERS_WAITS
from conchart.labels.printable import endpoint
from conchart.labels.quality import RemarkText, apart, checked, keys, noted, ruled, same_traffic, traced
from conchart.store.sql import ASKING, FIRST_SIGHT, HOLED, MISSING, OF_USERS, ONE_SIDED, SERVED
from conchart.store.tables import Tables

_FACTS = f"""
    SELECT * FROM
    (SELECT count(*) FILTER (truncated) AS truncated, coalesce(sum(undecodable), 0)::BIGINT AS undecodable,
        coalesce(sum(other), 0)::BIGINT AS other, coalesce(sum(snapped), 0)::BIGINT AS snapped,
        sum(dropped)::BIGINT AS dropped, count(*) FILTER (dropped IS NULL) AS silent,
        coalesce(sum(duplicates), 0)::BIGINT AS duplicates, coalesce(sum(packets), 0)::BIGINT AS packets,
        coalesce(sum(packets) - sum(selected), 0)::BIGINT AS filtered,
        max(resolution_ns) FILTER (resolution_ns > 1000) AS resolution, count(*) AS captures,
        coalesce(string_agg(DISTINCT vantage, ', ' ORDER BY vantage), 'unknown') AS vantage,
        any_value(seen_from) AS "seen-from"
    FROM captures),
    (SELECT coalesce(sum(closed_at - opened_at), 0)::BIGINT AS total_ns,
        coalesce(sum({MISSING}) FILTER ({HOLED}), 0)::BIGINT AS missing,
        count(*) FILTER ({HOLED}) AS with_missing,
        count(*) FILTER (state = 'midstream') AS midstream,
        count(*) FILTER (state = 'open' AND transport = 'tcp') AS open,
        count(*) FILTER ({ONE_SIDED}) AS "one-sided",
        count(*) FILTER (transport = 'udp' AND app IN ('unknown', 'quic')) AS sealed
    FROM connections WHERE {FIRST_SIGHT}),
    (SELECT count(same_as) AS translated FROM connections),
    (SELECT coalesce(sum(end_at - start_at), 0)::BIGINT AS unseen
    FROM phases JOIN connections USING (stream) WHERE kind = 'unseen' AND transport = 'tcp'),
    (SELECT coalesce(sum(end_at - start_at), 0)::BIGINT AS inferred
    FROM phases WHERE inferred AND kind <> 'unseen'),
    (SELECT count(*) AS spans FROM spans),
    (SELECT coalesce(min(far), 0) AS nearest, coalesce(max(far), 0) AS farthest,
        count(*) FILTER (far IS NULL) AS unmoved
    FROM (SELECT CASE seen_from WHEN 'client' THEN least_rtt_client_ns ELSE least_rtt_server_ns END AS far
        FROM connections JOIN captures USING (capture)))"""


_TRACED = "SELECT coalesce(matched_by, unmatched), count(*) FROM spans GROUP BY ALL ORDER BY ALL"


def appraise(tables: Tables) -> None:
    """Say what limits the capture, warnings first."""
    relation = tables.sql(_FACTS)
    (values,) = relation.fetchall()
    facts = dict(zip(relation.columns, values, strict=True))
    remarks = [*_apart(tables), *_same_traffic(tables, facts), *ruled(facts), *_checked(tables), *_keys(tables)]
    remarks += [*(_traced(tables) if facts["spans"] else ()), *_notes(tables)]
    remarks.sort(key=lambda remark: not remark.warning)
    tables.add("remarks", ((number, *astuple(remark)) for number, remark in enumerate(remarks)))


def _apart(tables: Tables) -> Iterator[RemarkText]:
    """Tell two takes from two parts of one: nothing of the earlier capture goes on in the later one."""
    found = tables.fetch(
        """
        SELECT path, first_at, last_at, capture IN (SELECT capture FROM connections) AS used
        FROM captures ORDER BY first_at, capture
        """
    )
    if len(found) != 2 or not all(used for *_, used in found):
        return
    (before, _, ends_at, _), (after, begins_at, _, _) = found
    ((shared,),) = tables.fetch(
        "SELECT count(*) FROM connections WHERE opened_at <= $ends_at AND closed_at >= $begins_at",
        {"ends_at": ends_at, "begins_at": begins_at},
    )
    if ends_at < begins_at and not shared:
        yield apart(before, after)


def _same_traffic(tables: Tables, facts: dict[str, Any]) -> Iterator[RemarkText]:
    """Tell captures of two places from others: they hold the same connections, by both initial sequence numbers."""
    if facts["captures"] < 2:  # noqa: PLR2004
        return
    for connections, one, other in tables.fetch(
        """
        WITH numbered AS (
            SELECT capture, isn_client, isn_server FROM connections
            WHERE isn_client IS NOT NULL AND isn_server IS NOT NULL),
        shared AS (
            SELECT count(*) AS connections, one.capture AS one, other.capture AS other
            FROM numbered one JOIN numbered other USING (isn_client, isn_server)
            WHERE one.capture < other.capture GROUP BY ALL)
        SELECT connections, first.path, second.path
        FROM shared JOIN captures first ON first.capture = shared.one JOIN captures second
            ON second.capture = shared.other
        ORDER BY connections DESC, shared.one, shared.other LIMIT 1
        """
    ):
        yield same_traffic(connections, one, other)


# The opening of a connection that carries nothing else is a health check's, too.
_CHECKED = f"""
    WITH left_out AS (FROM checks WHERE {OF_USERS}),
    wholly AS (
        SELECT stream FROM (SELECT stream, count(*) AS checks FROM left_out GROUP BY stream)
        LEFT JOIN (SELECT stream, count(*) AS requests FROM exchanges WHERE {ASKING} GROUP BY stream) USING (stream)
        WHERE checks = greatest(coalesce(requests, 0), 1))
    SELECT (SELECT count(*) FROM left_out), coalesce(sum(end_at - start_at), 0)::BIGINT
    FROM {USERS_WAITS} SEMI JOIN (SELECT stream FROM connections WHERE {SERVED}) USING (stream)
    WHERE stream IN (FROM wholly) OR (stream, exchange) IN (FROM left_out)
"""


def _checked(tables: Tables) -> Iterator[RemarkText]:
    if tables.count("checks"):
        ((count, waited_ns),) = tables.fetch(_CHECKED)
        if count:
            yield checked(count, waited_ns)


def _keys(tables: Tables) -> Iterator[RemarkText]:
    rows = tables.fetch(
        """
        SELECT server_ip, server_port, keys, missing_keys, connections, first_stream FROM coverage
        ORDER BY first_stream
        """
    )
    if not rows:
        return
    opened, total = sum(row[4] for row in rows if row[2] == "all"), sum(row[4] for row in rows)
    lacking = [
        (lack, missing, f"#{first_stream}" if connections == 1 else endpoint(ip, port), connections)
        for ip, port, lack, missing, connections, first_stream in rows
        if lack != "all"
    ]
    yield keys(opened, total, lacking)


def _traced(tables: Tables) -> Iterator[RemarkText]:
    """Count spans beside requests, by what they are matched by, and why others are not."""
    counts: dict[str, int] = dict(tables.fetch(_TRACED))
    by_ids, by_time, internal = (counts.pop(by, 0) for by in ("traceparent", "time", "internal"))
    yield traced(by_ids, by_time, internal, left=counts)


def _notes(tables: Tables) -> Iterator[RemarkText]:
    for (note,) in tables.fetch(
        "SELECT note FROM (SELECT capture, unnest(notes) AS note FROM captures) ORDER BY capture"
    ):
        if remark := noted(note):
            yield remark
