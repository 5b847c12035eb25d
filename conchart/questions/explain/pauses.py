"""Silences: the time between two packets, and the side that the connection waits for.

In: a connection and its rungs. Out: a :class:`Pause` for each that matters, with whose it is and why, as far as the
packets tell: a stall where one was found, the distance, or an end that computes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from conchart.labels.stalls import stall_kind
from conchart.labels.units import format_ns
from conchart.questions.explain.connection import Connection
from conchart.questions.explain.sequence import LadderRow
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


def silences(connection: Connection, rungs: list[LadderRow]) -> Iterator[Pause]:
    """Give those that matter, in order. Several of one stall are one."""
    lifetime = connection.about["closed_at"] - connection.about["opened_at"]
    found: list[tuple[Row | None, LadderRow, LadderRow]] = []
    for before, after in pairwise(_speaking(rungs)):
        took = after.seen_at - before.seen_at
        if took < _LEAST_NS or took * _LEAST_SHARE < lifetime:
            continue
        stall = _covering(connection.stalls, before.seen_at, after.seen_at)
        if stall is not None and found and found[-1][0] is stall:
            found[-1] = (stall, found[-1][1], after)
        else:
            found.append((stall, before, after))
    for stall, before, after in found:
        yield Pause(
            start_at=before.seen_at,
            end_at=after.seen_at,
            start_frame=before.frame,
            end_frame=after.frame,
            says=_stalled(stall, before, after) if stall and not _gave_up(stall) else _says(connection, before, after),
        )


def _speaking(rungs: list[LadderRow]) -> Iterator[LadderRow]:
    """Leave out what only acknowledges: that ends no silence, but for the packet that completes the TCP handshake."""
    opened = False
    for rung in rungs:
        opens = not opened and rung.sender == "client" and rung.flags == "A" and not rung.bytes
        if (rung.bytes and not rung.only_acknowledges) or opens or set(rung.flags) & set("SFR"):
            yield rung
        opened = opened or "S" not in rung.flags


def _gave_up(stall: Row) -> bool:
    """Whether somebody ended a message, of which the program gave no more: that says more than the stall."""
    return stall["kind"] == "sender" and bool(stall["unfinished"])


def _stalled(stall: Row, before: LadderRow, after: LadderRow) -> str:
    kind = stall_kind(stall["kind"], stall["detail"])
    whose = "both wait for each other" if stall["kind"] in _BOTH else f"the {stall['side']}'s next byte does not come"
    return f"{format_ns(after.seen_at - before.seen_at)} in which {whose}: {kind.meaning}"


def _says(connection: Connection, before: LadderRow, after: LadderRow) -> str:
    took, side = after.seen_at - before.seen_at, after.sender
    distance = connection.rtt_ns[side]
    answers = before.sender != side
    if answers and took <= distance * _MOSTLY_DISTANCE:
        return f"{format_ns(took)} on the way to the {side} and back"
    phase = _covering(connection.phases, before.seen_at, after.seen_at)
    kind = phase["kind"] if phase else "idle"
    if kind in ("idle", "close"):
        return f"{format_ns(took)} in which nobody owes anybody a byte, until the {side} has something to say"
    if ended := _ended(connection, after):
        return f"{format_ns(took)} in which {_owed(connection, ended, kind)}, {_ENDS[ended['outcome']]}"
    owing, does = _DOES.get(kind, (None, "is silent"))
    says = f"{format_ns(took)} in which the {owing or side} {does}"
    if answers and distance * _LEAST_WAY_SHARE > took:
        says += f"; {format_ns(distance)} of it is the way there and back"
    return says


def _ended(connection: Connection, after: LadderRow) -> Row | None:
    """The exchange that this packet breaks off."""
    frames = ((exchange["ended_frame"], exchange) for exchange in connection.exchanges)
    return next((exchange for frame, exchange in frames if frame == after.frame and exchange["outcome"] in _ENDS), None)


def _owed(connection: Connection, exchange: Row, kind: str) -> str:
    never_came = exchange["response_at"] is None and connection.about["unacknowledged_client"]
    if never_came and exchange is connection.exchanges[-1]:
        return "the server does not acknowledge the request"
    return f"the server {_OWES.get(kind, 'owes the response')}"


def _covering(stretches: list[Row], start_at: int, end_at: int) -> Row | None:
    """The stretch that covers most of the time, if it covers half of it."""
    best, most = None, (end_at - start_at) / 2
    for stretch in stretches:
        covered = min(end_at, stretch["end_at"]) - max(start_at, stretch["start_at"])
        if covered >= most:
            best, most = stretch, covered
    return best
