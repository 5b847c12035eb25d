"""What held a connection up, and when: read from what the line did and from what the kernels knew, not from the wire.

- A copy (``rto``, ``fast-retransmit``, ``syn-rto``, ``pmtu``): the line's log says which segment was lost, held back or
  passed, and which copy of it came through. Whether a timer or the acknowledgements asked for the copy is known to the
  kernel (its state, its counters).
- Data that waited in the sender's kernel (``nagle``, ``slow-start``, ``window-limited``, ``receiver``,
  ``zero-window``): between two segments with new data, the kernel had bytes that it did not send; TCP_INFO says what it
  lacked.
- Data that the program had not given (``sender``): the kernel had none, and the program was in a pause.

The captures say only which frames these were: the truth is made for the sender's end and carried to the other by the
line's log. Nothing of conchart's is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

from cases import Case
from evidence import SYN, Diary, Frame, Passage, Run

KINDS = (
    "nagle", "rto", "fast-retransmit", "syn-rto", "zero-window", "window-limited", "receiver", "slow-start", "sender",
    "pmtu",
)  # fmt: skip
LEAST_NS = 2_000_000
"""Shorter stalls are not listed; those under 5 ms are not held against anybody."""
LONG_NS = 5_000_000
CLOCKED_NS = 2_000_000
"""A copy so soon after an acknowledgement was asked for by it, not by a timer."""
OPEN, RECOVERY, LOSS = 0, 3, 4
"""States of Linux's congestion control, include/uapi/linux/tcp.h."""
UNKNOWN = "unknown"
NEEDLESS = "needless"
"""Detail of a copy of what neither was lost nor came late: the loss probe's, when an acknowledgement is delayed."""
WAITS = ("nagle", "zero-window", "window-limited", "receiver", "slow-start", "sender")
COPIES = ("rto", "fast-retransmit", "syn-rto", "pmtu")


class UnfitRunError(Exception):
    """What came of a run is not what the case is about, or cannot be told."""


@dataclass(frozen=True, kw_only=True)
class Stall:
    """A stretch in which the next byte of ``side`` did not come, between two passages of the line."""

    kind: str
    detail: str
    side: str
    first: Passage
    last: Passage


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A stall as a capture has it."""

    stream: int
    kind: str
    detail: str
    side: str
    start_frame: int
    end_frame: int
    start_at: int
    end_at: int
    evident: bool
    """Whether the capture shows it: behind the loss of a flight's last segment there is nothing to see.

    Nor is one asked for that was only the other side of another: when a request is lost that acknowledged a response,
    both are sent again.
    """


@dataclass(frozen=True, kw_only=True)
class Unjudged:
    """A stretch in which it is not known whether there was a stall of these kinds."""

    stream: int
    kinds: list[str]
    start_at: int
    end_at: int


def truth(case: Case, runs: list[Run], vantage: str) -> str:
    """Return truth.json of the capture at ``vantage``; ``runs`` are its connections."""
    seen: list[Seen] = []
    unknown: list[Unjudged] = []
    for run in runs:
        stalls = list(all_stalls(case, run))
        listed = [stall for stall in stalls if stall.detail != NEEDLESS]
        found = [each for stall in listed for each in as_seen(case, run, stall, vantage)]
        found = [outshone(each, found) for each in found if each.end_at - each.start_at >= LEAST_NS]
        seen += sorted(found, key=lambda each: each.start_at)
        unknown += unjudged(case, run, stalls, vantage)
    document = {
        "how": "copies: the log of the line; waits: TCP_INFO of the sending kernel; pauses: the program's diary",
        "vantage": vantage,
        "stalls": [asdict(each) for each in seen],
        "clean_of": [kind for kind in KINDS if kind not in {each.kind for each in seen}],
        "unjudged": [asdict(each) for each in unknown],
    }
    return json.dumps(document, indent=2) + "\n"


def check(case: Case, runs: list[Run]) -> None:
    """Hold a run against what its case is about.

    Raises:
        UnfitRunError: the stall did not happen, or a clean run had one.
    """
    listed = (stall for run in runs for stall in all_stalls(case, run) if stall.detail != NEEDLESS)
    found = {stall.kind for stall in listed if stall.last.at - stall.first.at >= LONG_NS}
    if missing := set(case.expects) - found:
        raise UnfitRunError(f"no {', '.join(missing)}; found {', '.join(found) or 'nothing'}")
    if not case.expects and found:
        raise UnfitRunError(f"meant to be clean; found {', '.join(found)}")


def all_stalls(case: Case, run: Run) -> Iterator[Stall]:
    """Yield the stalls of a run, both ends'."""
    opening = syn_stall(run)
    yield from opening
    for side in run.diaries:
        copies = list(copy_stalls(case, run, side))
        yield from copies
        yield from wait_stalls(run, side, [*opening, *copies])


