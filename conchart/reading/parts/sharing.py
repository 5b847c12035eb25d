"""Which flows several parts share.

In: the surveyed parts. Out: :class:`Shared`.

A flow is a transport and two ends. Its connections in two parts may be one where the later one does not begin with a
SYN that begins a new connection: a SYN of the client with another initial sequence number (RFC 9293 section 3.4.1). A
conversation over UDP may go on until it was silent for two minutes (RFC 4787 section 4.3). To share a flow that is
complete costs time and changes nothing; so in doubt, it is shared.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import duckdb

from conchart.reading.parts.model import Flow, FlowSelection, Surveyed, Torn, files_of
from conchart.store.sql import literal

_UDP_SILENCE_NS = 300_000_000_000
"""More than the two minutes after which a conversation over UDP is over."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A part, and where it begins among all parts."""

    number: int
    first_frame: int
    series: int
    """Parts of other series overlap in time: no flow goes from one to the other."""


@dataclass(frozen=True, slots=True)
class Shared:
    """The flows that parts share."""

    placed: tuple[Placed, ...]
    flows: dict[int, list[tuple[Flow, int]]]
    """Of each part that shares any: its flows, each with the number of the file that it goes into."""
    files: int
    """Into so many files the flows of each part are dealt out."""
    torn: frozenset[tuple[str, str]]
    """Between these addresses, fragmented packets lie in two parts."""
    listed: str
    """A Parquet file with the same flows."""
    moved: bool
    """A QUIC client may have gone on from another port in a later part (RFC 9000 section 9): only one reading tells."""

    @property
    def parts(self) -> list[int]:
        """The numbers of the parts that share anything."""
        return sorted(self.flows)

    def flows_of(self, part: int) -> list[tuple[Flow, int]]:
        """Give the flows that a part shares."""
        return self.flows[part]

    @property
    def stitches(self) -> list[tuple[list[int], int]]:
        """Give what is read in one piece: parts of one series, and the number of the file of each."""
        series: dict[int, list[int]] = {}
        for place in self.placed:
            if place.number in self.flows:
                series.setdefault(place.series, []).append(place.number)
        return [(parts, file) for parts in series.values() for file in range(self.files)]

    def selected(self, parts: Iterable[int], file: int) -> "FlowSelection":
        """Say which flows of these parts to keep of a file."""
        flows = {(flow, its_file) for part in parts for flow, its_file in self.flows[part]}
        here = sorted(flow for flow, its_file in flows if its_file == file)
        # A flow of which every packet is torn is in no part: the first file has it.
        return FlowSelection(here, sorted(flow for flow, _ in flows), sorted(self.torn) if file == 0 else [])


def share(surveyed: Sequence[Surveyed], files: int, work: Path) -> Shared:
    """Find the flows that several parts share, dealt out to so many files."""
    placed = tuple(_placed(surveyed))
    torn = frozenset(_torn_between(surveyed))
    database = duckdb.connect(":memory:")
    try:
        database.execute("CREATE TABLE placed (filename VARCHAR, part BIGINT, series BIGINT)")
        tables = [
            (path, one.part.number, place.series)
            for one, place in zip(surveyed, placed, strict=True)
            for path in files_of(one.folder, "connections")
        ]
        database.executemany("INSERT INTO placed VALUES (?, ?, ?)", tables)
        names = ", ".join(literal(path) for path, *_ in tables)
        query = _SHARED.format(files=f"[{names}]", torn=_pairs(torn))
        listed = str(work / "shared.parquet")
        database.execute(f"COPY ({query}) TO {literal(listed)}")
        found = database.execute(f"FROM read_parquet({literal(listed)})").fetchall()
        ((moved,),) = database.execute(_MOVED.format(files=f"[{names}]")).fetchall()
    finally:
        database.close()
    flows: dict[int, list[tuple[Flow, int]]] = {one.part.number: [] for one in _torn_parts(surveyed, torn)}
    for part, transport, one, port, other, its_port, dealt in found:
        flows.setdefault(part, []).append(((transport, one, port, other, its_port), dealt % files))
    return Shared(placed=placed, flows=flows, files=files, torn=torn, listed=listed, moved=moved)


