"""What is read beside a capture, or of several places, is saved and opened as it was."""

import json
from pathlib import Path

import pytest

import conchart
from conchart import Trace
from conchart.store.schema import TABLES
from tests.conftest import IN_PLACES, ROOT, places_of

CAPTURES = ROOT / "captures"
LOGGED = sorted(path.parent for path in CAPTURES.glob("logs/*/log.json"))
TRACED = sorted(path.parent for path in CAPTURES.glob("traces/*/*.otlp.json"))


def rows(trace: Trace) -> dict[str, list[tuple[object, ...]]]:
    return {table.name: trace.fetch(f"FROM {table.name} ORDER BY ALL") for table in TABLES}


def opened(trace: Trace, path: Path) -> dict[str, list[tuple[object, ...]]]:
    trace.write(path)
    with Trace.load(path) as again:
        return rows(again)


@pytest.mark.parametrize("case", IN_PLACES, ids=lambda case: case.name)
@pytest.mark.parametrize("name", ["out.duckdb", "out.tables"])
def test_captures_of_several_places_are_opened_again(case: Path, name: str, tmp_path: Path) -> None:
    with conchart.read(places=places_of(case)) as trace:
        assert opened(trace, tmp_path / name) == rows(trace)
        assert trace.fetch("SELECT count(*) > 0 FROM place_packets") == [(True,)]


@pytest.mark.parametrize("case", LOGGED, ids=lambda case: case.name)
def test_access_logs_are_opened_again(case: Path, tmp_path: Path) -> None:
    settings = json.loads((case / "log.json").read_text(encoding="utf-8"))
    log, formats = f"{settings['log']}={case / 'access.log'}", [settings["format"]] if settings["format"] else []
    with conchart.read(case / "input.pcap", access_logs=[log], log_formats=formats) as trace:
        assert opened(trace, tmp_path / "out.duckdb") == rows(trace)
        assert trace.fetch("SELECT count(*) > 0 FROM log_lines") == [(True,)]


@pytest.mark.parametrize("case", dict.fromkeys(TRACED), ids=lambda case: case.name)
def test_spans_are_opened_again(case: Path, tmp_path: Path) -> None:
    with conchart.read(case / "input.pcap", spans=case.glob("*.otlp.json")) as trace:
        assert opened(trace, tmp_path / "out.duckdb") == rows(trace)
        assert trace.fetch("SELECT count(*) > 0 FROM spans") == [(True,)]
