"""The printed worksheets: they are the lessons as they are, without the answers and with them."""

import html
import importlib.machinery
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import conchart
from conchart.outputs.pictures.picture import draw_empty
from conchart.report.report import report_of
from tests.conftest import ROOT, logs_of, places_of
from tests.lessons.keys import FIGURES, GIVEN


def script() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("make_worksheets", str(ROOT / "docs" / "make-worksheets"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


SCRIPT = script()
pytestmark = pytest.mark.timeout(120)
"""The first test waits for all lessons to be drawn: seven seconds of a processor that others may need, too."""
QUESTION = re.compile(r'<div class="question"><p><em>(.*?)</em></p>', re.DOTALL)


def text_of(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", page.split("<body>")[1]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All pages, as the script writes them."""
    path = tmp_path_factory.mktemp("worksheets")
    subprocess.run([sys.executable, ROOT / "docs" / "make-worksheets", path], check=True)
    return path


@pytest.mark.thorough
def test_each_lesson_has_its_two_pages(folder: Path) -> None:
    pages = {f"{lesson}{end}.html" for lesson in SCRIPT.LESSONS for end in ("", "-answers")}
    assert pages == {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("lesson", SCRIPT.LESSONS)
def test_questions_are_the_same_and_only_one_page_has_the_answers(lesson: str, folder: Path) -> None:
    source = (ROOT / SCRIPT.LESSONS[lesson]).read_text(encoding="utf-8")
    bare, answered = ((folder / f"{lesson}{end}.html").read_text(encoding="utf-8") for end in ("", "-answers"))
    questions = QUESTION.findall(bare)
    assert questions == QUESTION.findall(answered)
    assert len(questions) == len(re.findall(r"(?m)^\*[^*\n][^*]*\?\*", source)) > 0
    assert bare.count('class="room"') == len(questions)
    assert bare.count('class="line"') >= 3 * len(questions)
    assert "<!--" not in html.unescape(bare + answered)
    assert answered.count('class="answer"') == len(questions)
    assert len(text_of(bare)) < len(text_of(answered))


def test_an_answer_goes_on_to_the_next_question_or_heading() -> None:
    text = "# T\n\n*Who?* The client.\n\nAt length.\n\n*When?*\n\nNow.\n\n## Next\n\nSeen by all.\n"
    bare = text_of(SCRIPT.worksheet(text, source=ROOT / "x", answers=False))
    answered = text_of(SCRIPT.worksheet(text, source=ROOT / "x", answers=True))
    assert [word in bare for word in ("The client", "At length", "Now", "Seen by all")] == [False, False, False, True]
    assert all(word in answered for word in ("The client", "At length", "Now", "Seen by all"))


def test_each_lesson_has_lanes_to_draw_on_and_the_key_has_none(folder: Path) -> None:
    """One picture for each capture that a section asks about, before the first room for an answer."""
    for lesson in SCRIPT.LESSONS:
        bare, answered = ((folder / f"{lesson}{end}.html").read_text(encoding="utf-8") for end in ("", "-answers"))
        assert 'class="lanes"' in bare, lesson
        assert 'class="lanes"' not in answered
        figures = re.findall(r'(?s)<figure class="lanes">.*?</figure>\s*<div class="(\w+)"', bare)
        assert figures == ["room"] * bare.count('class="lanes"'), lesson
        assert re.search(r"\.lanes \{[^}]*break-inside: avoid", bare)
    assert (folder / "quiz.html").read_text(encoding="utf-8").count('class="lanes"') == 12
    assert (folder / "reverse-proxy.html").read_text(encoding="utf-8").count('class="lanes"') == 5


def test_lanes_to_draw_on_have_handshakes_of_tcp_and_no_other_phase(tmp_path: Path) -> None:
    with conchart.read(ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap") as trace:
        with report_of(trace) as report:
            draw_empty(report, tmp_path / "lanes.svg")
        ((opened,),) = trace.sql("SELECT count(*) FROM phases WHERE kind = 'syn'").fetchall()
        ((ports,),) = trace.sql("SELECT list(client_port) FROM connections").fetchall()
    svg = (tmp_path / "lanes.svg").read_text(encoding="utf-8")
    drawn = dict(re.findall(r'(?s)<g id="((?:phase|stalls|links|legend)[\w-]*)">(.*?)</g>\n', svg))
    assert list(drawn) == ["phase-syn"]
    assert len(re.findall(r"<path", drawn["phase-syn"])) == opened > 1
    assert all(f":{port} -->" in svg for port in ports)


def test_introductions_leave_the_answers_to_the_class(folder: Path) -> None:
    """What stands before the first question has no figure that the answers explain."""
    first = (folder / "reverse-proxy.html").read_text(encoding="utf-8").split('class="question"')[0]
    for answer in ("nine tenths", "77 ms", "handshake three times", "halved"):
        assert answer not in first
    assert "Delays in TCP" not in (folder / "resumed.html").read_text(encoding="utf-8")


def test_what_a_lesson_says_is_text() -> None:
    page = SCRIPT.worksheet("# T\n\n<script>alert(1)</script> `<b>`\n", source=ROOT / "x", answers=True)
    assert "<script>" not in page
    assert "&lt;b&gt;" in page


GENERATED = re.compile(r"<!-- table: [\w-]+ -->.*?<!-- end of table -->\n?", re.DOTALL)
FIGURE = re.compile(r"(?<![\w.,/-])(\d[\d,]*(?:\.\d+)?)\s(ns|µs|ms|s|%|bytes|B|kB|MB)(?!\w)")
UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "%": 1, "bytes": 1}


def figures_of(lesson: str) -> set[str]:
    """Every number with a unit in the answers, except in tables that are generated."""
    source = ROOT / SCRIPT.LESSONS[lesson]
    page = SCRIPT.worksheet(GENERATED.sub("", source.read_text(encoding="utf-8")), source=source, answers=True)
    answers = re.findall(r'(?s)<div class="answer">(.*?)</div>', page)
    return {" ".join(found.groups()) for answer in answers for found in FIGURE.finditer(text_of(f"<body>{answer}"))}


@pytest.mark.parametrize("lesson", SCRIPT.LESSONS)
def test_every_figure_of_a_key_has_its_source(lesson: str) -> None:
    """A table that is generated, a capture and SQL, or a reason why no capture tells it; and no source is left over."""
    generated = " ".join(GENERATED.findall((ROOT / SCRIPT.LESSONS[lesson]).read_text(encoding="utf-8")))
    numbers = set(re.findall(r"\d[\d,]*(?:\.\d+)?", generated))
    answered = figures_of(lesson)
    held = {figure for figure, _, _ in FIGURES.get(lesson, [])}
    given = {figure for figures in GIVEN.get(lesson, {}).values() for figure in figures}
    assert {figure for figure in answered - held - given if figure.split()[0] not in numbers} == set()
    assert (held | given) - answered == set(), "sources of figures that no answer has any more"


@pytest.mark.parametrize(
    ("figure", "capture", "sql"), [figure for figures in FIGURES.values() for figure in figures], ids=str
)
@pytest.mark.thorough
def test_a_key_says_what_the_capture_gives(figure: str, capture: str, sql: str) -> None:
    """To the digits that it is told with: the same tables as those of the page that is projected."""
    number, unit = figure.split()
    path = ROOT / f"captures/{capture}/input.pcap"
    places = {place: [file] for place, file in places_of(path.parent).items()}
    with conchart.read(places=places) if places else conchart.read(path, **logs_of(path.parent)) as trace:
        ((value,),) = trace.sql(sql.format(zero="(SELECT min(opened_at) FROM connections)")).fetchall()
    decimals = len(number.partition(".")[2])
    assert f"{float(value) / UNITS[unit]:,.{decimals}f}" == number
