"""What a reader should know of the quality of a capture."""

from conchart.report.remarks import Remark, remarks
from tests.by_hand import tables_of


def test_remarks_are_listed_in_their_order_and_what_is_not_said_is_empty() -> None:
    rows = [
        {"number": 1, "warning": False, "kind": "keys", "title": "No keys"},
        {"number": 0, "warning": True, "kind": "dropped", "title": "Lost", "effect": "Less", "advice": "Larger buffer"},
    ]
    assert remarks(tables_of(remarks=rows)) == [
        Remark(warning=True, kind="dropped", title="Lost", effect="Less", advice="Larger buffer"),
        Remark(warning=False, kind="keys", title="No keys", effect="", advice=""),
    ]
    assert remarks(tables_of()) == []
