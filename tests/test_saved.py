"""A saved trace may be anybody's: rows of known tables come along, and nothing that computes."""

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import conchart
from conchart import CaptureError, Trace, UsageError
from conchart.store.schema import TABLE_BY_NAME, TABLES
from tests.children import running
from tests.conftest import ROOT


@pytest.fixture
def saved(story: Trace, tmp_path: Path) -> Path:
    story.write(tmp_path / "saved.duckdb")
    return tmp_path / "saved.duckdb"


def change(path: Path, statements: str) -> None:
    with duckdb.connect(str(path)) as database:
        database.execute(statements)


def test_a_view_in_the_place_of_a_table_reads_no_file(saved: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2\n")
    names = ", ".join(
        f"content AS {column}" if column == "target" else f"NULL::{kind} AS {column}"
        for column, kind in TABLE_BY_NAME["exchanges"].types.items()
    )
    change(saved, f"DROP TABLE exchanges; CREATE VIEW exchanges AS SELECT {names} FROM read_text('{secret}')")
    with pytest.raises(CaptureError, match=r"saved\.duckdb: .*it has no table exchanges"):
        Trace.load(saved)


def test_views_macros_types_and_foreign_tables_stay_where_they_are(saved: Path) -> None:
    change(
        saved,
        """
        CREATE VIEW v AS FROM read_text('/etc/hostname');
        CREATE MACRO coalesce(a, b) AS 'hostile';
        CREATE MACRO duckdb_tables() AS TABLE SELECT 'hostile';
        CREATE TYPE mood AS ENUM ('sad');
        CREATE SEQUENCE s;
        CREATE TABLE rumours AS SELECT 'no-keepalive' AS rumour;
        CREATE SCHEMA other; CREATE TABLE other.connections (a INTEGER);
        CREATE INDEX i ON phases (stream)
        """,
    )
    with Trace.load(saved) as trace:
        assert trace.sql("SELECT count(*) FROM duckdb_views() WHERE NOT internal").fetchall() == [(0,)]
        assert trace.sql("SELECT count(*) FROM duckdb_functions() WHERE NOT internal").fetchall() == [(0,)]
        assert trace.sql("SELECT count(*) FROM duckdb_indexes()").fetchall() == [(0,)]
        assert trace.sql("SELECT count(*) FROM duckdb_sequences()").fetchall() == [(0,)]
        assert {name for (name,) in trace.sql("SELECT table_name FROM duckdb_tables()").fetchall()} == {
            table.name for table in TABLES
        }
        assert trace.sql("SELECT coalesce(1, 2)").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("ALTER TABLE phases ALTER start_at TYPE DOUBLE", "phases.start_at is DOUBLE, not BIGINT"),
        ("ALTER TABLE captures ALTER notes TYPE VARCHAR", r"captures.notes is VARCHAR, not VARCHAR\[\]"),
        ("ALTER TABLE phases DROP kind", "phases has no column kind"),
        ("ALTER TABLE phases ADD surprise INTEGER", "phases has another column: surprise"),
        ("ALTER TABLE phases ALTER kind SET DEFAULT current_setting('home_directory')", "phases.kind is computed"),
        ("DROP TABLE packets", "it has no table packets"),
        (
            "CREATE TYPE mood AS ENUM ('idle', 'syn', 'tls', 'request', 'wait', 'transfer', 'close', 'unseen');"
            "ALTER TABLE phases ALTER kind TYPE mood",
            r"phases.kind is ENUM\('idle', .*\), not ENUM\('close', .*\)",
        ),
        (
            "ALTER TABLE phases ALTER kind TYPE VARCHAR; UPDATE phases SET kind = 'lunch'",
            r"phases.kind is VARCHAR, not ENUM\(.*\)",
        ),
        (
            "CREATE OR REPLACE TABLE packets (stream INTEGER, frame BIGINT, seen_at BIGINT, "
            "sender ENUM('client', 'server'), flags VARCHAR GENERATED ALWAYS AS (getvariable('x')))",
            "packets.flags is computed",
        ),
    ],
)
def test_another_shape_is_refused_and_named(saved: Path, statement: str, complaint: str) -> None:
    change(saved, statement)
    with pytest.raises(CaptureError, match=f"saved.duckdb: not a trace that conchart saved: {complaint}") as caught:
        Trace.load(saved)
    assert caught.value.exit_code == 3


