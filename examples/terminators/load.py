"""Users who arrive whether or not the server keeps up: httperf, and the most that a terminator bears.

A user makes four requests one after the other; users arrive at a fixed rate (an open loop). A closed loop, N users of
whom each waits for an answer before it asks again, slows down with the server, and so never shows what it does to those
who come meanwhile. In: a rack, a kind of user, a rate. Out: what httperf saw.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rack import FRONT, Rack

REQUESTS = 4
"""Of each user, as in the study."""
PATIENCE_SECONDS = 2
"""A request that takes longer has failed."""
MOST_FAILED = 0.001
MOST_MEAN_MS = 100.0
DIFFERENT_USERS = 1_000
"""httperf reads no more sessions from a file; then the first comes again, and its targets with it."""
CIPHERS = "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256"
FIRST_STEP, STEP = 0.6, 1.3
"""Where the search begins, as a share of what is expected, and how it goes on until something is missed."""

KINDS: dict[str, tuple[str, ...]] = {
    "full": ("--http-version", "1.0", "--ssl-no-reuse"),
    "resumed": ("--http-version", "1.0"),
    "keepalive": ("--http-version", "1.1"),
}
"""How a user asks: four connections with four full handshakes; with one full and three resumed; on one connection."""


@dataclass(frozen=True)
class Step:
    """What httperf saw at one rate."""

    per_second: float
    """Requests that were offered."""
    failed: float
    """The part of them that had no answer in time."""
    mean_ms: float
    """From the SYN to the last byte of the answer; on a kept connection, a quarter of its life."""
    cpu: float
    """CPUs that the terminator kept busy."""

    @property
    def bearable(self) -> bool:
        """Is this what the study calls good enough?"""
        return self.failed < MOST_FAILED and self.mean_ms < MOST_MEAN_MS


def offer(
    rack: Rack, kind: str, per_second: float, seconds: float, environment: Mapping[str, str] | None = None
) -> Step:
    """Let users arrive for some seconds, and wait for the last of them."""
    users = max(1, round(per_second * seconds / REQUESTS))
    log = rack.folder / "users"
    log.write_text(
        "\n\n".join(
            "\n".join(f"/user-{user}/{request}" for request in range(1, REQUESTS + 1))
            for user in range(min(users, DIFFERENT_USERS))
        )
    )
    words = ["httperf", "--hog", "--server", FRONT, "--port", "443", "--ssl", "--ssl-ciphers", CIPHERS, *KINDS[kind]]
    words += ["--rate", f"{per_second / REQUESTS:.3f}", "--wsesslog", f"{users},0,{log}"]
    words += ["--timeout", str(PATIENCE_SECONDS)]
    before = rack.cpu_seconds()
    program = rack.start(
        rack.client, words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})}, preexec_fn=lambda: os.sched_setaffinity(0, rack.others),
    )  # fmt: skip
    output = program.communicate()[0].decode()
    if program.returncode:
        raise RuntimeError(f"httperf: exit code {program.returncode}: {output}")
    used = rack.cpu_seconds() - before
    answered = int(_number(output, r"2xx=(\d+)"))
    mean = _number(output, r"Connection time \[ms\]: min \S+ avg (\S+)")
    return Step(
        per_second=per_second,
        failed=1 - answered / (users * REQUESTS),
        mean_ms=mean / (REQUESTS if kind == "keepalive" else 1),
        cpu=used / max(_number(output, r"test-duration (\S+) s"), 0.001),
    )


def _number(output: str, pattern: str) -> float:
    found = re.search(pattern, output)
    if found is None:
        raise RuntimeError(f"httperf did not say {pattern}: {output}")
    return float(found[1])


def most(offered: Callable[[float], Step], expected: float, precision: float) -> Step:
    """Find the highest rate that is bearable, to a part of ``precision``.

    Steps up until one is not, or down until one is, then halves what lies between.
    """
    rate = FIRST_STEP * expected
    good: Step | None = None
    bad: float | None = None
    while good is None or bad is None or bad / good.per_second > 1 + precision:
        step = offered(rate)
        if step.bearable:
            good = step
        else:
            bad = rate
        if good is None:
            rate /= STEP**2
            if rate < 1:
                raise RuntimeError(f"not even {rate * STEP**2:.0f} requests a second were borne: {step}")
        elif bad is None:
            rate *= STEP
        else:
            rate = (good.per_second * bad) ** 0.5
    return good
