"""A comparison in text."""

import io

import pytest

from conchart.outputs.terminal.comparison import print_comparison
from conchart.outputs.terminal.sheet import plain_console
from conchart.questions.compare import compare
from tests.charts.story import many
from tests.charts.test_page import BIDI, HOSTILE, hostile_story
from tests.conftest import TellTrace


@pytest.mark.parametrize("text", [BIDI, *HOSTILE, "a\x1b]0;title\x07\nb", "[bold]no markup[/bold]"])
def test_text_from_captures_moves_no_cursor_and_adds_no_line(trace_of: TellTrace, text: str) -> None:
    def printed(name: str) -> str:
        sink = io.StringIO()
        print_comparison(compare(trace_of(hostile_story(name)), trace_of(hostile_story(name))), plain_console(sink))
        return sink.getvalue()

    output = printed(text)
    assert not set(output) & set("\x00\x07\x1b\u202e\u202c\u200b\u2028\u2029")
    servers = [line for line in output.splitlines() if line.startswith("10.0.0.2:443")]
    assert len(servers) == 1


def test_what_is_too_much_to_print_is_counted(trace_of: TellTrace) -> None:
    trace, sink = trace_of(many(300)), io.StringIO()
    print_comparison(compare(trace, trace), plain_console(sink))
    assert sink.getvalue().count("… and 276 more connections") == 2
