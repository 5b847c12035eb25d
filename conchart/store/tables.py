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
from conchart.store.schema import TABLE_BY_NAME, TABLES
from conchart.store.sql import literal
from conchart.store.steps import Step, Steps

_FEW = 50_000
"""Phases and packets up to which one thread works: to share so little takes longer than to do it."""

_ADDED_AT_ONCE = 2_000
"""Rows that are told to DuckDB in one text: reading it takes several times its own memory."""


def _told(types: Mapping[str, str], rows: Iterable[tuple[object, ...]]) -> tuple[str, str]:
    """Give a query for rows, whose values stand in the order of the types, and its one parameter.

    One text: of parameters, DuckDB looks at each value by itself, for a tenth of a millisecond.
    """
    told = json.dumps([dict(zip(types, row, strict=True)) for row in rows])
    # JSON knows texts; whoever takes them makes ENUMs of them.
    plain = {name: "VARCHAR" if kind.startswith("ENUM") else kind for name, kind in types.items()}
    shape = json.dumps([{name: [kind[:-2]] if kind.endswith("[]") else kind for name, kind in plain.items()}])
    return f"SELECT unnest(from_json(?, '{shape}'), max_depth := 2)", told


def _values(
    table: str, batch: object, names: Iterable[str], others: Mapping[str, Sequence[str]] | None = None
) -> dict[str, str]:
    """Give an expression for each of these columns. Of words in a closed vocabulary, the core sends numbers.

    DuckDB does not look at columns of which the core says that they have no value.
    """
    types, words = TABLE_BY_NAME[table].types, {**getattr(batch, "words", {}), **(others or {})}
    told = {
        name: f"CAST([{', '.join(map(literal, words[name]))}] AS {types[name]}[])[{name}]" if name in words else name
        for name in names
    }
    return told | {name: f"CAST(NULL AS {types[name]})" for name in getattr(batch, "empty", ())}


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
        self._is_trial = False
        self._is_small = True
        self._steps = Steps()
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
        if not self._is_trial:
            self.execute("BEGIN")
        yield
        if not self._is_trial:
            self.execute("COMMIT")
        self._answer_queries()

    @contextmanager
    def filled_so_far(self, rest: Iterable[tuple[str, object]]) -> Iterator[None]:
        """Have these batches besides in the middle of ``filling``, as long as the block lasts.

        Whatever the block does to the tables is undone at its end.
        """
        self.execute("COMMIT; BEGIN")
        self._is_trial = True
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
            self._is_trial = False

    def _take_batches(self) -> None:
        self.execute("SET threads = 1; SET python_enable_replacements = true")

    def _answer_queries(self) -> None:
        if self._steps.running is None:  # a step adds neither phases nor packets
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
            query, told = _told(TABLE_BY_NAME[table].types, some)
            self._database.execute(f"INSERT INTO {table} BY NAME {query}", [told])

    def lend(self, table: str, types: Mapping[str, str], rows: Iterable[tuple[object, ...]]) -> None:
        """Make a temporary table of these rows, with these names and types."""
        query, told = _told(types, rows)
        self._database.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {query}", [told])

    def lend_batch(self, table: str, batch: object) -> None:
        """Make a temporary table of a batch of the native core."""
        self.execute("SET python_enable_replacements = true")
        try:
            self._database.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS FROM batch")
        finally:
            self.execute("SET python_enable_replacements = false")

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
        self._provide_named(query)
        answer = self._database.execute(query, params)
        return [name for name, *_ in answer.description or ()], answer.fetchall()

    def execute(self, statement: str, params: object = None) -> None:
        """Run a statement that returns no rows: a new table or view, a ``COPY``.

        Raises:
            duckdb.Error: The statement is wrong.
        """
        self._provide_named(statement)
        self._database.execute(statement, params)

    def _table(self, name: str) -> duckdb.DuckDBPyRelation:
        self._provide_named(name)
        return self._database.table(name)

    @property
    def captures(self) -> duckdb.DuckDBPyRelation:
        """One row per file."""
        return self._table("captures")

    @property
    def connections(self) -> duckdb.DuckDBPyRelation:
        """One row per TCP connection or UDP conversation."""
        return self._table("connections")

    @property
    def handshakes(self) -> duckdb.DuckDBPyRelation:
        """One row per TLS handshake."""
        return self._table("handshakes")

    @property
    def exchanges(self) -> duckdb.DuckDBPyRelation:
        """One row per request and its response."""
        return self._table("exchanges")

    @property
    def exchange_messages(self) -> duckdb.DuckDBPyRelation:
        """One row per message of gRPC and WebSocket."""
        return self._table("exchange_messages")

    @property
    def phases(self) -> duckdb.DuckDBPyRelation:
        """The tiling of every connection."""
        return self._table("phases")

    @property
    def stalls(self) -> duckdb.DuckDBPyRelation:
        """Why the next byte did not come, one row per stretch of a connection."""
        return self._table("stalls")

    @property
    def lost_packets(self) -> duckdb.DuckDBPyRelation:
        """Packets of QUIC that their sender took for lost, with keys."""
        return self._table("lost_packets")

    @property
    def client_moves(self) -> duckdb.DuckDBPyRelation:
        """Clients of QUIC that went on from another address or port."""
        return self._table("client_moves")

    @property
    def races(self) -> duckdb.DuckDBPyRelation:
        """Attempts to reach a server that lost against another one of the same client."""
        return self._table("races")

    @property
    def packets(self) -> duckdb.DuckDBPyRelation:
        """One row per TCP segment or UDP datagram; of a large capture, those that tell of trouble."""
        return self._table("packets")

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

    @property
    def places(self) -> duckdb.DuckDBPyRelation:
        """One row per place at which captures were taken; empty if nobody named any."""
        return self._table("places")

    @property
    def clocks(self) -> duckdb.DuckDBPyRelation:
        """How far the clock of each place is ahead of the first one's."""
        return self._table("clocks")

    @property
    def paths(self) -> duckdb.DuckDBPyRelation:
        """The places that saw each connection, from the client on."""
        return self._table("paths")

    @property
    def losses(self) -> duckdb.DuckDBPyRelation:
        """Packets that one place saw and the next one did not."""
        return self._table("losses")

    @property
    def changes(self) -> duckdb.DuckDBPyRelation:
        """What was changed in packets between two places."""
        return self._table("changes")

    @property
    def disorders(self) -> duckdb.DuckDBPyRelation:
        """Packets that were overtaken, doubled or sent again needlessly between two places."""
        return self._table("disorders")

    @property
    def whereabouts(self) -> duckdb.DuckDBPyRelation:
        """Where the time of each phase was spent: hosts, and paths between places."""
        return self._table("whereabouts")

    @property
    def crossings(self) -> duckdb.DuckDBPyRelation:
        """How long the packets of each connection were under way between two places."""
        return self._table("crossings")

    @property
    def sightings(self) -> duckdb.DuckDBPyRelation:
        """One row per packet and place."""
        return self._table("sightings")

    @property
    def records(self) -> duckdb.DuckDBPyRelation:
        """One row per TLS record; none of a large capture."""
        return self._table("records")

    @property
    def messages(self) -> duckdb.DuckDBPyRelation:
        """One row per TLS handshake message that can be read; none of a large capture."""
        return self._table("messages")

    @property
    def quic_frames(self) -> duckdb.DuckDBPyRelation:
        """One row per frame of QUIC, of connections whose packets are all kept."""
        return self._table("quic_frames")

    @property
    def http3_frames(self) -> duckdb.DuckDBPyRelation:
        """One row per frame of HTTP/3, of connections whose packets are all kept."""
        return self._table("http3_frames")

    @property
    def stalled(self) -> duckdb.DuckDBPyRelation:
        """The part of each phase that a stall explains."""
        return self._table("stalled")

    @property
    def links(self) -> duckdb.DuckDBPyRelation:
        """Which exchange behind a proxy an exchange in front of it caused."""
        return self._table("links")

    @property
    def nodes(self) -> duckdb.DuckDBPyRelation:
        """Which addresses are one machine."""
        return self._table("nodes")

    @property
    def logged(self) -> duckdb.DuckDBPyRelation:
        """What the access log of a proxy would have said of each request that it handed on."""
        return self._table("logged")

    @property
    def spans(self) -> duckdb.DuckDBPyRelation:
        """One row per span that ``--spans`` names, with the request that it is about."""
        return self._table("spans")

    @property
    def logs(self) -> duckdb.DuckDBPyRelation:
        """One row per access log that was read beside the captures."""
        return self._table("logs")

    @property
    def log_lines(self) -> duckdb.DuckDBPyRelation:
        """One row per line of these logs, beside the exchange that it is about."""
        return self._table("log_lines")

    @property
    def log_times(self) -> duckdb.DuckDBPyRelation:
        """What the lines say of times, beside what the packets say of the same."""
        return self._table("log_times")

    @property
    def log_differences(self) -> duckdb.DuckDBPyRelation:
        """What users waited longer than the log says, and what explains it."""
        return self._table("log_differences")

    @property
    def on_behalf(self) -> duckdb.DuckDBPyRelation:
        """Which requests were made for another one."""
        return self._table("on_behalf")

    @property
    def checks(self) -> duckdb.DuckDBPyRelation:
        """Health checks, which rules leave out."""
        return self._table("checks")

    @property
    def splits(self) -> duckdb.DuckDBPyRelation:
        """What the waits at each front consist of."""
        return self._table("splits")

    @property
    def servers(self) -> duckdb.DuckDBPyRelation:
        """One row per server address and port."""
        return self._table("servers")

    @property
    def times(self) -> duckdb.DuckDBPyRelation:
        """Where each server's time went."""
        return self._table("times")

    @property
    def wait_owners(self) -> duckdb.DuckDBPyRelation:
        """Whose time it was that users waited for, per phase at a server."""
        return self._table("wait_owners")

    @property
    def coverage(self) -> duckdb.DuckDBPyRelation:
        """What the keys given opened; empty where there were none."""
        return self._table("coverage")

    @property
    def remarks(self) -> duckdb.DuckDBPyRelation:
        """What a reader should know of the quality of the capture."""
        return self._table("remarks")

    @property
    def unjudged(self) -> duckdb.DuckDBPyRelation:
        """What could not be judged, and why; empty where all was."""
        return self._table("unjudged")

    @property
    def findings(self) -> duckdb.DuckDBPyRelation:
        """What is wrong, who does it, what it costs, what to change."""
        return self._table("findings")

    @property
    def explained(self) -> duckdb.DuckDBPyRelation:
        """How much of what users waited the findings explain, by whose time it was."""
        return self._table("explained")
