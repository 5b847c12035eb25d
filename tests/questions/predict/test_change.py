"""What is changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conchart.labels.changes import CHANGES
from conchart.questions.predict.change import Change


@given(st.sets(st.sampled_from(CHANGES)))
def test_words_name_a_change_that_names_them(words: set[str]) -> None:
    change = Change.of(words)
    assert change.words == tuple(word for word in CHANGES if word in words)
    assert Change.of(change.words) == change


def test_words_are_those_of_the_fields() -> None:
    assert Change.of(["0rtt"]) == Change(zero_rtt=True)
    assert Change.of(["tls-off", "keepalive"]) == Change(tls_off=True, keepalive=True)
    assert Change(rtt_ns=5, server="a").words == ()


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        (None, True),
        ("shop.example", True),
        ("10.0.0.9", True),
        ("10.0.0.9:443", True),
        ("10.0.0.9:80", False),
        ("shop", False),
        ("443", False),
    ],
)
def test_a_server_is_chosen_by_name_address_or_port(wanted: str | None, chosen: bool) -> None:  # noqa: FBT001
    assert Change(server=wanted).chooses(("10.0.0.9", 443), "shop.example") == chosen


def test_an_address_of_ipv6_may_stand_in_brackets() -> None:
    assert Change(server="[2001:db8::1]:443").chooses(("2001:db8::1", 443), "")
    assert not Change(server="[2001:db8::1]:80").chooses(("2001:db8::1", 443), "")