def test_a_type_that_only_has_the_right_name_gives_no_wrong_type(saved: Path) -> None:
    change(
        saved,
        """
        CREATE SCHEMA s; CREATE TYPE s."BIGINT" AS VARCHAR; DROP TABLE packets;
        CREATE TABLE packets (stream INTEGER, frame s."BIGINT", seen_at BIGINT, sender VARCHAR, flags VARCHAR,
            bytes INTEGER, mark VARCHAR);
        INSERT INTO packets BY NAME SELECT 'hostile' AS frame
        """,
    )
    with pytest.raises(CaptureError, match="packets.frame|Could not convert"):
        Trace.load(saved)


def test_the_order_of_columns_does_not_matter(saved: Path, story: Trace) -> None:
    change(saved, "CREATE OR REPLACE TABLE phases AS SELECT start_at, * EXCLUDE (start_at) FROM phases")
    with Trace.load(saved) as trace:
        assert trace.phases.columns == story.phases.columns
        assert sorted(map(str, trace.phases.fetchall())) == sorted(map(str, story.phases.fetchall()))


def test_an_encrypted_file_is_refused(saved: Path, tmp_path: Path) -> None:
    with duckdb.connect(":memory:") as database:
        database.execute(
            f"SET force_mbedtls_unsafe = true; ATTACH '{saved}' AS saved;"
            f"ATTACH '{tmp_path / 'locked.duckdb'}' AS locked (ENCRYPTION_KEY 'x'); COPY FROM DATABASE saved TO locked"
        )
    with pytest.raises(CaptureError, match=r"locked\.duckdb: cannot be opened: .*encrypted"):
        Trace.load(tmp_path / "locked.duckdb")


def test_a_newer_format_is_refused(saved: Path) -> None:
    content = bytearray(saved.read_bytes())
    content[12] = 0xFF  # the version follows the magic number
    saved.write_bytes(content)
    with pytest.raises(CaptureError, match=r"saved\.duckdb: cannot be opened: "):
        Trace.load(saved)


@pytest.mark.parametrize("size", [12, 4096, 12288, 20000, 100_000])
def test_a_file_that_is_cut_is_refused_or_whole(saved: Path, story: Trace, size: int) -> None:
    content = saved.read_bytes()
    assert size < len(content)
    saved.write_bytes(content[:size])
    with pytest.raises(CaptureError, match=r"saved\.duckdb: cannot be opened: "):
        Trace.load(saved)


