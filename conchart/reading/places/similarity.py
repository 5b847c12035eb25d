"""Exchanges of two places that share no packets, paired by what they look like.

In: exchanges of both. Out: what ``native/src/correlate/similarity.rs`` needs to know of them, and what it found: for
the clocks (:func:`pair_places`), and later, when all is on one clock, for ``links`` (``analysis/hops.py``).

A proxy changes ``Host`` and other headers, so that method, target and status have to be the same. Where they are
encrypted, the sizes of requests and answers have to be.
"""

from dataclasses import dataclass

from conchart import _native
from conchart.store.sql import PATH
from conchart.store.tables import Rows, Tables

_EXCHANGES = f"""
    SELECT {{in_front}} AS in_front, stream, number,
        if(target IS NULL, NULL, hash(method, {PATH.format("exchanges")}, status)) AS key,
        request_at, response_at, response_done_at AS done_at, coalesce(request_bytes, 0)::BIGINT AS request_bytes,
        coalesce(response_bytes, 0)::BIGINT AS response_bytes, request_frame AS frame
    FROM ({{exchanges}}) exchanges
    WHERE request_at IS NOT NULL AND response_at IS NOT NULL AND response_done_at IS NOT NULL AND protocol <> 'proxy'
        AND (target IS NOT NULL OR protocol = 'tls')
    ORDER BY request_at, stream, number
"""


@dataclass(frozen=True, slots=True)
class SimilarExchanges:
    """What two places have in common."""

    front_is_first: bool
    """The first of the two places is the one in front of the proxy."""
    pairs: list[tuple[tuple[int, int], tuple[int, int]]]
    """Stream and number, in front and behind."""
    read: bool
    """Methods and targets were read, not sizes alone."""
    ahead: tuple[int, int, int, int, int | None, int, int]
    """How far the clock behind is ahead of the one in front."""


def pair_exchanges(
    tables: Tables, exchanges: str, first: str, grains: tuple[int, int] = (1, 1)
) -> SimilarExchanges | None:
    """Pair exchanges.

    Args:
        tables: Those that are asked.
        exchanges: SQL for the exchanges of both places.
        first: Condition on these: it is the first of the places that saw it.
        grains: What the clocks of both places cut off.
    """
    found = []
    for in_front, cut in ((first, grains), (f"NOT ({first})", grains[::-1])):
        pairs = _native.pair_alike(Rows(tables.stored(_EXCHANGES.format(in_front=in_front, exchanges=exchanges))), cut)
        if pairs is not None:
            found.append(SimilarExchanges(in_front == first, *pairs))
    return found[0] if len(found) == 1 else None


def pair_places(tables: Tables, here: int, there: int, grains: tuple[int, int]) -> SimilarExchanges | None:
    """Pair the exchanges of two places while their clocks are not known."""
    exchanges = f"SELECT * FROM all_exchanges WHERE part IN ({here}, {there})"
    return pair_exchanges(tables, exchanges, f"part = {here}", grains)
