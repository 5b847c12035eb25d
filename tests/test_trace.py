"""Reading into tables, and what a trace offers: the core is faked here, the seam is not."""

import json
import subprocess
import sys
import weakref
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pytest

import conchart
from conchart import Trace, _native
from conchart.labels.commands import commands
from conchart.store import tables
from conchart.store.schema import TABLE_BY_NAME, TABLES
from tests.conftest import ROOT, T0, Batch, Core, empty_trace

Sink = Callable[[str, object], None]


def test_empty_capture_has_every_table_with_its_types() -> None:
    with empty_trace() as trace:
        for table in TABLES:
            assert trace.sql(f"FROM {table.name}").fetchall() == []
        assert dict(zip(trace.captures.columns, map(str, trace.captures.types), strict=True))["notes"] == "VARCHAR[]"
        assert (
            dict(zip(trace.exchanges.columns, map(str, trace.exchanges.types), strict=True))["confidence"] == "DOUBLE"
        )


def test_batches_are_appended_as_they_come(fake_core: Callable[[Core], None]) -> None:
    batches = [
        Batch(
            "phases",
            f"SELECT i::INTEGER AS stream, 'idle' AS kind, {T0} + i AS start_at, {T0} + i + 1 AS end_at "
            "FROM range(9) r(i)",
        ),
        Batch(
            "phases",
            f"SELECT 9::INTEGER AS stream, NULL::INTEGER AS exchange, 'tls' AS kind, {T0} AS start_at, "
            "true AS inferred",
        ),
    ]

    def core(paths: list[str], sink: Sink, **_: object) -> None:
        for batch in batches:
            sink("phases", batch)
        sink("captures", Batch("captures", "SELECT 0::INTEGER AS capture, ['first', 'é☃'] AS notes"))

    fake_core(core)
    with conchart.read("any.pcap") as trace:
        assert trace.phases.count("*").fetchall() == [(10,)]
        assert trace.sql("SELECT start_at, end_at FROM phases WHERE stream = 3").fetchall() == [(T0 + 3, T0 + 4)]
        assert trace.sql("SELECT exchange, kind, inferred FROM phases WHERE stream = 9").fetchall() == [
            (None, "tls", True)
        ]
        assert trace.sql("SELECT notes FROM captures").fetchall() == [(["first", "é☃"],)]
    assert all(batch.streams > 0 for batch in batches)


def test_batches_are_appended_where_neither_pyarrow_nor_pandas_is_installed() -> None:
    capture = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"
    code = f"""
import sys
class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name in ("numpy", "pandas", "polars", "pyarrow"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Refusing())
import conchart
with conchart.read({str(capture)!r}) as trace:
    print(trace.connections.count("*").fetchall(), sorted({{"numpy", "pandas", "pyarrow"}} & set(sys.modules)))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[(6,)] []\n"


def test_data_frames_are_imported_for_those_who_want_some() -> None:
    """DuckDB would import pandas and pyarrow with the first batch, which takes a second or more."""
    if not all(find_spec(name) for name in ("pandas", "pyarrow")):
        pytest.skip("pandas or pyarrow is not installed")
    capture = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"
    code = f"""
import sys
import conchart
from conchart.store import tables
tables._FEW = 0  # threads of DuckDB's take part
def imported():
    return sorted({{"pandas", "pyarrow"}} & set(sys.modules))
with conchart.read({str(capture)!r}) as trace:
    trace.provide("findings")
    rows = trace.sql("SELECT count(*) FROM findings WHERE cost_ns >= $least", {{"least": 0}}).fetchall()
    before = imported()
    frame = trace.sql("SELECT stream FROM connections ORDER BY stream").df()
    print(len(rows), before, list(frame["stream"]), imported())
import pyarrow
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "1 [] [0, 1, 2, 3, 4, 5] ['pandas', 'pyarrow']\n"


@pytest.mark.parametrize(
    ("select", "complaint"),
    [
        ("SELECT *, 2 AS surprise", "columns"),
        ("SELECT * EXCLUDE (kind)", "kind"),
        ("SELECT *, 7 AS waited_ns", "columns"),
    ],
)
def test_a_batch_that_has_not_exactly_the_columns_that_the_core_owes_is_refused(
    story: Trace, fake_core: Callable[[Core], None], select: str, complaint: str
) -> None:
    table = "connections" if "waited" in select else "phases"
    owed = ", ".join(TABLE_BY_NAME[table].from_core)
    batch = Batch(table, story.sql(f"{select} FROM (SELECT {owed} FROM {table})"))
    fake_core(lambda paths, sink, **_: sink(table, batch))
    with pytest.raises(duckdb.Error, match=complaint):
        conchart.read("any.pcap")


