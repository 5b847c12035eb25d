"""What stores were asked, by shape. In: a report. Out: lines: a few on the first screen, and more for ``-v``."""

from collections.abc import Iterator

from rich.text import Text

from conchart.labels.units import count_of, format_ns
from conchart.outputs.terminal.words import clipped, wrapped
from conchart.report.queries import ALL
from conchart.report.report import Report

_OF_EACH = 5
"""Shapes of each store that ``-v`` tells."""


def query_lines(report: Report, width: int) -> Iterator[Text]:
    """Give the costliest shapes of each store, and how to get all of them."""
    left = 0
    for number, store in enumerate(report.stores(_OF_EACH)):
        if number:
            yield Text()
        queries = count_of(store.count, "query", "queries")
        shapes = count_of(store.shapes, "shape")
        head = f"{store.endpoint}  {store.protocol}: {queries} of {shapes}, {format_ns(store.total_ns)} in all"
        yield from (Text(line, "bold") for line in clipped(head, width))
        for query in store.queries:
            yield from (Text(f"  {line}") for line in clipped(query.shape, width - 2, 2))
            yield from (Text(f"    {line}") for line in wrapped(query.facts, width - 4))
        if store.rest:
            yield Text(f"  {store.rest}")
        left += store.shapes - len(store.queries)
    if left:
        yield from (Text(line) for line in wrapped(f'all shapes: conchart query CAPTURE "{ALL}"', width))


def brief_queries(report: Report, width: int, most: int) -> Iterator[Text]:
    """Give the costliest shapes of all stores, a line each, in ``most`` lines."""
    queries = report.queries(most + 1) if most > 0 else []
    shown = queries if len(queries) <= most else queries[: most - 1]
    for query in shown:
        yield Text(clipped(f"{query.brief}: {query.shape}", width, 1)[0])
    if shown != queries:
        left = queries[0].shapes - len(shown)
        yield Text(f"and {count_of(left, 'more shape')}: add -v" if shown else f"{count_of(left, 'shape')}: add -v")
