"""``--format`` and ``-w``: which format a file or a pipe gets."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

CAPTURE = str(ROOT / "captures/reverse-proxy/http/input.pcap")


def conchart(*args: str) -> tuple[int, bytes, str]:
    """Run the command in a process of its own, whose standard output is a pipe."""
    code = "from conchart.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, CAPTURE, *args], cwd=ROOT, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr.decode()


@pytest.mark.parametrize(
    ("name", "options", "key"),
    [
        ("out.har", [], "log"),
        ("out.HAR", [], "log"),
        ("out.perfetto.json", [], "traceEvents"),
        ("of.today.otlp.json", [], "resourceSpans"),
        ("out.json", [], "conchart"),
        ("out.json", ["--format", "perfetto"], "traceEvents"),
        ("out.har", ["--format", "otlp"], "resourceSpans"),
        ("out", ["--format", "har"], "log"),
    ],
)
def test_the_suffix_or_the_option_chooses(tmp_path: Path, name: str, options: list[str], key: str) -> None:
    code, out, _ = conchart("-w", str(tmp_path / name), *options)
    assert (code, out.startswith(b"Wrote ")) == (0, True)
    assert key in json.loads((tmp_path / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("form", ["json", "har", "perfetto", "otlp"])
def test_a_pipe_gets_what_a_file_would(tmp_path: Path, form: str) -> None:
    conchart("-w", str(tmp_path / "out"), "--format", form)
    written = (tmp_path / "out").read_bytes()
    assert conchart("-w", "-", "--format", form)[:2] == (0, written)
    code, out, err = conchart("-w", "/dev/stdout", "--format", form)
    assert (code, out) == (0, written)
    assert err.startswith("Wrote /dev/stdout")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--format", "har"], "--format needs exactly one -w"),
        (["--format", "har", "-w", "a.har", "-w", "b.json"], "--format needs exactly one -w"),
        (["--format", "csv", "-w", "-"], "cannot write csv to standard output, only json har perfetto otlp qlog sqlog"),
        (["--format", "jpeg", "-w", "a"], "'jpeg' is not one of"),
        (["--format", "har", "-w", "a.csv", "--table", "phases"], "--table applies to .csv and .parquet"),
    ],
)
def test_what_cannot_be_is_wrong_usage(options: list[str], complaint: str) -> None:
    code, out, err = conchart(*options)
    assert (code, out) == (2, b"")
    assert complaint in err
