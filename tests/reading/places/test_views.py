"""What was read at each place, as views of its files."""

from pathlib import Path

import duckdb
import pytest

from conchart.reading.parts.cutting import Part
from conchart.reading.parts.model import Surveyed
from conchart.reading.parts.survey import _write
from conchart.reading.places.views import Place, read_files
from tests.by_hand import connection, tables_of


def place(work: Path, number: int, *streams: int) -> Place:
    folder = work / str(number)
    folder.mkdir()
    _write(tables_of(connections=[connection(stream) for stream in streams]), folder)
    surveyed = Surveyed(Part(0, ()), str(folder), 0, 0, 0, (), truncated=False, torn=())
    return Place(number, f"place-{number}", surveyed, [])


def test_rows_of_all_places_have_the_number_of_their_place(tmp_path: Path) -> None:
    tables = tables_of()
    places = [place(tmp_path, 0, 0, 1), place(tmp_path, 1, 0)]
    with tables.filling(), read_files(tables, places):
        rows = tables.fetch("SELECT part, stream, client_ip FROM all_connections ORDER BY ALL")
        assert rows == [(0, 0, "10.0.0.1"), (0, 1, "10.0.0.1"), (1, 0, "10.0.0.1")]
        assert tables.fetch("FROM all_phases") == []
        with pytest.raises(duckdb.CatalogException):
            tables.fetch("FROM all_sightings")
    with pytest.raises(duckdb.CatalogException):
        tables.fetch("FROM all_connections")


def test_what_steps_handed_to_each_other_is_dropped(tmp_path: Path) -> None:
    tables = tables_of()
    with tables.filling(), read_files(tables, [place(tmp_path, 0), place(tmp_path, 1)]):
        tables.execute("CREATE TEMP TABLE members AS SELECT 1 AS path; CREATE TEMP TABLE routes AS SELECT 1 AS path")
    assert tables.fetch("SELECT table_name FROM duckdb_tables() WHERE temporary") == []
