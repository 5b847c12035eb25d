"""What a status is called depends on who gives it."""

import duckdb
import pytest

from conchart.store.sql import ANSWER, ASKING


@pytest.mark.parametrize(
    ("protocol", "status", "name"),
    [
        ("http/1.1", 404, "404"),
        ("h2", 0, "0"),
        ("dns", 3, "NXDOMAIN"),
        ("dns", 11, "RCODE 11"),
        ("ldap", 0, "success"),
        ("ldap", 32, "noSuchObject"),
        ("ldap", 4096, "result code 4096"),
        ("ldap", None, None),
        ("tls", None, None),
    ],
)
def test_a_status_is_called_as_its_protocol_does(protocol: str, status: int | None, name: str | None) -> None:
    answer = duckdb.execute(f"SELECT {ANSWER} FROM (SELECT $1 AS protocol, $2::INTEGER AS status)", [protocol, status])
    assert answer.fetchall() == [(name,)]


@pytest.mark.parametrize(
    ("protocol", "method", "asks"),
    [("ldap", "search", True), ("ldap", None, True), ("ldap", "unbind", False), ("ldap", "abandon", False),
     ("http/1.1", "unbind", True), ("tls", None, True), ("proxy", None, False)],
)  # fmt: skip
def test_nobody_answers_unbind_abandon_and_a_proxy_header(protocol: str, method: str | None, asks: bool) -> None:
    found = duckdb.execute(f"SELECT {ASKING} FROM (SELECT $1 AS protocol, $2 AS method)", [protocol, method]).fetchall()
    assert found == [(asks,)]
