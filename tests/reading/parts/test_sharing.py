"""Which flows several parts share."""

from pathlib import Path
from typing import Any

import pytest

from conchart.reading.parts.cutting import Part
from conchart.reading.parts.model import File, FlowSelection, Surveyed, Torn, file_of
from conchart.reading.parts.sharing import Placed, Shared, share
from tests.by_hand import Row, connection, tables_of

CLIENT, SERVER = "10.0.0.1:40000", "10.0.0.9:80"
FLOW = ("tcp", "10.0.0.1", 40_000, "10.0.0.9", 80)
S = 1_000_000_000


def begun(**facts: Any) -> Row:  # noqa: ANN401
    """A connection whose SYN was seen."""
    return connection(0, CLIENT, SERVER, **{"syn_at": 0, "isn_client": 1, "first_frame": 1, **facts})


def middle(**facts: Any) -> Row:  # noqa: ANN401
    """A connection that was joined midway."""
    return connection(0, CLIENT, SERVER, **{"state": "midstream", "first_frame": 1, **facts})


def part(
    work: Path,
    number: int,
    *connections: Row,
    begin: int = 1,
    times: tuple[int, int] = (0, 0),
    torn: tuple[Torn, ...] = (),
) -> Surveyed:
    """Write the connections of a part of ten frames."""
    folder = work / f"part-{number}"
    folder.mkdir()
    tables = tables_of(connections=connections)
    tables.execute(f"COPY connections TO '{file_of(str(folder), 'connections')}'")
    file = File(1, *times, ())
    return Surveyed(
        Part(0, ("a.pcap",), begin=begin if number else 0, number=number), str(folder), 10, 10, 10, (file,),
        truncated=False, torn=torn,
    )  # fmt: skip


def shared(work: Path, *parts: Surveyed, files: int = 1) -> Shared:
    return share(parts, files, work)


def flows(found: Shared) -> dict[int, list[Any]]:
    return {part: sorted(flow for flow, _ in of_part) for part, of_part in found.flows.items()}


def test_a_connection_that_goes_on_in_the_next_part_is_shared(tmp_path: Path) -> None:
    found = shared(tmp_path, part(tmp_path, 0, begun()), part(tmp_path, 1, middle()))
    assert flows(found) == {0: [FLOW], 1: [FLOW]}
    assert found.parts == [0, 1]
    assert not found.moved


def test_client_and_server_may_be_taken_the_other_way_round(tmp_path: Path) -> None:
    turned = connection(0, SERVER, CLIENT, state="midstream", first_frame=1)
    assert flows(shared(tmp_path, part(tmp_path, 0, begun()), part(tmp_path, 1, turned))) == {0: [FLOW], 1: [FLOW]}


def test_a_new_connection_between_the_same_ends_shares_nothing(tmp_path: Path) -> None:
    found = shared(tmp_path, part(tmp_path, 0, begun()), part(tmp_path, 1, begun(isn_client=2)))
    assert flows(found) == {}


@pytest.mark.parametrize(
    "facts",
    [
        {"isn_client": 1},
        {"isn_client": None},
        {"isn_client": 2, "opened_by": "server"},
        {"isn_client": 2, "syn_at": 5},
        {"isn_client": 2, "state": "midstream"},
    ],
    ids=str,
)
def test_in_doubt_it_is_shared(facts: dict[str, Any], tmp_path: Path) -> None:
    assert len(flows(shared(tmp_path, part(tmp_path, 0, begun()), part(tmp_path, 1, begun(**facts))))) == 2


def test_within_a_part_nothing_is_shared(tmp_path: Path) -> None:
    both = part(tmp_path, 0, begun(), {**middle(first_frame=5), "stream": 1})
    assert flows(shared(tmp_path, both, part(tmp_path, 1))) == {}


