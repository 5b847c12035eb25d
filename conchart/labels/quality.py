"""Sentences about the quality of a capture: what is wrong with it, what that does to the numbers, what to do about it.

In: facts, as ``analysis/quality.py`` counts them. Out: :class:`RemarkText`, the texts of the table ``remarks``.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from conchart.labels.units import count_of, format_count, format_ns, format_share

Facts = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemarkText:
    """One thing a reader should know before trusting the numbers."""

    warning: bool
    """True when numbers may be wrong or missing because of it; False when it is only good to know."""
    kind: str
    title: str
    effect: str | None = None
    """What it means for the numbers."""
    advice: str | None = None
    """What to do about it."""
    count: int | None = None
    """Of what the title speaks of."""


_MOST_NAMED = 3
"""Servers and connections that are named; the others are counted."""
_LACKS = {
    "none": "none for",
    "wrong": "wrong for",
    "unsupported": "cipher suite not supported for",
    "partial": "missing {missing} for",
}
"""Values of ``handshakes.keys`` that mean that not all could be read, in words."""

_COUNTED = {
    "file": ("truncated",),
    "byte": ("missing",),
    "packet": ("dropped", "snapped", "duplicates", "filtered"),
    "frame": ("undecodable", "other"),
    "connection": ("with_missing", "one-sided", "midstream", "open", "unmoved", "translated"),
    "UDP conversation": ("sealed",),
}
"""Facts that are a number of something."""

_RULES = (
    RemarkText(
        warning=True,
        kind="truncated",
        title="{ending} in the middle or {being} damaged",
        effect="Everything before the damage is shown; connections that were open there stop short.",
        advice="Stop tcpdump with Ctrl-C and let it finish writing before the file is copied.",
    ),
    RemarkText(
        warning=True,
        kind="dropped",
        title="{dropped} lost by the capturing machine",
        effect="Bytes that never reached the file look like gaps; phases around them are marked as unseen.",
        advice="Capture with a larger buffer (tcpdump -B 65536), a narrower filter, or shorter packets (-s 1600).",
    ),
    RemarkText(
        warning=True,
        kind="missing",
        title="{missing} acknowledged but not captured, on {with_missing}",
        effect="The receiver got them, this file did not. Requests and handshakes inside the gaps cannot be read.",
        advice="Look for drops where the capture was taken: tcpdump's last line, or the switch's mirror port.",
    ),
    RemarkText(
        warning=True,
        kind="one-sided",
        title="{one-sided} with one direction only",
        effect="What the other side sent counts from the packet that acknowledges it: late by up to a round trip and "
        "what delays an ACK. Where no packet tells, the time is unseen.",
        advice="Capture both directions: on a mirror port rx and tx, with asymmetric routing on the host itself.",
    ),
    RemarkText(
        warning=True,
        kind="midstream",
        title="{midstream} already open when the capture began",
        effect="How long they took to open, and their handshakes, are not known. They start with an unseen phase.",
        advice="Start the capture before the test, or close idle connections first.",
    ),
    RemarkText(
        warning=True,
        kind="undecodable",
        title="{undecodable} with unreadable headers",
        effect="They count nowhere. If they carried TCP, their connections have gaps.",
        advice="Open the capture in Wireshark and look for malformed frames.",
    ),
    RemarkText(
        warning=True,
        kind="snapped",
        title="{snapped} cut by the snap length",
        effect="Times and sizes are right; names, ciphers and request lines in the part that was cut are missing.",
        advice="Capture whole packets: tcpdump -s 0.",
    ),
    RemarkText(
        warning=True,
        kind="unseen",
        title="{unseen} of the connection time is unseen",
        effect="The capture cannot tell what happened then. It is drawn hatched and never counted as waiting.",
    ),
    RemarkText(
        warning=True,
        kind="resolution",
        title="Timestamps are only exact to {resolution} ns",
        effect="Shorter phases are rounded to nothing.",
        advice="Capture with tcpdump's default (microseconds) or --nano.",
    ),
    RemarkText(
        warning=False,
        kind="sealed",
        title="{sealed} that cannot be read",
        effect="Of QUIC the handshake is read, of protocols that conchart does not know nothing is: the rest of their "
        "time is drawn as unseen, with addresses, times and bytes.",
    ),
    RemarkText(
        warning=False,
        kind="duplicates",
        title="{duplicates} captured twice",
        effect="Copies from -i any or a mirror port. The first copy counts, the others are ignored.",
        advice="Capture on one interface to get smaller files.",
    ),
    RemarkText(
        warning=False,
        kind="translated",
        title="{translated} captured on both sides of an address translation",
        effect="The first sight of each counts, as if it were the only one. The column same_as of the others names it.",
    ),
    RemarkText(
        warning=False,
        kind="inferred",
        title="{inferred} of the connection time has inferred boundaries",
        effect="{hidden} They are drawn striped.",
    ),
    RemarkText(
        warning=False,
        kind="open",
        title="{open} still open at the end",
        effect="Their bars stop at their last packet.",
    ),
    RemarkText(
        warning=False,
        kind="seen-from",
        title="Times as the {end} of each connection saw them, worked out from {trips}",
        effect="What that end sent is earlier, what its peer sent later, by together one round trip between it and the "
        "capture point. A round trip that varies makes this wrong by as much.{unmoved}",
    ),
    RemarkText(warning=False, kind="vantage", title="{place}", effect="{waits}"),
    RemarkText(
        warning=False,
        kind="silent",
        title="The file does not say whether packets were dropped",
        effect="pcap files have no room for it. Acknowledged bytes that are missing would show it all the same.",
    ),
    RemarkText(
        warning=False,
        kind="filtered",
        title="{filtered} left out by the filter or time range given",
        effect="Of {packets} packets. Connections cut by a time range look open or mid-stream.",
    ),
    RemarkText(
        warning=False,
        kind="other",
        title="{other} neither TCP nor UDP",
        effect="ARP, ICMP and the like are counted, and not analysed.",
    ),
)
"""What is said where the fact that is called as the remark is there; texts hold facts in words."""

_VANTAGES = {
    "client": (
        "Taken at the client",
        "Waits include the network to the server and back; the server's own time is what remains after the round trip.",
    ),
    "server": (
        "Taken at the server",
        "Waits are the server's own time; users waited for the network on top of it.",
    ),
    "middle": (
        "Taken between client and server",
        "Waits include the network from the capture point to the server and back.",
    ),
    "unknown": (
        "Where the capture was taken cannot be told",
        "Waits may include the network between the capture point and the server.",
    ),
}
_BOTH = (
    "Taken at a machine that is both client and server, or in several places",
    "Waits of connections it accepted are its own time; of those it opened, they include the network.",
)

_HIDDEN = "Encryption hides them; they are reasoned from the order and size of records."
_MOVED = " Or they are so far apart only as a round trip says."


def ruled(facts: Facts) -> Iterator[RemarkText]:
    """Give what is said of the facts that are there."""
    words = _words(facts)
    for rule in _RULES:
        if fact := facts[rule.kind]:
            yield replace(
                rule,
                title=rule.title.format_map(words),
                effect=rule.effect and rule.effect.format_map(words),
                count=fact if any(rule.kind in counted for counted in _COUNTED.values()) else None,
            )


def _words(facts: Facts) -> dict[str, str]:
    """Give what the texts of the rules have in braces."""
    counts = {name: count_of(facts[name] or 0, noun) for noun, names in _COUNTED.items() for name in names}
    shares = {name: format_share(facts[name], facts["total_ns"]) for name in ("unseen", "inferred")}
    plain = {name: format_count(facts[name] or 0) for name in ("packets", "resolution")}
    place, waits = _VANTAGES.get(facts["vantage"], _BOTH)
    seen_from = facts["seen-from"]
    if seen_from:
        waits = _VANTAGES[seen_from][1]
    one = facts["captures"] == 1
    ending, being = ("The file ends", "is") if one else (f"{counts['truncated']} of {facts['captures']} end", "are")
    seen = {
        "end": seen_from,
        "trips": _trips(format_ns(facts["nearest"]), format_ns(facts["farthest"])),
        "unmoved": f" No round trip is known of {counts['unmoved']}: as captured." if facts["unmoved"] else "",
        "hidden": _HIDDEN + _MOVED if seen_from else _HIDDEN,
    }
    return counts | shares | plain | seen | {"place": place, "waits": waits, "ending": ending, "being": being}


def _trips(nearest: str, farthest: str) -> str:
    return f"a round trip of {nearest}" if nearest == farthest else f"round trips of {nearest} to {farthest}"


def apart(before: str, after: str) -> RemarkText:
    """Say how to compare two captures, by their paths, that do not overlap in time."""
    command = shlex.join(("conchart", "diff", before, after))
    return RemarkText(
        warning=False,
        kind="apart",
        title=f"The captures do not overlap in time: {command} compares them",
        effect="They are read as if they had been joined, and drawn on one axis.",
    )


def checked(count: int, waited_ns: int) -> RemarkText:
    """Say how many health checks rules leave out, and how much of what users waited that is."""
    return RemarkText(
        warning=False,
        kind="checks",
        title=f"{count_of(count, 'health check')} ({format_ns(waited_ns)} of waits) left out of findings",
        effect="They ask at equal intervals, succeed and take little. Those that fail or take longer are judged.",
        count=count,
    )


def same_traffic(connections: int, one: str, other: str) -> RemarkText:
    """Say how to read two captures, by their paths, that hold the same connections."""
    command = shlex.join(("conchart", "--at", f"here={one}", "--at", f"there={other}"))
    return RemarkText(
        warning=True,
        kind="same-traffic",
        title=f"Two captures hold {count_of(connections, 'connection')} in common, each of which is shown twice",
        effect="Counts and waits include these connections twice.",
        advice=f"If they were captured at two places, name these: {command}. Otherwise leave one file out.",
        count=connections,
    )


def keys(opened: int, total: int, lacking: Iterable[tuple[str, str | None, str, int]]) -> RemarkText:
    """Say how many TLS connections keys opened.

    Args:
        opened: Those of which everything was read.
        total: Those with keys, or without.
        lacking: Of the others: a value of ``handshakes.keys``, which keys are missing, the server or the one
            connection, how many connections.
    """
    places: dict[str, dict[str, int]] = {}
    for lack, missing, place, count in lacking:
        places.setdefault(_LACKS[lack].format(missing=(missing or "").replace(",", ", ")), {})[place] = count
    lacks = [f"{lack} {_named(named)}" for lack, named in places.items()]
    return RemarkText(
        warning=bool(lacks),
        kind="keys",
        title="; ".join((f"{format_count(opened)} of {count_of(total, 'TLS connection')} decrypted", *lacks)),
        effect="There, what encryption hides is reasoned from the order and size of records."
        if lacks
        else "Requests inside TLS are read, not inferred.",
        advice="Write the key log on the machine that opens these connections, before it opens them."
        if lacks
        else None,
        count=total - opened,
    )


def _named(places: Mapping[str, int]) -> str:
    """``10.0.0.2:8443 (2), #7 and 4 others``."""
    most = sorted(places.items(), key=lambda place: -place[1])
    named = ", ".join(place if count == 1 else f"{place} ({count})" for place, count in most[:_MOST_NAMED])
    others = len(most) - _MOST_NAMED
    return named if others <= 0 else f"{named} and {count_of(others, 'other')}"


def traced(by_ids: int, by_time: int, internal: int, left: Mapping[str, int]) -> RemarkText:
    """Say how many spans were matched with requests.

    Args:
        by_ids: By ``traceparent``.
        by_time: Without it.
        internal: Spans that are about no request.
        left: The others, by why they have none.
    """
    others = sum(left.values())
    total = by_ids + by_time + others
    why = ", ".join(f"{count:,} {reason}" for reason, count in left.items())
    ways = [f"{count:,} by {by}" for count, by in ((by_ids, "traceparent"), (by_time, "time")) if count]
    found = f" ({', '.join(ways)})" if ways else ""
    beside = f"; {count_of(internal, 'span')} inside programs" if internal else ""
    return RemarkText(
        warning=not by_ids + by_time,
        kind="spans",
        title=f"{format_count(by_ids + by_time)} of {count_of(total, 'span')} about requests found theirs"
        f"{found}{beside}",
        effect=f"The others: {why}." if others else None,
        count=others,
    )


def noted(note: str) -> RemarkText | None:
    """Give the note on a file: of several lines the first says what, the others what to do."""
    first, *others = (line.strip() for line in note.split("\n"))
    return RemarkText(warning=True, kind="note", title=first, advice=" · ".join(others) or None) if first else None
