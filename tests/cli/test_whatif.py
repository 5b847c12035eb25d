"""``conchart whatif`` as people call it."""

import json
import re
from pathlib import Path

import pytest

import conchart
from conchart.cli import main
from conchart.outputs.predictions import write
from conchart.questions.predict import Change, predict
from conchart.report.report import Report
from tests.conftest import ROOT

SLOW = str(ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap")
UDP = str(ROOT / "captures/udp/dns-before-http/input.pcap")
REFUSED = str(ROOT / "captures/crafted/refused/input.pcap")


def run(*words: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["whatif", *words])
    output = capfd.readouterr()
    return int(left.value.code or 0), output.out, output.err


def test_it_says_what_would_be_and_what_was_assumed(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(SLOW, "--keepalive", "--rtt", "80ms", capfd=capfd)
    assert code == 0
    question = "What if connections were kept open and used again and users' round trip were 80.0 ms?"
    assert " ".join(out.split()).startswith(question)
    assert re.search(r"337 ms from the first packet to the last response would be \d+ ms: \d+ % more", out)
    assert re.search(r"^connections opened +6 +2 +-4$", out, re.MULTILINE)
    assert "- Connections stay open for 1 min" in out


def test_files_hold_the_same(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outputs = [tmp_path / f"out{suffix}" for suffix in (".html", ".json", ".txt")]
    words = [word for output in outputs for word in ("-w", str(output))]
    code, out, _ = run(SLOW, "--keepalive", *words, capfd=capfd)
    assert code == 0
    page, document, text = (output.read_text(encoding="utf-8") for output in outputs)
    headline = "337 ms from the first packet to the last response would be 149 ms: 56 % less"
    assert out == "".join(f"Wrote {output}: {headline}\n" for output in outputs)
    assert headline in page
    assert headline in text
    parsed = json.loads(document)
    for side in (parsed["measured"], parsed["predicted"]):
        ends = [bar["end_at"] for bar in side["timeline"]]
        assert max(ends) - min(bar["start_at"] for bar in side["timeline"]) == side["total_ns"]
        assert all(isinstance(value, int) for bar in side["timeline"] for value in (bar["start_at"], bar["end_at"]))
    assert parsed["whatif"] == {"changes": ["keepalive"], "rtt_ns": None, "server": None}


def test_names_from_the_capture_can_do_nothing_on_the_page(tmp_path: Path) -> None:
    evil = "</title><script>alert(1)</script>\x1b[31m\u202e"
    with conchart.read(SLOW) as trace:
        trace.execute("UPDATE connections SET server_name = $evil", {"evil": evil})
        prediction = predict(trace, Change(keepalive=True, server=evil))
        for suffix in (".html", ".txt"):
            write(prediction, Report(trace), tmp_path / f"out{suffix}")
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    for text in (page, (tmp_path / "out.txt").read_text(encoding="utf-8")):
        assert "\x1b" not in text
        assert "\u202e" not in text


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((SLOW,), "name at least one change"),
        ((REFUSED, "--keepalive"), "no requests were found"),
        ((SLOW, "--rtt", "far"), "cannot read the duration 'far'"),
        ((SLOW, "--rtt", "99999999h"), "cannot read the duration"),
        ((SLOW, "--keepalive", "-w", "out.pdf"), "conchart whatif writes .html .json .txt"),
        ((SLOW, "--keepalive", "-f", "port 1"), "nothing can be predicted"),
    ],
)
def test_wrong_usage_is_told(words: tuple[str, ...], why: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(*words, capfd=capfd)
    assert (code, out) == (2, "")
    assert why in err


def test_what_has_no_known_distance_stays(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(UDP, "--rtt", "80ms", "-f", "udp", capfd=capfd)
    assert code == 0
    assert "Not predicted:" in out


def test_damage_is_no_traceback(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    whole = Path(SLOW).read_bytes()
    for size in range(24, len(whole), len(whole) // 4):
        cut = tmp_path / "cut.pcap"
        cut.write_bytes(whole[:size])
        code, _, err = run(str(cut), "--keepalive", "--resume", "--rtt", "80ms", capfd=capfd)
        assert code in (0, 2, 3), err
        assert "Traceback" not in err
