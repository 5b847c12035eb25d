"""The pages, how far the store is, how many visitors there are and how many workers serve them.

In: nothing. Out: ``CASES``.
"""

from __future__ import annotations

from dataclasses import dataclass

RTTS_MS = (0.1, 1, 20)
"""The same rack, another zone of the same city, another country."""
PAGES = 4
"""Each visitor asks for so many, one after the other."""
CROWD = 4
"""Visitors at once, where they are several."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """How one capture is made."""

    title: str
    page: str
    """Of the folder ``pages``."""
    rtt_ms: float
    """Between application and store."""
    see: str
    visitors: int = 1
    workers: int = 1
    """Of PHP-FPM."""


CASES = {
    **{
        f"n-plus-one-{rtt_ms:g}ms": Case(
            title=f"25 queries for each page, {rtt_ms:g} ms from the database",
            page="n-plus-one",
            rtt_ms=rtt_ms,
            see="""\
- Below each FastCGI request: a connection to the database, a query for the list, and 24 queries of one shape.""",
        )
        for rtt_ms in RTTS_MS
    },
    **{
        f"join-{rtt_ms:g}ms": Case(
            title=f"One query for each page, {rtt_ms:g} ms from the database",
            page="join",
            rtt_ms=rtt_ms,
            see="- Below each FastCGI request: a connection to the database, and one query.",
        )
        for rtt_ms in RTTS_MS
    },
    "n-plus-one-kept-1ms": Case(
        title="25 queries for each page on a persistent connection, 1 ms from the database",
        page="n-plus-one-kept",
        rtt_ms=1,
        see="""\
- One connection to the database for all pages (`PDO::ATTR_PERSISTENT`).
- From the second page on, PHP sends a `Ping` before the 25 queries.""",
    ),
    "join-kept-20ms": Case(
        title="One query for each page on a persistent connection, 20 ms from the database",
        page="join-kept",
        rtt_ms=20,
        see="""\
- One connection to the database for all pages (`PDO::ATTR_PERSISTENT`).
- From the second page on, PHP sends a `Ping` before the query.""",
    ),
    "prepared-1ms": Case(
        title="25 queries for each page, each prepared by the server, 1 ms from the database",
        page="prepared",
        rtt_ms=1,
        see="""\
- Each query is a `Prepare`, an `Execute` and a `Close stmt` (`PDO::ATTR_EMULATE_PREPARES => false`).
- The server answers the first two of them, so each query takes two round trips.""",
    ),
    "pool-of-one": Case(
        title="Four visitors at once, and one PHP worker",
        page="n-plus-one",
        rtt_ms=1,
        visitors=CROWD,
        see="""\
- Four FastCGI requests wait at a time. One of them is being served, and asks the database.
- The response header `Server-Timing` has PHP's own times: they are those of a visitor who is alone.""",
    ),
    "pool-of-four": Case(
        title="Four visitors at once, and four PHP workers",
        page="n-plus-one",
        rtt_ms=1,
        visitors=CROWD,
        workers=CROWD,
        see="- Four FastCGI requests wait at a time, and each of them asks the database.",
    ),
}
