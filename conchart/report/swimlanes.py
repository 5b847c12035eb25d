"""All connections as lanes, by server and time, and what happened on each: what pictures show, and the page.

In: tables. Out: :class:`Swimlanes`; for the page, which writes whole tables, the same rows as SQL. Times are
nanoseconds on the time axis.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from conchart.labels.phases import PHASES
from conchart.labels.printable import endpoint
from conchart.labels.stalls import DETAIL, LISTED, STALLS, stall_kind
from conchart.report.axis import TimeAxis
from conchart.report.rows import rows
from conchart.report.servers import groups
from conchart.report.splits import STEPS
from conchart.store.sql import COSTLIEST, literal
from conchart.store.tables import Tables

MAX_LANES = 250_000
MAX_PHASES = 2_000_000
MAX_LINKS = 2_000_000
MAX_STALLS = 1_000_000
_OF_EACH = 100
"""Connections that every server and every finding shows, whatever else has to be left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A connection."""

    group: int
    """Its server."""
    client: str
    label: str
    opened: int
    closed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """The phases of all lanes as columns, by lane and time; they touch. Where a trace has them, arrays of numpy's."""

    lane: Sequence[int]
    kind: Sequence[int]
    """Places in ``PHASES``."""
    duration: Sequence[int]
    inferred: Sequence[bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStall:
    """A stretch in which the next byte of a lane did not come."""

    lane: int
    word: str
    """What the stall is called."""
    idle: bool
    """Nothing else went on: it is all of a phase, not a part of one."""
    start: int
    duration: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A front's request that caused one behind it."""

    lane: int
    back_lane: int | None
    """None where that is not drawn."""
    at: int
    """When the front asked, or opened a connection to ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swimlanes:
    """All lanes from the top; texts are safe to print."""

    servers: tuple[str, ...]
    """Address, names and role of each."""
    lanes: tuple[Lane, ...]
    phases: Phases
    stalls: tuple[LaneStall, ...]
    links: tuple[Link, ...]


def swimlanes(tables: Tables, axis: TimeAxis, *, names: bool) -> Swimlanes:
    """Collect the lanes; ``names``: with names found in the capture."""
    servers = groups(tables, names=names)
    with drawn_lanes(tables):
        phases: dict[str, Any] = tables.sql(phase_rows("coalesce(inferred, false) AS inferred")).fetchnumpy()
        return Swimlanes(
            servers=tuple(
                f"{address}  {title}".rstrip() + f"  ({role})"
                for address, title, role in zip(servers["endpoint"], servers["title"], servers["role"], strict=True)
            ),
            lanes=tuple(_lanes(tables, axis)),
            phases=Phases(**{name: phases[name] for name in ("lane", "kind", "duration", "inferred")}),
            stalls=tuple(_stalls(tables, axis)),
            links=tuple(_links(tables, axis)),
        )


def _lanes(tables: Tables, axis: TimeAxis) -> Iterator[Lane]:
    opened = axis.place("opened_at")
    query = f"""
        SELECT "group", stream, client_ip, client_port, {opened} AS opened, closed_at - opened_at AS duration
        FROM connections JOIN drawn USING (stream) ORDER BY lane"""
    for row in rows(tables, query):
        yield Lane(
            group=row["group"],
            client=row["client_ip"],
            label=f"{row['stream']}  {endpoint(row['client_ip'], row['client_port'])}",
            opened=row["opened"],
            closed=row["opened"] + row["duration"],
        )


def _stalls(tables: Tables, axis: TimeAxis) -> Iterator[LaneStall]:
    """Give what explains parts of phases, and after it what explains idle ones."""
    times = f"{axis.place('start_at')} AS start, end_at - start_at AS duration"
    for lane, kind, start, duration in tables.fetch(stall_rows(times)):
        yield LaneStall(lane=lane, word=STALLS[kind].word, idle=False, start=start, duration=duration)
    idled = f"""
        SELECT lane, kind, detail, {times} FROM phase_stalls JOIN drawn USING (stream)
        WHERE phase = 'idle' ORDER BY ALL"""
    for lane, name, detail, start, duration in tables.fetch(idled):
        yield LaneStall(lane=lane, word=stall_kind(name, detail).word, idle=True, start=start, duration=duration)


def _links(tables: Tables, axis: TimeAxis) -> Iterator[Link]:
    query = f"""
        SELECT lane, back_lane, {axis.place("started_at")} FROM (SELECT lane, back_lane,
            CASE WHEN connect_ns + tls_ns > 0 THEN opened_at ELSE coalesce(request_at, opened_at) END AS started_at
        FROM ({link_rows()}) JOIN connections ON stream = back_stream
        LEFT JOIN exchanges ON exchanges.stream = back_stream AND number = back_exchange)"""
    for lane, back_lane, at in tables.fetch(query):
        yield Link(lane=lane, back_lane=back_lane, at=at)


@contextmanager
def drawn_lanes(tables: Tables) -> Iterator[None]:
    """Number the lanes from the top: ``drawn`` has their ``stream``, ``lane``, ``group``, as long as the block lasts.

    A lane is kept while the phases of all that cost more leave room, so that one long-lived connection with millions of
    requests cannot blow up the page; its own phases beyond the limit are cut.
    """
    count, phases = tables.count("connections"), tables.count("phases")
    # Where everything is drawn, the order does not matter, and nobody has to know what findings there are.
    named = "false"
    if count > MAX_LANES or phases > MAX_PHASES:
        named = f"stream IN (SELECT unnest(streams[:{_OF_EACH}]) FROM findings)"
    tables.execute(
        f"""
        CREATE TEMP TABLE ranked AS
        WITH counted AS (SELECT stream, count(*) AS parts FROM phases GROUP BY stream),
        placed AS (
            SELECT server_ip, server_port, row_number() OVER (ORDER BY rank, server_ip, server_port) - 1 AS "group"
            FROM servers),
        of_servers AS (
            SELECT *, {named} OR row_number() OVER (
                PARTITION BY server_ip, server_port ORDER BY {COSTLIEST}) <= {_OF_EACH} AS is_first
            FROM connections)
        SELECT stream, "group"::INTEGER AS "group", opened_at, first_frame, row_number() OVER costly AS cost_rank,
            coalesce(sum(parts) OVER (costly ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS parts_before
        FROM of_servers JOIN placed USING (server_ip, server_port) LEFT JOIN counted USING (stream)
        WINDOW costly AS (ORDER BY is_first DESC, {COSTLIEST});
        CREATE TEMP TABLE drawn AS
        SELECT stream, "group", opened_at AS lane_opened_at, first_frame AS lane_first_frame,
            (row_number() OVER (ORDER BY "group", opened_at, stream) - 1)::INTEGER AS lane
        FROM ranked WHERE cost_rank <= {MAX_LANES} AND parts_before < {MAX_PHASES}
        """
    )
    try:
        yield
    finally:
        tables.execute("DROP TABLE drawn; DROP TABLE ranked")


def phase_rows(columns: str) -> str:
    """SQL: lane, kind and duration of each phase, and more columns of ``phases``.

    They touch: where one begins is where the one before ended, and the first where its connection opened.
    """
    kinds = " ".join(f"WHEN '{kind.name}' THEN {number}" for number, kind in enumerate(PHASES))
    return f"""
        SELECT lane, (CASE kind {kinds} END)::UTINYINT AS kind, end_at - start_at AS duration, {columns}
        FROM phases JOIN drawn USING (stream) ORDER BY lane, start_at, end_at, start_frame LIMIT {MAX_PHASES}"""


def stall_rows(columns: str) -> str:
    """SQL: lane and kind of where bytes were kept from coming, and more columns of ``stalls``."""
    kinds = " ".join(
        f"WHEN kind = '{kind.name}' {'' if kind.detail is None else f'AND detail = {literal(kind.detail)}'} THEN {n}"
        for n, kind in sorted(enumerate(STALLS), key=lambda numbered: numbered[1].detail is None)
    )
    return f"""
        SELECT lane, (CASE {kinds} END)::UTINYINT AS kind, {columns}
        FROM (SELECT * REPLACE ({DETAIL} AS detail) FROM {LISTED}) JOIN drawn USING (stream)
        ORDER BY lane, start_at LIMIT {MAX_STALLS}"""


def link_rows() -> str:
    """SQL: what one front caused is in the order in which it was charged with the front's wait."""
    return f"""
        SELECT drawn.lane, front_exchange AS exchange, backs.lane AS back_lane, back_stream, back_exchange, method,
            round(100 * confidence)::UTINYINT AS confidence, {", ".join(f"{step.name}_ns" for step in STEPS)}
        FROM links JOIN drawn ON drawn.stream = front_stream
        LEFT JOIN drawn backs ON backs.stream = back_stream
        LEFT JOIN (SELECT stream AS front_stream, number AS front_exchange, response_at AS until_at FROM exchanges)
            USING (front_stream, front_exchange)
        LEFT JOIN (SELECT stream AS back_stream, number AS back_exchange, response_at FROM exchanges)
            USING (back_stream, back_exchange)
        ORDER BY drawn.lane, front_exchange, CASE WHEN response_at <= until_at THEN response_at END NULLS FIRST,
            back_stream, back_exchange
        LIMIT {MAX_LINKS}"""
