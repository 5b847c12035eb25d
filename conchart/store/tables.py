"""The tables of a trace: a DuckDB database with what ``schema`` declares. It stores, and nothing else.

In: batches of rows that speak Arrow, SQL, steps that fill the other tables when they are asked for. Out: relations.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import islice
from typing import Any

import duckdb

from conchart.labels.commands import NONE
from conchart.store.data_frames import refuse
from conchart.store.schema import TABLE_BY_NAME, TABLES
from conchart.store.sql import literal
from conchart.store.steps import Step, Steps

refuse()

_FEW = 50_000
"""Phases and packets up to which one thread works: to share so little takes longer than to do it."""

_ADDED_AT_ONCE = 2_000
"""Rows that are told to DuckDB in one text: reading it takes several times its own memory."""


def _rows_query(types: Mapping[str, str], rows: Iterable[tuple[object, ...]]) -> tuple[str, str]:
    """Give a query for rows, whose values stand in the order of the types, and its one parameter.

    One text: of parameters, DuckDB looks at each value by itself, for a tenth of a millisecond.
    """
    document = json.dumps([dict(zip(types, row, strict=True)) for row in rows])
    # JSON knows texts; whoever takes them makes ENUMs of them.
    plain = {name: "VARCHAR" if kind.startswith("ENUM") else kind for name, kind in types.items()}
    shape = json.dumps([{name: [kind[:-2]] if kind.endswith("[]") else kind for name, kind in plain.items()}])
    return f"SELECT unnest(from_json(?, '{shape}'), max_depth := 2)", document


def _values(
    table: str, batch: object, names: Iterable[str], others: Mapping[str, Sequence[str]] | None = None
) -> dict[str, str]:
    """Give an expression for each of these columns. Of words in a closed vocabulary, the core sends numbers.

    DuckDB does not look at columns of which the core says that they have no value.
    """
    types, words = TABLE_BY_NAME[table].types, {**getattr(batch, "words", {}), **(others or {})}
    expressions = {
        name: f"CAST([{', '.join(map(literal, words[name]))}] AS {types[name]}[])[{name}]" if name in words else name
        for name in names
    }
    return expressions | {name: f"CAST(NULL AS {types[name]})" for name in getattr(batch, "empty", ())}


class Rows:
    """A relation of one database, for another one: as such, DuckDB would refuse it."""

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        """Take a relation of a database that stays open."""
        self._relation = relation

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Speak Arrow."""
        return self._relation.__arrow_c_stream__(requested_schema)


