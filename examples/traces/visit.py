"""An instrumented client: ``visit.py NAME PORT THREADS REQUESTS SPANS [--silent]``; each thread keeps its connection.

``--silent``: it does not send traceparent.
"""

from __future__ import annotations

import http.client
import sys
import threading

from opentelemetry.propagate import inject
from opentelemetry.trace import SpanKind
from telling import tracer

NAME, PORT, THREADS, REQUESTS, SPANS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
SILENT = "--silent" in sys.argv
TRACER = tracer("visitor", SPANS)


def visit(place: int) -> None:
    """Ask, again and again."""
    connection = http.client.HTTPConnection(NAME, PORT)
    for number in range(place * REQUESTS, (place + 1) * REQUESTS):
        target = f"/stock?shelf={number % 3}"
        attributes = {
            "http.request.method": "GET", "url.full": f"http://{NAME}:{PORT}{target}", "server.address": NAME,
            "server.port": PORT, "lab.request": number,
        }  # fmt: skip
        with TRACER.start_as_current_span("GET", kind=SpanKind.CLIENT, attributes=attributes) as span:
            headers = {"X-Request-ID": str(number)}
            if not SILENT:
                inject(headers)
            connection.request("GET", target, headers=headers)
            response = connection.getresponse()
            response.read()
            span.set_attribute("http.response.status_code", response.status)


threads = [threading.Thread(target=visit, args=(place,)) for place in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
