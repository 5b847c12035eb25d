"""Whatever a capture's clock does, every connection is tiled and every duration is one."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path

import dpkt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import conchart
from conchart.outputs import PACKET_BY_PACKET, SUFFIXES
from conchart.report.axis import captured_ns, time_axis
from tests.conftest import ROOT
from tests.laws.files import Format
from tests.laws.hello import Tls, application
from tests.laws.reading import Scratch, Tables
from tests.laws.strategies import Conversation, conversations
from tests.laws.talk import Finish, Packet, Say, Talk
from tests.laws.test_tiling import assert_tiled

LATEST = 2**62 - 1
"""Nanoseconds between 1970 and the last instant that conchart knows, and the first one."""
YEAR_NS = 31_557_600 * 10**9
NANOSECONDS = Format(container="pcapng", resolution_ns=1)
EXTREMES = st.sampled_from((-(2**63), -(2**62), -(2**62) + 1, -1, 0, 1, 2**62 - 1, 2**62, 2**63 - 1))
STEPS = st.one_of(st.integers(-(10**9), 10**9), st.integers(-(2**61), 2**61))


def assert_sound(tables: Tables) -> None:
    """What holds whatever the times are."""
    assert_tiled(tables)
    (capture,) = tables.captures
    for row in tables.packets:
        assert -LATEST <= capture["first_at"] <= row["seen_at"] <= capture["last_at"] <= LATEST
    for table in (tables.connections, tables.handshakes, tables.exchanges):
        for row in table:
            assert all(value is None or value >= 0 for name, value in row.items() if name.endswith("_ns"))
    for row in tables.handshakes:
        ends = [row[name] for name in ("ready_at", "complete_at") if row[name] is not None]
        assert row["hello_at"] is None or all(end >= row["hello_at"] for end in ends)


@given(conversations(), st.lists(EXTREMES, min_size=1, max_size=8))
def test_times_at_the_ends_of_64_bits_break_nothing(
    scratch: Scratch, conversation: Conversation, times: list[int]
) -> None:
    played = conversation.talk.packets()
    packets = [replace(packet, at=times[number % len(times)]) for number, packet in enumerate(played)]
    if packets:
        assert_sound(scratch.read(NANOSECONDS.write(packets)))


@given(conversations(), st.lists(st.tuples(st.integers(0, 40), STEPS), min_size=1, max_size=4))
def test_a_clock_that_is_set_while_it_runs_breaks_nothing(
    scratch: Scratch, conversation: Conversation, steps: list[tuple[int, int]]
) -> None:
    def shown(number: int, at: int) -> int:
        return at + sum(by for when, by in steps if number >= when)

    packets = [
        replace(packet, at=shown(number, packet.at)) for number, packet in enumerate(conversation.talk.packets())
    ]
    if packets:
        assert_sound(scratch.read(NANOSECONDS.write(packets)))


def handshake(step_ns: int) -> list[Packet]:
    """A connection whose clock is set by ``step_ns`` between the two hellos."""
    tls = Tls(version="TLSv1.2", cipher=0xC02F)
    messages = [Say(who, data) for who, data in tls.messages()]
    talk = Talk(steps=[*messages, Say("client", application(100)), Say("server", application(900)), Finish("client")])
    hello = next(number for number, packet in enumerate(talk.packets()) if packet.payload)
    return [
        replace(packet, at=packet.at + step_ns if number > hello else packet.at)
        for number, packet in enumerate(talk.packets())
    ]


def test_a_handshake_in_which_the_clock_is_set_back_takes_no_time_and_says_so(scratch: Scratch) -> None:
    tables = scratch.read(NANOSECONDS.write(handshake(-900_000_000)))
    (row,) = tables.handshakes
    assert row["ready_at"] == row["complete_at"] == row["hello_at"]
    assert tables.captures[0]["notes"] == [
        "stream 0: the clock steps back during a TLS handshake; the step is not counted as time"
    ]
    assert not scratch.read(NANOSECONDS.write(handshake(0))).captures[0]["notes"]


@pytest.mark.parametrize("odd", [2, -1], ids=["amid", "last"])
@pytest.mark.parametrize("years", [-54, 20])
def test_a_frame_of_another_decade_stretches_nothing(scratch: Scratch, years: int, odd: int) -> None:
    packets = Talk(steps=[Say("client", b"GET / HTTP/1.1\r\n\r\n"), Finish("client"), Finish("server")]).packets()
    plain = scratch.read(NANOSECONDS.write(packets))
    frame = range(len(packets))[odd] + 1
    packets[odd] = replace(packets[odd], at=packets[odd].at + years * YEAR_NS)
    tables = scratch.read(NANOSECONDS.write(packets))
    assert_sound(tables)
    seen = [row["seen_at"] for row in plain.packets]
    seen[odd] = seen[odd - 1]
    assert [row["seen_at"] for row in tables.packets] == seen
    assert tables.captures[0]["last_at"] == max(seen)
    way = "before" if years < 0 else "after"
    (note,) = tables.captures[0]["notes"]
    assert note.startswith(f"frame {frame} is dated {abs(years)} years {way} the frame ahead of it: the clock stepped,")


@pytest.mark.parametrize("back_ns", [10**9, 3_600 * 10**9])
def test_a_clock_that_is_set_back_before_the_beginning_of_a_connection_stands_still(
    scratch: Scratch, back_ns: int
) -> None:
    messages = [Say("client", b"GET / HTTP/1.1\r\n\r\n"), Say("server", b"HTTP/1.1 204 No Content\r\n\r\n")]
    packets = Talk(steps=[*messages, *messages, *messages, Finish("client"), Finish("server")]).packets()
    plain = scratch.read(NANOSECONDS.write(packets))
    frame = plain.exchanges[2]["request_frame"]
    shown = [replace(packet, at=packet.at - (back_ns if n >= frame else 0)) for n, packet in enumerate(packets, 1)]
    tables = scratch.read(NANOSECONDS.write(shown))
    assert_sound(tables)
    (connection,) = tables.connections
    for row, exchange in zip(plain.exchanges, tables.exchanges, strict=True):
        assert connection["opened_at"] <= exchange["request_at"] <= exchange["response_at"] <= connection["closed_at"]
        assert exchange["wait_ns"] == row["wait_ns"]
    assert any("the clock was set back" in note for note in tables.captures[0]["notes"])


def test_what_follows_a_clock_that_was_set_is_counted_on(tmp_path: Path) -> None:
    packets = Talk(steps=[Say("client", b"GET / HTTP/1.1\r\n\r\n"), Finish("client"), Finish("server")]).packets()
    begun = packets[0].at
    shown = [
        replace(packet, at=packet.at - begun + (50 * YEAR_NS if number > 2 else 0))
        for number, packet in enumerate(packets)
    ]
    path = tmp_path / "input.pcapng"
    path.write_bytes(NANOSECONDS.write(shown))
    with conchart.read(path) as trace:
        ((span, notes),) = trace.sql("SELECT last_at - first_at, notes FROM captures").fetchall()
    pause = packets[3].at - packets[2].at
    assert (span, len(notes)) == (packets[-1].at - begun - pause, 1)
    with conchart.read(path, start="1s", end="1h") as trace:
        assert trace.sql("SELECT selected FROM captures").fetchall() == [(0,)]


def joined(*begun: int) -> list[Packet]:
    """A conversation at each of these instants, in one file."""
    messages = [Say("client", b"GET / HTTP/1.1\r\n\r\n"), Say("server", b"HTTP/1.1 204 No Content\r\n\r\n")]
    packets = []
    for number, at in enumerate(begun):
        talk = Talk(
            client=("10.0.0.5", 40_000 + number), steps=[*messages, Finish("client"), Finish("server")]
        ).packets()
        packets += [replace(packet, at=packet.at - talk[0].at + at) for packet in talk]
    return packets


@pytest.mark.parametrize("years", [-21, 4, 21])
def test_captures_of_different_years_in_one_file_keep_their_dates(tmp_path: Path, years: int) -> None:
    first = 40 * YEAR_NS
    begun = (first, first + 10**7, first + years * YEAR_NS)
    path = tmp_path / "input.pcapng"
    path.write_bytes(NANOSECONDS.write(joined(*begun)))
    with conchart.read(path) as trace:
        assert trace.sql("SELECT opened_at FROM connections ORDER BY stream").fetchall() == [(at,) for at in begun]
        ((span, first_at, longest),) = trace.sql(
            "SELECT last_at - first_at, first_at, (SELECT max(closed_at - opened_at) FROM connections) FROM captures"
        ).fetchall()
        assert first_at == min(begun)
        assert span > abs(years) * YEAR_NS > longest
        for suffix, name, scale in ((".har", "startedDateTime", 0), (".otlp.json", "startTimeUnixNano", 1)):
            out = tmp_path / f"out{suffix}"
            trace.write(out)
            texts = re.findall(rf'"{name}": ?"([^"]+)"', out.read_text())
            dates = {int(text) for text in texts} if scale else {_instant(text) for text in texts}
            assert set(begun) <= dates
        out = tmp_path / "out.perfetto.json"
        trace.write(out)
        document = json.loads(out.read_text())
        origin = int(document["otherData"]["start_at"])
        drawn = {event["ts"] for event in document["traceEvents"] if event["ph"] == "X"}
        assert {(at - origin) // 1000 for at in begun} <= drawn
        axis = time_axis(trace)
        (fold,) = axis.folds
        assert fold.says == f"{abs(years)} years left out"
        assert axis.span < 10 * sum(
            took for (took,) in trace.sql("SELECT closed_at - opened_at FROM connections").fetchall()
        )
        placed = [at for (at,) in trace.sql(f"SELECT {axis.place('opened_at')} FROM connections ORDER BY 1").fetchall()]
        assert placed == [axis.at(at) for at in sorted(begun)]
        assert placed[0] == 0 < placed[-1] < axis.span
        assert captured_ns(trace) > abs(years) * YEAR_NS > axis.span


def _instant(text: str) -> int:
    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 10**6) * 1000


def test_bounds_are_dates_of_the_file(tmp_path: Path) -> None:
    begun = (40 * YEAR_NS, 61 * YEAR_NS)
    path = tmp_path / "input.pcapng"
    path.write_bytes(NANOSECONDS.write(joined(*begun)))
    since = datetime.fromtimestamp(60 * YEAR_NS / 10**9, tz=timezone.utc).isoformat()
    with conchart.read(path, start=since) as trace:
        assert trace.sql("SELECT opened_at FROM connections").fetchall() == [(begun[1],)]


def test_a_silence_of_nine_years_is_one(scratch: Scratch) -> None:
    packets = Talk(steps=[Say("client", b"x")]).packets()
    packets[-1] = replace(packets[-1], at=packets[-1].at + 9 * YEAR_NS)
    (capture,) = scratch.read(NANOSECONDS.write(packets)).captures
    assert (capture["last_at"], capture["notes"]) == (packets[-1].at, [])


@pytest.mark.skipif("CONCHART_CORPUS" not in os.environ, reason="CONCHART_CORPUS is not set")
@pytest.mark.parametrize(
    "name", ["proxydet__stowaway-socks5_nopass-socks5_https1-relay.pcap", "wsnotes__tls-imap-ssl.pcapng"]
)
def test_captures_with_a_frame_of_another_decade_last_a_minute_at_most(name: str) -> None:
    with conchart.read(Path(os.environ["CONCHART_CORPUS"]) / name) as trace:
        ((span, longest),) = trace.sql(
            "SELECT max(last_at) - min(first_at), (SELECT max(end_at - start_at) FROM phases) FROM captures"
        ).fetchall()
    assert 0 < longest <= span < 60 * 10**9


TIMES = pytest.mark.parametrize("times", [(-(2**63), 0, 5), (2**63 - 1, 0, 5), (0, 2**62, -(2**62))], ids=str)


@pytest.mark.parametrize("suffix", [suffix for suffix in SUFFIXES if suffix not in PACKET_BY_PACKET])
@TIMES
@pytest.mark.thorough
def test_every_format_is_written_whatever_the_clock_shows(
    tmp_path: Path, times: tuple[int, int, int], suffix: str
) -> None:
    packets = [
        replace(packet, at=times[number % 3])
        for port in range(40_000, 40_008)
        for number, packet in enumerate(Talk(client=("10.0.0.5", port), steps=[Say("client", b"x")]).packets())
    ]
    capture, out = tmp_path / "input.pcapng", tmp_path / f"out{suffix}"
    capture.write_bytes(NANOSECONDS.write(packets))
    with conchart.read(capture) as trace:
        trace.write(out)
        ((notes,),) = trace.sql("SELECT notes FROM captures").fetchall()
    assert out.stat().st_size > 0
    if suffix == ".duckdb":
        with conchart.Trace.load(out) as again:
            assert again.connections.count("*").fetchall() == [(8,)]
    assert any("impossible time stamp" in note for note in notes)


@pytest.mark.parametrize("suffix", sorted(PACKET_BY_PACKET))
@TIMES
def test_a_qlog_is_written_whatever_the_clock_shows(tmp_path: Path, times: tuple[int, int, int], suffix: str) -> None:
    with (ROOT / "captures/http3/one/input.pcap").open("rb") as file:
        frames = [(times[number % 3], frame) for number, (_, frame) in enumerate(dpkt.pcap.Reader(file))]
    capture, out = tmp_path / "input.pcapng", tmp_path / f"out{suffix}"
    form = replace(NANOSECONDS, link="raw")
    capture.write_bytes(form.pack(b"".join(form.of_frames(frames))))
    with conchart.read(capture, keylog=ROOT / "captures/http3/one/keys.log", packets=True) as trace:
        trace.write(out)
        seen = {at for (at,) in trace.sql("SELECT seen_at FROM packets").fetchall()}
    shown = [Decimal(time) for time in re.findall(r'"time": (-?[0-9.]+)', out.read_text())]
    assert shown
    assert {time * 10**6 for time in shown} <= seen
