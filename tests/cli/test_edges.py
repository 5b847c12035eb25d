"""Numbers that nothing can have, and what is no file: refused at once, in words, with an exit code, no traceback."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import conchart
from conchart.analysis.findings.rule import chosen_thresholds, thresholds
from conchart.errors import CaptureError, UsageError
from conchart.labels.units import parse_when
from conchart.reading.live.growing import Followed
from conchart.store.memory import table_limit
from tests.cli.test_cli import Run, run
from tests.conftest import ROOT

__all__ = ["run"]  # a fixture

CAPTURE = str(ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap")
LONGEST = "9" * 5000
"""More digits than Python reads as a number."""


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.parametrize("stream", [1 << 31, 1 << 32, 1 << 64, 10**40])
def test_a_number_that_no_connection_has_is_answered_with_those_there_are(run: Run, stream: int) -> None:
    code, out, err = run("explain", CAPTURE, str(stream))
    assert (code, out) == (2, "")
    assert err == f"conchart: no connection {stream}: its connections are 0 to 5\n"


@pytest.mark.parametrize("value", ["9" * 40, "-" + "9" * 40, "-1", "1e19", "-0.1"])
def test_a_threshold_that_nothing_can_have_is_refused(run: Run, value: str) -> None:
    code, out, err = run(CAPTURE, "--threshold", f"scan_least={value}")
    assert (code, out) == (2, "")
    assert err.startswith("conchart: the threshold scan_least cannot be ")
    assert err.endswith(": give a number from 0 to 1000000000000000000\n")


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400", LONGEST, "", "0x10"])
def test_a_threshold_that_is_no_number_is_refused(run: Run, value: str) -> None:
    code, _, err = run(CAPTURE, "--threshold", f"scan_least={value}")
    assert (code, err.startswith("conchart: cannot read the threshold ")) == (2, True)


def test_large_thresholds_are_multiplied_as_large_numbers(run: Run) -> None:
    billion = "1000000000"
    assert run(CAPTURE, "--threshold", f"idle_spread={billion}", "--threshold", f"idle_least_ns={billion}")[0] == 0


def test_from_python_a_stream_that_nothing_can_have_is_refused() -> None:
    for stream in (-1, 2**31):
        with pytest.raises(UsageError, match="explain: a stream is a number from 0 to 2,147,483,647"):
            conchart.read(CAPTURE, explain=stream)


def test_a_threshold_has_a_name(run: Run) -> None:
    assert run(CAPTURE, "--threshold", "=3")[2].startswith("conchart: cannot read the threshold '=3': ")


def test_from_python_a_threshold_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(UsageError, match="the threshold scan_least cannot be nan"):
        chosen_thresholds({"scan_least": float("nan")})


@pytest.mark.parametrize("value", [0, 1e18])
def test_what_a_threshold_may_be_no_rule_stumbles_over(value: float) -> None:
    with conchart.read(CAPTURE, thresholds=dict.fromkeys(thresholds(), value)) as trace:
        assert trace.sql("SELECT count(*) FROM connections").fetchall() != [(0,)]


@pytest.mark.parametrize(
    ("time", "words"),
    [
        ("0001-01-01T00:00:00Z", "before the year 1677, where 64 bits of nanoseconds begin"),
        ("@" + "9" * 40, "after the year 2262, where 64 bits of nanoseconds end"),
        ("9" * 40, "after the year 2262, where 64 bits of nanoseconds end"),
        (LONGEST, "cannot read the time"),
        ("@" + LONGEST, "cannot read the time"),
        ("nan", "cannot read the time"),
        ("2026-11-20T23:15:00+99:99", "a zone is less than 24 hours away from UTC"),
    ],
)
@pytest.mark.parametrize("option", ["-s", "-e"])
def test_a_time_that_no_packet_has_is_refused(run: Run, option: str, time: str, words: str) -> None:
    code, out, err = run(CAPTURE, option, time)
    assert (code, out) == (2, "")
    assert words in err


def test_the_first_and_the_last_instant_can_be_told() -> None:
    assert parse_when("@9223372036.854775807").ns == (1 << 63) - 1
    with pytest.raises(UsageError, match="2262"):
        parse_when("@9223372036.854775808")


@pytest.mark.parametrize("start", [1 << 63, -(1 << 63) - 1])
def test_from_python_too_a_time_has_64_bits(start: int) -> None:
    with pytest.raises(UsageError, match="64 bits of nanoseconds"):
        conchart.read(CAPTURE, start=start)


def test_more_memory_than_there_can_be_is_all_there_is(run: Run) -> None:
    assert table_limit("999999999999999TB") == table_limit(10**40) == 1 << 60
    code, _, err = run(CAPTURE, "--memory", "999999999999999TB")
    assert (code, err) == (0, "")


@pytest.mark.parametrize("duration", ["0", "0s", "0ms", "0.0"])
def test_a_capture_lasts_longer_than_no_time(run: Run, duration: str) -> None:
    code, out, err = run("live", "-i", "lo", "-d", duration)
    assert (code, out) == (2, "")
    assert (
        err
        == f"conchart: -d {duration}: the duration must be longer than 0 (30s); without -d, Ctrl-C ends the capture\n"
    )


def test_a_pipe_among_findings_is_not_waited_for(run: Run, folder: Path) -> None:
    os.mkfifo(folder / "a.md")
    message = f"conchart: {folder / 'a.md'} is not a file: a rule is a Markdown file\n"
    assert run(CAPTURE, "--findings", str(folder)) == (2, "", message)


def test_a_device_among_findings_is_not_read(run: Run, folder: Path) -> None:
    (folder / "a.md").symlink_to("/dev/zero")
    code, _, err = run("findings", "--findings", str(folder))
    assert (code, err) == (2, f"conchart: {folder / 'a.md'} is not a file: a rule is a Markdown file\n")


def test_a_file_too_large_for_a_finding_is_not_read(run: Run, folder: Path) -> None:
    with (folder / "a.md").open("wb") as file:
        file.truncate(1 << 40)
    code, _, err = run("findings", "--findings", str(folder))
    assert (code, err) == (2, f"conchart: {folder / 'a.md'} has 1.10 TB: a rule has at most 1.00 MB\n")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_device_is_no_key_log(run: Run, device: str) -> None:
    code, _, err = run(CAPTURE, "--keylog", device)
    assert code == 3
    assert err.startswith(f"conchart: {device}: ")
    assert "is a device, which may never end: a key log is a file or a pipe" in err


def test_a_pipe_is_not_followed(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(CaptureError, match="only a regular file can be followed"):
        Followed(folder / "pipe")


def test_what_prepares_the_page_says_nothing_when_the_process_ends(folder: Path) -> None:
    (folder / "bad.md").write_text("nonsense\n")
    command = [CAPTURE, "-w", str(folder / "x.html"), "--findings", str(folder)]
    done = subprocess.run(
        [sys.executable, "-c", f"from conchart.cli import main; main({command})"], capture_output=True
    )
    assert done.returncode == 2
    assert done.stderr.decode().splitlines() == [
        f"conchart: {folder / 'bad.md'}:1: a finding begins with front matter between two lines of ---"
    ]
