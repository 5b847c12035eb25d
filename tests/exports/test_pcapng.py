"""pcapng with comments: the same packets, as tshark reads them, and what is said of each at its place."""

import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import conchart
from conchart import CaptureError, Trace, UsageError, _native
from conchart.labels.phases import PHASES
from conchart.reading.selection import parse_selection, selection
from tests.conftest import ROOT, is_sample, name_of
from tests.tshark import ask, needs_tshark

CAPTURES = ROOT / "captures"
SMALL = CAPTURES / "reverse-proxy/https-no-keepalive/input.pcap"
EVERY = sorted(CAPTURES.glob("*/*/input.pcap*"))
SAMPLE = [path for path in EVERY if is_sample(name_of(path.parent), 60)]

FACTS = ("number", "time_epoch", "len", "cap_len", "encap_type", "md5_hash")


def frames(path: Path, *more: str) -> list[dict[str, str]]:
    """Give tshark's facts of each frame."""
    names = [*FACTS, *more]
    fields = [argument for name in names for argument in ("-e", f"frame.{name}")]
    text = ask(["-n", "-r", path, "-o", "frame.generate_md5_hash:TRUE", "-T", "fields", *fields])
    return [dict(zip(names, line.split("\t"), strict=True)) for line in text.splitlines()]


def facts(path: Path) -> list[dict[str, str]]:
    return [{name: frame[name] for name in FACTS} for frame in frames(path)]


def comments(path: Path) -> dict[int, str]:
    return {int(frame["number"]): frame["comment"] for frame in frames(path, "comment") if frame["comment"]}


def annotate(
    captures: list[tuple[Path, int]], output: Path, texts: list[tuple[int, str]], count: int | None = None
) -> list[tuple[int, int]]:
    """Have the core copy, with these comments."""
    batches: Iterator[list[tuple[int, str]]] = iter([texts[:3], texts[3:]] if texts else [])
    return _native.annotate_captures(
        [(str(path), most) for path, most in captures],
        str(output),
        lambda: next(batches, []),
        compile_filter=None,
        start=None,
        end=None,
        start_relative=False,
        end_relative=False,
        count=count,
    )


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("pcapng") / "out.pcapng"
    with conchart.read(SMALL) as trace:
        trace.write(output)
    return output


@needs_tshark
def test_every_packet_is_the_same_and_has_its_number(annotated: Path) -> None:
    assert facts(annotated) == facts(SMALL)


@needs_tshark
@pytest.mark.parametrize("capture", SAMPLE, ids=lambda path: path.parent.name)
def test_packets_of_all_kinds_of_captures_are_the_same(capture: Path, tmp_path: Path) -> None:
    before = facts(capture)
    texts = [(number, f"said of {number}") for number in range(1, len(before) + 1, 3)]
    annotate([(capture, len(before))], tmp_path / "out.pcapng", texts)
    assert facts(tmp_path / "out.pcapng") == before
    expected = comments(capture)
    for number, ours in texts:
        expected[number] = ",".join(filter(None, [expected.get(number), ours]))
    assert comments(tmp_path / "out.pcapng") == expected


@needs_tshark
def test_phases_are_told_where_they_begin_and_end(annotated: Path) -> None:
    texts = comments(annotated)
    with conchart.read(SMALL) as trace:
        phases = trace.sql("SELECT stream, kind, start_frame, end_frame FROM phases").fetchall()
        handshakes = trace.sql("SELECT hello_frame, server_hello_frame, ready_frame FROM handshakes").fetchall()
        found = trace.sql("SELECT finding, unnest(frames) FROM findings").fetchall()
    titles = {phase.name: phase.title for phase in PHASES}
    for stream, kind, start, end in phases:
        assert f"connection {stream}: " in texts[start]
        assert f"{titles[kind]} begins here" in texts[start]
        assert f"{titles[kind]} ends here: " in texts[end]
    assert len(handshakes) == 3
    for hello, server_hello, ready in handshakes:
        assert "ClientHello" in texts[hello]
        assert "ServerHello (TLSv1.3, TLS_AES_256_GCM_SHA384" in texts[server_hello]
        assert "from here on the client may send its first request: " in texts[ready]
    assert found
    for finding, frame in found:
        assert f"conchart: finding {finding} (" in texts[frame]
    commented = {frame for *_, start, end in phases for frame in (start, end)} | {frame for _, frame in found}
    with conchart.read(SMALL) as trace:
        commented |= {f for row in trace.sql("SELECT start_frame, end_frame FROM stalls").fetchall() for f in row}
    assert set(texts) == commented | {frame for row in handshakes for frame in row}