def syn_stall(run: Run) -> list[Stall]:
    """Find the time until a SYN was answered by a SYN-ACK that came through."""
    syns = [each for each in run.passages if each.kind == "syn"]
    answers = [each for each in run.passages if each.kind == "syn-ack"]
    came = next(each for each in answers if not each.lost)
    answered = [each for each in syns if each.at < came.at][-1]
    if answered is syns[0] and came is answers[0]:
        return []
    lost = syns[0].lost
    return [
        Stall(
            kind="syn-rto", detail="syn" if lost else "syn-ack", side="client" if lost else "server", first=syns[0],
            last=answered if answered is not syns[0] else came,
        )
    ]  # fmt: skip


def copy_stalls(case: Case, run: Run, side: str) -> Iterator[Stall]:
    """Find the stretches from a segment that was lost, or believed to be, to its copy coming through."""
    data = [each for each in run.passages if each.side == side and each.kind == "data"]
    for episode in episodes(holes(data)):
        # Where something was lost, copies of what was not only came along with it.
        lost = [hole for hole in episode if hole[0].lost] or episode[:1]
        passed = [hole[1] for hole in lost]
        first_copy = min((copy_of(data, hole[0]) for hole in lost), key=lambda passage: passage.at)
        if "pmtu" in case.expects and lost[0][0].lost:
            kind, last = "pmtu", min(passed, key=lambda passage: passage.at)
        else:
            last = max(passed, key=lambda passage: passage.at)
            kind = why_copied(run, side, lost[0][0], first_copy, last)
        if lost[0][0].lost or lost[0][0].held or case.detail in ("ack", "spurious"):
            detail = case.detail
        else:
            detail = "ack" if case.rules else NEEDLESS
        yield Stall(kind=kind, detail=detail, side=side, first=lost[0][0], last=last)


def holes(data: list[Passage]) -> list[tuple[Passage, Passage]]:
    """Pair each segment that was lost, or sent again though it was not, with the copy that came through first."""
    found: list[tuple[Passage, Passage]] = []
    sent_until: int | None = None
    for place, each in enumerate(data):
        if sent_until is not None and (each.seq - sent_until) % 2**32 >= 2**31:
            continue  # a copy itself
        sent_until = (each.seq + each.length) % 2**32
        copies = [later for later in data[place + 1 :] if later.covers(each.seq)]
        if each.lost:
            found.append((each, next(copy for copy in copies if not copy.lost)))
        elif copies:
            found.append((each, copies[0]))
    return found


def copy_of(data: list[Passage], first: Passage) -> Passage:
    """Return the first copy of a segment."""
    return next(each for each in data if each.at > first.at and each.covers(first.seq))


def episodes(all_holes: list[tuple[Passage, Passage]]) -> Iterator[list[tuple[Passage, Passage]]]:
    """Put holes together that are open at the same time."""
    together: list[tuple[Passage, Passage]] = []
    for hole in all_holes:
        if together and hole[0].at > max(last.at for _, last in together):
            yield together
            together = []
        together.append(hole)
    if together:
        yield together


def why_copied(run: Run, side: str, first: Passage, first_copy: Passage, last: Passage) -> str:
    """Tell whether a timer ended the silence (that for retransmissions or the loss probe's), or acknowledgements."""
    diary = run.diaries[side]
    states = {sample["ca_state"] for sample in diary.between(first.at, last.at + CLOCKED_NS)}
    if LOSS in states:
        return "rto"
    if not diary.counters["TCPTimeouts"] and not diary.counters["TCPLossProbes"]:
        return "fast-retransmit"
    acks = (frame for frame in run.frames[side] if frame.side != side and not frame.length)
    acked = any(0 <= first_copy.at - frame.at < CLOCKED_NS for frame in acks)
    return "fast-retransmit" if acked else "rto"


def wait_stalls(run: Run, side: str, others: list[Stall]) -> Iterator[Stall]:
    """Find the gaps between new data in which the sender's kernel, or its program, held it back."""
    data = run.new_data(side)
    for before, after in zip(data, data[1:], strict=False):
        if after.at - before.at < LEAST_NS or any(overlap(before, after, other) for other in others):
            continue
        kind = why_waited(run, side, before, after)
        if kind == "zero-window":
            yield from shut_windows(run, side, before, after)
        elif kind and kind != UNKNOWN:
            detail = ""
            if kind == "nagle":
                before = small_one(run, side, before)
                detail = held_by(run, side, before)
            first, last = run.passages_of(before)[-1], run.passages_of(after)[0]
            yield Stall(kind=kind, detail=detail, side=side, first=first, last=last)


