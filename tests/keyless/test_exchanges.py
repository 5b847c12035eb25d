"""Without secrets, conchart finds the requests and responses that tshark finds with them; where not, it says so."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.keyless.comparison import Verdict, compare
from tests.keyless.truth import Exchange, Message, _read, installed, read

OVER_HTTP_2 = "http2"
"""Requests side by side: turns are not requests, and docs/phases.md says so."""
CAPTURES = sorted(
    path.parent / "input.pcap"
    for path in (ROOT / "captures" / "handshakes").glob("*/keys.log")
    if OVER_HTTP_2 not in path.parent.name
)
LEAST_SHARE = 0.95

needs_tshark = pytest.mark.skipif(not installed(), reason="tshark is not installed")


@cache
def verdicts() -> list[Verdict]:
    return [verdict for capture in CAPTURES for verdict in compare(capture)]


def test_many_stacks_are_captured() -> None:
    stacks = {path.parent.name.split("-")[0] for path in CAPTURES}
    assert stacks == {"openssl", "curl", "gnutls", "go", "rustls", "java", "chromium"}


def test_a_message_begins_where_its_first_record_does() -> None:
    rows = [
        ["0", "1", "1.000000001", "", "", "GET", ""],
        ["0", "2", "1.000000002", "", "", "", ""],
        ["0", "3", "1.000000003", "2,3", "", "", ""],
        ["0", "4", "1.000000004", "", "3,4", "", "200"],
    ]
    request, response = Message(text="GET", first=1, last=1), Message(text="200", first=2, last=4)
    assert _read(rows).exchanges == [Exchange(stream=0, request=request, response=response)]


@needs_tshark
@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.parent.name)
def test_secrets_open_every_exchange(capture: Path) -> None:
    assert read(capture).exchanges


@needs_tshark
def test_nearly_all_exchanges_are_found_within_a_frame() -> None:
    wrong = [str(verdict) for verdict in verdicts() if not verdict.right]
    assert len(wrong) <= (1 - LEAST_SHARE) * len(verdicts()), "\n".join(wrong)


@needs_tshark
@pytest.mark.parametrize("case", [path.parent.name for path in CAPTURES])
def test_an_exchange_that_is_wrong_says_that_it_may_be(case: str) -> None:
    assert [str(verdict) for verdict in verdicts() if verdict.boast and verdict.case == case] == []
