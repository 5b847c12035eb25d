"""Traces made of SQL rows, for charts and the page: no capture file and no native core involved."""

from collections.abc import Callable, Iterator

import duckdb
import pytest

from conchart.schema import TABLES
from conchart.trace import Trace
from tests.charts.story import Story, reverse_proxy

TellTrace = Callable[[Story], Trace]


@pytest.fixture
def trace_of() -> Iterator[TellTrace]:
    """Build the trace of a story; closed when the test ends."""
    opened: list[Trace] = []

    def build(story: Story) -> Trace:
        connection = duckdb.connect(":memory:")
        for table in TABLES:
            connection.execute(table.ddl)
        story.fill(connection)
        opened.append(Trace(connection))
        return opened[-1]

    yield build
    for trace in opened:
        trace.close()


@pytest.fixture
def proxy_story() -> Story:
    """Three TLS connections of a client to a proxy, each causing one HTTP/1.0 connection to the backend."""
    return reverse_proxy()
