"""Traces made of SQL rows, for charts and the page: no capture file and no native core involved."""

from collections.abc import Callable, Iterator

import pytest

from conchart import Trace
from tests.charts.story import Story, reverse_proxy
from tests.conftest import analysed, empty_trace

TellTrace = Callable[[Story], Trace]


@pytest.fixture
def trace_of() -> Iterator[TellTrace]:
    """Build the trace of a story; closed when the test ends."""
    opened: list[Trace] = []

    def build(story: Story) -> Trace:
        opened.append(empty_trace())
        story.fill(opened[-1])
        return analysed(opened[-1])

    yield build
    for trace in opened:
        trace.close()


@pytest.fixture
def proxy_story() -> Story:
    """Three TLS connections of a client to a proxy, each causing one HTTP/1.0 connection to the backend."""
    return reverse_proxy()
