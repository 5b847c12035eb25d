"""``conchart diff``: what is printed, what is written, and how it ends."""

import json
from pathlib import Path

import pytest

import conchart
from tests.cli.test_cli import Run
from tests.cli.test_cli import run as run  # noqa: PLC0414  (a fixture)
from tests.conftest import ROOT

BEFORE = str(ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap")
AFTER = str(ROOT / "captures/reverse-proxy/https-keepalive/input.pcap")
SENTENCE = (
    "shop.example: users waited 304 ms before, 112 ms after (63 % less): 1 TLS handshake instead of 3, "
    "for 3 requests each"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_difference_is_printed_within_the_width(run: Run) -> None:
    code, out, err = run("diff", BEFORE, AFTER)
    assert (code, err) == (0, "")
    assert SENTENCE in " ".join(out.split())
    lines = out.splitlines()
    assert "connections 3 → 1   requests 3 → 3   full TLS handshakes 3 → 1" in lines
    assert max(map(len, lines)) <= max(100, *(len(line) for line in lines if BEFORE in line or AFTER in line))
    assert "TLS handshake             3   69.7 ms   70.6 ms         1   66.8 ms   66.8 ms   –" in lines
    assert "".join(lines).count("too few to tell") == 1
    bars = [line for line in lines if line.startswith(("before S", "after  S"))]
    assert [len(line.split()[1]) for line in bars] == [83, 31], "on one scale: 304 ms and 112 ms"
    assert sum(line.startswith("Before: ") for line in lines) == sum(line.startswith("After: ") for line in lines) == 2


def test_narrow_terminal_leaves_out_the_95th_percentile(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run("diff", BEFORE, AFTER)
    assert "TLS handshake             3   69.7 ms         1   66.8 ms   –" in out.splitlines()


def test_files_are_written_in_the_format_of_their_suffix(run: Run) -> None:
    code, out, err = run("diff", BEFORE, AFTER, "-w", "d.html", "-w", "d.json", "-w", "d.txt")
    assert (code, err) == (0, "")
    assert out.splitlines() == [f"Wrote d.{suffix}: 2 servers compared" for suffix in ("html", "json", "txt")]
    assert SENTENCE in Path("d.html").read_text(encoding="utf-8")
    assert SENTENCE in " ".join(Path("d.txt").read_text(encoding="utf-8").split())
    document = json.loads(Path("d.json").read_text(encoding="utf-8"))
    assert document["headlines"][0]["sentence"] == SENTENCE
    front = document["servers"][0]
    assert (front["matched_by"], front["before"]["handshakes_full"], front["after"]["handshakes_full"]) == (
        "address",
        3,
        1,
    )
    assert sum(part["ns"] for part in front["after"]["waited"]) == front["after"]["waited_ns"]
    tls = next(one for one in front["measures"] if one["measure"] == "tls")
    assert (tls["before"]["n"], tls["after"]["median_ns"], tls["verdict"], tls["p"]) == (3, 66793449, "too_few", None)


def test_json_on_standard_output(run: Run) -> None:
    code, out, _ = run("diff", BEFORE, AFTER, "-w", "-")
    assert code == 0
    assert json.loads(out)["after"]["connections"] == 4


def test_saved_traces_are_compared_too_and_options_hold_for_both(run: Run) -> None:
    with conchart.read(BEFORE) as trace:
        trace.write("before.duckdb")
    assert SENTENCE in " ".join(run("diff", "before.duckdb", AFTER)[1].split())
    _, out, _ = run("diff", BEFORE, AFTER, "-f", "port 443", "-n")
    assert "10.77.1.1:443: users waited 304 ms before, 112 ms after" in " ".join(out.split())
    assert "8080" not in out
    assert "shop" not in out
    code, _, err = run("diff", "before.duckdb", AFTER, "-f", "port 443")
    assert code == 2
    assert "--filter can be used only when a capture is read" in err


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        ((BEFORE,), 2, "Missing argument 'AFTER'"),
        ((BEFORE, AFTER, "-w", "out.csv"), 2, "the suffix '.csv'; conchart writes a comparison as .html .txt .json"),
        ((BEFORE, AFTER, "-w", "no/folder/out.json"), 4, "there is no folder no/folder"),
        (("-", "-"), 2, "only one of both captures can come from standard input"),
        (("missing.pcap", AFTER), 3, "missing.pcap: no such file"),
        (
            (str(ROOT / "captures/crafted/refused/input.pcap"), AFTER),
            2,
            "these captures cannot be compared: one of them contains no request",
        ),
    ],
)
def test_what_cannot_be_done_says_why(run: Run, args: tuple[str, ...], code: int, words: str) -> None:
    left, out, err = run("diff", *args)
    assert (left, out) == (code, "")
    assert words in err
