"""How good the capture is, in words: what is wrong with it, what that does to the numbers, what to do about it.

In: captures, connections, phases of a trace. Out: :class:`Remark` in the order in which they matter.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conchart.charts.tables import Row, rows
from conchart.coverage import coverage
from conchart.sql import HOLED, MISSING, ONE_SIDED
from conchart.units import count_of, format_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from conchart.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """One thing a reader should know before trusting the numbers."""

    warning: bool
    """True when numbers may be wrong or missing because of it; False when it is only good to know."""
    title: str
    effect: str
    """What it means for the numbers."""
    advice: str = ""
    """What to do about it; empty when there is nothing to do."""


FACTS = f"""
    SELECT * FROM
    (SELECT count(*) FILTER (truncated) AS truncated, coalesce(sum(undecodable), 0)::BIGINT AS undecodable,
        coalesce(sum(other), 0)::BIGINT AS other, coalesce(sum(snapped), 0)::BIGINT AS snapped,
        sum(dropped)::BIGINT AS dropped, count(*) FILTER (dropped IS NULL) AS silent,
        coalesce(sum(duplicates), 0)::BIGINT AS duplicates, coalesce(sum(packets), 0)::BIGINT AS packets,
        coalesce(sum(packets) - sum(selected), 0)::BIGINT AS filtered, max(resolution_ns) AS resolution_ns,
        string_agg(DISTINCT vantage, ', ' ORDER BY vantage) AS vantage, count(*) AS captures
    FROM captures),
    (SELECT count(*) AS connections,
        coalesce(sum({MISSING}) FILTER ({HOLED}), 0)::BIGINT AS missing,
        count(*) FILTER ({HOLED}) AS with_missing,
        count(*) FILTER (state = 'midstream') AS midstream,
        count(*) FILTER (state = 'open' AND transport = 'tcp') AS still_open,
        count(*) FILTER ({ONE_SIDED}) AS one_sided,
        count(*) FILTER (transport = 'udp' AND app IN ('unknown', 'quic')) AS sealed
    FROM connections),
    (SELECT coalesce(sum(end_at - start_at), 0) AS total_ns,
        coalesce(sum(end_at - start_at) FILTER (kind = 'unseen' AND transport = 'tcp'), 0) AS unseen_ns,
        coalesce(sum(end_at - start_at) FILTER (inferred AND kind <> 'unseen'), 0) AS inferred_ns
    FROM phases JOIN connections USING (stream))"""

VANTAGES = {
    "client": (
        "at the client",
        "Waits include the network to the server and back; the server's own time is what remains after the round trip.",
    ),
    "server": ("at the server", "Waits are the server's own time; users waited for the network on top of it."),
    "middle": ("between client and server", "Waits include the network from the capture point to the server and back."),
}


def appraise(trace: "Trace") -> list[Remark]:
    """Say what limits the capture, warnings first."""
    (facts,) = rows(trace, FACTS)
    remarks = [remark for rule in RULES if (remark := rule(facts))]
    remarks += _keys(trace)
    remarks += _notes(trace)
    return sorted(remarks, key=lambda remark: not remark.warning)


def _keys(trace: "Trace") -> list[Remark]:
    keys = coverage(trace)
    if keys is None:
        return []
    if not keys.lacks:
        return [Remark(warning=False, title=keys.title, effect="Requests inside TLS are read, not inferred.")]
    lacks = "; ".join(keys.lacks)
    return [
        Remark(
            warning=True,
            title=keys.title,
            effect=f"Keys: {lacks}. There, what encryption hides is reasoned from the order and size of records.",
            advice="Write the key log on the machine that opens these connections, before it opens them.",
        )
    ]


def _notes(trace: "Trace") -> list[Remark]:
    query = """
        SELECT path, trim(lines[1]) AS first,
            array_to_string(list_transform(lines[2:], lambda line: trim(line)), ' · ') AS others
        FROM (SELECT capture, path, string_split(unnest(notes), chr(10)) AS lines FROM captures) ORDER BY capture
    """
    return [
        Remark(warning=True, title=f"Reading {row['path']}", effect=row["first"], advice=row["others"])
        for row in rows(trace, query)
        if row["first"]
    ]


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole
    return f"{share:.0f} %" if share >= 1 else "Less than 1 %"


def _truncated(facts: Row) -> Remark | None:
    if not facts["truncated"]:
        return None
    files = (
        "The file ends"
        if facts["captures"] == 1
        else f"{count_of(facts['truncated'], 'file')} of {facts['captures']} end"
    )
    return Remark(
        warning=True,
        title=f"{files} in the middle or is damaged"
        if facts["captures"] == 1
        else f"{files} in the middle or are damaged",
        effect="Everything before the damage is shown; connections that were open there stop short.",
        advice="Stop tcpdump with Ctrl-C and let it finish writing before the file is copied.",
    )


def _dropped(facts: Row) -> Remark | None:
    if not facts["dropped"]:
        return None
    return Remark(
        warning=True,
        title=f"{count_of(facts['dropped'], 'packet')} lost by the capturing machine",
        effect="Bytes that never reached the file look like gaps; phases around them are marked as unseen.",
        advice="Capture with a larger buffer (tcpdump -B 65536), a narrower filter, or shorter packets (-s 1600).",
    )


def _missing(facts: Row) -> Remark | None:
    if not facts["missing"]:
        return None
    return Remark(
        warning=True,
        title=f"{count_of(facts['missing'], 'byte')} acknowledged but not captured, "
        f"on {count_of(facts['with_missing'], 'connection')}",
        effect="The receiver got them, this file did not. Requests and handshakes inside the gaps cannot be read.",
        advice="Look for drops where the capture was taken: tcpdump's last line, or the switch's mirror port.",
    )


def _one_sided(facts: Row) -> Remark | None:
    if not facts["one_sided"]:
        return None
    return Remark(
        warning=True,
        title=f"{count_of(facts['one_sided'], 'connection')} with one direction only",
        effect="What the other side sent counts from the packet that acknowledges it: late by up to a round trip and "
        "what delays an ACK. Where no packet tells, the time is unseen.",
        advice="Capture both directions: on a mirror port rx and tx, with asymmetric routing on the host itself.",
    )


def _midstream(facts: Row) -> Remark | None:
    if not facts["midstream"]:
        return None
    return Remark(
        warning=True,
        title=f"{count_of(facts['midstream'], 'connection')} already open when the capture began",
        effect="How long they took to open, and their handshakes, are not known. They start with an unseen phase.",
        advice="Start the capture before the test, or close idle connections first.",
    )


def _snapped(facts: Row) -> Remark | None:
    if not facts["snapped"]:
        return None
    return Remark(
        warning=True,
        title=f"{count_of(facts['snapped'], 'packet')} cut by the snap length",
        effect="Times and sizes are right; names, ciphers and request lines in the part that was cut are missing.",
        advice="Capture whole packets: tcpdump -s 0.",
    )


def _undecodable(facts: Row) -> Remark | None:
    if not facts["undecodable"]:
        return None
    return Remark(
        warning=True,
        title=f"{count_of(facts['undecodable'], 'frame')} with unreadable headers",
        effect="They count nowhere. If they carried TCP, their connections have gaps.",
        advice="Open the capture in Wireshark and look for malformed frames.",
    )


def _unseen(facts: Row) -> Remark | None:
    if not facts["unseen_ns"]:
        return None
    return Remark(
        warning=True,
        title=f"{_percent(facts['unseen_ns'], facts['total_ns'])} of the connection time is unseen",
        effect="The capture cannot tell what happened then. It is drawn hatched and never counted as waiting.",
    )


def _sealed(facts: Row) -> Remark | None:
    if not facts["sealed"]:
        return None
    return Remark(
        warning=False,
        title=f"{count_of(facts['sealed'], 'UDP conversation')} that cannot be read",
        effect="Of QUIC the handshake is read, of protocols that conchart does not know nothing is: the rest of their "
        "time is drawn as unseen, with addresses, times and bytes.",
    )


def _duplicates(facts: Row) -> Remark | None:
    if not facts["duplicates"]:
        return None
    return Remark(
        warning=False,
        title=f"{count_of(facts['duplicates'], 'packet')} captured twice",
        effect="Copies from -i any or a mirror port. The first copy counts, the others are ignored.",
        advice="Capture on one interface to get smaller files.",
    )


def _inferred(facts: Row) -> Remark | None:
    if not facts["inferred_ns"]:
        return None
    return Remark(
        warning=False,
        title=f"{_percent(facts['inferred_ns'], facts['total_ns'])} of the connection time has inferred boundaries",
        effect="Encryption hides them; they are reasoned from the order and size of records and drawn striped.",
    )


def _open(facts: Row) -> Remark | None:
    if not facts["still_open"]:
        return None
    return Remark(
        warning=False,
        title=f"{count_of(facts['still_open'], 'connection')} still open at the end",
        effect="Their bars stop at their last packet.",
    )


def _resolution(facts: Row) -> Remark | None:
    if facts["resolution_ns"] is None or facts["resolution_ns"] <= 1_000:
        return None
    return Remark(
        warning=True,
        title=f"Timestamps are only exact to {format_count(facts['resolution_ns'])} ns",
        effect="Shorter phases are rounded to nothing.",
        advice="Capture with tcpdump's default (microseconds) or --nano.",
    )


def _vantage(facts: Row) -> Remark | None:
    vantage = facts["vantage"]
    if vantage is None:
        return Remark(
            warning=False,
            title="Where the capture was taken cannot be told",
            effect="Waits may include the network between the capture point and the server.",
        )
    if vantage not in VANTAGES:
        return Remark(
            warning=False,
            title="Taken at a machine that is both client and server, or in several places",
            effect="Waits of connections it accepted are its own time; of those it opened, they include the network.",
        )
    place, effect = VANTAGES[vantage]
    return Remark(warning=False, title=f"Taken {place}", effect=effect)


def _silent(facts: Row) -> Remark | None:
    if not facts["silent"]:
        return None
    return Remark(
        warning=False,
        title="The file does not say whether packets were dropped",
        effect="pcap files have no room for it. Acknowledged bytes that are missing would show it all the same.",
    )


def _filtered(facts: Row) -> Remark | None:
    if not facts["filtered"]:
        return None
    return Remark(
        warning=False,
        title=f"{count_of(facts['filtered'], 'packet')} left out by the filter or time range given",
        effect=f"Of {format_count(facts['packets'])} packets. Connections cut by a time range look open or mid-stream.",
    )


def _other(facts: Row) -> Remark | None:
    if not facts["other"]:
        return None
    return Remark(
        warning=False,
        title=f"{count_of(facts['other'], 'frame')} neither TCP nor UDP",
        effect="ARP, ICMP and the like are counted, and not analysed.",
    )


RULES: "tuple[Callable[[Row], Remark | None], ...]" = (
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
