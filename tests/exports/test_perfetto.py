"""Chrome's trace events: they nest, they are what the tables say, and links are flows."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from conchart import Trace
from tests.charts.story import Story
from tests.conftest import TellTrace


class Events:
    """The events of a trace, and what every viewer relies on."""

    def __init__(self, trace: Trace, folder: Path) -> None:
        trace.write(folder / "out.perfetto.json")
        self.document = json.loads((folder / "out.perfetto.json").read_text(encoding="utf-8"))
        self.all: list[dict[str, Any]] = self.document["traceEvents"]
        self.origin = int(self.document["otherData"]["start_at"])
        self.slices = [event for event in self.all if event["ph"] == "X"]
        self.flows = [event for event in self.all if event["ph"] in "sf"]
        names = {(event["name"], event["pid"], event["tid"]) for event in self.all if event["ph"] == "M"}
        for event in self.slices:
            assert {("process_name", event["pid"], 0), ("thread_name", event["pid"], event["tid"])} <= names
        self._nest()

    def _nest(self) -> None:
        opened: dict[tuple[int, int], list[int]] = defaultdict(list)
        for event in self.slices:
            ends = opened[event["pid"], event["tid"]]
            while ends and ends[-1] <= event["ts"] and (event["dur"] or ends[-1] < event["ts"]):
                ends.pop()
            assert not ends or event["ts"] + event["dur"] <= ends[-1], event
            ends.append(event["ts"] + event["dur"])

    def us(self, at: int) -> int:
        """Give an instant as events have it."""
        return (at - self.origin) // 1000

    def of(self, category: str, *keys: str) -> list[tuple[object, ...]]:
        """Give the slices of a category: name, start, exact duration, and what ``args`` has."""
        return [
            (event["name"], event["ts"], event["args"]["duration_ns"], *(event["args"].get(key) for key in keys))
            for event in self.slices
            if event["cat"] == category
        ]


def events_agree(trace: Trace, folder: Path) -> None:
    """Slices and flows are the rows of the tables."""
    events = Events(trace, folder)
    phases = trace.sql("SELECT kind, start_at, end_at, stream, start_frame, end_frame FROM phases").fetchall()
    connections = trace.sql(
        "SELECT client_ip || ':' || client_port, opened_at, closed_at, stream FROM connections"
    ).fetchall()
    exchanges = trace.sql(
        """
        SELECT concat_ws(' ', coalesce(method, protocol), target), request_at, response_done_at, stream, number
        FROM exchanges
        """
    ).fetchall()
    links = trace.sql("SELECT front_stream, front_exchange, back_stream, back_exchange FROM links").fetchall()
    for category, rows, keys in (
        ("phase", phases, ("stream", "start_frame", "end_frame")),
        ("connection", connections, ("stream",)),
        ("exchange", [row for row in exchanges if row[2] is not None], ("stream", "exchange")),
    ):
        found = Counter(events.of(category, *keys))
        expected = Counter((name, events.us(start), end - start, *rest) for name, start, end, *rest in rows)
        assert found >= expected if category == "exchange" else found == expected
    assert sum(event["cat"] == "exchange" for event in events.slices) == len(exchanges)
    for event in events.slices:
        assert abs(event["dur"] * 1000 - event["args"]["duration_ns"]) < 1000
    homes = {
        (event["args"]["stream"], event["args"]["exchange"]): (event["pid"], event["tid"], event["ts"], event["cat"])
        for event in events.slices
        if event["cat"] == "exchange"
    } | {
        (event["args"]["stream"], None): (event["pid"], event["tid"], event["ts"], event["cat"])
        for event in events.slices
        if event["cat"] == "connection"
    }
    ends = {
        (event["ph"], event["id"]): tuple(event[key] for key in ("pid", "tid", "ts", "cat")) for event in events.flows
    }
    pairs = {(ends["s", number], ends["f", number]) for ph, number in ends if ph == "s"}
    assert len(ends) == len(events.flows) == 2 * len(links)
    ends_of = [
        (row[:2], row[2:]) if None not in row else ((row[0], None), (row[2], None))  # of connections, not of requests
        for row in links
    ]
    assert pairs == {(homes[front], homes[back]) for front, back in ends_of}


def test_a_request_of_its_own_has_its_phases_inside(story: Trace, tmp_path: Path) -> None:
    events = Events(story, tmp_path)
    (request,) = (event for event in events.slices if event["cat"] == "exchange")
    inside = [
        event["name"]
        for event in events.slices
        if event["tid"] == request["tid"] and event["cat"] == "phase" and event["args"].get("exchange") == 0
    ]
    assert inside == ["request", "wait", "transfer"]
    assert not events.of("part")


def test_requests_that_overlap_lie_below_with_parts_of_their_own(story: Trace, tmp_path: Path) -> None:
    story.execute(
        """
        UPDATE exchanges SET request_done_at = request_at + request_ns, response_at = request_at + request_ns + wait_ns,
            response_done_at = request_at + request_ns + wait_ns + transfer_ns;
        INSERT INTO exchanges BY NAME SELECT * REPLACE (1 AS number, request_at + 1 AS request_at) FROM exchanges
        """
    )
    events = Events(story, tmp_path)
    lanes = [event["tid"] for event in events.slices if event["cat"] == "exchange"]
    (own,) = (event["tid"] for event in events.slices if event["cat"] == "connection" and event["args"]["stream"] == 0)
    assert own not in lanes
    assert len(set(lanes)) == 2
    assert sorted((row[-1], row[0]) for row in events.of("part", "exchange")) == [
        (number, part) for number in (0, 1) for part in ("request", "transfer", "wait")
    ]


def test_parts_that_overlap_cannot_be_drawn(story: Trace, tmp_path: Path) -> None:
    story.execute(
        """
        UPDATE exchanges SET request_done_at = request_at + 7, response_at = request_at + 3,
            response_done_at = request_at + 5
        """
    )
    events = Events(story, tmp_path)
    assert [row[2:] for row in events.of("exchange", "exchange")] == [(7, 0)]
    assert events.of("part") == []


def test_a_connection_that_is_handed_through_is_a_flow_between_connections(
    trace_of: TellTrace, proxy_story: Story, tmp_path: Path
) -> None:
    trace = trace_of(proxy_story)
    trace.execute("UPDATE links SET front_exchange = NULL, back_exchange = NULL")
    ((links,),) = trace.sql("SELECT count(*) FROM links").fetchall()
    events = Events(trace, tmp_path)
    assert len(events.flows) == 2 * links > 0
    assert {event["cat"] for event in events.flows} == {"connection"}


def test_hostile_text_is_text(story: Trace, tmp_path: Path) -> None:
    hostile = '"}]\\\x01\n</script>\u2028\u202eé'
    story.execute("UPDATE exchanges SET target = ?, method = 'GET'", [hostile])
    assert f"GET {hostile}" in [row[0] for row in Events(story, tmp_path).of("exchange")]
