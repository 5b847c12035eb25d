"""A trace: the tables of a capture, in a DuckDB database in memory, beyond a limit on disk.

In: captures, or a saved trace. Out: tables, SQL over them, files. Reading fills the tables that hold what packets say;
what is worked out of those is filled when somebody asks for it. What was saved is complete.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from time import monotonic_ns
from types import TracebackType
from typing import TYPE_CHECKING

import duckdb

from conchart import _native
from conchart.analysis import plan
from conchart.analysis.findings.rule import chosen_thresholds, load_rules
from conchart.analysis.races import find_races
from conchart.analysis.seen_from import SeenFrom, see_from
from conchart.analysis.vantage import Vantage
from conchart.analysis.waiting import wait_on
from conchart.errors import CaptureError, UsageError
from conchart.files.paths import remove_folder
from conchart.files.replacing import Named, folder_files, refuse_foreign, refuse_inputs
from conchart.files.unfinished import Undone
from conchart.outputs import form_of, known_suffix, write
from conchart.outputs.options import DrawOptions
from conchart.reading.live.growing import Growing
from conchart.reading.proxies import given_proxies, require_seen
from conchart.reading.selection import DETAILED, STATEMENTS, Selection, Statements, selection
from conchart.store.memory import no_room, spill_folder, table_limit
from conchart.store.saved import read_saved
from conchart.store.sql import literal
from conchart.store.tables import Tables
from conchart.words.commands import commands
from conchart.words.units import SECOND

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from conchart.logs.reading import AccessLog
    from conchart.reading.spans import Spans

_LAST_STREAM = (1 << 31) - 1
"""Streams are INTEGERs."""

_FEW_BYTES = 32 << 20
"""Of captures of several places that are no larger, all details are read; what is too many is left out afterwards."""

_ORDINARY = "coalesce(mark NOT IN ('retransmit', 'out_of_order', 'gap', 'zero_window'), true)"
"""Of a packet: it tells of no trouble."""

Progress = Callable[[int, int], None]
"""Told about every 8 MiB: bytes read so far, frames so far. What it raises ends the reading."""

_SHARE = 5
"""A fifth of the time at most goes into showing what was read so far."""

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
    if places and seen_from not in (None, "capture"):
        raise UsageError("places: each place shows what it saw; leave --seen-from out")
    if explain is not None and not 0 <= explain <= _LAST_STREAM:
        raise UsageError(f"explain: a stream is a number from 0 to {_LAST_STREAM:,}, not {explain}")
    if statements not in STATEMENTS:
        raise UsageError(f"statements: {' or '.join(STATEMENTS)}, not {statements}")
    access_logs, log_formats = [*access_logs], [*log_formats]
    logs = _logs(access_logs, log_formats)
    wanted = selection(filter, start, end, count)
    given = given_proxies(proxies)
    findings = [*findings]
    rules, chosen_values = load_rules(findings), chosen_thresholds(thresholds or {})
    compiler = wanted.compiler()
    keylogs, spans = _listed(keylog), _listed(spans)
    told_spans = _spans(spans)
    with _open_trace(memory) as trace, ExitStack() as flowing:
        trace.inputs = (
            *_named("capture", (path.name if isinstance(path, Growing) else path for path in paths)),
            *_named("capture", (file for files in (places or {}).values() for file in _listed(files))),
            *_named("key log", keylogs),
            *_named("rule", (file for folder in findings for file in folder_files(os.fspath(folder), "*.md"))),
            *_named("spans", _listed(spans)),
            *_named("access log", (log.path for log in logs)),
            *_named("parts", [parts, *folder_files(os.fspath(parts), "**/*")] if parts else ()),
        )
        if not any(isinstance(path, Growing) for path in paths):
            trace.commands = commands(
                [os.fspath(path) for path in paths if not isinstance(path, Growing)],
                str(wanted),
                places={name: _listed(files) for name, files in (places or {}).items()},
                only_findings={} if seen_from in (None, "capture") else {"seen-from": seen_from},
                clock=[f"{name}=trusted" for name in trusted_clocks],
                vantage=vantage,
                proxy=[",".join(proxy) for proxy in given],
                keylog=keylogs,
                spans=_listed(spans),
                statements=None if statements == "shape" else statements,
                access_log=access_logs,
                log_format=log_formats,
                findings=findings,
                threshold=[f"{name}={value}" for name, value in (thresholds or {}).items()],
            )

        def conclude() -> None:
            for number, (path, name) in enumerate(zip(paths, opened, strict=False)):
                if isinstance(path, Growing):
                    _tell_growing(trace, number, path)
                    if path.sockets:
                        from conchart.analysis.owners import name_owners  # not above: only `live` asks the kernel

                        name_owners(trace, path.sockets.rows())
                elif os.fspath(path) != name:
                    trace.execute("UPDATE captures SET path = ? WHERE capture = ?", [os.fspath(path), number])
            if not packets:
                _leave_out_details(trace, explain)
            if chosen := str(wanted):
                trace.execute(f"UPDATE captures SET selection = {literal(chosen)}")
            trace.execute(f"UPDATE captures SET statements = {literal(statements)}")
            wait_on(trace)
            moves = seen_from not in (None, "capture")
            if moves:
                find_races(trace)  # clients decide them: at the server, attempts come in another order
            see_from(trace, seen_from or "capture")
            if told_spans and told_spans.notes:
                trace.execute(
                    "UPDATE captures SET notes = list_concat(notes, ?) WHERE capture = 0", [list(told_spans.notes)]
                )
            looked_for = partial(plan, rules=rules, thresholds=chosen_values)
            told = told_spans.spans if told_spans else ()
            steps = looked_for(trace, vantage=vantage, proxies=given, spans=told, logs=bool(logs))
            trace.owe(step for step in steps if not (moves and "races" in step.writes))

        def show(rest: list[tuple[str, object]], watch: Watch) -> int:
            began = monotonic_ns()
            with trace.filled_so_far(rest):
                conclude()
                watch(trace)
            return max((monotonic_ns() - began) * (_SHARE - 1), SECOND)

        paths = tuple(one for path in paths for one in _expanded(path))
        opened: list[str] = []
        """Under which names the core reads them; none where they were read in parts."""
        divided = explain is None and watch is None and not keylogs and _dividable(paths, wanted)
        try:
            with trace.filling():
                spread = (workers, scheduler, parts, progress)
                if places:
                    of_places = (explain, statements, keylogs, workers, progress)
                    _read_in_places(trace, places, trusted_clocks, wanted, packets, *of_places)
                elif not (divided and _read_in_parts(trace, paths, wanted, packets, statements, *spread)):
                    opened += (flowing.enter_context(_opened(path)) for path in paths)
                    _native.read_capture(
                        opened,
                        trace.insert,
                        compile_filter=compiler,
                        detailed=None if packets else DETAILED,
                        explained=explain,
                        statements=statements,
                        keylogs=[os.fspath(path) for path in keylogs],
                        progress=progress,
                        watch=partial(show, watch=watch) if watch else None,
                        **wanted.bounds,
                    )
        except _native.CaptureError as error:
            raise CaptureError(_renamed(str(error), zip(paths, opened, strict=True))) from None
        flowing.close()
        if logs:
            from conchart.logs.reading import read_logs  # not above: most captures have no log beside them

            read_logs(trace, logs)
        if given and not any(isinstance(path, Growing) for path in paths):  # what cannot be read again is not refused
            require_seen(given, _addresses(trace))
        conclude()
    return trace


def _listed(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str | os.PathLike[str]]:
    """Give a list of paths, also of one that stands alone."""
    return [paths] if isinstance(paths, str | os.PathLike) else [*paths]


def _named(what: str, paths: Iterable[str | os.PathLike[str]]) -> Iterator[Named]:
    return (Named(option=what, path=os.fspath(path)) for path in paths)


def _spans(paths: Sequence[str | os.PathLike[str]]) -> "Spans | None":
    """Read files of spans, where there are any."""
    if not paths:
        return None
    from conchart.reading.spans import read_spans  # not above: most captures have no spans beside them

    return read_spans(paths)


def _logs(named: Iterable[str | os.PathLike[str]], texts: Iterable[str]) -> "list[AccessLog]":
    """Read what somebody says of access logs."""
    named, texts = list(named), list(texts)
    if not named and not texts:
        return []
    from conchart.logs.reading import access_logs  # not above: most captures have no log beside them

    return access_logs(named, texts)


def _dividable(paths: Sequence[str | os.PathLike[str] | Growing], wanted: Selection) -> bool:
    """Can the captures be read in parts: again and again, each packet chosen by itself?"""
    bounds = wanted.bounds
    is_by_packet = wanted.count is None and not bounds["start_relative"] and not bounds["end_relative"]
    return is_by_packet and not any(isinstance(path, Growing) or os.fspath(path) == "-" for path in paths)


def _read_in_parts(
    trace: "Trace",
    paths: Sequence[str | os.PathLike[str] | Growing],
    wanted: Selection,
    packets: bool,  # noqa: FBT001
    statements: Statements,
    workers: int,
    scheduler: str | None,
    folder: str | os.PathLike[str] | None,
    progress: Progress | None,
) -> bool:
    """Fill the tables by several processes or machines; False where one process has to read, and nothing is filled."""
    if workers < 2 and not scheduler:
        return False
    from conchart.parts import NotInParts, Wanted, read_parts  # not above: few captures are read in parts
    from conchart.parts.executors import tasks_of

    bounds = wanted.bounds
    memory = table_limit(None) // (2 * max(workers, 1))
    of_each = Wanted(wanted.filter, bounds["start"], bounds["end"], packets, memory, statements)
    names = [os.fspath(path) for path in paths if not isinstance(path, Growing)]
    try:
        with tasks_of(workers, scheduler) as executor:
            work = Path(folder) if folder else None
            read_parts(trace, names, of_each, executor, pieces=workers, folder=work, progress=progress)
    except NotInParts:
        return False
    return True


def _read_in_places(
    trace: "Trace",
    places: Mapping[str, str | os.PathLike[str] | Sequence[str | os.PathLike[str]]],
    trusted: Collection[str],
    wanted: Selection,
    packets: bool,  # noqa: FBT001
    explain: int | None,
    statements: Statements,
    keylogs: Iterable[str | os.PathLike[str]],
    workers: int,
    progress: Progress | None,
) -> None:
    """Fill the tables from the captures of several places."""
    from conchart.parts import Wanted  # not above: few captures are read in parts
    from conchart.places import read_places

    bounds = wanted.bounds
    if wanted.count is not None or bounds["start_relative"] or bounds["end_relative"]:
        raise UsageError("places: choose packets by a filter or by dates; each place has a clock of its own")
    named = {name: [os.fspath(file) for file in _listed(files)] for name, files in places.items()}
    sizes = [Path(file).stat().st_size for files in named.values() for file in files if Path(file).is_file()]
    packets |= explain is not None or sum(sizes) <= _FEW_BYTES
    logs = tuple(os.fspath(path) for path in keylogs)
    memory = table_limit(None) // (2 * len(named) or 1)
    of_each = Wanted(wanted.filter, bounds["start"], bounds["end"], packets, memory, statements, keylogs=logs)
    read_places(trace, named, of_each, trusted=trusted, progress=progress)


def _tell_growing(trace: "Trace", number: int, growing: Growing) -> None:
    """Put what the capturing machine says into the row of a capture that was read from a pipe."""
    notes = [f"ended before it was told to: {growing.broken}"] if growing.broken else []
    trace.execute(
        "UPDATE captures SET path = ?, dropped = coalesce(dropped, ?), notes = list_concat(notes, ?) WHERE capture = ?",
        [growing.name, growing.dropped, notes, number],
    )


def _renamed(message: str, opened: Iterable[tuple[str | os.PathLike[str] | Growing, str]]) -> str:
    """Call a capture by its name, not by that of the pipe."""
    for path, name in opened:
        message = message.replace(name, path.name if isinstance(path, Growing) else os.fspath(path))
    return message


def _expanded(path: str | os.PathLike[str] | Growing) -> list[str | os.PathLike[str] | Growing]:
    """Give the URLs that a pattern stands for; anything else as it is."""
    if isinstance(path, Growing) or "://" not in os.fspath(path):
        return [path]
    from conchart.parts.cutting import expanded  # not above: few captures are URLs

    return list(expanded(os.fspath(path)))


@contextmanager
def _opened(path: str | os.PathLike[str] | Growing) -> Iterator[str]:
    """Give the path under which the native core reads a capture."""
    if isinstance(path, Growing):
        with path.opened() as name:
            yield name
    elif "://" in (name := os.fspath(path)):
        from conchart.parts.cutting import Part

        with Part(0, (name,)).opened() as pipes:
            yield pipes[0]
    else:
        yield name


def _addresses(trace: "Trace") -> set[str]:
    ends = trace.stored("SELECT unnest([client_ip, server_ip]) FROM connections").fetchall()
    return {address for (address,) in ends}


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
        trace.inputs = (*_named("trace", [path]),)
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
        if not force and (suffix := known_suffix(path, form)):
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

        return chart(self, most=most)

    def _repr_html_(self) -> str:
        """Show the answer at the end of a notebook's cell."""
        from conchart.outputs.notebook import as_html

        try:
            return as_html(self)
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
