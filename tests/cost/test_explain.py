"""The law of cost of `explain`: a connection four times as large costs four times as much, and less where less is told.

Lines of Python are counted, which are the same on every machine.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

import conchart
from conchart.cli.terminal import printed_on
from conchart.outputs.terminal.ladder import print_ladder, print_segments
from conchart.outputs.terminal.sheet import PLAIN_WIDTH, Sheet, plain_console
from conchart.questions.explain import LadderRow, connections, every_rung, ladder
from conchart.questions.explain.bytes import segments
from tests.conftest import ROOT
from tests.cost import one_connection
from tests.cost.meter import Costs, counting_lines

PACKETS, TIMES = 600, 4
"""Packets of the smaller connection, about, and how many times as many the larger one has."""
MOST_GROWTH = 1.1 * TIMES
MOST_RUNGS = 100
LITTLE = 500
"""Lines that a function may run in any case."""
MOST_LINES = 140
"""Of Python, for a packet that is not told. It is gathered, looked through for pauses, and remembered for what others
repeat or acknowledge."""
N_OF = {"HTTP/2 streams, byte by byte": 20}
"""Of shapes that need many packets for each thing."""
STORY = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"
"""It has pauses, facts, and figures of other programs."""


def explained(capture: Path, *, verbose: bool) -> tuple[int, Counter[str], list[str]]:
    """Explain the connection of a capture; give its packets, the lines of Python of each function, and the text."""
    costs, lines = Costs(), list[str]()
    with conchart.read(capture, explain=0) as trace:
        trace.provide("phases", "stalls")
        sheet = Sheet(plain_console(io.StringIO()), lines.append)
        with counting_lines(costs):
            (connection,) = connections(trace, 0)
            drawn = ladder(connection, most_clocks=3, most_rungs=MOST_RUNGS)
            print_ladder(drawn, sheet, every_rung(connection) if verbose else None)
            if verbose:
                print_segments(segments(trace, 0), sheet)
    return drawn.packets, costs.lines, lines


@pytest.fixture(scope="module", params=one_connection.SHAPES)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Captures of a shape, the second of four times as many packets."""
    folder, n = tmp_path_factory.mktemp("shape"), N_OF.get(request.param, PACKETS // 2)
    return [one_connection.make(request.param, size, folder / f"{size}.pcap") for size in (n, TIMES * n)]


@pytest.mark.parametrize("verbose", [False, True])
def test_explaining_grows_no_faster_than_the_connection(pair: list[Path], verbose: bool) -> None:
    (_, small, _), (_, large, _) = (explained(capture, verbose=verbose) for capture in pair)
    grown = {
        place: (small[place], count)
        for place, count in large.items()
        if count > MOST_GROWTH * max(small[place], LITTLE)
    }
    assert large
    assert not grown


def test_what_is_not_told_costs_little(pair: list[Path]) -> None:
    """No label, no sentence and no text is made for it."""
    (few, small, short), (many, large, long) = (explained(capture, verbose=False) for capture in pair)
    assert sum(large.values()) - sum(small.values()) < MOST_LINES * (many - few)
    assert len(long) < 1.5 * len(short)
    for made in ("outputs/terminal/ladder.py: _rung", "questions/explain/payload_labels.py: _parts"):
        assert large[made] <= 1.5 * small[made]


def test_the_text_says_what_it_leaves_out(tmp_path: Path) -> None:
    capture = one_connection.make("segments of a response", 1_000, tmp_path / "input.pcap")
    packets, _, lines = explained(capture, verbose=False)
    text = " ".join(" ".join(lines).split())
    assert packets == 1_508
    assert "left out 1 398 of 1 508 packets. Here are the first 100 packets, those beside pauses" in text
    assert "⋮ 1 398 packets left out 29.960 1499" in text
    assert "All of them: -v" in text
    _, _, everything = explained(capture, verbose=True)
    assert "left out" not in " ".join(everything)
    assert sum(" → " in line or " ← " in line for line in everything) >= packets


def test_a_text_begins_before_the_last_packet_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = one_connection.make("segments of a response", 1_000, tmp_path / "input.pcap")
    console = Console(width=PLAIN_WIDTH, color_system=None, force_terminal=False)
    printed: list[int] = []

    def watched(steps: Iterator[LadderRow]) -> Iterator[LadderRow]:
        for step in steps:
            printed.append(len(capsys.readouterr().out))
            yield step

    with conchart.read(capture, explain=0) as trace, printed_on(console) as write:
        (connection,) = connections(trace, 0)
        print_ladder(ladder(connection), Sheet(console, write), watched(iter(every_rung(connection))))
    pieces = [size for size in printed if size]
    assert len(pieces) > 3
    assert max(pieces) < 20_000


def test_what_takes_the_lines_gets_what_the_console_would_print() -> None:
    """In colours and without."""
    with conchart.read(STORY, explain=0) as trace:
        (connection,) = connections(trace, 0)
        drawn = ladder(connection)
    for colours in (None, "standard", "256", "truecolor"):
        for no_color in (False, True):
            sink, lines = io.StringIO(), list[str]()
            console = Console(
                file=sink, width=90, color_system=colours, force_terminal=True, no_color=no_color, highlight=False
            )
            print_ladder(drawn, Sheet(console))
            print_ladder(drawn, Sheet(console, lines.append))
            assert "\n".join(lines) + "\n" == sink.getvalue()
