"""Standard output that is full, closed or gone, and standard error that takes nothing: never a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.generate import generate
from tests.conftest import ROOT

COMMAND = Path(sys.executable).with_name("conchart")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
CAPTURE = ROOT / "captures/handshakes/curl-nginx-1.3-small/input.pcap"
COMMANDS = {
    "summary": f"'{CAPTURE}'",
    "-w -": f"'{CAPTURE}' -w -",
    "Wrote": f"'{CAPTURE}' -w out.txt",
    "query": f"query '{CAPTURE}' 'FROM phases'",
    "csv": f"query '{CAPTURE}' 'FROM phases' --format csv",
    "json": f"query '{CAPTURE}' 'FROM phases' --format json",
    "--help": "--help",
    "query --help": "query --help",
    "--version": "--version",
}

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk")


def shell(tmp_path: Path, line: str) -> tuple[int, str]:
    """Run ``conchart`` with redirections as bash knows them; gives the exit code and standard error."""
    done = subprocess.run(
        ["bash", "-c", f"'{COMMAND}' {line}"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_output_that_cannot_be_written_is_4(tmp_path: Path, command: str) -> None:
    full = "conchart: cannot write standard output: No space left on device\n"
    assert shell(tmp_path, f"{command} > /dev/full") == (4, full)
    assert shell(tmp_path, f"{command} >&-") == (4, "conchart: cannot write standard output: it is closed\n")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "input.pcap"
    generate("full", path, 50_000)
    return path


@pytest.mark.parametrize("output", ["out.html", "out.json", "out.duckdb", "out.csv", "out.parquet"])
@pytest.mark.parametrize("kilobytes", [0, 100])
def test_a_file_that_finds_no_room_is_4_and_leaves_nothing(
    large: Path, tmp_path: Path, output: str, kilobytes: int
) -> None:
    (tmp_path / output).write_text("old")
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f {kilobytes}; exec '{COMMAND}' '{large}' --force -w {output}"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith(f"conchart: cannot write {output}: ")
    assert done.stderr.count("\n") == 1
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(output, "old")]


@pytest.mark.parametrize("command", [["--help"], ["query", CAPTURE, "FROM phases"], [CAPTURE, "-w", "-"]])
def test_a_reader_that_has_gone_is_141(tmp_path: Path, command: list[str | Path]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([COMMAND, *command], env=ENVIRONMENT, stdout=writer, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("err", ["2>&-", "2>/dev/full"])
def test_messages_that_nobody_takes_change_no_exit_code(tmp_path: Path, err: str) -> None:
    assert shell(tmp_path, f"missing.pcap {err}") == (3, "")
    assert shell(tmp_path, f"--frobnicate {err}") == (2, "")
    assert shell(tmp_path, f"'{CAPTURE}' >/dev/full {err}") == (4, "")
    assert shell(tmp_path, f"'{CAPTURE}' >&- {err}") == (4, "")


def test_no_file_takes_the_place_of_a_closed_standard_output(tmp_path: Path) -> None:
    """The next file that is opened gets the lowest number that is free, and what is printed goes into it."""
    shell(tmp_path, f"'{CAPTURE}' -w alone.json")
    code, _ = shell(tmp_path, f"'{CAPTURE}' -w closed.json <&- >&- 2>&-")
    assert code == 4, "the line that says what was written cannot be written"
    assert (tmp_path / "closed.json").read_bytes() == (tmp_path / "alone.json").read_bytes()


def test_standard_input_that_is_closed_is_an_empty_capture(tmp_path: Path) -> None:
    code, err = shell(tmp_path, "- <&-")
    assert (code, err.split("\n")[0]) == (3, "conchart: -: the file is empty: it has no file header")
