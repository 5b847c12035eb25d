"""What a start costs that analyses next to nothing: counts of what is imported and asked, which are no noise."""

import json
import subprocess
import sys

import duckdb
import pytest

import conchart
from conchart.outputs.options import DrawOptions
from conchart.outputs.terminal import print_summary
from conchart.outputs.terminal.sheet import plain_console
from conchart.report.report import report_of
from tests.conftest import ROOT

CAPTURE = str(ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap")
NEEDLESS = {
    "concurrent.futures",
    "dpkt",
    "jinja2",
    "libpcap",
    "matplotlib",
    "numpy",
    "pandas",
    "plotly",
    "polars",
    "pyarrow",
    "scapy",
    "yaml",
    # DuckDB would look for its version with it.
    "importlib.metadata",
    # What only some captures have beside them, and other commands.
    *("click.shell_completion", "conchart.analysis.spans", "conchart.logs", "conchart.reading.spans"),
    *("conchart.reading.bpf", "conchart.reading.live.interface", "conchart.reading.live.sockets"),
}
"""What a summary has no use for, and takes long to import."""
MOST_STATEMENTS = 190
"""A capture of six connections costs what it costs to plan them: one to ten milliseconds for most."""
PLANNED = r"NOT regexp_matches(message, '^\s*(BEGIN|COMMIT|DROP|RESET|SET)\b')"
"""Of the log of queries: what takes DuckDB more than some microseconds."""


def test_a_summary_imports_nothing_that_it_does_not_need() -> None:
    run = """
import json, os, sys
def leave(code):
    print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
    left(code)
left, os._exit = os._exit, leave
from conchart.cli import main
main()
"""
    ended = subprocess.run([sys.executable, "-c", run, CAPTURE], capture_output=True, text=True, check=True)
    code, imported = json.loads(ended.stderr)
    assert code == 0
    assert NEEDLESS.intersection(imported) == set()


def test_nobody_looks_for_libraries_of_data_frames() -> None:
    """DuckDB asks for pandas with each value of a query. Each time, Python would look through its folders."""
    run = f"""
import collections, json, sys
looked_for = collections.Counter()
class Telling:
    def find_spec(self, name, path=None, target=None):
        looked_for[name] += 1
sys.meta_path.insert(0, Telling())
from conchart.cli.command import run
run([{CAPTURE!r}])
print(json.dumps(looked_for), file=sys.stderr)
"""
    ended = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True)
    assert {"pandas", "pyarrow"}.isdisjoint(json.loads(ended.stderr))


def test_a_summary_asks_few_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    connected = duckdb.connect

    def counting(*args: object) -> duckdb.DuckDBPyConnection:
        connection = connected(*args)  # type: ignore[arg-type]
        connection.execute("CALL enable_logging('QueryLog', storage = 'memory')")
        return connection

    monkeypatch.setattr(duckdb, "connect", counting)
    with conchart.read(CAPTURE) as trace, report_of(trace) as report:
        print_summary(report, plain_console(sys.stdout), DrawOptions())
        ((statements,),) = trace.sql(
            f"SELECT count(*) FROM duckdb_logs WHERE type = 'QueryLog' AND {PLANNED}"
        ).fetchall()
    assert 0 < statements <= MOST_STATEMENTS
