"""``conchart explain``: what it prints, what it writes, and what it says where there is nothing to explain."""

from collections.abc import Callable
from pathlib import Path

import pytest

import conchart
from conchart.cli import main
from tests.conftest import ROOT

CAPTURE = str(ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap")
Explain = Callable[..., tuple[int, str, str]]


@pytest.fixture
def explain(capfd: pytest.CaptureFixture[str]) -> Explain:
    def explained(*args: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(["explain", *args])
        out, err = capfd.readouterr()
        return int(left.value.code or 0), out, err

    return explained


def test_it_prints_the_ladder(explain: Explain) -> None:
    code, out, err = explain(CAPTURE, "0")
    assert (code, err) == (0, "")
    assert "Connection 0 (tcp.stream eq 0): 10.77.1.10:48584 → 10.77.1.1:443" in out
    assert "56.9 ms in which both wait for each other" in out
    assert "Segments" not in out


def test_verbosely_it_adds_fields_and_segments(explain: Explain) -> None:
    code, out, _ = explain(CAPTURE, "0", "-v")
    assert code == 0
    assert "→ ClientHello, frame 4" in out
    assert "cipher suite: TLS_AES_256_GCM_SHA384" in out
    assert "MSS 1460, SACK permitted" in out


def test_without_scapy_it_says_what_is_missing(explain: Explain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conchart.questions.dissect.find_spec", lambda _: None)
    code, out, _ = explain(CAPTURE, "0", "-v")
    assert code == 0
    assert "pip install 'conchart[dissect]'" in " ".join(out.split())


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((CAPTURE, "6"), "no connection 6: its connections are 0 to 5"),
        ((CAPTURE, "0", "-f", "port 9"), "no connection 0: there is no connection in it"),
        ((CAPTURE, "0", "-w", "out.csv"), "explain writes .html"),
        ((CAPTURE, "first"), "'first' is not a valid integer"),
    ],
)
def test_what_cannot_be_explained_is_a_usage_error(explain: Explain, args: tuple[str, ...], message: str) -> None:
    code, out, err = explain(*args)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_a_saved_trace_is_explained_while_its_packets_are_in_it(explain: Explain, tmp_path: Path) -> None:
    with conchart.read(CAPTURE) as trace:
        trace.write(tmp_path / "whole.duckdb")
        trace.execute("DELETE FROM packets")
        trace.write(tmp_path / "bare.duckdb")
    code, out, _ = explain(str(tmp_path / "whole.duckdb"), "0")
    assert code == 0
    assert "ClientHello" in out
    code, _, err = explain(str(tmp_path / "bare.duckdb"), "0")
    assert code == 2
    assert "use explain on the capture itself" in err
