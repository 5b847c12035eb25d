"""Without secrets, conchart finds the requests and responses that tshark finds with them; where not, it says so."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import MS, ROOT
from tests.keyless.comparison import Verdict, compare
from tests.keyless.truth import Exchange, Message, Truth, _read, installed, read

OVER_HTTP_2 = "http2"
"""Requests side by side: turns are not requests, and docs/phases.md says so."""
CAPTURES = sorted(
    path.parent / "input.pcap"
    for path in (ROOT / "captures" / "handshakes").glob("*/keys.log")
    if OVER_HTTP_2 not in path.parent.name
)
LEAST_SHARE = 0.95

every_capture = pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.parent.name)
needs_tshark = pytest.mark.skipif(not installed(), reason="tshark is not installed")


@cache
def truths() -> dict[Path, Truth]:
    return read(CAPTURES)


@cache
def verdicts() -> list[Verdict]:
    return [verdict for capture, truth in truths().items() for verdict in compare(capture, truth)]


def test_many_stacks_are_captured() -> None:
    stacks = {path.parent.name.split("-")[0] for path in CAPTURES}
    assert stacks == {"openssl", "curl", "gnutls", "go", "rustls", "java", "chromium"}


def test_a_message_begins_where_its_first_record_does() -> None:
    rows = [
        ["7", "41", "1.000000001", "", "", "GET", "/", ""],
        ["7", "42", "1.000000002", "", "", "", "", ""],
        ["7", "43", "1.000000003", "42,43", "", "", "", ""],
        ["7", "44", "1.000000004", "", "43,44", "", "", "200"],
    ]
    request, response = Message(text="GET /", first=1, last=1), Message(text="200", first=2, last=4)
    assert _read(rows).exchanges == [Exchange(stream=0, request=request, response=response)]


@needs_tshark
@every_capture
def test_secrets_open_every_exchange(capture: Path) -> None:
    assert truths()[capture].exchanges


@needs_tshark
@every_capture
def test_no_response_is_there_before_the_backend_has_thought(capture: Path) -> None:
    truth = truths()[capture]
    for exchange in truth.exchanges:
        (think_ms,) = re.findall(r"/wait-(\d+)/", exchange.request.text)
        assert truth.at[exchange.response.first] - truth.at[exchange.request.last] > int(think_ms) * MS


@needs_tshark
def test_nearly_all_exchanges_are_found_within_a_frame() -> None:
    wrong = [str(verdict) for verdict in verdicts() if not verdict.right]
    assert len(wrong) <= (1 - LEAST_SHARE) * len(verdicts()), "\n".join(wrong)


@needs_tshark
@every_capture
def test_an_exchange_that_is_wrong_says_that_it_may_be(capture: Path) -> None:
    assert [str(each) for each in verdicts() if each.boast and each.case == capture.parent.name] == []


CORPUS = os.environ.get("CONCHART_CORPUS")
FOREIGN = {
    "envoymtls__trace-trace.cap": 1,
    "wsnotes__tls-all-dump.pcapng": 39,
    "zeek__tls-tls-1.2-stream-keylog.pcap": 16,
}
"""Captures with a key log whose TLS carries HTTP/1, by exchanges."""


@needs_tshark
@pytest.mark.skipif(not CORPUS, reason="CONCHART_CORPUS names no folder of captures")
@pytest.mark.parametrize("name", FOREIGN)
def test_exchanges_of_foreign_captures_are_found_within_a_frame(name: str) -> None:
    capture = Path(CORPUS or "") / name
    found = list(compare(capture, read([capture])[capture]))
    assert len(found) == FOREIGN[name]
    assert [str(verdict) for verdict in found if not verdict.right] == []