@needs_tshark
def test_stalls_are_told_where_they_begin_and_end(tmp_path: Path) -> None:
    with conchart.read(CAPTURES / "stalls/rto-tail-server/input.pcap") as trace:
        ((start, end),) = trace.sql("SELECT start_frame, end_frame FROM stalls WHERE kind = 'rto'").fetchall()
        trace.write(tmp_path / "out.pcapng")
    texts = comments(tmp_path / "out.pcapng")
    assert "stall begins here: " in texts[start]
    assert "stall ends here: lost for " in texts[end]


@needs_tshark
def test_only_packets_that_were_chosen_are_copied_and_comments_stay_with_theirs(tmp_path: Path) -> None:
    output = tmp_path / "out.pcapng"
    with conchart.read(SMALL, filter="port 443", start="10ms", count=30) as trace:
        (selected,), *_ = trace.sql("SELECT sum(selected) FROM captures").fetchall()
        phases = trace.sql("SELECT start_frame, kind FROM phases").fetchall()
        trace.write(output)
        trace.write(tmp_path / "saved.duckdb")
    copied = frames(output, "comment")
    assert len(copied) == selected == 30
    numbers = {frame["md5_hash"] + frame["time_epoch"]: int(frame["number"]) for frame in facts(SMALL)}
    texts = {numbers[frame["md5_hash"] + frame["time_epoch"]]: frame["comment"] for frame in copied}
    titles = {phase.name: phase.title for phase in PHASES}
    for frame, kind in phases:
        assert f"{titles[kind]} begins here" in texts[frame]
    with Trace.load(tmp_path / "saved.duckdb") as again:
        again.write(tmp_path / "again.pcapng")
    assert (tmp_path / "again.pcapng").read_bytes() == output.read_bytes()


@needs_tshark
def test_several_captures_become_one_file_whose_frames_count_on(tmp_path: Path) -> None:
    other = CAPTURES / "reverse-proxy/http/input.pcap"
    with conchart.read(SMALL, other) as trace:
        trace.write(tmp_path / "out.pcapng")
        (first,), *_ = trace.sql(
            "SELECT min(start_frame) FROM phases JOIN connections USING (stream) WHERE capture = 1"
        ).fetchall()
    one, two = facts(SMALL), facts(other)
    joined = one + [{**frame, "number": str(len(one) + int(frame["number"]))} for frame in two]
    assert facts(tmp_path / "out.pcapng") == joined
    assert first > len(one)
    assert "TCP handshake begins here" in comments(tmp_path / "out.pcapng")[first]


def block(kind: int, body: bytes, order: str) -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(f"{order}I", 12 + len(body))
    return struct.pack(f"{order}I", kind) + length + body + length


def option(code: int, value: bytes, order: str) -> bytes:
    return struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4)


KEYS = b"CLIENT_RANDOM " + b"00" * 32 + b" " + b"11" * 48 + b"\n"


def pcapng(order: str) -> bytes:
    """Write a bit of everything: comments, flags, secrets after the packets, a journal entry, statistics."""
    end = bytes(4)
    section = struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, 1234) + option(4, b"a program", order) + end
    interface = struct.pack(f"{order}HHI", 1, 0, 0) + option(2, b"eth9", order) + option(9, b"\x09", order) + end

    def packet(number: int, options: bytes) -> bytes:
        data = bytes([number]) * (60 + number)
        head = struct.pack(f"{order}IIIII", 0, 0x17AABBCC, number, len(data), len(data) + 5)
        return block(6, head + data + bytes(-len(data) % 4) + options, order)

    secrets = struct.pack(f"{order}II", 0x544C534B, len(KEYS)) + KEYS
    return b"".join(
        (
            block(0x0A0D0D0A, section, order),
            block(1, interface, order),
            packet(1, option(1, b"theirs", order) + option(2, struct.pack(f"{order}I", 1), order) + end),
            packet(2, b""),
            block(9, b"__REALTIME_TIMESTAMP=1\n", order),
            packet(3, option(1, b"no end", order)),
            block(10, secrets, order),
            block(5, struct.pack(f"{order}III", 0, 0, 0) + option(5, struct.pack(f"{order}Q", 7), order) + end, order),
        )
    )


@needs_tshark
@pytest.mark.parametrize("order", ["<", ">"])
def test_what_a_pcapng_file_had_besides_survives(order: str, tmp_path: Path) -> None:
    capture, output = tmp_path / "in.pcapng", tmp_path / "out.pcapng"
    capture.write_bytes(pcapng(order))
    texts = [(1, "ours"), (1, "and ours"), (2, "second"), (4, "fourth")]
    assert annotate([(capture, 3)], output, texts) == [(3, 61 + 62 + 63 + 15)]
    assert facts(output) == facts(capture)
    assert comments(output) == {1: "theirs,ours,and ours", 2: "second", 4: "no end,fourth"}
    for part in (b"a program", b"eth9", KEYS, b"__REALTIME_TIMESTAMP=1\n"):
        assert part in output.read_bytes()
    with conchart.read(output) as trace:
        assert trace.sql("SELECT dropped FROM captures").fetchall() == [(7,)]


