"""How good the capture is, in words: what is wrong with it, what that does to the numbers, what to do about it.

In: captures, connections, phases, coverage. Out: the table ``remarks``, in the order in which they matter.
"""

from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from typing import Any

from conchart.printable import endpoint
from conchart.sql import HOLED, MISSING, ONE_SIDED
from conchart.tables import Tables
from conchart.units import count_of, format_count, format_share

Facts = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Remark:
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

_FACTS = f"""
    SELECT * FROM
    (SELECT count(*) FILTER (truncated) AS truncated, coalesce(sum(undecodable), 0)::BIGINT AS undecodable,
        coalesce(sum(other), 0)::BIGINT AS other, coalesce(sum(snapped), 0)::BIGINT AS snapped,
        sum(dropped)::BIGINT AS dropped, count(*) FILTER (dropped IS NULL) AS silent,
        coalesce(sum(duplicates), 0)::BIGINT AS duplicates, coalesce(sum(packets), 0)::BIGINT AS packets,
        coalesce(sum(packets) - sum(selected), 0)::BIGINT AS filtered, max(resolution_ns) AS resolution_ns,
        string_agg(DISTINCT vantage, ', ' ORDER BY vantage) AS vantage, count(*) AS captures
    FROM captures),
    (SELECT coalesce(sum(closed_at - opened_at), 0)::BIGINT AS total_ns,
        coalesce(sum({MISSING}) FILTER ({HOLED}), 0)::BIGINT AS missing,
        count(*) FILTER ({HOLED}) AS with_missing,
        count(*) FILTER (state = 'midstream') AS midstream,
        count(*) FILTER (state = 'open' AND transport = 'tcp') AS still_open,
        count(*) FILTER ({ONE_SIDED}) AS one_sided,
        count(*) FILTER (transport = 'udp' AND app IN ('unknown', 'quic')) AS sealed
    FROM connections),
    (SELECT coalesce(sum(end_at - start_at), 0)::BIGINT AS unseen_ns
    FROM phases JOIN connections USING (stream) WHERE kind = 'unseen' AND transport = 'tcp'),
    (SELECT coalesce(sum(end_at - start_at), 0)::BIGINT AS inferred_ns
    FROM phases WHERE inferred AND kind <> 'unseen')"""

_VANTAGES = {
    "client": (
        "at the client",
        "Waits include the network to the server and back; the server's own time is what remains after the round trip.",
    ),
    "server": ("at the server", "Waits are the server's own time; users waited for the network on top of it."),
    "middle": ("between client and server", "Waits include the network from the capture point to the server and back."),
}


def appraise(tables: Tables) -> None:
    """Say what limits the capture, warnings first."""
    relation = tables.sql(_FACTS)
    (values,) = relation.fetchall()
    facts = dict(zip(relation.columns, values, strict=True))
    remarks = [remark for rule in _RULES if (remark := rule(facts))]
    remarks += _keys(tables)
    remarks += _notes(tables)
    remarks.sort(key=lambda remark: not remark.warning)
    tables.add("remarks", ((number, *astuple(remark)) for number, remark in enumerate(remarks)))


