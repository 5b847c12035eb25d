"""Text from a capture is an attacker's: nothing of it may reach the terminal as a command."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conchart.labels.printable import endpoint, named_endpoint, printable, printable_lines


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("shop.example", "shop.example"),
        ("/a b?c=%20", "/a b?c=%20"),
        ("\x1b[31mred\x1b[0m", "\ufffd[31mred\ufffd[0m"),
        ("a\nb\rc\td\x00", "a\ufffdb\ufffdc\ufffdd\ufffd"),
        ("\x9b2J", "\ufffd2J"),
        ("gpj.\u202eexe", "gpj.\ufffdexe"),
        ("a\u200bb\u2028c", "a\ufffdb\ufffdc"),
        ("\udc80", "\ufffd"),
        ("bücher.example ☃", "bücher.example ☃"),
        ("[bold]x[/bold]", "[bold]x[/bold]"),
    ],
)
def test_only_glyphs_remain(hostile: str, shown: str) -> None:
    assert printable(hostile) == shown


@given(st.text(st.characters(codec=None), max_size=400))
def test_no_text_gets_a_control_character_through(hostile: str) -> None:
    shown = printable(hostile)
    assert len(shown) <= 200
    assert not {unicodedata.category(character) for character in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert printable(shown) == shown


def test_long_text_is_cut_and_says_so() -> None:
    assert printable("x" * 300, limit=10) == "x" * 9 + "…"


def test_lines_stay_lines_and_each_is_made_harmless_and_cut() -> None:
    assert printable_lines("one\n  t\x1b[2J\r\n" + "x" * 9, limit=8) == "one\n  t\ufffd[2J\ufffd\nxxxxxxx…"


@pytest.mark.parametrize(
    ("ip", "port", "text"),
    [
        ("192.0.2.1", 443, "192.0.2.1:443"),
        ("2001:db8::1", 443, "[2001:db8::1]:443"),
        ("\x1b[2J", 1, "\ufffd[2J:1"),
    ],
)
def test_an_endpoint_has_its_ipv6_address_in_brackets(ip: str, port: int, text: str) -> None:
    assert endpoint(ip, port) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.example", "a.example:80"), ("a.example:8080", "a.example:8080"), ("[::x", "[::x:80"), (":80", ":80:80")],
)
def test_a_name_that_was_sent_with_a_port_has_one_port(name: str, text: str) -> None:
    assert named_endpoint(name, 80) == text
