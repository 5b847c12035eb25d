"""Values that are written into SQL."""

import duckdb
import pytest

from conchart.store.sql import ASKING, PROTOCOLS, with_values


@pytest.mark.parametrize("value", [0, 3, 10**18, 0.1, 1e-05, 1e18, 2.5])
def test_a_number_is_written_as_duckdb_would_take_it_as_a_parameter(value: float) -> None:
    query = "SELECT $value, typeof($value)"
    assert (
        duckdb.sql(with_values(query, {"value": value})).fetchall()
        == duckdb.execute(query, {"value": value}).fetchall()
    )


def test_what_has_no_value_stays_as_it_is() -> None:
    assert with_values("SELECT $one, $oneself, $1, '$'", {"one": 7}) == "SELECT 7, $oneself, $1, '$'"


@pytest.mark.parametrize(
    ("protocol", "method", "answered"),
    [("ldap", "search", True), ("ldap", None, True), ("ldap", "unbind", False), ("ldap", "abandon", False),
     ("memcached", "get", True), ("memcached", "quit", False), ("memcached", None, True),
     ("mongodb", "find", True), ("mongodb", "OP_INSERT", False), ("mongodb", None, True),
     ("mysql", "Query", True), ("mysql", "Quit", False), ("mysql", None, True),
     ("postgresql", "Query", True), ("postgresql", "CancelRequest", False),
     ("http/1.1", "unbind", True), ("http/1.1", None, True), ("tls", None, True), ("proxy", None, False)],
)  # fmt: skip
def test_what_no_server_answers_asks_nothing(protocol: str, method: str | None, answered: bool) -> None:  # noqa: FBT001
    (kind,) = (row["kind"] for row in PROTOCOLS if row["name"] == protocol)
    query = f"SELECT {ASKING} FROM (SELECT ? AS protocol, ? AS kind, ? AS method)"
    assert duckdb.execute(query, [protocol, kind, method]).fetchone() == (answered,)
