"""What statements and Python cost: rows that DuckDB's operators gave or compared, lines of Python that ran.

In: a database, a block of code. Out: :class:`Costs`, by the place in ``conchart`` that asked. Counts are the same on
every machine, as seconds are not.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import duckdb

from tests.conftest import ROOT

PACKAGE = str(ROOT / "conchart") + "/"
_STORE = PACKAGE + "store/tables.py"
_METRICS = ("OPERATOR_CARDINALITY", "OPERATOR_ROWS_SCANNED", "OPERATOR_TYPE", "EXTRA_INFO")
_EACH_WITH_EACH = ("NESTED_LOOP_JOIN", "BLOCKWISE_NL_JOIN", "CROSS_PRODUCT", "PIECEWISE_MERGE_JOIN", "IE_JOIN")
"""Joins that may compare each row of one side with each of the other, whatever they give."""
_ASKING = "INSERT INTO found BY NAME "
_RULE = re.compile(_ASKING + r"SELECT '([^']*)' AS rule")
"""A statement that asks a rule, and its name."""
_BETWEEN_RULES = "UNION ALL BY NAME\n"

Place = str
"""File and function of ``conchart`` that asked for a statement or ran."""


@dataclass
class Costs:
    """What was counted, by place."""

    rows: Counter[Place] = field(default_factory=Counter)
    """Rows scanned, given by operators, or compared by joins."""
    fetched: Counter[Place] = field(default_factory=Counter)
    """Rows that became Python objects."""
    lines: Counter[Place] = field(default_factory=Counter)
    """Lines of Python that ran."""
    unkeyed: dict[Place, set[str]] = field(default_factory=dict)
    """Conditions that a hash join checks for every two rows with one key: how many it compared, no profile says."""


def _asking() -> Place:
    """Give the place in ``conchart`` that a statement comes from."""
    frame: FrameType | None = sys._getframe(1)
    while frame and (not frame.f_code.co_filename.startswith(PACKAGE) or frame.f_code.co_filename == _STORE):
        frame = frame.f_back
    return _place(frame) if frame else "tests"


def _place(frame: FrameType) -> Place:
    return f"{frame.f_code.co_filename.removeprefix(PACKAGE)}: {frame.f_code.co_name}"


class Metered:
    """A database that counts what its statements cost, and otherwise is one."""

    def __init__(self, costs: Costs) -> None:
        """Open a database in memory."""
        self._costs = costs
        self._database = duckdb.connect(":memory:")
        metrics = json.dumps(dict.fromkeys(_METRICS, "true"))
        # What is lent to a statement is a variable of the function that calls this one.
        self._database.execute(
            "PRAGMA enable_profiling = 'no_output'; SET python_scan_all_frames = true;"
            f"PRAGMA custom_profiling_settings = '{metrics}'"
        )

    def execute(self, statements: str, params: Any = None) -> "Metered":  # noqa: ANN401  (as DuckDB's)
        """Run statements one by one: a profile is that of the last one. So are rules that one statement asks."""
        if statements.startswith(_ASKING):
            statements = ";".join(_ASKING + rule for rule in statements.removeprefix(_ASKING).split(_BETWEEN_RULES))
        for statement in duckdb.extract_statements(statements):
            named = statement.named_parameters
            own = (
                {name: value for name, value in params.items() if name in named} if isinstance(params, dict) else params
            )
            self._database.execute(statement, own)
            match = _RULE.search(statement.query)
            self.count(match[1] if match else None)
        return self

    def sql(self, query: str, params: Any = None) -> "_Relation":  # noqa: ANN401  (as DuckDB's)
        """Give a relation whose costs count when it is fetched."""
        relation = self._database.sql(query, params=params)
        if params is not None:  # then DuckDB has run it
            self.count()
        return _Relation(self, relation)

    def fetched(self, rows: int) -> None:
        """Count rows that became Python objects."""
        self._costs.fetched[_asking()] += rows

    def count(self, rule: str | None = None) -> None:
        """Count what the last statement cost, with a rule's name where it is that of a rule."""
        profile = self._database.get_profiling_information("json")
        place, queue = _asking() + (f", {rule}" if rule else ""), [json.loads(profile)] if profile else []
        for operator in queue:  # grows while it is walked
            queue += (below := operator.get("children", ()))
            rows = operator.get("operator_cardinality", 0) + operator.get("operator_rows_scanned", 0)
            kind = operator.get("operator_type", "")
            if kind in _EACH_WITH_EACH and len(below) == 2:
                rows += below[0].get("operator_cardinality", 0) * below[1].get("operator_cardinality", 0)
            if kind == "HASH_JOIN":
                conditions = operator.get("extra_info", {}).get("Conditions", [])
                conditions = [conditions] if isinstance(conditions, str) else conditions
                beside = {
                    condition for condition in conditions if not re.search(r" (=|IS NOT DISTINCT FROM) ", condition)
                }
                if beside:
                    self._costs.unkeyed.setdefault(place, set()).update(beside)
            self._costs.rows[place] += rows

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  (whatever a database has)
        return getattr(self._database, name)


class _Relation:
    """A relation of a :class:`Metered` database."""

    def __init__(self, database: Metered, relation: duckdb.DuckDBPyRelation) -> None:
        self._database = database
        self._relation = relation

    def fetchall(self) -> list[Any]:
        rows = self._relation.fetchall()
        self._database.count()
        self._database.fetched(len(rows))
        return rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        # A stream has no profile before somebody has read it, and is read elsewhere.
        self._relation.filter("true").fetchall()
        self._database.count()
        return self._relation.__arrow_c_stream__(requested_schema)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  (whatever a relation has)
        return getattr(self._relation, name)


@contextmanager
def counting_lines(costs: Costs) -> Iterator[None]:
    """Count the lines of ``conchart`` that run in the block."""

    def in_function(frame: FrameType, event: str, argument: object) -> Any:  # noqa: ANN401, ARG001  (as sys.settrace)
        if event == "line":
            costs.lines[_place(frame)] += 1
        return in_function

    def calls(frame: FrameType, event: str, argument: object) -> Any:  # noqa: ANN401, ARG001  (as sys.settrace)
        return in_function if frame.f_code.co_filename.startswith(PACKAGE) else None

    before = sys.gettrace()
    sys.settrace(calls)
    try:
        yield
    finally:
        sys.settrace(before)


def folder_of(place: Place) -> str:
    """Give the package that a place belongs to."""
    return Path(place.split(":")[0]).parts[0]
