"""Traces that earlier versions of conchart saved are opened, or it is said how: docs/versions.md promises that.

``VERSION.duckdb.gz`` is what a version saved of the same capture. The one of the version that is being developed is
written anew with ``--update-golden`` when its tables change; those of released versions stay as they are.
"""

import gzip
import json
import re
import shutil
from pathlib import Path

import duckdb
import pytest

import conchart
from conchart import CaptureError, Trace, UsageError
from conchart.analysis.findings.rule import RULE_FORMAT, load_rules, parse_rule
from conchart.store.saved import ABOUT
from conchart.store.schema import SCHEMA_VERSION, TABLES
from conchart.version import VERSION
from tests.conftest import ROOT

HERE = Path(__file__).parent
CAPTURE = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"
VERSIONS = sorted({path.name.removesuffix(".duckdb.gz") for path in HERE.glob("*.duckdb.gz")} | {VERSION})
FORMERLY = "0.2.0-tables-2"
"""Saved while 0.2.0 was made, with version 2 of the tables."""
MOST_BYTES = 100_000


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    with conchart.read(CAPTURE) as trace:
        trace.write(tmp_path / "now.duckdb")
    return tmp_path / "now.duckdb"


def path_of(version: str) -> Path:
    return HERE / f"{version}.duckdb.gz"