def test_without_comments_nothing_changes_but_the_length_of_the_section(tmp_path: Path) -> None:
    capture, output = tmp_path / "in.pcapng", tmp_path / "out.pcapng"
    capture.write_bytes(pcapng("<"))
    annotate([(capture, 3)], output, [])
    before = bytearray(capture.read_bytes())
    before[16:24] = b"\xff" * 8
    assert output.read_bytes() == before


def test_a_file_that_grew_gives_what_was_read_of_it(tmp_path: Path) -> None:
    capture, output = tmp_path / "in.pcapng", tmp_path / "out.pcapng"
    capture.write_bytes(pcapng("<"))
    assert annotate([(capture, 2)], output, []) == [(2, 61 + 62 + 10)]
    with conchart.read(output) as trace:
        assert trace.sql("SELECT packets FROM captures").fetchall() == [(2,)]


@needs_tshark
def test_damage_ends_the_file_after_what_was_kept(tmp_path: Path) -> None:
    capture, output = tmp_path / "cut.pcap", tmp_path / "out.pcapng"
    capture.write_bytes(SMALL.read_bytes()[:5000])
    with conchart.read(capture) as trace:
        (packets,), *_ = trace.sql("SELECT packets FROM captures WHERE truncated").fetchall()
        trace.write(output)
    assert facts(output) == facts(SMALL)[:packets]


def test_compressed_captures_are_copied_too(tmp_path: Path, annotated: Path) -> None:
    packed = tmp_path / "in.pcap.gz"
    packed.write_bytes(subprocess.run(["gzip", "-c", SMALL], capture_output=True, check=True).stdout)
    with conchart.read(packed) as trace:
        trace.write(tmp_path / "out.pcapng")
    assert (tmp_path / "out.pcapng").read_bytes() == annotated.read_bytes()


@needs_tshark
def test_hostile_text_moves_no_cursor_and_names_stay_out_where_they_are_not_wanted(tmp_path: Path) -> None:
    output = tmp_path / "out.pcapng"
    with conchart.read(SMALL) as trace:
        trace.execute("UPDATE handshakes SET sni = 'a\x1b[2J\u202e' || repeat('x', 70000)")
        trace.write(output)
        assert b"a\x1b[2J" not in output.read_bytes()
        assert "\u202e".encode() not in output.read_bytes()
        (hello,) = (text for text in comments(output).values() if "connection 0: ClientHello" in text)
        assert "ClientHello (a\ufffd[2J\ufffdxxx" in hello
        assert len(hello) < 600
        trace.write(output, options=conchart.DrawOptions(names=False))
        assert all("xxx" not in text for text in comments(output).values())


def refused(write: Callable[[], None]) -> str:
    with pytest.raises((UsageError, CaptureError)) as caught:
        write()
    return str(caught.value)


def test_what_cannot_be_read_again_is_said(tmp_path: Path) -> None:
    capture, output = tmp_path / "in.pcap", tmp_path / "out.pcapng"
    shutil.copy(SMALL, capture)
    with conchart.read(capture) as trace:
        own = tmp_path / "hard.pcapng"
        own.hardlink_to(capture)
        assert "this is the same file as the input" in refused(lambda: trace.write(own))
        trace.write(tmp_path / "saved.duckdb")
        capture.write_bytes(SMALL.read_bytes()[:-200])
        assert "has changed since it was read" in refused(lambda: trace.write(output))
        capture.unlink()
    with Trace.load(tmp_path / "saved.duckdb") as saved:
        message = refused(lambda: saved.write(output))
        assert "no such file" in message
        assert "put the file back" in message
        saved.execute("UPDATE captures SET path = '-'")
        assert "standard input can be read only once" in refused(lambda: saved.write(output))
        saved.execute(f"UPDATE captures SET path = '{SMALL}', selection = '-f'")
        assert "cannot read how packets were chosen" in refused(lambda: saved.write(output))
    assert not output.exists()


@pytest.mark.parametrize(
    "chosen",
    [
        (None, None, None, None),
        ("host 10.0.0.5 and (port 443 or port 'x')", "2.5", None, 7),
        (None, "@1700000000.000000001", "2026-11-20T23:15:00Z", None),
    ],
)
def test_a_choice_of_packets_is_read_as_it_was_written(
    chosen: tuple[str | None, str | None, str | None, int | None],
) -> None:
    wanted = selection(*chosen)
    assert parse_selection(str(wanted)) == wanted
