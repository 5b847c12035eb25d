"""The script that asks scapy: messages in, a line of fields for each. It runs as a process of its own, here too."""

import json
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest

from tests.conftest import ROOT

SCRIPT = ROOT / "conchart/questions/dissect/scapy_fields.py"
SERVER_HELLO = "0303" + "11" * 32 + "00" + "1301" + "00" + "0000"
"""RFC 8446 section 4.1.3: version, random, no session ID, cipher suite, compression, no extensions."""
CLIENT_HELLO = (
    "0303"
    + "22" * 32
    + "00"
    + "0006"
    + "0a0a"
    + "1301"
    + "c02f"
    + "0100"
    + "000e"
    + "0000000a00080000057368"
    + "6f701b"
)
"""Three cipher suites, the first of which means nothing (RFC 8701), and a server name with a control character."""


@pytest.fixture(scope="module")
def answers() -> list[list[list[Any]]]:
    if find_spec("scapy") is None:
        pytest.skip("scapy is not installed")
    messages = [
        {"kind": kind, "version": version, "body": body}
        for kind, version, body in (
            (2, "TLSv1.3", SERVER_HELLO), (2, "TLSv1.3", "03"), (1, "TLSv1.2", CLIENT_HELLO),
            (20, "TLSv1.2", "aa" * 12), (99, "TLSv1.2", "00"),
        )
    ]  # fmt: skip
    ran = subprocess.run(
        [sys.executable, str(SCRIPT)], input=json.dumps(messages), capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_each_message_has_a_line_whatever_the_others_are(answers: list[Any]) -> None:
    assert len(answers) == 5
    assert [fields[0][0] for fields in answers] == ["version", "undissected", "version", "verify data", "undissected"]


def test_fields_are_named_as_iana_names_them(answers: list[Any]) -> None:
    assert answers[0] == [
        ["version", "TLSv1.2", 0],
        ["random", "11" * 32, 0],
        ["session ID", "empty", 0],
        ["cipher suite", "TLS_AES_128_GCM_SHA256", 0],
        ["compression method", "null", 0],
        ["extensions", "0", 0],
    ]
    assert answers[3] == [["verify data", "aa" * 12, 0]]


def test_items_of_a_list_are_counted_and_stand_below_it(answers: list[Any]) -> None:
    place = answers[2].index(["cipher suites", "3", 0])
    assert answers[2][place + 1 : place + 4] == [
        ["cipher suite", "GREASE (0x0a0a)", 1],
        ["cipher suite", "TLS_AES_128_GCM_SHA256", 1],
        ["cipher suite", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", 1],
    ]


def test_what_hostile_bytes_say_can_be_printed(answers: list[Any]) -> None:
    assert answers[2][-1] == ["server_name", "shop\ufffd", 1]


def test_what_cannot_be_read_says_how_long_it_is_and_why(answers: list[Any]) -> None:
    assert answers[1] == [["undissected", "1 bytes: error", 0]]
    assert answers[4] == [["undissected", "1 bytes: scapy does not support this type of message", 0]]
