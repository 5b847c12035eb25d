"""What is measured of each server, once per connection, handshake or request.

In: the tables of a capture. Out: sorted nanoseconds by server and measure. What nobody saw to its end is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from conchart.analysis.waits import WAITS
from conchart.labels.phases import PHASE_BY_NAME
from conchart.store.sql import SERVED
from conchart.store.tables import Tables

Endpoint = tuple[str, int]
"""Address and port of a server."""
Samples = Mapping[Endpoint, Mapping[str, list[int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Something that took time."""

    name: str
    title: str
    meaning: str
    phase: str | None = None
    """The phase that it is, for its colour."""
    step: str | None = None
    """The step of ``links`` that it is, for its colour: it is part of the measure before."""


def _phase(name: str) -> Measure:
    return Measure(name=name, title=PHASE_BY_NAME[name].title, meaning=PHASE_BY_NAME[name].meaning, phase=name)


MEASURES: tuple[Measure, ...] = (
    Measure(
        name="waited",
        title="Waited per request",
        meaning="what users waited on its connection until its last byte, and for the first one while that opened",
    ),
    Measure(name="whole", title="Whole request", meaning="from a request's first byte to its response's last"),
    _phase("syn"),
    _phase("tls"),
    _phase("request"),
    _phase("wait"),
    Measure(name="backend", title="backend", meaning="of a wait, what the backend took", step="wait"),
    Measure(
        name="connect", title="connecting", meaning="of a wait, the TCP handshake with the backend", step="connect"
    ),
    Measure(
        name="secure", title="TLS with backend", meaning="of a wait, the TLS handshake with the backend", step="tls"
    ),
    Measure(name="proxy", title="the proxy itself", meaning="of a wait, what the proxy itself took", step="proxy_in"),
    _phase("transfer"),
)
"""In the order in which they are shown."""

# What users waited on a connection while no request of it was under way is the first one's. Where no request is seen
# to its end, and of connections on which nothing was asked, it is nobody's: such waits are in servers' sums alone.
_SAMPLES = f"""
    WITH opened AS (
        SELECT stream, sum(end_at - start_at)::BIGINT AS syn_ns FROM phases WHERE kind = 'syn' GROUP BY stream),
    timed AS (SELECT *, response_done_at - request_at AS whole_ns FROM exchanges),
    first AS (SELECT stream, min(number) AS first FROM exchanges GROUP BY stream),
    waits AS (
        SELECT stream, coalesce(exchange, first) AS number, sum(end_at - start_at)::BIGINT AS waited_ns
        FROM {WAITS} JOIN first USING (stream) GROUP BY ALL),
    linked AS (
        SELECT front_stream AS stream, sum(request_ns + wait_ns)::BIGINT AS backend, sum(connect_ns)::BIGINT AS connect,
            sum(tls_ns)::BIGINT AS secure, sum(proxy_in_ns + proxy_out_ns)::BIGINT AS proxy
        FROM links WHERE proxy_in_ns IS NOT NULL GROUP BY front_stream, front_exchange),
    measured AS (
        SELECT stream, 'syn' AS measure, syn_ns AS ns FROM opened
        UNION ALL SELECT stream, 'tls', ready_at - hello_at FROM handshakes WHERE outcome = 'complete'
        UNION ALL
        SELECT stream, unnest(['request', 'wait', 'transfer', 'whole', 'waited']),
            unnest([request_ns, wait_ns, transfer_ns, whole_ns, coalesce(waited_ns, 0)])
        FROM timed LEFT JOIN waits USING (stream, number)
        UNION ALL
        SELECT stream, unnest(['backend', 'connect', 'secure', 'proxy']), unnest([backend, connect, secure, proxy])
        FROM linked)
    SELECT server_ip, server_port, measure, list(ns ORDER BY ns)
    FROM measured JOIN (FROM connections WHERE {SERVED}) USING (stream) WHERE ns IS NOT NULL GROUP BY ALL
"""


def samples(tables: Tables) -> Samples:
    """Measure every server."""
    found: dict[Endpoint, dict[str, list[int]]] = {}
    for ip, port, measure, values in tables.fetch(_SAMPLES):
        found.setdefault((ip, port), {})[measure] = values
    return found
