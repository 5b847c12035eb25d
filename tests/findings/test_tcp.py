"""What findings about TCP cost, worked out by hand."""

import struct
from pathlib import Path

import conchart

CAPTURES = Path(__file__).parents[2] / "captures"


def costs(capture: str, finding: str) -> list[tuple[int, int, int]]:
    with conchart.read(CAPTURES / capture / "input.pcap") as trace:
        found = trace.sql("SELECT count, cost_ns, critical_ns FROM findings WHERE finding = ?", params=[finding])
        return found.fetchall()


def test_of_a_pause_only_what_the_acknowledgement_was_late_is_counted() -> None:
    """Ten pauses: the client acknowledges 40 ms after the segment, and 0.05 ms are its own way."""
    late_ns = 40_000_000 - 50_000
    assert costs("findings/delayed-ack", "delayed-ack") == [(10, 10 * late_ns, 10 * late_ns)]


def test_a_lost_syn_costs_until_it_is_sent_again() -> None:
    """Frame 1 is the SYN, frame 2 its copy; the user waits for the whole of it."""
    ((count, cost_ns, critical_ns),) = costs("stalls/syn-rto-once-client", "syn-retransmission")
    with conchart.read(CAPTURES / "stalls" / "syn-rto-once-client" / "input.pcap", packets=True) as trace:
        first, second = trace.sql("SELECT seen_at FROM packets WHERE frame <= 2 ORDER BY frame").fetchall()
    assert (count, cost_ns, critical_ns) == (1, second[0] - first[0], second[0] - first[0])


def test_what_is_held_between_requests_is_waited_for() -> None:
    """Each of twenty requests is held behind a Finished, in idling: all of that is a user's wait."""
    ((count, cost_ns, critical_ns),) = costs("stalls/resumed-held-client", "nagle-delayed-ack")
    assert (count, critical_ns) == (20, cost_ns)


def test_a_queue_is_blamed_only_where_nothing_else_was_lost_in_those_seconds(tmp_path: Path) -> None:
    """A second capture, moved into the silence of the first: one with a loss, and one without."""
    alone = CAPTURES / "stalls" / "syn-rto-once-client" / "input.pcap"
    lossy, clean = (tmp_path / name for name in ("lossy.pcap", "clean.pcap"))
    for path, other in ((lossy, "rto-request-client"), (clean, "clean-wait-client")):
        path.write_bytes(beginning_with(CAPTURES / "stalls" / other / "input.pcap", alone))
    advice = {files: syn_advice(*files) for files in ((alone,), (alone, clean), (alone, lossy))}
    assert advice[alone,] == advice[alone, clean]
    assert "ListenOverflows" in advice[alone,]
    assert "ListenOverflows" not in advice[alone, lossy]
    assert advice[alone, lossy].startswith("look for loss on the path")


def syn_advice(*files: Path) -> str:
    with conchart.read(*files) as trace:
        ((advice,),) = trace.sql("SELECT advice FROM findings WHERE finding = 'syn-retransmission'").fetchall()
        return str(advice)


def beginning_with(path: Path, other: Path) -> bytes:
    """Give a capture with its packets moved so that it begins when another one does."""
    content, at = bytearray(path.read_bytes()), 24
    (first,), (begin,) = struct.unpack_from("<I", content, at), struct.unpack_from("<I", other.read_bytes(), at)
    while at < len(content):
        seconds, _, length = struct.unpack_from("<III", content, at)
        struct.pack_into("<I", content, at, seconds - first + begin)
        at += 16 + length
    return bytes(content)
