"""The phrases that conchart can print, and the captures whose first screens show together what those of all show.

In: texts of the terminal. Out: the phrases in them. `python -m tests.phrases` reads every capture, chooses a few whose
first screens show every phrase that a first screen shows, gives them an `expected.txt` and deletes all others.

A phrase is two words or more of a constant in the sources of report and terminal: a sentence that is added is one from
then on. Labels, phases and stalls count at their places.
"""

import ast
import io
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from conchart.labels.phases import PHASES
from conchart.labels.stalls import STALLS
from conchart.outputs.options import DrawOptions
from conchart.outputs.terminal import print_summary
from conchart.outputs.terminal.sheet import plain_console
from conchart.report.report import report_of
from tests.conftest import CASES, IN_PLACES, ROOT, name_of, read_story

EXPECTED = "expected.txt"
SOURCES = ("report", "outputs/terminal", "labels")
LABELS = ("serious", "warning", "wait", "the rest", "unjudged", "in vain", "besides", "in full", "queries")
"""They begin a line."""
LEGEND = {f"{phase.letter} {phase.name}" for phase in PHASES} | {stall.word for stall in STALLS}
"""Of the times below a server, before a duration."""
_SQL = re.compile(r"\n|\b[A-Z]{4,} ")


@cache
def _phrases() -> dict[str, re.Pattern[str]]:
    """Give each phrase, and what finds it in a text whose lines are joined."""
    constants = (text for folder in SOURCES for path in (ROOT / "conchart" / folder).glob("*.py") for text in _of(path))
    pieces = {piece.strip(" .,:;()") for text in constants for piece in re.split(r"\{[^}]*\}", text)}
    several = {piece for piece in pieces if re.search(r"[a-z]{2,}\W.*[a-z]{2,}", piece)}
    found = {piece: rf"(?<!\w){re.escape(piece)}(?!\w)" for piece in several}
    return {phrase: re.compile(pattern) for phrase, pattern in found.items()} | {
        words: re.compile(rf"(?<!\w){re.escape(words)} \d") for words in LEGEND
    }


def _of(path: Path) -> Iterator[str]:
    """Give a module's constants that are neither documentation nor SQL."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in documentation and not _SQL.search(text):
                yield text


def phrases_of(screen: str) -> set[str]:
    """Give what a first screen shows."""
    joined = " ".join(screen.split())
    found = {phrase for phrase, pattern in _phrases().items() if pattern.search(joined)}
    found |= {label for label in LABELS if re.search(rf"^{label} ", screen, re.MULTILINE)}
    return found


def choose(screens: dict[str, str]) -> Iterator[str]:
    """Choose of named screens those that show all phrases: each time the one that shows most of what is left."""
    shown = {name: phrases_of(screen) for name, screen in sorted(screens.items())}
    left = set().union(*shown.values())
    while left:
        name = max(shown, key=lambda name: len(shown[name] & left))
        yield name
        left -= shown[name]


def main() -> None:
    """Choose anew among all captures."""
    screens = {}
    for case in (*CASES, *IN_PLACES):
        with read_story(case) as trace, report_of(trace) as report, io.StringIO() as sink:
            print_summary(report, plain_console(sink), DrawOptions())
            screens[name_of(case)] = sink.getvalue()
    chosen = set(choose(screens))
    for name, screen in screens.items():
        path = ROOT / "captures" / name / EXPECTED
        if name in chosen:
            path.write_text(screen, encoding="utf-8")
        else:
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
