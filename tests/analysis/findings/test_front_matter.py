"""Front matter of conchart's own files is read when conchart is built; what was changed since is read again."""

import subprocess
import sys
from pathlib import Path

import pytest

from conchart.analysis.findings import front_matter
from conchart.analysis.findings.front_matter import RULES, read_ahead
from conchart.analysis.findings.rule import load_rules, parse_rule

RULE = RULES / "far-backend.md"


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """What a build writes."""
    path = tmp_path / "front-matter.json"
    path.write_text(read_ahead())
    return path


def use(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_matter, "READ_BEFORE", path)
    front_matter._read_before.cache_clear()


@pytest.fixture(autouse=True)
def forget() -> object:
    yield
    front_matter._read_before.cache_clear()


def test_what_is_read_ahead_is_what_yaml_reads(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(built, monkeypatch)
    for text in front_matter.texts():
        assert front_matter._hash(text) in front_matter._read_before()
        assert front_matter.front_matter(text) == front_matter._parsed(text)


def test_conchart_s_own_findings_need_no_yaml(built: Path) -> None:
    loading = (
        "import sys; from pathlib import Path; from conchart.analysis.findings import front_matter; "
        f"front_matter.READ_BEFORE = Path({str(built)!r}); "
        "from conchart.analysis.findings.rule import *; load_rules(); thresholds(); print('yaml' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", loading], text=True) == "False\n"


def test_a_build_imports_nothing_of_conchart_s() -> None:
    running = (
        f"import runpy, sys; runpy.run_path({front_matter.__file__!r})['read_ahead'](); "
        "print(*(name for name in sys.modules if name.split('.')[0] == 'conchart'))"
    )
    assert subprocess.check_output([sys.executable, "-c", running], text=True) == "\n"


def test_a_changed_file_is_read_again() -> None:
    text = RULE.read_text().replace("Far backend: the", "Far backend: that")
    assert parse_rule("far-backend.md", text).title == "Far backend: that backend is far from its proxy"


def test_a_change_of_one_text_changes_no_other() -> None:
    parse_rule(RULE.name, RULE.read_text()).facts.add("something")
    (rule,) = (rule for rule in load_rules() if rule.name == "far-backend")
    assert rule == parse_rule(rule.path, RULE.read_text())


@pytest.mark.parametrize("content", [None, "", "{", "\xff"])
def test_without_what_was_read_ahead_the_files_say_the_same(
    content: str | None, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(built, monkeypatch)
    before = parse_rule(RULE.name, RULE.read_text())
    broken = tmp_path / "broken.json"
    if content is not None:
        broken.write_bytes(content.encode("latin-1"))
    use(broken, monkeypatch)
    assert parse_rule(RULE.name, RULE.read_text()) == before
