"""The front matter of our own files is kept as it was read: it says what YAML says; a changed file is read again."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conchart.analysis.findings import front_matter
from conchart.analysis.findings.front_matter import READ_BEFORE, Front, kept
from conchart.analysis.findings.rule import front_of, load_rules, parse_rule

FOLDER = READ_BEFORE.parent
RULE = FOLDER / "far-backend.md"


def texts() -> list[str]:
    return [*(front_of(path.read_text()) for path in FOLDER.glob("*.md")), (FOLDER / "thresholds.yaml").read_text()]


def test_what_is_kept_is_what_the_files_say(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--update-golden"):
        READ_BEFORE.write_text(kept(texts()))
    assert kept(texts()) == READ_BEFORE.read_text(), f"run: pytest {Path(__file__).name} --update-golden"


@pytest.mark.parametrize("text", texts())
def test_what_is_kept_is_what_yaml_reads(text: str) -> None:
    read = front_matter._parsed("", text, 1)
    assert Front(**json.loads(kept([text])).popitem()[1]) == read == front_matter.front_matter("", text, first_line=1)


def test_conchart_s_own_findings_need_no_yaml() -> None:
    loading = "import sys; from conchart.analysis.findings.rule import *; load_rules(); thresholds()"
    asked = f"{loading}; print('yaml' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", asked], text=True) == "False\n"


def test_a_changed_file_is_read_again() -> None:
    text = RULE.read_text().replace("Far backend: the", "Far backend: that")
    assert parse_rule("far-backend.md", text).title == "Far backend: that backend is far from its proxy"


def test_a_change_of_one_text_changes_no_other() -> None:
    parse_rule(RULE.name, RULE.read_text()).facts.add("something")
    (rule,) = (rule for rule in load_rules() if rule.name == "far-backend")
    assert rule == parse_rule(rule.path, RULE.read_text())


@pytest.mark.parametrize("kept", [None, "", "{", "\xff"])
def test_without_what_is_kept_the_files_say_the_same(
    kept: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept.json"
    if kept is not None:
        path.write_bytes(kept.encode("latin-1"))
    before = parse_rule(RULE.name, RULE.read_text())
    monkeypatch.setattr(front_matter, "READ_BEFORE", path)
    front_matter._read_before.cache_clear()
    try:
        assert parse_rule(RULE.name, RULE.read_text()) == before
    finally:
        front_matter._read_before.cache_clear()
