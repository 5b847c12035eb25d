"""Files from a trace: each holds what the tables hold, whole or not at all."""

import csv
import json
import os
import stat
import sys
from pathlib import Path

import duckdb
import pytest

from conchart import DrawOptions, OutputError, Trace, UsageError
from conchart.files.whole import whole_file
from conchart.outputs import FOLDERS, PACKET_BY_PACKET, READ_AGAIN, SUFFIXES
from conchart.store.schema import SCHEMA_VERSION, TABLES
from tests.conftest import T0, empty_trace


def test_json_holds_every_row_of_every_table_sorted_and_exact(story: Trace, tmp_path: Path) -> None:
    story.write(tmp_path / "out.json")
    document = json.loads((tmp_path / "out.json").read_text())
    assert document.pop("conchart") == SCHEMA_VERSION
    assert document.pop("answer")["rows"]
    assert list(document) == [table.name for table in TABLES if table.name != "packets"]
    for name, rows in document.items():
        relation = story.sql(f"FROM {name}")
        stored = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
        assert sorted(rows, key=str) == sorted(stored, key=str)
    assert [row["stream"] for row in document["connections"]] == [0, 1, 2]
    assert document["connections"][0]["opened_at"] == T0, "an integer, not a float: the last digits count"


def test_json_has_packets_once_there_are_some(story: Trace, tmp_path: Path) -> None:
    story.execute(
        "INSERT INTO packets (stream, frame, seen_at, sender, flags, bytes) "
        f"VALUES (0, 2, {T0} + 1, 'server', 'SA', 0), (0, 1, {T0}, 'client', 'S', 0)"
    )
    story.write(tmp_path / "out.json")
    packets = json.loads((tmp_path / "out.json").read_text())["packets"]
    assert [(row["frame"], row["seen_at"], row["mark"]) for row in packets] == [(1, T0, None), (2, T0 + 1, None)]


def test_json_of_an_empty_capture_has_empty_tables(tmp_path: Path) -> None:
    with empty_trace() as trace:
        trace.write(tmp_path / "out.json")
    document = json.loads((tmp_path / "out.json").read_text())
    assert document.pop("conchart") == SCHEMA_VERSION
    answer = document.pop("answer")
    assert (answer["state"], answer["waited_ns"], answer["rows"]) == ("not judged", 0, [])
    assert document == {table.name: [] for table in TABLES if table.name != "packets"}


def test_json_is_streamed_in_batches_without_losing_a_row(tmp_path: Path) -> None:
    with empty_trace() as trace:
        trace.execute("INSERT INTO phases BY NAME SELECT (20005 - i)::INTEGER AS stream FROM range(20006) r(i)")
        trace.write(tmp_path / "out.json")
    phases = json.loads((tmp_path / "out.json").read_text())["phases"]
    assert [row["stream"] for row in phases] == list(range(20006))


