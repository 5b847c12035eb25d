"""The result of a prediction in words."""

from types import SimpleNamespace
from typing import Any

import pytest

from conchart.questions.predict.change import Change
from conchart.questions.predict.sentences import assumptions, comparison, headline, question

MS = 1_000_000


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (Change(keepalive=True), "What if connections were kept open and used again?"),
        (Change(rtt_ns=5 * MS), "What if users' round trip were 5.00 ms?"),
        (
            Change(resume=True, tls13=True, rtt_ns=5 * MS),
            "What if TLS sessions were resumed, TLS 1.3 were spoken and users' round trip were 5.00 ms?",
        ),
        (
            Change(keepalive=True, nodelay=True, server="shop\x1b"),
            "What if connections were kept open and used again and small segments were not held back "
            "(at shop\ufffd alone)?",
        ),
    ],
)
def test_what_is_changed_is_a_question(change: Change, text: str) -> None:
    assert question(change) == text


def side(total_ms: int, **facts: Any) -> Any:  # noqa: ANN401
    requests = facts.pop("requests", ())
    defaults = {
        "total_ns": total_ms * MS, "requests_ns": requests, "waited_ns": 0, "waits": {}, "connections": 1,
        "handshakes_full": 0, "handshakes_resumed": 0, "percentile": lambda share: sorted(requests)[share // 50 - 1],
    }  # fmt: skip
    return SimpleNamespace(**defaults | facts)


def prediction(before: Any, after: Any, **facts: Any) -> Any:  # noqa: ANN401
    defaults = {"unanswered": 0, "unknown_handshakes": 0, "unknown_paths": 0, "unread": 0, "change": Change()}
    return SimpleNamespace(measured=before, predicted=after, **defaults | facts)


@pytest.mark.parametrize(
    ("after", "how"),
    [(150, "25 % less"), (300, "50 % more"), (200, "about as long"), (201, "1 % more"), (199, "1 % less")],
)
def test_the_headline_says_how_much_less_or_more(after: int, how: str) -> None:
    assert headline(prediction(side(200), side(after))).endswith(f" would be {after} ms: {how}")


def test_a_difference_below_half_a_percent_is_none() -> None:
    assert headline(prediction(side(1_000), side(996))).endswith("about as long")
    assert headline(prediction(side(1_000), side(995))).endswith("1 % less")


def test_only_what_there_is_is_compared() -> None:
    rows = list(comparison(prediction(side(200), side(150))))
    assert [row[0] for row in rows] == ["in all", "users waited", "connections opened"]
    assert rows[0] == ("in all", "200 ms", "150 ms", "-50.0 ms")
    assert rows[2] == ("connections opened", "1", "1", "=")


def test_requests_waits_and_handshakes_are_compared() -> None:
    before = side(
        200, requests=(10 * MS, 30 * MS), waits={"tls": 5 * MS, "idle": 7 * MS}, connections=4, handshakes_full=4
    )
    after = side(100, requests=(10 * MS, 20 * MS), waits={"wait": MS}, handshakes_resumed=3, handshakes_full=1)
    rows = {row[0]: row[1:] for row in comparison(prediction(before, after))}
    assert list(rows) == [
        "in all", "2 requests, median", "95 % of them within", "users waited", "  TLS handshake",
        "  wait for the server", "  stalled between them", "connections opened", "full TLS handshakes",
        "resumed TLS handshakes",
    ]  # fmt: skip
    assert rows["  TLS handshake"][:2] == ("5.00 ms", "0 ns")
    assert rows["connections opened"] == ("4", "1", "-3")
    assert rows["resumed TLS handshakes"] == ("0", "3", "+3")


def test_each_change_says_what_it_assumes_and_the_others_are_not_told() -> None:
    common = len(list(assumptions(prediction(side(1), side(1)))))
    for change, word in (
        (Change(keepalive=True), "stay open"),
        (Change(tls13=True), "saves a round trip"),
        (Change(zero_rtt=True), "repeated"),
        (Change(tls_off=True), "Encrypting"),
        (Change(rtt_ns=1), "distance"),
    ):
        texts = list(assumptions(prediction(side(1), side(1), change=change)))
        assert len(texts) == common + 1
        assert word in texts[-1]
    resumed = list(assumptions(prediction(side(1), side(1), change=Change(resume=True))))
    assert "20 % of a full one, 40 % in TLS 1.3" in resumed[-2]


def test_what_could_not_be_predicted_is_counted() -> None:
    texts = list(assumptions(prediction(side(1), side(1), unanswered=1, unread=2)))
    assert texts[-2:] == [
        "Not predicted: 1 request without a whole response, as long as measured.",
        "Not predicted: 2 requests of which the beginning is not in the capture, left out.",
    ]
