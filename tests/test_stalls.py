"""The words for stalls: every kind of the core has some, and the documentation names the same kinds."""

import re

import pytest

from conchart.labels.stalls import DETAIL, STALL_BY_NAME, STALLS, StallKind, stall_kind
from tests.conftest import ROOT, empty_trace

NAMES = {stall.name for stall in STALLS}


def test_kinds_are_those_of_the_tables_page() -> None:
    text = (ROOT / "docs/tables.md").read_text(encoding="utf-8")
    row = re.search(r"## stalls.*?\n\| kind \| ENUM \| ([^|]*) \|", text, re.DOTALL)
    assert row is not None
    assert set(re.findall("`(.*?)`", row[1])) == NAMES


def test_kinds_are_those_of_the_core() -> None:
    source = (ROOT / "conchart/native/src/stalls/mod.rs").read_text(encoding="utf-8")
    assert set(re.findall(r'Self::\w+ => "([\w-]+)"', source.partition("impl Detail")[0])) == NAMES


@pytest.mark.parametrize("detail", [None, "tail", "middle", "handshake", "syn", "ack", "spurious", "delayed-ack"])
@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_detail_of_every_kind_has_words(name: str, detail: str | None) -> None:
    assert stall_kind(name, detail).name == name


def test_no_two_kinds_read_the_same() -> None:
    assert len({stall.meaning for stall in STALLS}) == len(STALLS) == len(STALL_BY_NAME)


@pytest.mark.parametrize("stall", STALLS, ids=lambda stall: f"{stall.name} {stall.detail or ''}")
def test_a_meaning_is_one_sentence_without_a_full_stop(stall: StallKind) -> None:
    assert re.fullmatch(r"[a-z].*[^.]", stall.meaning)
    assert ". " not in stall.meaning


@pytest.mark.parametrize(
    ("kind", "detail", "meaning"),
    [
        ("nagle", "'delayed-ack'", "a small segment waits for a delayed acknowledgement (Nagle)"),
        ("nagle", "'round-trip'", "a small segment waits for an acknowledgement (Nagle)"),
        ("nagle", "NULL", "a small segment waits for an acknowledgement (Nagle)"),
        ("rto", "'tail'", "a segment was lost, and sent again when a timer ran out"),
        ("rto", "'spurious'", "an acknowledgement came too late, and its data was retransmitted needlessly"),
    ],
)
def test_what_is_said_depends_on_what_was_found(kind: str, detail: str, meaning: str) -> None:
    with empty_trace() as trace:
        row = f"SELECT '{kind}' AS kind, {detail}::VARCHAR AS detail"
        found = trace.sql(f"SELECT kind, {DETAIL} FROM ({row})").fetchall()
    assert stall_kind(*found[0]).meaning == meaning