def overlap(before: Frame, after: Frame, other: Stall) -> bool:
    """Say whether most of a gap is explained by another stall."""
    common = min(after.at, other.last.at) - max(before.at, other.first.at)
    return common > (after.at - before.at) // 2


def why_waited(run: Run, side: str, before: Frame, after: Frame) -> str | None:
    """Tell what a sender lacked for most of a gap; None when nothing was wrong.

    Raises:
        UnfitRunError: there are no samples.
    """
    diary = run.diaries[side]
    samples = diary.between(before.at, after.at)
    held = [sample for sample in samples if sample["notsent"]]
    if not samples and after.at - before.at >= LONG_NS:
        raise UnfitRunError(f"nobody watched the {side} between frames {before.number} and {after.number}")
    if len(held) * 2 <= len(samples):
        return "sender" if in_pause(diary, before.at, after.at) else None
    if any(sample["ca_state"] in (RECOVERY, LOSS) for sample in held) or not clocked(run, after):
        return UNKNOWN
    limited_us = held[-1]["rwnd_limited_us"] - held[0]["rwnd_limited_us"]
    if limited_us * 2_000 > held[-1]["at"] - held[0]["at"]:
        return why_closed(run, side, before, after)
    middle = held[len(held) // 2]
    congested, closed = in_flight(middle) >= middle["snd_cwnd"], is_full(run, side, before, middle)
    if congested and closed:
        return UNKNOWN  # either was reason enough
    if closed:
        return why_closed(run, side, before, after)
    if middle["notsent"] < middle["snd_mss"] and not congested:
        return "nagle"
    # A sender puts off the rest of its window when more of it will soon be free: it need not be full to the last.
    return "slow-start" if in_flight(middle) * 2 >= middle["snd_cwnd"] else UNKNOWN


def clocked(run: Run, after: Frame) -> bool:
    """Say whether something that came from the other end let a frame go, not a timer."""
    came = (frame for frame in run.frames[after.side] if frame.side != after.side)
    return any(0 <= after.at - frame.at < CLOCKED_NS for frame in came)


def is_full(run: Run, side: str, before: Frame, sample: dict[str, int]) -> bool:
    """Say whether the receiver's window has no room for the next segment."""
    *_, heard = (frame for frame in run.frames[side] if frame.side != side and frame.at < sample["at"])
    outstanding = (before.seq + before.length - heard.ack) % 2**32
    return sample["snd_wnd"] - outstanding < min(sample["notsent"], sample["snd_mss"])


def in_flight(sample: dict[str, int]) -> int:
    """Count the segments on their way."""
    return sample["unacked"] - sample["sacked"] - sample["lost"] + sample["retrans"]


def in_pause(diary: Diary, start_at: int, end_at: int) -> bool:
    """Say whether the program was in a pause within a message for most of a stretch."""
    begun = [event["at"] for event in diary.events if event["what"] == "pause"]
    over = [event["at"] for event in diary.events if event["what"] == "paused"]
    return any(
        (min(end_at, until) - max(start_at, since)) * 2 > end_at - start_at
        for since, until in zip(begun, over, strict=True)
    )


def why_closed(run: Run, side: str, before: Frame, after: Frame) -> str:
    """Tell whether the receiver's window was shut, small because the program did not read, or small as such."""
    other = opposite(side)
    if any(is_shut(frame, other) for frame in run.frames[other] if before.at < frame.at < after.at):
        return "zero-window"
    samples = run.diaries[other].between(before.at, after.at)
    full = [sample for sample in samples if sample["unread"]]
    return "receiver" if len(full) * 10 > len(samples) * 7 else "window-limited"


def is_shut(frame: Frame, sender: str) -> bool:
    """Say whether a frame of ``sender`` says that its window is shut."""
    return frame.side == sender and frame.window == 0 and not frame.flags & SYN


def shut_windows(run: Run, side: str, before: Frame, after: Frame) -> Iterator[Stall]:
    """Find the stretches in which the window was shut, between the frames of the receiver that said so."""
    other = opposite(side)
    shut: Frame | None = None
    for frame in run.frames[other]:
        if frame.side != other or not before.at < frame.at < after.at:
            continue
        if shut is None and is_shut(frame, other):
            shut = frame
        elif shut is not None and frame.window:
            first, last = run.passages_of(shut)[0], run.passages_of(frame)[0]
            yield Stall(kind="zero-window", detail="", side=side, first=first, last=last)
            shut = None


def small_one(run: Run, side: str, before: Frame) -> Frame:
    """Return the small segment that a held one waits for: Linux waits for no full one (Minshall's variant)."""
    full = max(sample["snd_mss"] for sample in run.diaries[side].samples)
    return [frame for frame in run.new_data(side) if frame.number <= before.number and frame.length % full][-1]


def held_by(run: Run, side: str, small: Frame) -> str:
    """Tell whether the receiver delayed the acknowledgement that a small segment waited for, or the path did alone."""
    other = opposite(side)
    came = run.arrived(run.passages_of(small)[-1], other)
    until = (small.seq + small.length) % 2**32
    acked = next(
        frame
        for frame in run.frames[other]
        if frame.side == other and frame.at >= came.at and (frame.ack - until) % 2**32 < 2**31
    )
    return "delayed-ack" if acked.at - came.at >= LONG_NS else "round-trip"


def as_seen(case: Case, run: Run, stall: Stall, vantage: str) -> Iterator[Seen]:
    """Carry a stall to a capture; nothing, where not even its end is there."""
    start_at, start_frame = mark(run, stall.first, vantage, round(case.rtt_ms * 500_000))
    end_at, end_frame = mark(run, stall.last, vantage, 0)
    evident = True
    if stall.kind in COPIES and vantage != stall.side and stall.kind != "syn-rto":
        late = [each for each in run.frames[vantage] if each.side == stall.side and each.length]
        if stall.first.held and run.arrived(stall.first, vantage).at < end_at:
            end = run.arrived(stall.first, vantage)
            end_at, end_frame = end.at, end.number
        elif stall.first.lost or stall.first.held:
            beyond = [f for f in late if start_at <= f.at < end_at and 0 < (f.seq - stall.first.seq) % 2**32 < 2**31]
            evident = bool(beyond) or stall.first.held
    if start_frame is not None and end_frame is not None:
        yield Seen(
            stream=run.stream, kind=stall.kind, detail=stall.detail, side=stall.side, start_frame=start_frame,
            end_frame=end_frame, start_at=start_at, end_at=end_at, evident=evident,
        )  # fmt: skip


def outshone(seen: Seen, others: list[Seen]) -> Seen:
    """Take a copy that only an acknowledgement was missing for to be hidden behind a loss that took as long."""

    def hides(other: Seen) -> bool:
        common = min(seen.end_at, other.end_at) - max(seen.start_at, other.start_at)
        return other.detail != "ack" and other.evident and common * 2 > seen.end_at - seen.start_at

    return replace(seen, evident=False) if seen.detail == "ack" and any(map(hides, others)) else seen


def mark(run: Run, passage: Passage, vantage: str, one_way_ns: int) -> tuple[int, int | None]:
    """Return when a passage was seen, or would have been, and the frame: its own, or the last before that instant."""
    if vantage == passage.side:
        frame = run.sent(passage)
        return frame.at, frame.number
    if passage.lost or (passage.held and one_way_ns):
        at = passage.at + one_way_ns
        return at, max((frame.number for frame in run.frames[vantage] if frame.at <= at), default=None)
    frame = run.arrived(passage, vantage)
    return frame.at, frame.number


def unjudged(case: Case, run: Run, stalls: list[Stall], vantage: str) -> Iterator[Unjudged]:
    """Yield what is not known.

    After a loss, what the congestion window is to blame for; behind the line, what a late original means; and when a
    kernel sent again, or went on sending, because of a timer, what the stretch before it was.
    """
    slack = round(case.rtt_ms * 1_000_000) + LEAST_NS
    for stall in stalls:
        if stall.kind not in COPIES or stall.kind == "syn-rto":
            continue
        upset = [sample["at"] for sample in run.diaries[stall.side].samples if sample["ca_state"] > OPEN]
        later = max((at for at in upset if at > stall.first.at), default=stall.last.at)
        kinds = ["slow-start", "window-limited", "nagle"] + ["rto", "fast-retransmit"] * (stall.kind == "pmtu")
        yield Unjudged(stream=run.stream, kinds=kinds, start_at=stall.first.at - slack, end_at=later + 2 * slack)
        if stall.detail == "spurious" and vantage != stall.side:
            late = max(stall.first.due_at, stall.last.due_at)
            yield Unjudged(
                stream=run.stream, kinds=["rto", "fast-retransmit"], start_at=stall.first.at, end_at=late + LEAST_NS
            )
        if stall.detail == NEEDLESS:
            yield Unjudged(
                stream=run.stream, kinds=list(KINDS), start_at=stall.first.at - slack, end_at=stall.last.at + slack
            )
    for side in run.diaries:
        data = run.new_data(side)
        for before, after in zip(data, data[1:], strict=False):
            if after.at - before.at >= LEAST_NS and why_waited(run, side, before, after) == UNKNOWN:
                kinds = list(WAITS if clocked(run, after) else KINDS)
                yield Unjudged(stream=run.stream, kinds=kinds, start_at=before.at - slack, end_at=after.at + slack)


def opposite(side: str) -> str:
    """Return the other side."""
    return "server" if side == "client" else "client"
