"""Access logs for tests: those of the lab, changed, and those that a server would have written of a capture.

In: captures and logs of ``captures/logs``. Out: files, and which request each line is about.
"""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import conchart
from conchart import Trace
from tests.conftest import ROOT

LOGS = ROOT / "captures" / "logs"
TIMED = '$remote_addr $remote_port $msec $request_time "$request" $status $body_bytes_sent'
"""A format with all that a join may want."""
CLF = re.compile(r"\[(\d+/\w+/\d+:\d+:\d+:\d+) ([+-]\d{4})\]")


def numbers(case: str) -> list[str]:
    """Give the number of the request of each line, which conchart is not told."""
    text: str = json.loads((LOGS / case / "log.json").read_text())["numbers"]
    return text.split()


def pairs(trace: Trace) -> dict[int, str]:
    """Give, of each line that has an exchange, the number of that."""
    found = trace.sql("""
        SELECT line, list_filter(ids, id -> starts_with(id, 'x-request-id:'))[1]
        FROM log_lines JOIN exchanges ON exchanges.stream = log_lines.stream AND number = exchange
    """).fetchall()
    return {line: str(number).removeprefix("x-request-id:") for line, number in found}


def score(trace: Trace, truth: list[str]) -> tuple[float, float]:
    """Give precision and recall of the pairs."""
    found = pairs(trace)
    right = sum(truth[line - 1] == number for line, number in found.items())
    return right / len(found), right / len(truth)


def moved(text: str, by: timedelta, zone: timezone = timezone.utc) -> str:
    """Give a log of the combined format whose clock is ahead, in another zone."""

    def later(found: re.Match[str]) -> str:
        at = datetime.strptime(f"{found[1]} {found[2]}", "%d/%b/%Y:%H:%M:%S %z") + by
        return f"[{at.astimezone(zone):%d/%b/%Y:%H:%M:%S %z}]"

    return CLF.sub(later, text)


def logged(trace: Trace, *, ahead_ns: int = 0) -> str:
    """Write what a server would have logged of the exchanges of a trace, in the format ``TIMED``."""
    rows = trace.sql("""
        SELECT client_ip, client_port, response_done_at, response_done_at - request_at, method, target, status,
            response_bytes
        FROM exchanges JOIN connections USING (stream)
        WHERE response_done_at IS NOT NULL AND method IS NOT NULL ORDER BY response_done_at
    """).fetchall()
    return "".join(
        f'{ip} {port} {(done + ahead_ns) // 10**6 / 1000:.3f} {took / 1e9:.3f} "{method} {target} HTTP/1.1" {status} '
        f"{size}\n"
        for ip, port, done, took, method, target, status, size in rows
    )


def encrypted(folder: Path) -> Trace:
    """Give a trace of requests inside TLS that was read without keys, beside the log that tells them."""
    case = ROOT / "captures/handshakes/curl-nginx-1.3-full"
    with conchart.read(case / "input.pcap", keylog=case / "keys.log") as trace:
        (folder / "access.log").write_text(logged(trace))
    return conchart.read(case / "input.pcap", access_logs=[f"nginx={folder / 'access.log'}"], log_formats=[TIMED])