def _placed(surveyed: Sequence[Surveyed]) -> Iterator[Placed]:
    """Say where each part begins.

    A file that begins before the one before it ended is a capture of the same time: its flows are its own.
    """
    first_frame, series, latest = 1, 0, None
    for one in surveyed:
        begins_file = one.part.begin == 0
        if begins_file and latest is not None and one.first_at is not None and one.first_at < latest:
            series += 1
        if one.last_at is not None:
            latest = max(latest or one.last_at, one.last_at)
        yield Placed(one.part.number, first_frame, series)
        first_frame += one.frames


def _pairs(torn: Iterable[tuple[str, str]]) -> str:
    rows = ", ".join(f"({literal(one)}, {literal(other)})" for one, other in sorted(torn))
    return rows or "(NULL, NULL)"


def _torn_between(surveyed: Sequence[Surveyed]) -> Iterator[tuple[str, str]]:
    """Give the addresses between which a fragmented packet may lie in two parts."""
    for one, other in pairwise(surveyed):
        yield from {_ends(torn) for torn in one.torn} & {_ends(torn) for torn in other.torn}


def _torn_parts(surveyed: Sequence[Surveyed], torn: Iterable[tuple[str, str]]) -> Iterator[Surveyed]:
    pairs = set(torn)
    return (one for one in surveyed if {_ends(each) for each in one.torn} & pairs)


def _ends(torn: Torn) -> tuple[str, str]:
    return min((torn.source, torn.destination), (torn.destination, torn.source))


_SHARED = f"""
    WITH torn(one, other) AS (VALUES {{torn}}),
    ends AS (
        SELECT part, series, transport, first_frame, opened_at, closed_at, isn_client,
            opened_by = 'client' AND syn_at = opened_at AND state <> 'midstream' AS begins,
            row(client_ip, client_port) AS client, row(server_ip, server_port) AS server,
            CASE WHEN client <= server THEN client ELSE server END AS low,
            CASE WHEN client <= server THEN server ELSE client END AS high,
            (least(client_ip, server_ip), greatest(client_ip, server_ip)) IN (SELECT (one, other) FROM torn) AS is_torn
        FROM read_parquet({{files}}, filename = true) JOIN placed USING (filename)),
    ordered AS (
        SELECT *, lag(part) OVER flow AS part_before,
            CASE transport
                WHEN 'udp' THEN opened_at - lag(closed_at) OVER flow < {_UDP_SILENCE_NS}
                ELSE NOT (coalesce(begins, false) AND isn_client IS NOT NULL
                    AND client = lag(client) OVER flow
                    AND isn_client IS DISTINCT FROM lag(isn_client) OVER flow)
            END AS goes_on
        FROM ends WINDOW flow AS (PARTITION BY series, transport, low, high ORDER BY part, first_frame)),
    linked AS (
        SELECT unnest([part, part_before]) AS part, transport, low, high FROM ordered
        WHERE part_before <> part AND goes_on
        UNION ALL SELECT part, transport, low, high FROM ordered WHERE is_torn)
    SELECT DISTINCT part, transport::VARCHAR AS transport, low[1] AS one, low[2] AS port, high[1] AS other,
        high[2] AS its_port, (hash(transport, low, high) >> 1)::BIGINT AS dealt
    FROM linked
"""

_MOVED = """
    WITH ends AS (
        SELECT part, series, app, row(client_ip, client_port) AS client, row(server_ip, server_port) AS server,
            least(client, server) AS low, greatest(client, server) AS high
        FROM read_parquet({files}, filename = true) JOIN placed USING (filename) WHERE transport = 'udp'),
    quic AS (FROM ends WHERE app = 'quic'),
    -- What went on between the same ends is shared as any other flow.
    strangers AS (
        FROM (FROM ends WHERE app = 'unknown') later ANTI JOIN quic USING (series, low, high)),
    begun AS (SELECT series, server, min(part) AS part FROM quic GROUP BY ALL)
    SELECT count(*) > 0
    FROM (SELECT part, series, unnest([client, server]) AS server FROM strangers) later
    JOIN begun USING (series, server) WHERE later.part > begun.part
"""