class Tables:
    """The tables of a capture; ``docs/tables.md`` explains each column."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Take over a database that has the tables of ``schema``, or will have them after ``create``."""
        self._database = connection
        self.is_trial = False
        """What is done now will be undone: rows are those of a capture that still grows."""
        self.hides_sights = False
        """Queries find each connection once (``analysis/sights.py``)."""
        self._is_small = True
        self._steps = Steps()
        self._have_rows: dict[str, bool] = {}
        self.commands = NONE
        """What to type to see more of the same captures."""
        # Only tables are ever meant, never a Python variable of that name, and nothing is fetched from the network.
        connection.execute(
            "SET python_enable_replacements = false;"
            "SET autoinstall_known_extensions = false; SET autoload_known_extensions = false;"
            # Of what takes two seconds, DuckDB draws the progress: on standard output, in the middle of JSON.
            "SET enable_progress_bar = false; SET enable_progress_bar_print = false;"
            # DuckDB loops where it expects few rows, and expects few where a condition is all that it knows of them.
            "SET asof_loop_join_threshold = 0;"
        )

    def create(self) -> None:
        """Make every table, empty."""
        self._database.execute(";".join(table.ddl for table in TABLES))

    @contextmanager
    def filling(self) -> Iterator[None]:
        """Make ``insert`` fast: a quarter of the cost of plain inserts.

        In one transaction rows are not moved again at every batch, and a batch is too small to share between threads,
        which the core wants besides.
        """
        self._take_batches()
        if not self.is_trial:
            self.execute("BEGIN")
        yield
        if not self.is_trial:
            self.execute("COMMIT")
        self._answer_queries()

    @contextmanager
    def filled_so_far(self, rest: Iterable[tuple[str, object]]) -> Iterator[None]:
        """Have these batches besides in the middle of ``filling``, as long as the block lasts.

        Whatever the block does to the tables is undone at its end.
        """
        self.execute("COMMIT; BEGIN")
        self.is_trial = True
        try:
            for table, batch in rest:
                self.insert(table, batch)
            self._answer_queries()
            yield
        finally:
            self.owe(())
            self.execute("ROLLBACK")
            self._take_batches()
            self.execute("BEGIN")
            self.is_trial = False

    def _take_batches(self) -> None:
        self.execute("SET threads = 1; SET python_enable_replacements = true")

    def _answer_queries(self) -> None:
        self._is_small = self.count("phases") + self.count("packets") < _FEW
        threads = "SET threads = 1" if self._is_small else "RESET threads"
        self.execute(f"SET python_enable_replacements = false; {threads}")

    @contextmanager
    def uniting(self) -> Iterator[None]:
        """In the middle of ``filling``, take rows from files, with all threads and in any order."""
        self.execute("RESET threads; SET preserve_insertion_order = false")
        yield
        self.execute("RESET preserve_insertion_order")
        self._take_batches()

    def insert(self, table: str, batch: object) -> None:
        """Take a batch of the native core, which has exactly the columns that the core owes.

        Args:
            table: Its name.
            batch: An object with ``__arrow_c_stream__``, which DuckDB calls more than once.

        Raises:
            duckdb.Error: A column is missing, or is one too many.
        """
        self._take(table, batch, _values(table, batch, TABLE_BY_NAME[table].from_core))

    def put_aside(self, table: str, batch: object, path: str) -> None:
        """Write a batch of the native core into a Parquet file, in the middle of ``filling``, instead of keeping it."""
        chosen = ", ".join(
            f"{value} AS {name}" for name, value in _values(table, batch, TABLE_BY_NAME[table].from_core).items()
        )
        self._database.execute(f"COPY (SELECT {chosen} FROM batch) TO {literal(path)} (COMPRESSION lz4)")

    def unite(self, table: str, batch: object, words: Mapping[str, Sequence[str]]) -> None:
        """Take batches of the native core with all columns of a table, and further columns whose words it numbers.

        Rows without a ``stream`` are left out.
        """
        values = _values(table, batch, TABLE_BY_NAME[table].types, words)
        self.execute("SET python_enable_replacements = true")
        self._database.execute(
            f"INSERT INTO {table} ({', '.join(values)}) SELECT {', '.join(values.values())} FROM batch "
            "WHERE stream IS NOT NULL"
        )
        self.execute("SET python_enable_replacements = false")

    def add(self, table: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Add rows, whose values stand in the order of the columns."""
        left = iter(rows)
        while some := [*islice(left, _ADDED_AT_ONCE)]:
            query, document = _rows_query(TABLE_BY_NAME[table].types, some)
            self._database.execute(f"INSERT INTO {table} BY NAME {query}", [document])

    def lend(self, table: str, types: Mapping[str, str], rows: Iterable[tuple[object, ...]]) -> None:
        """Make a temporary table of these rows, with these names and types."""
        query, document = _rows_query(types, rows)
        self._database.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {query}", [document])

    def add_batch(self, table: str, batch: object) -> None:
        """Add the rows of a batch of the native core, which has all columns of the table."""
        values = _values(table, batch, TABLE_BY_NAME[table].types)
        self._execute_with(
            batch, f"INSERT INTO {table} ({', '.join(values)}) SELECT {', '.join(values.values())} FROM batch"
        )

    def lend_batch(self, table: str, batch: object) -> None:
        """Make a temporary table of a batch of the native core."""
        self._execute_with(batch, f"CREATE OR REPLACE TEMP TABLE {table} AS FROM batch")

    def _execute_with(self, batch: object, statement: str) -> None:  # noqa: ARG002  # the statement names the variable
        self._database.execute("SET python_enable_replacements = true")
        try:
            self._database.execute(statement)
        finally:
            self._database.execute("SET python_enable_replacements = false")

    @contextmanager
    def lent(self, table: str, types: Mapping[str, str], rows: Iterable[tuple[object, ...]]) -> Iterator[None]:
        """Have a table of these rows besides, with these names and types, as long as the block lasts."""
        self.lend(table, types, rows)
        try:
            yield
        except BaseException:
            with suppress(duckdb.Error):  # a failed transaction takes no statements, and its error is the one to tell
                self._database.execute(f"DROP TABLE {table}")
            raise
        self._database.execute(f"DROP TABLE {table}")

    def restore(self, table: str, batch: object) -> None:
        """Take rows of a whole table, with what analysis added to it, as a saved trace has them."""
        self._take(table, batch, {name: name for name in TABLE_BY_NAME[table].types})

    def _take(self, table: str, batch: object, values: Mapping[str, str]) -> None:
        # The name in the statement is the Python variable: a registered batch would live as long as the transaction.
        owed = ", ".join(values)
        chosen = ", ".join(values.values())
        self._database.execute(f"INSERT INTO {table} ({owed}) SELECT {chosen}, * EXCLUDE ({owed}) FROM batch")

    def owe(self, steps: Iterable[Step]) -> None:
        """Fill tables and columns by these steps, each when somebody first asks for what it writes."""
        self._steps = Steps(steps)
        self._have_rows.clear()

    def provide(self, *facts: str) -> None:
        """Have these tables (``links``) and columns (``connections.vantage``) filled now."""
        self._steps.provide(facts)

    def _provide_named(self, query: str) -> None:
        self._steps.provide_named(query)

    def stored(self, query: str, params: object = None) -> duckdb.DuckDBPyRelation:
        """Run SQL over what is filled so far: nothing is worked out for it."""
        return self._database.sql(query, params=params)

    def count(self, table: str) -> int:
        """Give the number of rows that the core gave a table."""
        ((rows,),) = self.stored(f"SELECT count(*) FROM {table}").fetchall()
        return int(rows)

    def sql(self, query: str, params: object = None) -> duckdb.DuckDBPyRelation:
        """Run SQL over the tables; what it names and nobody has asked for yet is worked out first.

        Args:
            query: DuckDB's SQL; ``?`` or ``$name`` stand for parameters.
            params: A list for ``?``, a dict for ``$name``.

        Returns:
            A relation: ``fetchall()`` gives tuples, and it speaks Arrow to pandas, Polars and pyarrow.

        Raises:
            duckdb.Error: The query is wrong.
        """
        self._provide_named(query)
        return self._database.sql(query, params=params)

    def forbid_files(self, query: str) -> None:
        """Work out what a query names; from then on, no SQL reads or writes files, or uses the network."""
        self._provide_named(query)
        for option in (
            "enable_external_access = false",
            "python_enable_replacements = false",
            "lock_configuration = true",
        ):
            self._database.execute(f"SET {option}")

    def fetch(self, query: str, params: object = None) -> list[tuple[Any, ...]]:
        """Give the rows of a query. ``sql(…).fetchall()`` gives the same, and plans the query twice."""
        return self.fetch_named(query, params)[1]

    def fetch_named(self, query: str, params: object = None) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Give the names of the columns of a query, and its rows."""
        names, _, records = self.fetch_typed(query, params)
        return names, records

    def fetch_typed(self, query: str, params: object = None) -> tuple[list[str], list[str], list[tuple[Any, ...]]]:
        """Give the names of the columns of a query, their types, and its rows."""
        self._provide_named(query)
        answer = self._database.execute(query, params)
        columns = answer.description or ()
        return [name for name, *_ in columns], [str(kind) for _, kind, *_ in columns], answer.fetchall()

    def has_rows(self, query: str) -> bool:
        """Whether a query has rows, which is looked up once: for what does not change when steps have run."""
        if query not in self._have_rows:
            self._have_rows[query] = bool(self.fetch(f"FROM ({query}) LIMIT 1"))
        return self._have_rows[query]

    def execute(self, statement: str, params: object = None) -> None:
        """Run a statement that returns no rows: a new table or view, a ``COPY``.

        Raises:
            duckdb.Error: The statement is wrong.
        """
        self._provide_named(statement)
        self._database.execute(statement, params)

    @cached_property
    def have_places(self) -> bool:
        """Whether captures of several places were read."""
        return self.count("places") > 0

    @cached_property
    def have_logs(self) -> bool:
        """Whether access logs were read."""
        return self.count("logs") > 0

    def logs_were_read(self) -> None:
        """Look once more whether there are logs: while a capture grew, there were none."""
        self.__dict__.pop("have_logs", None)

    def __getattr__(self, name: str) -> duckdb.DuckDBPyRelation:
        """Give a table of the schema by its name, as in ``trace.connections``.

        Raises:
            AttributeError: There is no such table.
        """
        if name not in TABLE_BY_NAME:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute and no table {name!r}", name=name, obj=self
            )
        self._provide_named(name)
        return self._database.table(name)

    def __dir__(self) -> Iterable[str]:
        """List the tables, too."""
        return [*super().__dir__(), *TABLE_BY_NAME]
