"""What strangers control: text in packets, key logs that somebody gave, files that change while they are read."""

import csv
import json
import os
import random
import re
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import conchart
from conchart.cli import main
from conchart.reading import bpf
from conchart.store.schema import TABLES
from tests.benchmarks.generate import generate
from tests.conftest import ROOT
from tests.laws.files import Format
from tests.laws.hello import Tls, application
from tests.laws.talk import Finish, Say, Talk, together

HOSTILE = "=1+1<script>alert(1)</script>\x1b[2J\x9b2J\u202e\ufeff"
CERTIFICATE = b"=X<script>\x1b[J"
"""Stands where the common name of tests.laws.hello's certificate does, and is as long."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a capture with hostile text wherever text can be: SNI, ALPN, certificate, method, target, Host."""
    tls = Tls(version="TLSv1.2", cipher=0xC02F, sni=HOSTILE, alpn=HOSTILE)
    assert len(CERTIFICATE) == len(b"conchart test")
    messages = [Say(who, data.replace(b"conchart test", CERTIFICATE)) for who, data in tls.messages()]
    assert any(CERTIFICATE in step.data for step in messages)
    encrypted = Talk(
        steps=[*messages, Say("client", application(300)), Say("server", application(900)), Finish("server")]
    )
    request = f"GET /{HOSTILE} HTTP/1.1\r\nHost: {HOSTILE}\r\n\r\n".encode()
    response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nServer: " + HOSTILE.encode() + b"\r\n\r\nok"
    plain = Talk(client=("10.0.0.6", 40_000), steps=[Say("client", request), Say("server", response)])
    path = tmp_path_factory.mktemp("hostile") / "input.pcap"
    path.write_bytes(Format().write(together([encrypted.packets(), plain.packets()])))
    return path


def texts(document: object) -> Iterator[str]:
    """Give every text of a JSON document."""
    if isinstance(document, dict | list):
        for value in document.values() if isinstance(document, dict) else document:
            yield from texts(value)
    elif isinstance(document, str):
        yield document


def has_controls(text: str) -> bool:
    return re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ufeff]", text) is not None


def test_hostile_text_is_in_the_tables_and_certificates_are_not(hostile: Path) -> None:
    with conchart.read(hostile) as trace:
        assert trace.sql("SELECT sni, certificates FROM handshakes").fetchall() == [(HOSTILE, 1)]
        assert HOSTILE in trace.sql("SELECT target || host FROM exchanges WHERE method = 'GET'").fetchall()[0][0]
        for table in TABLES:
            assert "=X<script>" not in str(trace.sql(f"FROM {table.name}").fetchall())


@pytest.mark.parametrize("args", [[], ["-v"], ["query", "FROM exchanges"], ["query", "FROM handshakes"]])
def test_hostile_text_does_nothing_to_a_terminal(
    hostile: Path, capfd: pytest.CaptureFixture[str], args: list[str]
) -> None:
    for form in ([], ["--format", "csv"], ["--format", "json"]) if args[:1] == ["query"] else ([],):
        with pytest.raises(SystemExit) as left:
            main([*args[:1], str(hostile), *args[1:], *form] if args[:1] == ["query"] else [str(hostile), *args])
        assert not left.value.code
        assert not has_controls(capfd.readouterr().out)


def test_hostile_text_does_nothing_in_files(hostile: Path, tmp_path: Path) -> None:
    with conchart.read(hostile, packets=True) as trace:
        for table in TABLES:
            path = tmp_path / f"{table.name}.csv"
            trace.write(path, table=table.name)
            with path.open(newline="", encoding="utf-8") as lines:
                cells = [cell for row in csv.reader(lines) for cell in row]
            assert not [cell for cell in cells if re.match(r"\s*[=+@]|\s*-\D", cell) or has_controls(cell)]
        trace.write(tmp_path / "out.txt")
        assert not has_controls((tmp_path / "out.txt").read_text())
        trace.write(tmp_path / "out.html")
        page = (tmp_path / "out.html").read_text(encoding="utf-8")
        assert "<script>alert" not in page
        assert "\x1b" not in page
        trace.write(tmp_path / "out.json")
        document = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
        assert document["handshakes"][0]["sni"] == HOSTILE, "for programs, exactly as sent"
        for name in ("out.har", "out.perfetto.json", "out.otlp.json"):
            trace.write(tmp_path / name)
            document = json.loads((tmp_path / name).read_text(encoding="utf-8"))
            assert any(HOSTILE in text for text in texts(document)), name


