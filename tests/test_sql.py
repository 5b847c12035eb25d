"""Values that are written into SQL."""

import duckdb
import pytest

from conchart.store.sql import with_values


@pytest.mark.parametrize("value", [0, 3, 10**18, 0.1, 1e-05, 1e18, 2.5])
def test_a_number_is_written_as_duckdb_would_take_it_as_a_parameter(value: float) -> None:
    query = "SELECT $value, typeof($value)"
    assert (
        duckdb.sql(with_values(query, {"value": value})).fetchall()
        == duckdb.execute(query, {"value": value}).fetchall()
    )


def test_what_has_no_value_stays_as_it_is() -> None:
    assert with_values("SELECT $one, $oneself, $1, '$'", {"one": 7}) == "SELECT 7, $oneself, $1, '$'"
