"""Names say what they hold."""

from pathlib import Path

import pytest

from tests.prose.names import is_vague, vague


@pytest.mark.parametrize("name", ["told", "_asked_at", "isKnown", "Said", "KEPT_PARTS", "toldOnce"])
def test_a_name_that_only_says_that_something_was_told_is_refused(name: str) -> None:
    assert is_vague(name)


@pytest.mark.parametrize("name", ["rows", "unknown", "keptness", "what_is_told_once_is_not_told_again", "weekend"])
def test_other_names_and_sentences_pass(name: str) -> None:
    assert not is_vague(name)


def test_comments_and_texts_are_not_names_and_holes_in_texts_are(tmp_path: Path) -> None:
    (tmp_path / "a.rs").write_text('// told\nfn f() { let told = "asked"; /* said\n*/ said(); }\n', encoding="utf-8")
    (tmp_path / "a.py").write_text('"""told"""\nx = f"{asked} {row[\'said\']}"  # known\n', encoding="utf-8")
    (tmp_path / "a.js").write_text("const isKept = 1;\n", encoding="utf-8")
    assert [(place.path.name, place.line, place.name) for place in vague(tmp_path)] == [
        ("a.js", 1, "isKept"),
        ("a.py", 2, "asked"),
        ("a.rs", 2, "told"),
        ("a.rs", 3, "said"),
    ]
