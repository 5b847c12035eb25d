"""The quiz for teachers: each of its captures has the answer that is given as the first thing that is wrong with it."""

import filecmp
import re
import subprocess
import sys
from pathlib import Path

import pytest

import conchart
from tests.conftest import ROOT

QUIZ = ROOT / "examples" / "quiz"
ANSWERS = re.findall(
    r"^\*What is wrong here\?\* `([\w-]+)`.*?^Capture: `([\w/-]+)`", (QUIZ / "README.md").read_text(), re.M | re.S
)


def test_there_are_twelve() -> None:
    assert len(set(ANSWERS)) == 12


@pytest.mark.parametrize(("finding", "capture"), ANSWERS, ids=[finding for finding, _ in ANSWERS])
@pytest.mark.thorough
def test_what_is_found_first_is_the_answer(finding: str, capture: str) -> None:
    with conchart.read(ROOT / capture / "input.pcap") as trace:
        first = "SELECT finding FROM findings WHERE because IS NULL ORDER BY number LIMIT 1"
        assert trace.sql(first).fetchall() == [(finding,)]


def test_the_captures_are_handed_out_under_names_that_tell_nothing(tmp_path: Path) -> None:
    subprocess.run([sys.executable, QUIZ / "make-quiz", tmp_path / "quiz"], check=True)
    handed = sorted((tmp_path / "quiz").iterdir())
    assert [path.name for path in handed] == [f"quiz-{number:02}.pcap" for number in range(1, 13)]
    for path, (_, capture) in zip(handed, ANSWERS, strict=True):
        assert filecmp.cmp(path, ROOT / capture / "input.pcap", shallow=False)