@pytest.mark.parametrize(("silent_s", "is_shared"), [(299, True), (300, False)])
def test_a_conversation_over_udp_goes_on_until_it_was_silent(silent_s: int, is_shared: bool, tmp_path: Path) -> None:  # noqa: FBT001
    udp = {"transport": "udp", "state": "complete"}
    before, after = middle(**udp, closed_at=S), middle(**udp, opened_at=(1 + silent_s) * S)
    assert bool(flows(shared(tmp_path, part(tmp_path, 0, before), part(tmp_path, 1, after)))) == is_shared


def test_captures_of_the_same_time_have_flows_of_their_own(tmp_path: Path) -> None:
    """Of ranges of a file, and of files that follow each other, they go on."""
    one = part(tmp_path, 0, begun(), times=(0, 100))
    overlapping = part(tmp_path, 1, middle(), begin=0, times=(99, 200))
    found = shared(tmp_path, one, overlapping)
    assert (flows(found), [placed.series for placed in found.placed]) == ({}, [0, 1])
    following = part(tmp_path, 2, middle(), begin=0, times=(100, 200))
    assert len(flows(shared(tmp_path, one, following))) == 2


def test_parts_count_on_in_frames(tmp_path: Path) -> None:
    found = shared(tmp_path, part(tmp_path, 0), part(tmp_path, 1), part(tmp_path, 2))
    assert found.placed == (Placed(0, 1, 0), Placed(1, 11, 0), Placed(2, 21, 0))


def test_pieces_of_a_packet_in_two_parts_share_the_flows_between_their_ends(tmp_path: Path) -> None:
    torn = [Torn("10.0.0.9", "10.0.0.1", 3, 2, is_udp=False), Torn("10.0.0.1", "10.0.0.9", 4, 2, is_udp=False)]
    one = part(tmp_path, 0, begun(), torn=(torn[0],))
    found = shared(tmp_path, one, part(tmp_path, 1, torn=(torn[1],)))
    assert found.torn == {("10.0.0.1", "10.0.0.9")}
    assert flows(found) == {0: [FLOW], 1: []}
    assert flows(shared(tmp_path, one, part(tmp_path, 2))) == {}


def test_flows_are_dealt_out_to_files_the_same_way_in_each_part(tmp_path: Path) -> None:
    rows = [connection(port, f"10.0.0.1:{port}", SERVER, state="midstream", first_frame=port) for port in range(1, 30)]
    found = shared(tmp_path, part(tmp_path, 0, *rows), part(tmp_path, 1, *rows), files=3)
    assert sorted(found.flows_of(0)) == sorted(found.flows_of(1))
    assert {file for _, file in found.flows_of(0)} == {0, 1, 2}
    assert found.stitches == [([0, 1], 0), ([0, 1], 1), ([0, 1], 2)]
    shares = [found.selected([0, 1], file) for file in range(3)]
    assert sorted(flow for one in shares for flow in one.flows) == sorted(flow for flow, _ in found.flows_of(0))
    assert shares[0].everywhere == shares[1].everywhere == sorted(flow for flow, _ in found.flows_of(0))


def test_a_flow_of_which_every_packet_is_torn_is_in_the_first_file() -> None:
    found = Shared(
        placed=(Placed(0, 1, 0),), flows={0: [(FLOW, 1)]}, files=2, torn=frozenset({("a", "b")}), listed="", moved=False
    )
    assert found.selected([0], 0) == FlowSelection([], [FLOW], [("a", "b")])
    assert found.selected([0], 1) == FlowSelection([FLOW], [FLOW], [])


@pytest.mark.parametrize(
    ("later", "moved"),
    [
        ({"client_port": 40_001, "app": "unknown"}, True),
        ({"client_port": 40_001, "app": "quic"}, False),
        ({"client_port": 40_001, "app": "unknown", "server_ip": "10.0.0.8"}, False),
        ({"app": "unknown"}, False),
    ],
    ids=str,
)
def test_a_quic_client_may_have_moved_where_a_stranger_talks_to_its_server(
    later: dict[str, Any],
    moved: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    udp = {"transport": "udp", "state": "complete"}
    parts = part(tmp_path, 0, middle(**udp, app="quic")), part(tmp_path, 1, middle(**udp, **later))
    assert shared(tmp_path, *parts).moved == moved
