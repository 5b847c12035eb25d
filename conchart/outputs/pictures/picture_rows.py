"""Which rows a picture has: as many lanes as fit its height, and what does not fit summed up.

In: connections, servers, a height. Out: rows with their places. Connections of one client and server that do not
overlap share a lane where each cannot have its own; a test compares these lanes with those of the page (``tree.js``).
Servers that do not fit are folded: of those it is shown how many connections are in which phase.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from conchart.labels.units import count_of
from conchart.outputs.packing import Lanes
from conchart.report.swimlanes import Lane

HEADING = 30.0
GAP = 10.0
LANE = 72.0
"""The highest lane."""
LEAST_LABELLED = 15.0
"""The lowest lane with a label of its own."""
LEAST_LANE = 6.0
CROWD = 60
"""More connections in a lane than this are too narrow for their steps to be seen."""
STRIP = 46.0
MOST_STRIP = 560.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A heading, a lane with its connections, or a strip that sums up many."""

    kind: Literal["heading", "track", "strip"]
    top: float
    height: float
    label: str = ""
    lanes: tuple[int, ...] = ()
    """Places in the list of connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Connections of one client, or one connection."""

    name: str
    tracks: list[list[int]]
    """Connections that share a lane, by their places."""


def lay_rows(lanes: Sequence[Lane], titles: Sequence[str], room: float) -> list[Row]:
    """Lay connections, which come in the order of their servers, into rows that fit ``room``.

    Args:
        lanes: The connections.
        titles: Of the servers, by ``Lane.group``.
        room: Height, in units of a picture of 900.
    """
    groups = [[place for place, _ in same] for _, same in groupby(enumerate(lanes), key=lambda lane: lane[1].group)]
    headings = [titles[lanes[group[0]].group] for group in groups]
    fixed = len(groups) * (HEADING + GAP)
    for share, least in ((False, LEAST_LABELLED), (True, LEAST_LANE)):
        grown = [clients_of(lanes, group, share=share) for group in groups]
        height = (room - fixed) / max(1, sum(map(_tracks, grown)))
        if height >= least and not any(map(_is_crowded, grown)):
            return _place(zip(headings, grown, groups, strict=True), min(LANE, height), folded={})
    return _fold(headings, grown, groups, room)


def _packed(lanes: Sequence[Lane], places: Sequence[int]) -> list[list[int]]:
    """Lay connections into as few lanes as they need."""
    tracks: dict[int, list[int]] = {}
    shared = Lanes()
    for place in sorted(places, key=lambda place: (lanes[place].opened, place)):
        tracks.setdefault(shared.place(lanes[place].opened, lanes[place].closed), []).append(place)
    return list(tracks.values())


def clients_of(lanes: Sequence[Lane], group: Sequence[int], *, share: bool) -> list[Client]:
    """Group a server's connections by client, in the order of time; each has a lane, or a client's share theirs."""
    found: dict[str, list[int]] = {}
    for place in group:
        found.setdefault(lanes[place].client, []).append(place)
    if share:
        return [Client(name=name, tracks=_packed(lanes, places)) for name, places in found.items()]
    return [Client(name=lanes[place].label, tracks=[[place]]) for place in group]


def _is_crowded(clients: Sequence[Client]) -> bool:
    return sum(len(track) for client in clients for track in client.tracks) > CROWD * _tracks(clients)


def _tracks(clients: Sequence[Client]) -> int:
    return sum(len(client.tracks) for client in clients)


def _fold(headings: list[str], grown: list[list[Client]], groups: list[list[int]], room: float) -> list[Row]:
    """Fold servers into strips until the others fit; more servers than strips become one strip."""
    most = max(1, int(room // (HEADING + STRIP + GAP)))
    if len(groups) > most:
        rest = [place for group in groups[most - 1 :] for place in group]
        more = count_of(len(groups) - most + 1, "more server")
        headings = [*headings[: most - 1], f"{more}, {count_of(len(rest), 'connection')}"]
        grown, groups = [*grown[: most - 1], []], [*groups[: most - 1], rest]
    spare = room - len(groups) * (HEADING + STRIP + GAP)
    folded = dict.fromkeys(range(len(groups)), STRIP)
    for number, clients in enumerate(grown):
        needed = _tracks(clients) * LEAST_LANE - STRIP
        if clients and needed <= spare and not _is_crowded(clients):
            spare -= needed
            del folded[number]
    share = min(MOST_STRIP, STRIP + spare / max(1, len(folded)))
    return _place(zip(headings, grown, groups, strict=True), LEAST_LANE, folded=dict.fromkeys(folded, share))


def _place(
    servers: "zip[tuple[str, list[Client], list[int]]]", height: float, *, folded: dict[int, float]
) -> list[Row]:
    rows: list[Row] = []
    top = 0.0
    for number, (heading, clients, group) in enumerate(servers):
        rows.append(Row(kind="heading", top=top, height=HEADING, label=heading, lanes=tuple(group)))
        top += HEADING
        if number in folded:
            rows.append(Row(kind="strip", top=top, height=folded[number], lanes=tuple(group)))
            top += folded[number]
        else:
            for client in clients:
                for place, track in enumerate(client.tracks):
                    label = client.name if not place and height * len(client.tracks) >= LEAST_LABELLED else ""
                    rows.append(Row(kind="track", top=top, height=height, label=label, lanes=tuple(track)))
                    top += height
        top += GAP
    return rows