NAMES = st.sampled_from(
    [b"CLIENT_RANDOM", b"CLIENT_TRAFFIC_SECRET_0", b"SERVER_HANDSHAKE_TRAFFIC_SECRET", b"RSA", b"ECH_SECRET", b"", b"#"]
)
WORDS = st.one_of(
    st.sampled_from(
        [b"00" * 32, b"ab" * 48, b"AB" * 49, b"0", b"zz", b"Session-ID:00", b"Master-Key:00", b"Session-ID:"]
    ),
    st.binary(max_size=40),
    st.sampled_from([b"f" * 4095, b"0" * 10_000, b"\0" * 5_000]),
)
LINES = st.builds(
    lambda name, words, end: b" ".join([name, *words]) + end,
    NAMES,
    st.lists(WORDS, max_size=4),
    st.sampled_from([b"\n", b"\r\n", b"\r", b""]),
)
CAPTURE = ROOT / "captures/handshakes/curl-nginx-1.3-small/input.pcap"


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(LINES, max_size=12))
def test_a_key_log_of_any_bytes_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.keys"
    path.write_bytes(b"".join(lines))
    try:
        conchart.read(CAPTURE, keylog=path).close()
    except conchart.CaptureError as error:
        assert "contains no TLS secrets" in str(error)  # noqa: PT017  (either end is right)


def test_a_key_log_with_a_damaged_byte_gives_a_trace(tmp_path: Path) -> None:
    capture = next(path for path in sorted(ROOT.glob("captures/*/*/input.pcap")) if path.with_name("keys.log").exists())
    content = capture.with_name("keys.log").read_bytes()
    chance = random.Random(9)
    for _ in range(30):
        damaged = bytearray(content)
        for _ in range(chance.randint(1, 20)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        (tmp_path / "damaged.log").write_bytes(damaged)
        try:
            with conchart.read(capture, keylog=tmp_path / "damaged.log") as trace:
                assert trace.sql("SELECT count(*) FROM handshakes WHERE keys IS NOT NULL").fetchall() != [(0,)]
        except conchart.CaptureError as error:
            assert "contains no TLS secrets" in str(error)  # noqa: PT017


def test_a_key_log_of_many_megabytes_takes_no_memory_of_its_size(tmp_path: Path) -> None:
    lines = [f"CLIENT_RANDOM {number:064x} {'ab' * 48}\n" for number in range(50_000)]
    with (tmp_path / "large.log").open("w") as log:
        for _ in range(10):  # the same secrets again and again
            log.writelines(lines)
        log.write("\0" * 20_000_000)  # and one endless line
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with conchart.read(CAPTURE, keylog=tmp_path / "large.log") as trace:
        notes = trace.sql("SELECT notes FROM captures").fetchall()[0][0]
    assert any("is not 'LABEL CLIENT_RANDOM SECRET'" in note for note in notes)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000, "kilobytes, for a log of 100 MB"


PACKETS = 20_000
Change = Callable[[Path, Callable[[], object]], tuple[int, bool, list[str]]]


@pytest.fixture
def growing(tmp_path: Path) -> Path:
    """Make a capture that is larger than what is read of it at once."""
    path = tmp_path / "growing.pcap"
    generate("bulk", path, PACKETS)
    assert path.stat().st_size > 16 << 20
    return path


@pytest.fixture
def changed_while_read(monkeypatch: pytest.MonkeyPatch) -> Change:
    """Read a capture that changes after its first packet, when the core asks for the filter and waits for it.

    Gives its packets, whether it is said to be cut, its notes.
    """

    def changed(path: Path, change: Callable[[], object]) -> tuple[int, bool, list[str]]:
        def compile_filter(*_: object) -> list[tuple[int, int, int, int]]:
            change()
            return [(6, 0, 0, 262_144)]  # accept

        monkeypatch.setattr(bpf, "compile_filter", compile_filter)
        with conchart.read(path, filter="tcp") as trace:
            ((packets, truncated, notes),) = trace.sql("SELECT packets, truncated, notes FROM captures").fetchall()
        return packets, truncated, notes

    return changed


def test_a_capture_that_grows_is_read_to_its_new_end(growing: Path, changed_while_read: Change) -> None:
    content = growing.read_bytes()
    with conchart.read(growing) as trace:
        (before,) = trace.sql("SELECT packets FROM captures").fetchall()[0]

    def grow() -> None:
        with growing.open("ab") as file:
            file.write(content[24:])

    packets, truncated, _ = changed_while_read(growing, grow)
    assert (packets, truncated) == (2 * before, False)


def test_a_capture_that_is_cut_while_it_is_read_says_so(growing: Path, changed_while_read: Change) -> None:
    size = growing.stat().st_size
    packets, truncated, notes = changed_while_read(growing, lambda: os.truncate(growing, size - 777))
    assert 0 < packets < PACKETS
    assert truncated
    assert re.search("cut|ends|truncated", notes[0])


def test_a_capture_that_is_emptied_while_it_is_read_ends_there(growing: Path, changed_while_read: Change) -> None:
    packets, *_ = changed_while_read(growing, lambda: os.truncate(growing, 0))
    assert 0 < packets < PACKETS


def test_a_capture_that_is_replaced_while_it_is_read_is_read_as_it_was(
    growing: Path, changed_while_read: Change, tmp_path: Path
) -> None:
    def replace() -> None:
        (tmp_path / "other").write_bytes(b"something else")
        os.replace(tmp_path / "other", growing)

    with conchart.read(growing) as trace:
        (before,) = trace.sql("SELECT packets FROM captures").fetchall()[0]
    assert changed_while_read(growing, replace)[:2] == (before, False)