@pytest.mark.thorough
def test_a_damaged_file_is_refused_or_holds_the_truth(saved: Path, story: Trace, tmp_path: Path) -> None:
    """Blocks carry checksums: one byte anywhere either is of no use or is noticed."""
    content = saved.read_bytes()
    story.write(tmp_path / "truth.json")
    refused = 0
    for place in range(0, len(content), len(content) // 60):
        damaged = bytearray(content)
        damaged[place] ^= 0x55
        saved.write_bytes(damaged)
        try:
            with Trace.load(saved) as trace:
                trace.write(tmp_path / "out.json")
        except CaptureError:
            refused += 1
        else:
            assert json.loads((tmp_path / "out.json").read_text()) == json.loads((tmp_path / "truth.json").read_text())
    assert refused > 0


def test_reading_leaves_the_file_as_it_was(saved: Path) -> None:
    before = saved.read_bytes()
    saved.chmod(0o400)
    Trace.load(saved).close()
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_a_file_that_somebody_writes_to_is_refused(saved: Path) -> None:
    code = f"import duckdb; writer = duckdb.connect({str(saved)!r}); print('open', flush=True); input()"
    with running([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout
        assert writer.stdout.readline() == "open\n"
        with pytest.raises(CaptureError, match=r"saved\.duckdb: cannot be opened: .*lock"):
            Trace.load(saved)
        writer.communicate("\n")
    Trace.load(saved).close()


def test_a_trace_is_not_saved_over_itself(saved: Path, tmp_path: Path) -> None:
    before = saved.read_bytes()
    with Trace.load(saved) as trace:
        with pytest.raises(UsageError, match="this is the same file as the input trace"):
            trace.write(saved)
        trace.write(tmp_path / "other.duckdb")
    assert saved.read_bytes() == before


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for path in (tmp_path, tmp_path / "missing.duckdb", Path("/dev/null"), tmp_path / "loop", tmp_path / ("a" * 300)):
        with pytest.raises(CaptureError, match=str(path)):
            Trace.load(path)


HOSTILE_VALUES = {
    "INTEGER": ["0", "-1", "2147483647", "-2147483648"],
    "BIGINT": ["0", "-1", "9223372036854775807", "-9223372036854775808", "4611686018427387903"],
    "DOUBLE": ["'nan'", "'inf'", "-0.5", "0.5"],
    "BOOLEAN": ["true"],
    "BLOB": ["''::BLOB", "'\\xFF\\x00\\x16'::BLOB"],
    "VARCHAR": ["''", "'=cmd'", "chr(27) || '[2J'", "'wait'", "repeat('x', 5000)", "'</script>'", "'[bold]'"],
    "VARCHAR[]": ["[]", "['a', NULL]", "[chr(27)]"],
    "INTEGER[]": ["[]", "[-1]", "[0, NULL]", "[2147483647]"],
    "BIGINT[]": ["[]", "[-1]", "[0, NULL]", "[9223372036854775807]"],
}


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.thorough
def test_any_values_are_refused_or_drawn(saved: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    for table in chance.sample(TABLES, 2):
        for name, kind in table.types.items():
            if chance.random() < 0.06:
                words = re.findall("'[^']+'", kind)
                value = chance.choice(["NULL", *(words or HOSTILE_VALUES[kind])])
                change(saved, f"UPDATE {table.name} SET {name} = {value} WHERE hash(rowid, {seed}) % 3 > 0")
    try:
        with Trace.load(saved) as trace:
            for suffix in (".html", ".txt", ".json", ".csv", ".parquet", ".duckdb"):
                trace.write(tmp_path / f"out{suffix}")
    except CaptureError as error:
        assert "not a trace that conchart saved" in str(error)  # noqa: PT017  (either end is right)
    else:
        json.loads((tmp_path / "out.json").read_text(), parse_constant=pytest.fail)


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("UPDATE times SET phase = 'lunch'", "times.phase is none that conchart knows"),
        ("UPDATE phases SET end_at = start_at - 1", "phases.end_at is before start_at"),
        ("UPDATE stalls SET end_at = start_at - 1", "stalls.end_at is before start_at"),
        ("UPDATE phases SET start_at = NULL", "phases.start_at is NULL"),
        ("UPDATE connections SET bytes_client = 1::BIGINT << 61", "connections.bytes_client is out of range"),
        ("UPDATE connections SET rtt_client_ns = -1", "connections.rtt_client_ns is out of range"),
        ("UPDATE connections SET opened_at = -9223372036854775808", "connections.opened_at is out of range"),
        ("UPDATE exchanges SET confidence = 'nan'", "exchanges.confidence is out of range"),
        ("UPDATE captures SET notes = [NULL]", "captures.notes holds a NULL"),
        ("UPDATE captures SET last_at = NULL", "captures.first_at and last_at are not known together"),
    ],
)
def test_values_that_no_capture_gives_are_refused_and_named(saved: Path, statement: str, complaint: str) -> None:
    change(saved, statement)
    with pytest.raises(CaptureError, match=complaint):
        Trace.load(saved)


def test_a_link_of_connections_that_are_handed_through_names_no_exchange(story: Trace, tmp_path: Path) -> None:
    link = (0, None, 1, None, "client-hello")
    story.execute(
        "INSERT INTO links BY NAME "
        "SELECT 0 AS front_stream, 1 AS back_stream, 'client-hello' AS method, 0.99 AS confidence"
    )
    story.write(tmp_path / "out.duckdb")
    with Trace.load(tmp_path / "out.duckdb") as again:
        assert again.sql(
            "SELECT front_stream, front_exchange, back_stream, back_exchange, method FROM links"
        ).fetchall() == [link]


@pytest.mark.thorough
def test_every_capture_of_ours_can_be_saved_and_opened(tmp_path: Path) -> None:
    """The rules for rows are true of what the core finds."""
    for capture in sorted(ROOT.glob("captures/*/*/input.pcap*"))[::24]:
        with conchart.read(capture, packets=True) as trace:
            trace.write(tmp_path / "out.duckdb")
        Trace.load(tmp_path / "out.duckdb").close()
