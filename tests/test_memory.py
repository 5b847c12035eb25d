"""The tables keep to the memory they may take: beyond it they are on disk, and nothing stays there."""

from __future__ import annotations

import struct
from contextlib import nullcontext
from pathlib import Path

import duckdb
import pytest

import conchart
from conchart.errors import NoRoomError, UsageError
from conchart.reading import parts
from conchart.store import memory
from conchart.store.tables import Tables
from tests.conftest import ROOT, places_of
from tests.laws.files import Format
from tests.reading.parts.whole import Here

SYNS = 600_000
"""Unanswered connections whose rows need more than the least memory that may be allowed."""


@pytest.fixture(scope="module")
def scan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of a port scan that nobody answers."""
    form = Format()
    header, record = form.of_frames(
        [
            (
                1_700_000_000_000_000_000,
                bytes.fromhex("020000000001020000000002")
                + b"\x08\x00"
                + struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40, 0, 0, 64, 6, 0, b"\x0a\0\0\1", b"\xc0\xa8\0\1")
                + struct.pack(">HHIIBBHHH", 1, 80, 7, 0, 0x50, 2, 1024, 0, 0),
            )
        ]
    )
    client, port = 16 + 14 + 12, 16 + 14 + 20
    path = tmp_path_factory.mktemp("scan") / "input.pcap"
    with path.open("wb") as file:
        file.write(header)
        for number in range(SYNS):
            address, source = (0x0A000000 + number // 60_000).to_bytes(4, "big"), 1024 + number % 60_000
            file.write(
                record[:client] + address + record[client + 4 : port] + struct.pack(">H", source) + record[port + 2 :]
            )
    return path


@pytest.mark.timeout(120)
@pytest.mark.thorough
def test_what_does_not_fit_is_on_disk_until_the_trace_is_closed(
    scan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with conchart.read(scan, memory="128MB") as trace:
        ((spilled,),) = trace.sql("SELECT sum(temporary_storage_bytes) FROM duckdb_memory()").fetchall()
        assert spilled > 0
        assert trace.sql("SELECT count(*), count(DISTINCT stream), min(state) FROM connections").fetchall() == [
            (SYNS, SYNS, "unanswered")
        ]
        (folder,) = tmp_path.iterdir()
        assert folder.name.startswith("conchart-")
        ((notes,),) = trace.sql("SELECT notes FROM captures").fetchall()
        assert notes[-1].startswith("in all, ")
        assert len(notes) == 4
    assert not list(tmp_path.iterdir())


@pytest.mark.timeout(120)
def test_no_room_on_disk_either_is_an_error_that_says_what_to_do(scan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conchart.trace.spill_folder", lambda: Path("/proc/no-such-folder"))
    with pytest.raises(NoRoomError, match="no room for the tables: .*\n.*--memory") as caught:
        conchart.read(scan, memory="128MB")
    assert caught.value.exit_code == 4


def test_half_of_the_memory_is_the_default() -> None:
    limits = list(memory._memories())
    assert memory.table_limit(None) == max(min(limits) // 2, memory.LEAST)
    with conchart.read(Path(__file__).parent.parent / "captures/round-trips/tls12-client/input.pcap") as trace:
        ((shown,),) = trace.sql("SELECT current_setting('memory_limit')").fetchall()
    with duckdb.connect(":memory:", config={"memory_limit": f"{memory.table_limit(None)}B"}) as expected:
        assert expected.execute("SELECT current_setting('memory_limit')").fetchone() == (shown,)


@pytest.mark.parametrize("amount", ["127MB", "1k", "0"])
def test_less_memory_than_anything_works_with_is_refused(amount: str) -> None:
    with pytest.raises(UsageError, match="is too little: give at least 128 MB"):
        memory.table_limit(amount)


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect what the trace's tables and those of each task may take, as DuckDB says it; tasks run in this process."""
    limits: list[str] = []
    create = Tables.create

    def observed(tables: Tables) -> None:
        create(tables)
        ((limit,),) = tables.stored("SELECT current_setting('memory_limit')").fetchall()
        limits.append(limit)

    monkeypatch.setattr(Tables, "create", observed)
    monkeypatch.setattr(parts, "tasks_of", lambda _workers, _scheduler: nullcontext(Here()))
    return limits


@pytest.mark.parametrize(
    ("allowed", "whole", "each"), [("1.2GB", "1.1 GiB", "286.1 MiB"), ("200MB", "190.7 MiB", "122.0 MiB")]
)
def test_two_tasks_that_read_parts_share_half_of_what_is_allowed(
    allowed: str, whole: str, each: str, limits: list[str]
) -> None:
    """None gets less than anything works with."""
    capture = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"
    conchart.read(capture, packets=True, workers=2, memory=allowed).close()
    assert limits[0] == whole
    assert set(limits[1:]) == {each}


def test_places_share_half_of_what_is_allowed(limits: list[str]) -> None:
    conchart.read(places=places_of(ROOT / "captures/places/plain"), memory="1.2GB").close()
    assert limits == ["1.1 GiB", *["190.7 MiB"] * 3]
