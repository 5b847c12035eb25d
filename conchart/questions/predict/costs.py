"""What the parts of a connection cost under a change.

In: a captured connection, a :class:`~conchart.questions.predict.change.Change`. Out: nanoseconds.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from conchart.questions.predict.change import Change
from conchart.questions.predict.model import Connection

INITIAL_WINDOW = 10
"""Segments (RFC 6928)."""
TIMESTAMPS = 12
"""Bytes of each segment that the timestamps option takes (RFC 7323)."""
MINIMUM_RTO_NS = 200_000_000
"""Beyond a round trip, on Linux: what idles longer begins again with the initial window (RFC 5681 section 4.1)."""
RESUMED_SHARE = {False: 0.2, True: 0.4}
"""What a resumed handshake computes of a full one, before TLS 1.3 and in it, where the capture has none to compare
with: medians of the captures of ``captures/handshakes``, ``hops``, ``round-trips``. TLS 1.3 still agrees on a key."""
MODERN = "TLSv1.3"


@dataclass(frozen=True, slots=True)
class Handshake:
    """What a TLS handshake costs."""

    tls_ns: int
    """From the ClientHello until the first request can be sent."""
    wait_ns: int
    """What the first response comes later by."""
    resumed: bool


def learn_compute(connections: Iterable[Connection]) -> dict[tuple[tuple[str, int], bool], int]:
    """Give what resumed handshakes with each server computed, before TLS 1.3 and in it: the medians."""
    seen: dict[tuple[tuple[str, int], bool], list[int]] = {}
    for connection in connections:
        if connection.complete and connection.resumed and connection.compute_ns:
            key = (connection.server, connection.version == MODERN)
            seen.setdefault(key, []).append(connection.compute_ns)
    return {key: round(median(values)) for key, values in seen.items()}


def handshake(
    connection: Connection,
    change: Change,
    rtt_ns: int,
    *,
    has_session: bool,
    resumed_compute: dict[tuple[tuple[str, int], bool], int],
) -> Handshake:
    """Price the handshake that opens a connection.

    Args:
        connection: Its handshake is complete, its round trips are known.
        change: What is changed.
        rtt_ns: The round trip that there is then.
        has_session: The client has a session with the server by then.
        resumed_compute: From :func:`learn_compute`.
    """
    assert connection.ready_at is not None
    assert connection.hello_at is not None
    assert connection.round_trips is not None
    took_ns = connection.ready_at - connection.hello_at
    held_ns, held = held_within(connection, connection.hello_at, connection.ready_at)
    round_trips = connection.round_trips
    # What does not depend on the distance: computing, and what nobody can say.
    fixed_ns = took_ns - round_trips * (connection.rtt_ns or 0)
    compute_ns = max(0, min(connection.compute_ns, fixed_ns) - held_ns)
    modern = connection.version == MODERN or change.tls13
    resumed = connection.resumed or (change.resume and has_session)
    if change.tls13 and connection.version != MODERN:
        round_trips = min(round_trips, 1)
    if resumed and not connection.resumed:
        left_ns = resumed_compute.get((connection.server, modern), round(compute_ns * RESUMED_SHARE[modern]))
        left_ns = min(left_ns, compute_ns)
        fixed_ns -= compute_ns - left_ns
        compute_ns = left_ns
        if not modern:
            round_trips = min(round_trips, 1)
    if change.nodelay:
        fixed_ns -= held_ns
    else:
        fixed_ns += held * (rtt_ns - (connection.rtt_ns or 0))
    if change.zero_rtt and modern and resumed and connection.kind != "psk-0rtt":
        server_ns = min(compute_ns, connection.server_compute_ns)
        return Handshake(0, server_ns, resumed)
    return Handshake(max(0, fixed_ns + round_trips * rtt_ns), 0, resumed)


def held_within(connection: Connection, start_at: int, end_at: int, *, windowed: bool = False) -> tuple[int, int]:
    """Give how long small segments were held back between two instants, and how often.

    Args:
        connection: The connection.
        start_at: From here, at the client's end.
        end_at: To here.
        windowed: The congestion window held them back, too: that would go on where the acknowledgement was not late.
    """
    away = connection.carried_ns
    total_ns = times = 0
    first = bisect_right(connection.held, start_at + away, key=_until)
    for place in range(first, len(connection.held)):
        held_at, sent_at, delayed = connection.held[place]
        if held_at >= end_at + away:
            break
        inside = min(sent_at, end_at + away) - max(held_at, start_at + away)
        if inside > 0 and (delayed or not windowed):
            total_ns += inside
            times += 2 * inside > sent_at - held_at
    return total_ns, times


def _until(held: tuple[int, int, bool]) -> int:
    return held[1]


@dataclass(slots=True)
class Window:
    """A congestion window, of one direction of a connection."""

    segments: int = INITIAL_WINDOW
    used_at: int | None = None

    def send(self, size: int, at: int, done_at: int, mss: int, rtt_ns: int) -> int:
        """Send a message; returns how many times its sender waited for an acknowledgement because of the window."""
        if self.used_at is not None:
            silent_ns, timeout_ns = at - self.used_at, rtt_ns + MINIMUM_RTO_NS
            while silent_ns > timeout_ns and self.segments > INITIAL_WINDOW:
                self.segments = max(INITIAL_WINDOW, self.segments // 2)
                silent_ns -= timeout_ns
        self.used_at = done_at
        left = -(-size // max(1, mss - TIMESTAMPS))
        rounds = 0
        flight = min(left, self.segments)
        left -= flight
        while left > 0:
            rounds += 1
            self.segments += flight
            flight = min(left, self.segments)
            left -= flight
        # It grows with what is acknowledged, where it was the limit (RFC 5681, RFC 7661).
        if flight * 2 > self.segments:
            self.segments = min(self.segments + flight, 2 * flight)
        return rounds