def phases_whose_kind_is(kind: str) -> Batch:
    """Make three phases of three streams; what the core says of ``kind`` may be of any type."""
    columns_by_name = {"stream": "i::INTEGER", "kind": kind, "start_at": f"{T0}::BIGINT"}
    columns = (f"{columns_by_name.get(name, 'NULL')} AS {name}" for name in TABLE_BY_NAME["phases"].from_core)
    return Batch("phases", duckdb.sql(f"SELECT {', '.join(columns)} FROM range(3) r(i)"))


def test_numbers_of_words_become_the_words_and_0_is_none(
    fake_core: Callable[[Core], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = phases_whose_kind_is("i::UTINYINT")
    monkeypatch.setattr(Batch, "words", {"kind": ["wait", "tls"]}, raising=False)
    fake_core(lambda paths, sink, **_: sink("phases", batch))
    with conchart.read("any.pcap") as trace:
        assert trace.sql("SELECT kind FROM phases ORDER BY stream").fetchall() == [(None,), ("wait",), ("tls",)]


def test_a_word_that_the_schema_does_not_have_is_refused(fake_core: Callable[[Core], None]) -> None:
    batch = phases_whose_kind_is("'lunch'")
    fake_core(lambda paths, sink, **_: sink("phases", batch))
    with pytest.raises(duckdb.Error, match="lunch"):
        conchart.read("any.pcap")


def test_a_batch_is_inserted_with_far_fewer_calls_than_it_has_rows(fake_core: Callable[[Core], None]) -> None:
    """No row becomes an object of Python, and none a statement of its own."""
    rows = 100_000
    select = f"SELECT i::INTEGER AS stream, 'wait' AS kind, {T0} + i AS start_at FROM range(%d) r(i)"
    first, batch = (Batch("phases", select % count) for count in (0, rows))
    calls: list[str] = []

    def core(paths: list[str], sink: Sink, **_: object) -> None:
        sink("phases", first)  # Where a test has imported pyarrow, DuckDB now imports the rest of it.
        sys.setprofile(lambda frame, event, called: calls.append(event) if event.endswith("call") else None)
        try:
            sink("phases", batch)
        finally:
            sys.setprofile(None)

    fake_core(core)
    with conchart.read("any.pcap") as trace:
        assert trace.phases.count("*").fetchall() == [(rows,)]
    assert 0 < len(calls) < rows // 10


def test_batches_are_given_back_while_reading(fake_core: Callable[[Core], None]) -> None:
    """A batch that lived until the end would make memory grow by the size of everything read."""
    alive: list[weakref.ref[Batch]] = []

    def core(paths: list[str], sink: Sink, **_: object) -> None:
        for stream in range(3):
            batch = Batch("phases", f"SELECT {stream}::INTEGER AS stream")
            alive.append(weakref.ref(batch))
            sink("phases", batch)
            del batch
        assert [ref() is None for ref in alive[:2]] == [True, True]

    fake_core(core)
    with conchart.read("any.pcap") as trace:
        assert trace.phases.count("*").fetchall() == [(3,)]


THREADS = "SELECT current_setting('threads')"


def test_after_much_was_read_every_processor_is_used(
    story_core: list[dict[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_FEW", 1)
    with conchart.read("any.pcap") as trace:
        threads = trace.sql(THREADS).fetchall()
    assert threads == duckdb.connect(":memory:").sql(THREADS).fetchall()


def test_what_is_small_is_not_shared_between_processors(story_core: list[dict[str, object]]) -> None:
    with conchart.read("any.pcap") as trace:
        assert trace.sql(THREADS).fetchall() == [(1,)]


def test_read_hands_every_choice_to_the_core(story_core: list[dict[str, object]]) -> None:
    seen: list[tuple[int, int]] = []
    conchart.read(
        Path("a.pcap"),
        "b.pcap",
        filter="tcp",
        start="1.5",
        end=T0,
        count=7,
        packets=True,
        progress=lambda *p: seen.append(p),
    ).close()
    call = story_core[0]
    assert call["paths"] == ["a.pcap", "b.pcap"]
    assert (call["start"], call["start_relative"]) == (1_500_000_000, True)
    assert (call["end"], call["end_relative"]) == (T0, False)
    assert (call["count"], call["detailed"], call["explained"]) == (7, None, None)
    compile_filter, progress = call["compile_filter"], call["progress"]
    assert callable(compile_filter)
    assert compile_filter(1)[-1] == (6, 0, 0, 0)
    assert callable(progress)
    progress(1, 2)
    assert seen == [(1, 2)]


def test_read_without_choices_asks_for_everything(story_core: list[dict[str, object]]) -> None:
    conchart.read("a.pcap").close()
    absent = {name: value for name, value in story_core[0].items() if value is None or value is False}
    assert set(absent) == {
        "compile_filter", "start", "end", "start_relative", "end_relative", "count", "explained", "progress", "watch",
        "place_packets",
    }  # fmt: skip


def test_zero_is_an_instant(story_core: list[dict[str, object]]) -> None:
    conchart.read("a.pcap", start=0, end="0").close()
    assert (story_core[0]["start"], story_core[0]["end"]) == (0, 0)


def test_unreadable_capture_raises_the_public_error(fake_core: Callable[[Core], None]) -> None:
    def core(*_: object, **__: object) -> None:
        raise _native.CaptureError("a.pcap: no packet could be read")

    fake_core(core)
    with pytest.raises(conchart.CaptureError, match="no packet could be read") as caught:
        conchart.read("a.pcap")
    assert caught.value.__cause__ is None
    assert caught.value.exit_code == 3


def test_interrupt_while_reading_reaches_the_caller(fake_core: Callable[[Core], None]) -> None:
    def core(*_: object, progress: Callable[[int, int], None], **__: object) -> None:
        progress(1, 1)

    def interrupt(*_: int) -> None:
        raise KeyboardInterrupt

    fake_core(core)
    with pytest.raises(KeyboardInterrupt):
        conchart.read("a.pcap", progress=interrupt)


def test_sql_takes_parameters(story: Trace) -> None:
    assert story.sql("SELECT count(*) FROM phases WHERE kind = ?", ["tls"]).fetchall() == [(1,)]
    assert story.sql("SELECT count(*) FROM phases WHERE kind = $kind", {"kind": "syn"}).fetchall() == [(1,)]


def test_sql_sees_tables_and_no_python_variables(story_core: list[dict[str, object]]) -> None:
    with conchart.read("any.pcap") as trace, pytest.raises(duckdb.CatalogException, match="params"):
        trace.sql("FROM params")  # a variable of Trace.sql


def test_every_table_is_an_attribute(story: Trace) -> None:
    for table in TABLES:
        relation: duckdb.DuckDBPyRelation = getattr(story, table.name)
        assert relation.columns == story.sql(f"FROM {table.name}").columns


def test_tables_speak_arrow(story: Trace) -> None:
    assert type(story.connections.__arrow_c_stream__()).__name__ == "PyCapsule"


def test_leaving_the_context_closes_the_trace() -> None:
    with empty_trace() as trace:
        pass
    with pytest.raises(duckdb.ConnectionException):
        trace.sql("FROM connections")


def test_saved_trace_opens_again_with_the_same_tables(story: Trace, tmp_path: Path) -> None:
    story.write(tmp_path / "a'b.duckdb")
    with Trace.load(tmp_path / "a'b.duckdb") as again:
        for table in (table.name for table in TABLES):
            assert (
                again.sql(f"FROM {table} ORDER BY ALL").fetchall() == story.sql(f"FROM {table} ORDER BY ALL").fetchall()
            )
        again.write(tmp_path / "again.json")
    story.commands = commands([str(tmp_path / "a'b.duckdb")], "")
    story.write(tmp_path / "story.json")
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads((tmp_path / "story.json").read_text())


@pytest.mark.parametrize("content", [None, b"", b"not a database" * 1000])
def test_loading_what_is_no_trace_says_so(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.duckdb"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(conchart.CaptureError, match=r"x\.duckdb"):
        Trace.load(path)


def test_loading_another_database_says_so(tmp_path: Path) -> None:
    path = tmp_path / "other.duckdb"
    with duckdb.connect(str(path)) as other:
        other.execute("CREATE TABLE connections (a INTEGER)")
    with pytest.raises(conchart.CaptureError, match="not a trace"):
        Trace.load(path)


@pytest.mark.thorough
def test_a_long_query_writes_nothing_to_standard_output(
    story: Trace, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    story.write(tmp_path / "saved.duckdb")
    with Trace.load(tmp_path / "saved.duckdb") as loaded:
        for trace in (story, loaded):
            trace.execute("SET progress_bar_time = 1")
            trace.sql("SELECT sum(sqrt(a.range * b.range)) FROM range(10000) a, range(10000) b").fetchall()
            trace.execute("RESET progress_bar_time")
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("case", ["zero-window", "reordering", "syn-retransmission", "refused"])
def test_of_a_large_capture_only_packets_that_tell_of_trouble_are_kept_unless_all_are_asked_for(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conchart.trace.DETAILED", 2)
    path = ROOT / "captures" / "crafted" / case / "input.pcap"
    trouble = "mark IN ('retransmit', 'out_of_order', 'gap', 'zero_window')"
    with conchart.read(path) as brief, conchart.read(path, packets=True) as whole:
        rows = brief.sql("FROM packets ORDER BY frame").fetchall()
        assert rows == whole.sql(f"FROM packets WHERE {trouble} ORDER BY frame").fetchall()
        assert len(whole.sql("FROM packets").fetchall()) > len(rows)
        assert bool(rows) == (case != "refused")
