"""The first screen of captures of others, as a user of the terminal sees it; our own are the stories in `captures`.

The captures are in the folder that ``CONCHART_CORPUS`` names, and not here. With ``--update-golden``, pytest writes the
texts anew; a person reads the difference.
"""

import os
from pathlib import Path

import pytest
from rich.cells import cell_len

import conchart
from conchart.outputs.terminal.screen import LINES
from conchart.outputs.terminal.sheet import PLAIN_WIDTH

CORPUS = os.environ.get("CONCHART_CORPUS")
GOLDENS = sorted(Path(__file__).parent.glob("*.txt"))
CAPTURES = [
    "himav__proxy.pcap",  # a forward proxy with many clients: some requests take long, some connections are refused
    "ndpi__1kxun.pcap",  # phones, most connections open already, half of the time one request without a reason
    "zeek__wikipedia.pcap",  # a page from several servers, nothing wrong: the way there and back
    "zeek__workshop_2011_browse.pcap",  # one slow server
]


@pytest.mark.skipif(CORPUS is None, reason="CONCHART_CORPUS names no folder of captures")
@pytest.mark.parametrize("name", CAPTURES)
def test_a_capture_of_others_has_its_first_screen(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.chdir(CORPUS or "")
    with conchart.read(name) as trace:
        trace.write(tmp_path / "screen.txt")
    text = (tmp_path / "screen.txt").read_text(encoding="utf-8")
    golden = Path(__file__).with_name(name).with_suffix(".txt")
    if pytestconfig.getoption("--update-golden"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_each_of_them_is_one_screen_with_an_answer() -> None:
    assert [golden.stem for golden in GOLDENS] == [Path(name).stem for name in CAPTURES]
    for golden in GOLDENS:
        lines = golden.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= LINES
        assert max(map(cell_len, lines)) <= PLAIN_WIDTH
        assert lines[0].startswith("Users waited")
        assert any(line.startswith("wait ") for line in lines), "the largest wait is named"
