"""What a status is called depends on who gives it."""

import re

import duckdb
import pytest

from conchart.store.sql import ANSWER, ASKING
from tests.conftest import ROOT


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
        ("redis", 0, "OK"),
        ("redis", 2, "WRONGTYPE"),
        ("redis", 999, "error"),
        ("redis", None, None),
        ("memcached", 0, "OK"),
        ("memcached", 3, "SERVER_ERROR"),
        ("memcached", None, None),
        ("mongodb", 0, "OK"),
        ("mongodb", 11000, "DuplicateKey"),
        ("mongodb", 4711, "error 4711"),
        ("mongodb", None, None),
        ("postgresql", 0, "00000"),
        ("postgresql", 6820851, "42703"),
        ("postgresql", 36**5 - 1, "ZZZZZ"),
        ("postgresql", None, None),
        ("fastcgi", 404, "404"),
        ("fastcgi", 2, "OVERLOADED"),
        ("fastcgi", None, None),
        ("mysql", 0, "OK"),
        ("mysql", 1062, "ERROR 1062"),
        ("mysql", None, None),
        ("tls", None, None),
    ],
)
def test_a_status_is_called_as_its_protocol_does(protocol: str, status: int | None, name: str | None) -> None:
    answer = duckdb.execute(f"SELECT {ANSWER} FROM (SELECT $1 AS protocol, $2::INTEGER AS status)", [protocol, status])
    assert answer.fetchall() == [(name,)]


@pytest.mark.parametrize(
    ("protocol", "method", "asks"),
    [("ldap", "search", True), ("ldap", None, True), ("ldap", "unbind", False), ("ldap", "abandon", False),
     ("memcached", "get", True), ("memcached", "quit", False), ("memcached", None, True),
     ("mongodb", "find", True), ("mongodb", "OP_INSERT", False), ("mongodb", None, True),
     ("mysql", "Query", True), ("mysql", "Quit", False), ("mysql", None, True),
     ("http/1.1", "unbind", True), ("tls", None, True), ("proxy", None, False)],
)  # fmt: skip
def test_some_requests_are_never_answered(protocol: str, method: str | None, asks: bool) -> None:
    found = duckdb.execute(f"SELECT {ASKING} FROM (SELECT $1 AS protocol, $2 AS method)", [protocol, method]).fetchall()
    assert found == [(asks,)]


def test_errors_of_memcached_have_the_numbers_that_the_core_gives_them() -> None:
    source = (ROOT / "conchart/native/src/exchange/memcached/mod.rs").read_text(encoding="utf-8")
    (listed,) = re.findall(r"const ERRORS: &\[&str\] = &\[(.*?)\];", source, re.DOTALL)
    rows = "SELECT 'memcached' AS protocol, unnest(range(4))::INTEGER AS status"
    named = [name for (name,) in duckdb.execute(f"SELECT {ANSWER} FROM ({rows}) ORDER BY status").fetchall()]
    assert named == re.findall(r'"([A-Z_]+)"', listed)


def test_errors_of_redis_have_the_numbers_that_the_core_gives_them() -> None:
    source = (ROOT / "conchart/native/src/exchange/redis/mod.rs").read_text(encoding="utf-8")
    (listed,) = re.findall(r"const ERRORS: &\[&str\] = &\[(.*?)\];", source, re.DOTALL)
    words = re.findall(r'"([A-Z]+)"', listed)
    rows = "SELECT 'redis' AS protocol, unnest(range(100))::INTEGER AS status"
    named = [name for (name,) in duckdb.execute(f"SELECT {ANSWER} FROM ({rows}) ORDER BY status").fetchall()]
    assert named == words + ["error"] * (100 - len(words))
