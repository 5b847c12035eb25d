"""Where the time of phases was spent, as page and terminal both tell it."""

from typing import Any

from conchart.report.phase_places import Where, phase_places
from conchart.report.places import Part
from conchart.store.tables import Tables
from tests.by_hand import Row, tables_of

MS = 1_000_000


def spent(*parts: tuple[int, int, str, str, str | None, int | None]) -> Tables:
    """Give a wait of 100 ms, of which parts are known: from, to, kind, place, other place, doubt."""
    rows: list[Row] = [
        {
            "stream": 0, "exchange": 0, "phase": "wait", "start_at": start * MS, "end_at": end * MS, "kind": kind,
            "place": place, "to_place": to_place, "uncertainty_ns": doubt, "of_stream": 0,
        }
        for start, end, kind, place, to_place, doubt in parts
    ]  # fmt: skip
    return tables_of(
        phase_places=rows,
        paths=[{"stream": 0, "position": number, "place": place} for number, place in enumerate(("client", "app"))],
        phases=[
            {"stream": 0, "exchange": 0, "kind": "wait", "start_at": 0, "end_at": 60 * MS},
            {"stream": 0, "exchange": 0, "kind": "wait", "start_at": 70 * MS, "end_at": 110 * MS},
            {"stream": 0, "exchange": 1, "kind": "wait", "start_at": 0, "end_at": 999 * MS},
            {"stream": 1, "exchange": 0, "kind": "wait", "start_at": 0, "end_at": 999 * MS},
        ],
    )


def part(kind: str, place: str, to_place: str | None, ns: int, doubt: int | None = 0) -> Part:
    return Part(kind=kind, place=place, to_place=to_place, total_ns=ns, uncertainty_ns=doubt)


def where_of(*parts: tuple[int, int, str, str, str | None, int | None]) -> Where:
    (where,) = phase_places(spent(*parts), 0)
    return where


OUT: Any = (0, 20, "path", "client", "app", 3)
BACK: Any = (80, 90, "path", "app", "client", 1)
HOST: Any = (20, 50, "host", "app", None, None)


def test_a_phase_is_divided_and_what_is_not_known_is_the_rest() -> None:
    where = where_of(HOST, OUT, BACK)
    assert (where.phase, where.exchange, where.total_ns) == ("wait", 0, 100 * MS)
    assert where.parts == (part("path", "client", "app", 30 * MS, 2), part("host", "app", None, 30 * MS))
    assert str(where) == "wait 100 ms = path client–app 30.0 ms ± 2 ns, at app 30.0 ms, not known 40.0 ms"


def test_where_a_clock_is_not_known_of_one_direction_nothing_is_known_of_the_way() -> None:
    assert where_of(OUT, (80, 90, "path", "app", "client", None)).parts == (
        part("path", "client", "app", 30 * MS, None),
    )


def test_losses_are_told_by_direction() -> None:
    there, back = (0, 20, "loss", "client", "app", None), (80, 90, "loss", "app", "client", None)
    assert where_of(there, back).parts == (
        part("loss", "client", "app", 20 * MS),
        part("loss", "app", "client", 10 * MS),
    )


def test_who_was_waited_for_first_comes_first() -> None:
    late = (95, 99, "host", "client", None, None)
    assert [one.words for one in where_of(late, HOST, BACK).parts] == ["at app", "path client–app", "at client"]


def test_where_all_is_known_nothing_is_left() -> None:
    assert "not known" not in str(where_of((0, 60, "host", "app", None, None), (70, 110, "host", "client", None, None)))


def test_of_a_connection_without_places_nothing_is_told() -> None:
    assert phase_places(spent(OUT), 1) == []
