"""Silences: the time between two packets, and the side that the connection waits for.

In: a connection. Out: a :class:`Pause` for each that matters, with whose it is and why, as far as the
packets tell: a stall where one was found, the distance, or an end that computes.
"""

from bisect import bisect_right
from collections.abc import Container, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from conchart.labels.stalls import stall_kind
from conchart.labels.units import format_ns
from conchart.questions.explain.connection import Connection
from conchart.report.rows import Row

_LEAST_NS = 100_000
_LEAST_SHARE = 50
"""Of the connection's lifetime, one in so many parts: less is not worth a line."""
_MOSTLY_DISTANCE = 1.25
"""A silence that takes so many round trips to the end that speaks next is its distance."""
_LEAST_WAY_SHARE = 20
"""The way is told where it is one part in so many of a silence, or more."""
_BOTH = ("nagle", "delayed-ack")
_DOES: dict[str, tuple[str | None, str]] = {
    "tls": (None, "computes, or reads its keys and certificates"),
    "wait": ("server", "works on the response"),
    "request": ("client", "has not sent all of its request"),
    "transfer": ("server", "pauses in its response"),
}
"""Who owes the next byte of a phase, else whoever speaks next, and what that side does."""
_OWES = {"wait": "owes the response", "transfer": "owes the rest of its response"}
_ENDS = {
    "abandoned": "until the client gives up",
    "unanswered": "until the connection is ended without one",
    "cut": "until the connection is ended",
}
"""How a silence ends that ends the exchange."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A stretch without packets."""

    start_at: int
    end_at: int
    start_frame: int
    end_frame: int
    says: str

    @property
    def took_ns(self) -> int:
        """How long it lasted."""
        return self.end_at - self.start_at


def silences(connection: Connection, quiet: Container[int] = ()) -> Iterator[Pause]:
    """Give those that matter, in order. Several of one stall are one.

    Args:
        connection: With all its packets.
        quiet: Frames that only acknowledge, though they have content: datagrams of QUIC.
    """
    lifetime = connection.about["closed_at"] - connection.about["opened_at"]
    stalls, why = _Stretches(connection.stalls), _Why(connection)
    found: list[tuple[Row | None, Row, Row]] = []
    for before, after in pairwise(_speaking(connection.packets, quiet)):
        took = after["seen_at"] - before["seen_at"]
        if took < _LEAST_NS or took * _LEAST_SHARE < lifetime:
            continue
        stall = stalls.covering(before["seen_at"], after["seen_at"])
        if stall is not None and found and found[-1][0] is stall:
            found[-1] = (stall, found[-1][1], after)
        else:
            found.append((stall, before, after))
    for stall, before, after in found:
        yield Pause(
            start_at=before["seen_at"],
            end_at=after["seen_at"],
            start_frame=before["frame"],
            end_frame=after["frame"],
            says=_stalled(stall, before, after) if stall and not _gave_up(stall) else why.says(before, after),
        )


def _speaking(packets: list[Row], quiet: Container[int]) -> Iterator[Row]:
    """Leave out what only acknowledges: that ends no silence, but for the packet that completes the TCP handshake."""
    opened = False
    for packet in packets:
        flags, size = packet["flags"], packet["bytes"]
        speaks = (size and packet["frame"] not in quiet) or "S" in flags or "F" in flags or "R" in flags
        if speaks or (not opened and not size and flags == "A" and packet["sender"] == "client"):
            yield packet
        opened = opened or "S" not in flags


def _gave_up(stall: Row) -> bool:
    """Whether somebody ended a message, of which the program gave no more: that says more than the stall."""
    return stall["kind"] == "sender" and bool(stall["unfinished"])


def _stalled(stall: Row, before: Row, after: Row) -> str:
    kind = stall_kind(stall["kind"], stall["detail"])
    whose = "both wait for each other" if stall["kind"] in _BOTH else f"the {stall['side']}'s next byte does not come"
    return f"{format_ns(after['seen_at'] - before['seen_at'])} in which {whose}: {kind.meaning}"


class _Why:
    """Says whose a silence is that no stall explains."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._phases = _Stretches(connection.phases)
        self._ended: dict[int, Row] = {}
        """The exchange that a frame breaks off."""
        for exchange in connection.exchanges:
            if exchange["outcome"] in _ENDS:
                self._ended.setdefault(exchange["ended_frame"], exchange)

    def says(self, before: Row, after: Row) -> str:
        """Tell it in a sentence."""
        took, side = after["seen_at"] - before["seen_at"], after["sender"]
        distance = self._connection.rtt_ns[side]
        answers = before["sender"] != side
        if answers and took <= distance * _MOSTLY_DISTANCE:
            return f"{format_ns(took)} on the way to the {side} and back"
        phase = self._phases.covering(before["seen_at"], after["seen_at"])
        kind = phase["kind"] if phase else "idle"
        if kind in ("idle", "close"):
            return f"{format_ns(took)} in which nobody owes anybody a byte, until the {side} has something to say"
        if ended := self._ended.get(after["frame"]):
            return f"{format_ns(took)} in which {self._owed(ended, kind)}, {_ENDS[ended['outcome']]}"
        owing, does = _DOES.get(kind, (None, "is silent"))
        says = f"{format_ns(took)} in which the {owing or side} {does}"
        if answers and distance * _LEAST_WAY_SHARE > took:
            says += f"; {format_ns(distance)} of it is the way there and back"
        return says

    def _owed(self, exchange: Row, kind: str) -> str:
        never_came = exchange["response_at"] is None and self._connection.about["unacknowledged_client"]
        if never_came and exchange is self._connection.exchanges[-1]:
            return "the server does not acknowledge the request"
        return f"the server {_OWES.get(kind, 'owes the response')}"


class _Stretches:
    """Phases or stalls of a connection, which has as many of them as it has requests: a silence asks a few of them."""

    def __init__(self, rows: list[Row]) -> None:
        """Take them in the order in which they begin."""
        self._rows = rows
        self._begins = [row["start_at"] for row in rows]
        self._latest = list(accumulate((row["end_at"] for row in rows), max))
        """The latest end of those up to each."""

    def covering(self, start_at: int, end_at: int) -> Row | None:
        """Give the one that covers most of the time, if it covers half of it; of equals, the last."""
        best, most = None, (end_at - start_at) / 2
        first = bisect_right(self._latest, start_at)
        for row in self._rows[first : bisect_right(self._begins, end_at)]:
            covered = min(end_at, row["end_at"]) - max(start_at, row["start_at"])
            if covered >= most:
                best, most = row, covered
        return best