def test_a_trace_of_the_present_version_is_kept(saved: Path, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        path_of(VERSION).write_bytes(gzip.compress(saved.read_bytes(), mtime=0))
    assert all(path_of(version).stat().st_size < MOST_BYTES for version in VERSIONS)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_an_earlier_version_saved_is_opened_or_it_is_said_how(version: str, tmp_path: Path) -> None:
    path = tmp_path / f"{version}.duckdb"
    path.write_bytes(gzip.decompress(path_of(version).read_bytes()))
    try:
        trace = Trace.load(path)
    except CaptureError as error:
        refusal = str(error)
    else:
        with trace, conchart.read(CAPTURE) as now:
            count = "SELECT count(*), sum(end_at - start_at) FROM phases"
            assert trace.fetch(count) == now.fetch(count)
            assert trace.fetch("SELECT finding FROM findings")
        return
    # The tables have changed: raise the version if it was released, else --update-golden.
    assert version != VERSION, refusal
    assert re.search(r"\n  (Read the captures again with this version|If conchart 0.1 saved it: read)", refusal)
    assert version == "0.1.0" or f"pip install 'conchart=={version}'" in refusal


def test_a_saved_trace_says_who_wrote_it(saved: Path, tmp_path: Path) -> None:
    with duckdb.connect(str(saved), read_only=True) as database:
        assert database.sql(f"FROM {ABOUT.table}").fetchall() == [(SCHEMA_VERSION, VERSION)]
    with Trace.load(saved) as trace:
        trace.write(tmp_path / "out.tables")
        trace.write(tmp_path / "out.json")
        assert ABOUT.table not in {name for (name,) in trace.fetch("SELECT table_name FROM duckdb_tables()")}
    manifest = json.loads((tmp_path / "out.tables" / "manifest.json").read_text())
    assert (manifest["conchart"], manifest["version"]) == (SCHEMA_VERSION, VERSION)
    assert json.loads((tmp_path / "out.json").read_text())["conchart"] == SCHEMA_VERSION


def change(path: Path, statements: str) -> None:
    with duckdb.connect(str(path)) as database:
        database.execute(statements)


@pytest.mark.parametrize(("tables", "version"), [(SCHEMA_VERSION + 1, "1.4.0"), (1, "0.1.7")])
def test_tables_of_another_version_are_refused_with_what_to_do(saved: Path, tables: int, version: str) -> None:
    change(saved, f"UPDATE about SET tables = {tables}, conchart = '{version}'")
    with pytest.raises(CaptureError) as caught:
        Trace.load(saved)
    message = str(caught.value)
    assert f"saved by conchart {version}; this is conchart {VERSION}" in message
    assert f"its tables have version {tables}, and this conchart knows version {SCHEMA_VERSION}" in message
    assert f"pip install 'conchart=={version}'" in message
    assert "Read the captures again" in message


def test_tables_of_the_former_version_have_their_names_and_columns_of_today(saved: Path, tmp_path: Path) -> None:
    """A file and a folder of what the version before saved; what it did not have is made of what it had, or empty."""
    file, folder = tmp_path / "former.duckdb", tmp_path / "former.tables"
    file.write_bytes(gzip.decompress(path_of(FORMERLY).read_bytes()))
    with Trace.load(saved) as now:
        now.write(folder)
        count = {table.name: now.fetch(f"SELECT count(*) FROM {table.name}") for table in TABLES}
        kinds = now.fetch("SELECT stream, number, kind, store, status_text FROM exchanges ORDER BY ALL")
    manifest = json.loads((folder / "manifest.json").read_text())
    shutil.rmtree(folder)
    with duckdb.connect(str(file), read_only=True) as database:
        for (name,) in database.sql("SELECT table_name FROM duckdb_tables()").fetchall():
            (folder / name).mkdir(parents=True)
            database.execute(f"COPY {name} TO '{folder / name / 'part.parquet'}'")
    (folder / "manifest.json").write_text(json.dumps(manifest | {"conchart": 2}))
    for path in (file, folder):
        with Trace.load(path) as trace:
            assert {table.name: trace.fetch(f"SELECT count(*) FROM {table.name}") for table in TABLES} == count
            assert trace.fetch("SELECT stream, number, kind, store, status_text FROM exchanges ORDER BY ALL") == kinds


def test_columns_that_are_gone_are_foreign_in_tables_of_this_version(saved: Path) -> None:
    change(saved, "ALTER TABLE exchanges ADD keep_alive_max BIGINT")
    with pytest.raises(CaptureError, match="another column: keep_alive_max"):
        Trace.load(saved)


def test_a_column_that_another_version_has_is_named_with_what_to_do(saved: Path) -> None:
    change(saved, "UPDATE about SET conchart = '0.3.1'; ALTER TABLE phases ADD mood INTEGER")
    with pytest.raises(CaptureError, match=r"saved by conchart 0\.3\.1; .*phases has another column: mood\n.*0\.3\.1"):
        Trace.load(saved)


def test_tables_of_another_version_that_are_the_same_are_opened(saved: Path) -> None:
    change(saved, "UPDATE about SET conchart = '0.2.99'")
    Trace.load(saved).close()


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE about",
        "DROP TABLE about; CREATE VIEW about AS SELECT 9 AS tables, content AS conchart FROM read_text('/etc/passwd')",
        "DELETE FROM about",
        "UPDATE about SET conchart = repeat('9', 100000)",
        "UPDATE about SET conchart = chr(27) || '[2J'",
        "ALTER TABLE about ADD more INTEGER",
    ],
)
def test_whatever_stands_in_the_place_of_the_writer_only_tables_count(saved: Path, statement: str) -> None:
    change(saved, statement)
    Trace.load(saved).close()
    change(saved, "ALTER TABLE phases ADD mood INTEGER")
    with pytest.raises(
        CaptureError, match=r"not a trace that conchart saved: phases has another column: mood(\n  If .*|)$"
    ):
        Trace.load(saved)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ('{"conchart": 1, "version": "0.1.7"}', "saved by conchart 0.1.7; .*version 1"),
        ("[]", "manifest.json does not say"),
        ("{", "manifest.json does not say"),
        ("[" * 90_000, "manifest.json does not say"),
    ],
)
def test_a_folder_of_another_version_is_refused_before_its_tables_are_read(
    saved: Path, tmp_path: Path, manifest: str, message: str
) -> None:
    with Trace.load(saved) as trace:
        trace.write(tmp_path / "out.tables")
    shutil.rmtree(tmp_path / "out.tables" / "phases")
    (tmp_path / "out.tables" / "manifest.json").write_text(manifest)
    with pytest.raises(CaptureError, match=message):
        Trace.load(tmp_path / "out.tables")


def rule_with(line: str) -> str:
    rule = load_rules()[0]
    front, rest = Path(rule.path).read_text(encoding="utf-8").removeprefix("---\n").split("\n---\n", 1)
    return f"---\n{front}\n{line}\n---\n{rest}"


def test_a_rule_may_say_its_format() -> None:
    assert parse_rule("mine.md", rule_with(f"format: {RULE_FORMAT}")).title


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"format: {RULE_FORMAT + 1}", r"has format 2, and conchart \S+ knows format 1: it needs a later conchart"),
        ("format: new", "format is the version of the form of rules: 1, not 'new'"),
        ("format: 0", "not 0"),
        ("format: true", "not True"),
    ],
)
def test_a_rule_of_another_format_is_refused_by_line(line: str, message: str) -> None:
    with pytest.raises(UsageError, match=rf"^mine\.md:\d+: .*{message}"):
        parse_rule("mine.md", rule_with(line))