def test_hostile_text_stays_valid_json(story: Trace, tmp_path: Path) -> None:
    hostile = '"}]\\\x01\n</script>\u2028é'
    story.execute(f"UPDATE exchanges SET target = '{hostile}'")
    story.write(tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["exchanges"][0]["target"] == hostile


@pytest.mark.parametrize("suffix", [".json", ".har", ".perfetto.json", ".otlp.json", ".csv", ".parquet", ".txt"])
def test_same_tables_give_the_same_bytes_whatever_the_order_of_rows(story: Trace, tmp_path: Path, suffix: str) -> None:
    story.write(tmp_path / f"one{suffix}")
    for table in ("connections", "phases", "stalls"):
        story.execute(f"CREATE TEMP TABLE turned AS FROM {table} ORDER BY hash(stream, {table}::VARCHAR) DESC")
        story.execute(f"DELETE FROM {table}; INSERT INTO {table} FROM turned; DROP TABLE turned")
    story.write(tmp_path / f"two{suffix}")
    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def test_csv_is_one_line_per_connection_with_the_time_in_each_phase(story: Trace, tmp_path: Path) -> None:
    story.write(tmp_path / "out.csv")
    first, second, third = read_csv(tmp_path / "out.csv")
    assert (first["stream"], first["server_name"], first["requests"]) == ("0", "shop.example", "1")
    assert first["tls_ns"] == "800000000"
    assert first["opened_at"] == str(T0)
    assert (first["stalled_ns"], second["stalled_ns"]) == ("283000000", "0")
    total = sum(int(first[column]) for column in first if column in {"syn_ns", "tls_ns", "request_ns", "wait_ns"})
    assert total == 925_000_000
    assert (second["unseen_ns"], second["tls_ns"], second["requests"]) == ("1500000000", "0", "0")
    assert third["syn_ns"] == "", "a connection without phases has no time in any, which is unknown"
    assert third["mss_client"] == ""


def test_csv_gives_no_formula_to_a_spreadsheet(story: Trace, tmp_path: Path) -> None:
    story.execute("UPDATE exchanges SET target = '=HYPERLINK(\"http://evil\")', host = '-2+3', method = '-'")
    story.write(tmp_path / "out.csv", table="exchanges")
    (row,) = read_csv(tmp_path / "out.csv")
    assert (row["target"], row["host"], row["method"]) == ('\'=HYPERLINK("http://evil")', "'-2+3", "-")


@pytest.mark.parametrize("table", [table.name for table in TABLES])
def test_parquet_holds_the_table_that_was_asked_for(story: Trace, tmp_path: Path, table: str) -> None:
    story.write(tmp_path / "out.parquet", table=table)
    rows = duckdb.sql(f"FROM '{tmp_path / 'out.parquet'}'")
    stored = story.sql(f"FROM {table}")
    assert rows.columns[: len(stored.columns)] == stored.columns
    # Parquet has ENUMs as texts of which each is stored once.
    types = ["VARCHAR" if str(kind).startswith("ENUM") else str(kind) for kind in stored.types]
    assert [str(kind) for kind in rows.types][: len(types)] == types
    assert len(rows.fetchall()) == len(stored.fetchall())


def test_text_is_plain(story: Trace, tmp_path: Path) -> None:
    story.write(tmp_path / "out.txt", options=DrawOptions(names=False))
    text = (tmp_path / "out.txt").read_text()
    assert "10.0.0.9:443" in text
    assert "\x1b" not in text
    assert "shop.example" not in text


@pytest.mark.parametrize("name", ["out.gif", "out", "out.JSN"])
def test_unknown_suffix_is_refused_with_the_known_ones(story: Trace, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"\.html \.txt .*\.json \.har \..* \.csv \.parquet"):
        story.write(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_suffix_may_be_upper_case(story: Trace, tmp_path: Path) -> None:
    story.write(tmp_path / "OUT.JSON")
    assert json.loads((tmp_path / "OUT.JSON").read_text())["conchart"] == SCHEMA_VERSION


@pytest.mark.parametrize(
    ("name", "table"), [("a.csv", "conections"), ("a.csv", "phases; DROP TABLE phases"), ("a.json", "phases")]
)
def test_a_table_that_is_none_or_has_no_say_is_refused(story: Trace, tmp_path: Path, name: str, table: str) -> None:
    with pytest.raises(UsageError, match="table"):
        story.write(tmp_path / name, table=table)


def test_missing_folder(story: Trace, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="there is no folder") as caught:
        story.write(tmp_path / "no" / "out.json")
    assert caught.value.exit_code == 4


def test_folder_in_the_way(story: Trace, tmp_path: Path) -> None:
    (tmp_path / "out.json").mkdir()
    with pytest.raises(OutputError, match="is a folder"):
        story.write(tmp_path / "out.json")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_closed_folder(story: Trace, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="Permission denied"):
        story.write(tmp_path / "out.json")


@pytest.mark.parametrize("error", [RuntimeError("half-way"), KeyboardInterrupt()])
def test_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "out.json"
    path.write_text("old")

    def write() -> None:
        with whole_file(path) as unfinished:
            unfinished.write_text("half")
            raise error

    with pytest.raises(type(error)):
        write()
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("out.json", "old")]


def test_a_full_disk_is_an_output_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"out\.json: No space left"), whole_file(tmp_path / "out.json"):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_followed(story: Trace, tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "link.json").symlink_to("real.json")
    (tmp_path / "dangling.json").symlink_to("new.json")
    for name in ("link.json", "dangling.json"):
        story.write(tmp_path / name)
        assert (tmp_path / name).is_symlink()
    for name in ("real.json", "new.json"):
        assert json.loads((tmp_path / name).read_text())["conchart"] == SCHEMA_VERSION


@pytest.mark.parametrize(
    ("target", "complaint"),
    [("out.json", "its symbolic links form a loop"), ("no/out.json", "there is no folder .*/no$")],
)
def test_a_link_to_nowhere_is_an_output_error(story: Trace, tmp_path: Path, target: str, complaint: str) -> None:
    (tmp_path / "out.json").symlink_to(target)
    with pytest.raises(OutputError, match=complaint):
        story.write(tmp_path / "out.json")
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


@pytest.mark.parametrize(
    "suffix", [suffix for suffix in SUFFIXES if suffix not in {*READ_AGAIN, *FOLDERS, *PACKET_BY_PACKET}]
)
def test_a_new_file_has_the_mode_that_the_umask_says_and_a_replaced_one_keeps_its_own(
    story: Trace, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"out{suffix}"
    previous = os.umask(0o027)
    try:
        story.write(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o600)
        story.write(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(previous)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_replaced_file_keeps_its_owner(story: Trace, tmp_path: Path) -> None:
    (tmp_path / "out.json").write_text("{}")
    os.chown(tmp_path / "out.json", 12345, 54321)
    story.write(tmp_path / "out.json")
    after = (tmp_path / "out.json").stat()
    assert (after.st_uid, after.st_gid) == (12345, 54321)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names of files are UTF-8")
@pytest.mark.parametrize("suffix", [suffix for suffix in SUFFIXES if suffix not in READ_AGAIN | PACKET_BY_PACKET])
def test_names_that_are_no_utf8_are_names(story: Trace, tmp_path: Path, suffix: str) -> None:
    folder = tmp_path / os.fsdecode(b"f\xff")
    folder.mkdir()
    path = folder / os.fsdecode(b"\xfe out" + suffix.encode())
    story.write(path)
    story.write(tmp_path / f"out{suffix}")
    assert list(folder.iterdir()) == [path]
    if suffix == ".duckdb" or suffix in FOLDERS:
        with Trace.load(path) as again:
            assert sorted(again.connections.fetchall()) == sorted(story.connections.fetchall())
    else:
        assert path.read_bytes() == (tmp_path / f"out{suffix}").read_bytes()


def test_a_device_is_written_into_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.txt"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with whole_file(pipe) as unfinished:
            unfinished.write_text("through the pipe")
        assert os.read(reader, 100) == b"through the pipe"
        assert pipe.is_fifo()
    finally:
        os.close(reader)
