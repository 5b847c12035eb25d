"""vale refuses the sentences that the rules of docs/contributing.md are about, and lets their plain form pass."""

from pathlib import Path

import pytest

from tests.prose import MISSING, alerts, helps, installed

pytestmark = pytest.mark.skipif(installed() is None, reason=MISSING)

SENTENCES = {
    "What .svg and .png stand on.": "Background of .svg and .png.",
    "From where on something is a finding.": "Override a rule's threshold.",
    "A larger picture of the same shape is the same, sharper.": "A larger size with the same aspect ratio only adds "
    "resolution.",
    "Of what still grows, a terminal shows the summary of what has come.": "While the input grows, the terminal shows "
    "the summary so far.",
    "Who root becomes once it captures; root stays root.": "User to switch to once capturing starts.",
    "Rates over time, and how long what takes, as distributions.": "Rates over time, and latency distributions.",
    "Their meaning is a reading with a stated confidence.": "Their meaning is inferred, with a confidence.",
    "Who teaches finds a plan.": "For teachers: a plan.",
    "They run with your rights: read what you are given.": "Rules execute SQL with your permissions. "
    "Review them first.",
    "It costs nothing more: another finding counts its time.": 'The time is already counted in "…".',
    "Nothing that conchart looks for.": "No rule matched.",
    "After so many times as many records as requests wait, the connection is given up.": "The reader stops after 64 "
    "records per waiting request.",
    "A comment may differ (trap 9).": "A comment gives the reason.",
    "The order is that of design.md section 5.": "Packets are in the order of their sequence numbers.",
    " ".join(["One idea and"] * 16) + " no end.": "One sentence has one idea.",
}


@pytest.mark.parametrize(("riddle", "plain"), SENTENCES.items())
def test_a_riddle_is_refused_and_its_plain_form_is_not(riddle: str, plain: str, tmp_path: Path) -> None:
    """Each file has one sentence."""
    for name, sentence in (("riddle.md", riddle), ("plain.md", plain)):
        (tmp_path / name).write_text(f"# Title\n\n{sentence}\n", encoding="utf-8")
    assert alerts(tmp_path / "riddle.md")
    assert not alerts(tmp_path / "plain.md")


def test_a_question_may_begin_with_what(tmp_path: Path) -> None:
    """A question is no relative clause."""
    (tmp_path / "question.md").write_text("What does the server do in that time?\n", encoding="utf-8")
    assert not alerts(tmp_path / "question.md")


def test_comments_of_code_refer_to_nothing_outside_the_repository(tmp_path: Path) -> None:
    """In Rust as in Python."""
    (tmp_path / "a.rs").write_text("/// Never counted twice (trap 9).\nfn a() {}\n", encoding="utf-8")
    (tmp_path / "a.py").write_text("a = 1  # as in design.md section 5\n", encoding="utf-8")
    assert [Path(alert.path).name for alert in alerts(tmp_path)] == ["a.py", "a.rs"]


def test_the_help_of_every_command_is_checked() -> None:
    """The text has options of all commands in it."""
    for words in ("Stop after N matching packets.", "Send small segments without delay", "kernel's capture buffer"):
        assert words in helps()
