"""A trace: the tables of a capture, in a DuckDB database in memory, beyond a limit on disk.

In: captures, or a saved trace. Out: tables, SQL over them, files. Reading fills the tables that hold what packets say;
what is worked out of those is filled when somebody asks for it. What was saved is complete.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import duckdb

from conchart.analysis import plan
from conchart.analysis.findings.rule import chosen_thresholds, load_rules
from conchart.analysis.races import find_races
from conchart.analysis.seen_from import see_from
from conchart.analysis.waiting import wait_on
from conchart.errors import UsageError
from conchart.files.paths import remove_folder
from conchart.files.replacing import Named, folder_files, refuse_foreign, refuse_inputs
from conchart.files.unfinished import Undone
from conchart.labels.commands import Commands, commands
from conchart.outputs import form_of, matching_suffix, write
from conchart.outputs.options import DrawOptions
from conchart.reading.knowledge import Knowledge, Vantage
from conchart.reading.live.growing import Growing
from conchart.reading.options import Progress, ReadOptions, SeenFrom, Statements
from conchart.reading.proxies import given_proxies, require_seen
from conchart.reading.selection import DETAILED, selection
from conchart.reading.source import Source
from conchart.reading.strategy import strategy_for
from conchart.store.memory import no_room, spill_folder, table_limit
from conchart.store.saved import read_saved
from conchart.store.sql import literal
from conchart.store.steps import Step
from conchart.store.tables import Tables

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from conchart.logs.reading import AccessLog
    from conchart.reading.spans import Spans

_ORDINARY = "coalesce(mark NOT IN ('retransmit', 'out_of_order', 'gap', 'zero_window'), true)"
"""Of a packet: it tells of no trouble."""

Watch = Callable[["Trace"], object]
"""Shown now and then what was read so far, as if the capture had ended there, but for what is under way: requests and
handshakes are told when they are over. The trace is only lent."""


def read(
    *paths: str | os.PathLike[str] | Growing,
    filter: str | None = None,  # noqa: A002  (the word everybody uses for it)
    start: int | str | None = None,
    end: int | str | None = None,
    count: int | None = None,
    packets: bool = False,
    explain: int | None = None,
    vantage: Vantage | None = None,
    seen_from: SeenFrom | None = None,
    proxies: Iterable[str | Collection[str]] = (),
    places: Mapping[str, str | os.PathLike[str] | Sequence[str | os.PathLike[str]]] | None = None,
    trusted_clocks: Collection[str] = (),
    keylog: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    findings: Iterable[str | os.PathLike[str]] = (),
    thresholds: Mapping[str, float] | None = None,
    spans: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    statements: Statements = "shape",
    access_logs: Iterable[str | os.PathLike[str]] = (),
    log_formats: Iterable[str] = (),
    memory: int | str | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    parts: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> "Trace":
    """Read captures into tables, in one streaming pass.

    The tables that hold what is worked out of those (``links``, ``servers``, ``findings`` …) are filled when the first
    query or file needs them.

    Args:
        paths: pcap or pcapng files, compressed (gzip, zstd) or not; ``-`` is standard input. A text with ``://``
            is a URL, which fsspec opens, or a pattern of URLs (``s3://bucket/lb-1/*.pcap.zst``). Several count on from
            each other, as if ``mergecap -a`` had joined them. What is still growing (``conchart.reading.live``: an
            interface, a pipe, a file) is read until it ends.
        filter: A capture filter in tcpdump's language, compiled by libpcap.
        start: Leave out packets before this instant: nanoseconds since the Unix epoch, or text as ``-s`` takes it
            (``2.5`` seconds after the first packet, ``2026-11-20T23:15:00Z``).
        end: Leave out packets at and after this instant.
        count: Stop after so many selected packets.
        packets: Fill ``packets``, ``records`` and ``messages`` whatever the size of the capture. They are full anyway
            where at most 20,000 packets were selected; beyond, ``packets`` has those that tell of trouble.
        explain: A stream of which the three are full in any case, and hold the bytes of its segments and handshake
            messages.
        vantage: Where on the path the capture was taken, if you know better than the packets tell.
        seen_from: Whose times the tables tell: as the client or the server of each connection saw its packets, worked
            out from the round trips to them.  [default: capture]
        proxies: The addresses of each proxy, if you know better than the packets tell: ``["10.0.1.5,10.0.2.5"]`` or
            ``[("10.0.1.5", "10.0.2.5")]`` is one proxy with two addresses.
        places: Captures of the same traffic that were taken at several places, in place of ``paths``: the name of each
            place and its files, ``{"client": "a.pcap", "server": ["b-1.pcap", "b-2.pcap"]}``. A connection that several
            places saw has one row, and all times are those of the first place's clock (``docs/places.md``).
        trusted_clocks: Places whose clocks are right: their offset is not worked out from the packets.
        keylog: A key log with the secrets of TLS connections (``SSLKEYLOGFILE``), or several. Secrets inside
            pcapng files are used in any case.
        findings: Folders with rules of your own, beside conchart's; ``docs/findings.md`` says how to write one.
        thresholds: From where on something is a finding, by name, where the usual value is not wanted.
        spans: Files with spans of the programs that talked (OTLP as JSON, as OpenTelemetry's collector writes it): the
            table ``spans`` has them beside their requests (``docs/traces.md``).
        statements: How much is kept of what databases and caches are asked. ``shape``: statements without their values,
            and keys. ``full``: the whole text of statements as well, but for those in which a password may stand.
            ``off``: neither statements nor keys.
        access_logs: Logs that servers wrote meanwhile, each with its product: ``nginx=access.log``, ``haproxy=``,
            ``apache=``, ``envoy=``, ``json=``. Each line is put beside the exchange that it is about
            (``docs/logs.md``).
        log_formats: Their format strings, as in the servers' configuration, where they are not the usual ones: one for
            all logs, or one for each.
        memory: What the tables may take, in bytes or as text (``2GB``); beyond it they go to a temporary folder on
            disk.  [default: half of what the machine or container has]
        workers: Processes that read parts of the captures side by side, where that is possible: several files, or a
            large pcap file. The tables are those of one process (``docs/scale.md``).
        scheduler: The address of a Dask scheduler, whose workers read the parts instead.
        parts: A folder that keeps the parts, so that a later call takes up those of files that did not change. With
            ``scheduler``, every machine must see it.
        progress: Called now and then while reading.
        watch: Shown now and then what was read so far.

    Returns:
        The trace. A damaged or truncated capture gives everything before the damage, and ``captures.notes`` says so.

    Raises:
        CaptureError: Nothing could be read, a key log has no secrets in it, a file of spans no spans, or no line of an
            access log can be read.
        NoRoomError: The tables fit neither into memory nor onto the disk.
        UsageError: The filter does not compile, a time, an amount of memory, a proxy's address or a rule cannot be
            read, there is no such threshold, stream or choice of statements, no instant lies between
            start and end, or no connection has a proxy's address. SQL of a rule that DuckDB refuses is told when
            ``findings`` are first asked for.
    """
    source = Source(
        paths=tuple(path if isinstance(path, Growing) else os.fspath(path) for path in paths),
        places={name: _listed(files) for name, files in (places or {}).items()},
    )
    options = ReadOptions(
        selection=selection(filter, start, end, count),
        packets=packets,
        explain=explain,
        statements=statements,
        seen_from=seen_from or "capture",
        findings=_listed(findings),
        thresholds=thresholds or {},
        memory=memory,
        workers=workers,
        scheduler=scheduler,
        parts=os.fspath(parts) if parts else None,
        progress=progress,
        watch=watch,
    )
    knowledge = Knowledge(
        vantage=vantage,
        proxies=tuple(proxies),
        trusted_clocks=tuple(trusted_clocks),
        keylog=_listed(keylog),
        spans=_listed(spans),
        access_logs=_listed(access_logs),
        log_formats=tuple(log_formats),
    )
    return read_source(source, options, knowledge)


def read_source(source: Source, options: ReadOptions, knowledge: Knowledge) -> "Trace":
    """Read captures into tables: ``read``, which explains it, with its arguments in three objects."""
    if source.places and options.seen_from != "capture":
        raise UsageError("places: each place shows what it saw; leave --seen-from out")
    logs, proxies, spans = _logs(knowledge), given_proxies(knowledge.proxies), _spans(knowledge)
    looked_for = partial(
        plan,
        vantage=knowledge.vantage,
        proxies=proxies,
        rules=load_rules(options.findings),
        thresholds=chosen_thresholds(options.thresholds),
        spans=spans.spans if spans else (),
        logs=bool(logs),
    )
    with _open_trace(options.memory) as trace:
        inputs = {
            "capture": (*source.names, *chain(*source.places.values())),
            "key log": knowledge.keylog,
            "rule": chain(*(folder_files(folder, "*.md") for folder in options.findings)),
            "spans": knowledge.spans,
            "access log": (log.path for log in logs),
            "parts": (options.parts, *folder_files(options.parts, "**/*")) if options.parts else (),
        }
        trace.inputs = tuple(Named(option=what, path=path) for what, paths in inputs.items() for path in paths)
        if not source.growing:
            trace.commands = _commands(source, options, knowledge)

        def conclude() -> None:
            for growing in source.growing:
                if growing.sockets:
                    from conchart.analysis.owners import name_owners  # not above: only `live` asks the kernel

                    name_owners(trace, growing.sockets.rows())
            _conclude(trace, options, spans.notes if spans else (), looked_for)

        def show(_: Tables) -> None:
            conclude()
            if options.watch:
                options.watch(trace)

        source, wanted = source.expanded(), replace(options, watch=show if options.watch else None)
        with trace.filling():
            strategy_for(source, options, knowledge)(trace, source, wanted, knowledge)
        if logs:
            from conchart.logs.reading import read_logs  # not above: most captures have no log beside them

            read_logs(trace, logs)
        if proxies and not source.growing:  # what cannot be read again is not refused
            ends = trace.stored("SELECT unnest([client_ip, server_ip]) FROM connections").fetchall()
            require_seen(proxies, {address for (address,) in ends})
        conclude()
    return trace


def _conclude(
    trace: "Trace", options: ReadOptions, notes: Sequence[str], looked_for: Callable[[Tables], Iterable[Step]]
) -> None:
    """Bring what the core filled into its last form; the rest is worked out when somebody asks for it."""
    if not options.packets:
        _leave_out_details(trace, options.explain)
    if chosen := str(options.selection):
        trace.execute(f"UPDATE captures SET selection = {literal(chosen)}")
    trace.execute(f"UPDATE captures SET statements = {literal(options.statements)}")
    wait_on(trace)
    moves = options.seen_from != "capture"
    if moves:
        find_races(trace)  # clients decide them: at the server, attempts come in another order
    see_from(trace, options.seen_from)
    if notes:
        trace.execute("UPDATE captures SET notes = list_concat(notes, ?) WHERE capture = 0", [list(notes)])
    trace.owe(step for step in looked_for(trace) if not (moves and "races" in step.writes))


def _commands(source: Source, options: ReadOptions, knowledge: Knowledge) -> Commands:
    """Write what to type to see more of the same."""
    return commands(
        source.names,
        str(options.selection),
        places=source.places,
        only_findings={} if options.seen_from == "capture" else {"seen-from": options.seen_from},
        clock=[f"{name}=trusted" for name in knowledge.trusted_clocks],
        vantage=knowledge.vantage,
        proxy=[",".join(proxy) for proxy in given_proxies(knowledge.proxies)],
        keylog=knowledge.keylog,
        spans=knowledge.spans,
        statements=None if options.statements == "shape" else options.statements,
        access_log=knowledge.access_logs,
        log_format=knowledge.log_formats,
        findings=options.findings,
        threshold=[f"{name}={value}" for name, value in options.thresholds.items()],
    )


def _listed(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    """Give the names of paths, also of one that stands alone."""
    return tuple(os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths))


def _spans(knowledge: Knowledge) -> "Spans | None":
    """Read files of spans, where there are any."""
    if not knowledge.spans:
        return None
    from conchart.reading.spans import read_spans  # not above: most captures have no spans beside them

    return read_spans(knowledge.spans)


def _logs(knowledge: Knowledge) -> "list[AccessLog]":
    """Read what somebody says of access logs."""
    if not knowledge.access_logs and not knowledge.log_formats:
        return []
    from conchart.logs.reading import access_logs  # not above: most captures have no log beside them

    return access_logs(knowledge.access_logs, knowledge.log_formats)


def _leave_out_details(trace: "Trace", explained: int | None) -> None:
    """Of a capture that is large, details of its first packets alone would say of the rest that there is nothing."""
    ((selected,),) = trace.stored("SELECT coalesce(sum(selected), 0) FROM captures").fetchall()
    if selected <= DETAILED:
        return
    others = "true" if explained is None else f"stream <> {explained}"
    for table in ("records", "messages", "quic_frames", "http3_frames", "packets"):
        ordinary = _ORDINARY if table == "packets" else "true"
        trace.execute(f"DELETE FROM {table} WHERE {others} AND {ordinary}")


@contextmanager
def _open_trace(memory: int | str | None) -> "Iterator[Trace]":
    """Give a trace without rows, whose tables may take so much memory; it is closed when putting rows into it fails."""
    limit, folder = table_limit(memory), spill_folder()
    trace = Trace(duckdb.connect(":memory:"))
    try:
        # DuckDB removes the folder when it is closed; a signal does not wait for that.
        trace._resources.enter_context(Undone(lambda: remove_folder(folder)))
        trace.execute(f"SET memory_limit = '{limit}B'; SET temp_directory = {literal(str(folder))}")
        trace.create()
        yield trace
    except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
        trace.close()
        raise no_room(error) from None
    except BaseException:
        trace.close()
        raise


@contextmanager
def _room() -> Iterator[None]:
    """Say in our words that tables which are worked out do not fit."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise no_room(error) from None


class Trace(Tables):
    """The tables of a capture; ``docs/tables.md`` explains each column.

    Close it, or use it as a context manager, to give its memory back.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Take over a database, as ``Tables`` does; ``read`` and ``Trace.load`` call this."""
        super().__init__(connection)
        self._resources = ExitStack()
        self.inputs: tuple[Named, ...] = ()
        """The files that were read: ``write`` never replaces them."""

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, memory: int | str | None = None) -> "Trace":
        """Open what ``write("….duckdb")`` saved; the file is only read.

        Only the tables of ``docs/tables.md`` are taken, and only their rows: whoever made the file can put nothing
        else into the trace.

        Args:
            path: The file.
            memory: What the tables may take, as for ``read``.

        Raises:
            CaptureError: It is missing or damaged, or no database of conchart's.
            NoRoomError: The tables fit neither into memory nor onto the disk.
            UsageError: The amount of memory cannot be read.
        """
        with _open_trace(memory) as trace, trace.filling():
            read_saved(Path(path), trace.restore)
        trace.inputs = (Named(option="trace", path=os.fspath(path)),)
        ((has_packets,),) = trace.fetch(f"SELECT coalesce(sum(selected), 0) <= {DETAILED} FROM captures")
        trace.commands = commands([os.fspath(path)], "", explains=has_packets)
        return trace

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002  (as the command line has it)
        table: str | None = None,
        options: DrawOptions | None = None,
        force: bool = False,
    ) -> None:
        """Write a file, whole or not at all; its suffix chooses the format.

        ``.html`` is the page, ``.svg`` and ``.png`` are pictures of its lanes, ``.txt`` is the terminal's summary,
        ``.json`` every table in one document, ``.duckdb`` every table in a database for ``Trace.load`` and DuckDB's
        own tools; ``.tables``, or a name that ends in ``/``, every table in a folder of Parquet
        files. ``.csv`` and ``.parquet`` hold one table; ``connections`` has the name of the server, the number
        of requests and the nanoseconds in each phase and in stalls added to its columns. ``.pcapng`` has the packets
        themselves, with comments; the captures are read once more for it. ``.har``, ``.perfetto.json`` and
        ``.otlp.json`` are for the viewers of other tools: requests as a browser's, lanes as trace events, spans with
        their causes; ``.qlog`` has the packets and frames of QUIC connections whose packets are all kept.

        Args:
            path: Replaced if it exists and conchart wrote it, or if it has the same format. A file that was read for
                this trace is never replaced.
            format: ``har``, ``perfetto``, ``otlp``, ``json`` …, whatever the suffix is.
            table: For ``.csv`` and ``.parquet``: a table of ``docs/tables.md``.  [default: connections]
            options: For ``.html``, ``.svg``, ``.png``, ``.txt`` and ``.pcapng``: how to draw, and what to name.
            force: Replace any other file, too.

        Raises:
            UsageError: No format has this suffix or name, or there is no such table; a picture needs matplotlib, which
                is not installed; captures that can be read only once are wanted again; the path is that of a file that
                was read, or that conchart did not write.
            CaptureError: A capture is gone, or has changed since it was read.
            OutputError: The file cannot be written.
        """
        form, name = form_of(path, format), os.fspath(path)
        refuse_inputs([Named(option="write", path=name)], self.inputs)
        if not force and (suffix := matching_suffix(path, form)):
            refuse_foreign(name, suffix, option="write")
        write(self, Path(path), form=form, table=table, options=options or DrawOptions())

    def chart(self, *, most: int = 200) -> "Figure":
        """Draw a lane per connection, coloured by phase, as a figure of Plotly's, which a notebook shows.

        Args:
            most: How many connections at most: those whose users waited the longest. The title says of how many.

        Returns:
            A ``plotly.graph_objects.Figure``. Its axis has milliseconds after the first packet.

        Raises:
            MissingToolError: Plotly is not installed (``conchart[charts]``).
            UsageError: ``most`` is less than one.
        """
        from conchart.outputs.notebook import chart  # not above: nothing else needs Plotly, which takes a while
        from conchart.report.report import report_of

        with report_of(self) as report:
            return chart(report, most=most)

    def _repr_html_(self) -> str:
        """Show the answer at the end of a notebook's cell."""
        from conchart.outputs.notebook import as_html
        from conchart.report.report import report_of

        try:
            with report_of(self) as report:
                return as_html(report)
        except duckdb.ConnectionException:
            return "<p>This trace is closed.</p>"

    def provide(self, *facts: str) -> None:
        """Have these tables (``links``) and columns (``connections.vantage``) filled now.

        Raises:
            NoRoomError: They fit neither into memory nor onto the disk.
            UsageError: The SQL of a rule is wrong.
        """
        with _room():
            super().provide(*facts)

    def _provide_named(self, query: str) -> None:
        with _room():
            super()._provide_named(query)

    def close(self) -> None:
        """Give the memory back; the trace and its relations cannot be used any more."""
        self._database.close()
        self._resources.close()

    def __enter__(self) -> "Trace":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
