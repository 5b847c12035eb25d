"""Values that are written into SQL."""

import duckdb
import pytest

from conchart.store.sql import ASKING, with_values


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
    [
        ("postgresql", "CancelRequest", False),
        ("postgresql", "Query", True),
        ("mysql", "Quit", False),
        ("ldap", "unbind", False),
        ("http/1.1", None, True),
    ],
)
def test_what_no_server_answers_asks_nothing(protocol: str, method: str | None, answered: bool) -> None:  # noqa: FBT001
    asked = f"SELECT {ASKING} FROM (SELECT ? AS protocol, ? AS method)"
    assert duckdb.execute(asked, [protocol, method]).fetchone() == (answered,)
