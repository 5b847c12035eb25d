"""What each class of disagreements claims, on a capture crafted for it: with the cause they disagree, without not.

Where conchart was wrong once, they agree.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agreement import page
from tests.agreement.crafted import CRAFTED, capture
from tests.agreement.mended import MENDED
from tests.agreement.rules import RULES
from tests.agreement.run import outcomes
from tests.tshark import needs_tshark

CLASSES = sorted(page.sections())


def test_every_class_has_a_crafted_capture_and_every_rule_a_class() -> None:
    assert sorted(CRAFTED) == CLASSES
    assert {*RULES} <= {*CLASSES}


@needs_tshark
@pytest.mark.timeout(60)
@pytest.mark.parametrize("section", CLASSES)
def test_a_class_is_what_its_cause_does(section: str, tmp_path: Path) -> None:
    crafted = CRAFTED[section]
    path = tmp_path / "crafted.pcap"
    path.write_bytes(capture(crafted))
    compared = outcomes(path)
    assert not isinstance(compared, str)
    differing = [outcome for outcome in compared if not outcome.agrees]
    assert [str(outcome) for outcome in differing if outcome.stream != 1] == []
    assert {outcome.fact for outcome in differing} == crafted.facts
    if section in RULES:
        assert all(section in outcome.rules for outcome in differing), [(str(one), one.rules) for one in differing]


@needs_tshark
@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", sorted(MENDED))
def test_what_was_mended_stays_mended(name: str, tmp_path: Path) -> None:
    path = tmp_path / "crafted.pcap"
    path.write_bytes(capture(MENDED[name]))
    compared = outcomes(path)
    assert not isinstance(compared, str)
    assert {outcome.stream for outcome in compared} == {0, 1}
    differing = [outcome for outcome in compared if not outcome.agrees]
    assert [str(outcome) for outcome in differing if outcome.stream != 1] == []
    assert {outcome.fact for outcome in differing} == MENDED[name].facts