def _keys(tables: Tables) -> Iterator[_Remark]:
    rows = tables.sql(
        """
        SELECT server_ip, server_port, keys, missing_keys, connections, first_stream FROM coverage
        ORDER BY first_stream
        """
    ).fetchall()
    if not rows:
        return
    opened, total = sum(row[4] for row in rows if row[2] == "all"), sum(row[4] for row in rows)
    lacking: dict[str, dict[str, int]] = {}
    for ip, port, keys, missing, connections, first_stream in rows:
        if keys != "all":
            lack = _LACKS[keys].format(missing=(missing or "").replace(",", ", "))
            place = f"#{first_stream}" if connections == 1 else endpoint(ip, port)
            lacking.setdefault(lack, {})[place] = connections
    lacks = [f"{lack} {_named(places)}" for lack, places in lacking.items()]
    yield _Remark(
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


def _named(places: dict[str, int]) -> str:
    """``10.0.0.2:8443 (2), #7 and 4 others``."""
    most = sorted(places.items(), key=lambda place: -place[1])
    named = ", ".join(place if count == 1 else f"{place} ({count})" for place, count in most[:_MOST_NAMED])
    others = len(most) - _MOST_NAMED
    return named if others <= 0 else f"{named} and {count_of(others, 'other')}"


def _notes(tables: Tables) -> Iterator[_Remark]:
    """Give the notes on files: of several lines the first says what, the others what to do."""
    for (note,) in tables.sql(
        "SELECT note FROM (SELECT capture, unnest(notes) AS note FROM captures) ORDER BY capture"
    ).fetchall():
        first, *others = (line.strip() for line in note.split("\n"))
        if first:
            yield _Remark(warning=True, kind="note", title=first, advice=" · ".join(others) or None)


def _truncated(facts: Facts) -> _Remark | None:
    if not facts["truncated"]:
        return None
    files = (
        "The file ends"
        if facts["captures"] == 1
        else f"{count_of(facts['truncated'], 'file')} of {facts['captures']} end"
    )
    return _Remark(
        warning=True,
        kind="truncated",
        count=facts["truncated"],
        title=f"{files} in the middle or is damaged"
        if facts["captures"] == 1
        else f"{files} in the middle or are damaged",
        effect="Everything before the damage is shown; connections that were open there stop short.",
        advice="Stop tcpdump with Ctrl-C and let it finish writing before the file is copied.",
    )


def _dropped(facts: Facts) -> _Remark | None:
    if not facts["dropped"]:
        return None
    return _Remark(
        warning=True,
        kind="dropped",
        count=facts["dropped"],
        title=f"{count_of(facts['dropped'], 'packet')} lost by the capturing machine",
        effect="Bytes that never reached the file look like gaps; phases around them are marked as unseen.",
        advice="Capture with a larger buffer (tcpdump -B 65536), a narrower filter, or shorter packets (-s 1600).",
    )


def _missing(facts: Facts) -> _Remark | None:
    if not facts["missing"]:
        return None
    return _Remark(
        warning=True,
        kind="missing",
        count=facts["missing"],
        title=f"{count_of(facts['missing'], 'byte')} acknowledged but not captured, "
        f"on {count_of(facts['with_missing'], 'connection')}",
        effect="The receiver got them, this file did not. Requests and handshakes inside the gaps cannot be read.",
        advice="Look for drops where the capture was taken: tcpdump's last line, or the switch's mirror port.",
    )


def _one_sided(facts: Facts) -> _Remark | None:
    if not facts["one_sided"]:
        return None
    return _Remark(
        warning=True,
        kind="one-sided",
        count=facts["one_sided"],
        title=f"{count_of(facts['one_sided'], 'connection')} with one direction only",
        effect="What the other side sent counts from the packet that acknowledges it: late by up to a round trip and "
        "what delays an ACK. Where no packet tells, the time is unseen.",
        advice="Capture both directions: on a mirror port rx and tx, with asymmetric routing on the host itself.",
    )


def _midstream(facts: Facts) -> _Remark | None:
    if not facts["midstream"]:
        return None
    return _Remark(
        warning=True,
        kind="midstream",
        count=facts["midstream"],
        title=f"{count_of(facts['midstream'], 'connection')} already open when the capture began",
        effect="How long they took to open, and their handshakes, are not known. They start with an unseen phase.",
        advice="Start the capture before the test, or close idle connections first.",
    )


def _snapped(facts: Facts) -> _Remark | None:
    if not facts["snapped"]:
        return None
    return _Remark(
        warning=True,
        kind="snapped",
        count=facts["snapped"],
        title=f"{count_of(facts['snapped'], 'packet')} cut by the snap length",
        effect="Times and sizes are right; names, ciphers and request lines in the part that was cut are missing.",
        advice="Capture whole packets: tcpdump -s 0.",
    )


def _undecodable(facts: Facts) -> _Remark | None:
    if not facts["undecodable"]:
        return None
    return _Remark(
        warning=True,
        kind="undecodable",
        count=facts["undecodable"],
        title=f"{count_of(facts['undecodable'], 'frame')} with unreadable headers",
        effect="They count nowhere. If they carried TCP, their connections have gaps.",
        advice="Open the capture in Wireshark and look for malformed frames.",
    )


def _unseen(facts: Facts) -> _Remark | None:
    if not facts["unseen_ns"]:
        return None
    return _Remark(
        warning=True,
        kind="unseen",
        title=f"{format_share(facts['unseen_ns'], facts['total_ns'])} of the connection time is unseen",
        effect="The capture cannot tell what happened then. It is drawn hatched and never counted as waiting.",
    )


def _sealed(facts: Facts) -> _Remark | None:
    if not facts["sealed"]:
        return None
    return _Remark(
        warning=False,
        kind="sealed",
        count=facts["sealed"],
        title=f"{count_of(facts['sealed'], 'UDP conversation')} that cannot be read",
        effect="Of QUIC the handshake is read, of protocols that conchart does not know nothing is: the rest of their "
        "time is drawn as unseen, with addresses, times and bytes.",
    )


def _duplicates(facts: Facts) -> _Remark | None:
    if not facts["duplicates"]:
        return None
    return _Remark(
        warning=False,
        kind="duplicates",
        count=facts["duplicates"],
        title=f"{count_of(facts['duplicates'], 'packet')} captured twice",
        effect="Copies from -i any or a mirror port. The first copy counts, the others are ignored.",
        advice="Capture on one interface to get smaller files.",
    )


def _inferred(facts: Facts) -> _Remark | None:
    if not facts["inferred_ns"]:
        return None
    return _Remark(
        warning=False,
        kind="inferred",
        title=f"{format_share(facts['inferred_ns'], facts['total_ns'])} of the connection time has inferred boundaries",
        effect="Encryption hides them; they are reasoned from the order and size of records and drawn striped.",
    )


def _open(facts: Facts) -> _Remark | None:
    if not facts["still_open"]:
        return None
    return _Remark(
        warning=False,
        kind="open",
        count=facts["still_open"],
        title=f"{count_of(facts['still_open'], 'connection')} still open at the end",
        effect="Their bars stop at their last packet.",
    )


def _resolution(facts: Facts) -> _Remark | None:
    if facts["resolution_ns"] is None or facts["resolution_ns"] <= 1_000:
        return None
    return _Remark(
        warning=True,
        kind="resolution",
        title=f"Timestamps are only exact to {format_count(facts['resolution_ns'])} ns",
        effect="Shorter phases are rounded to nothing.",
        advice="Capture with tcpdump's default (microseconds) or --nano.",
    )


def _vantage(facts: Facts) -> _Remark | None:
    vantage = facts["vantage"]
    if vantage is None:
        return _Remark(
            warning=False,
            kind="vantage",
            title="Where the capture was taken cannot be told",
            effect="Waits may include the network between the capture point and the server.",
        )
    if vantage not in _VANTAGES:
        return _Remark(
            warning=False,
            kind="vantage",
            title="Taken at a machine that is both client and server, or in several places",
            effect="Waits of connections it accepted are its own time; of those it opened, they include the network.",
        )
    place, effect = _VANTAGES[vantage]
    return _Remark(warning=False, kind="vantage", title=f"Taken {place}", effect=effect)


def _silent(facts: Facts) -> _Remark | None:
    if not facts["silent"]:
        return None
    return _Remark(
        warning=False,
        kind="silent",
        title="The file does not say whether packets were dropped",
        effect="pcap files have no room for it. Acknowledged bytes that are missing would show it all the same.",
    )


def _filtered(facts: Facts) -> _Remark | None:
    if not facts["filtered"]:
        return None
    return _Remark(
        warning=False,
        kind="filtered",
        count=facts["filtered"],
        title=f"{count_of(facts['filtered'], 'packet')} left out by the filter or time range given",
        effect=f"Of {format_count(facts['packets'])} packets. Connections cut by a time range look open or mid-stream.",
    )


def _other(facts: Facts) -> _Remark | None:
    if not facts["other"]:
        return None
    return _Remark(
        warning=False,
        kind="other",
        count=facts["other"],
        title=f"{count_of(facts['other'], 'frame')} neither TCP nor UDP",
        effect="ARP, ICMP and the like are counted, and not analysed.",
    )


_RULES: tuple[Callable[[Facts], _Remark | None], ...] = (
    _truncated,
    _dropped,
    _missing,
    _one_sided,
    _midstream,
    _undecodable,
    _snapped,
    _unseen,
    _sealed,
    _resolution,
    _duplicates,
    _inferred,
    _open,
    _vantage,
    _silent,
    _filtered,
    _other,
)
