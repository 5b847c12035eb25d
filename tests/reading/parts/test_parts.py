"""Read in parts, captures give the tables of one reading, wherever they are cut."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from threading import Thread
from typing import Any

import duckdb
import pytest

import conchart
from conchart import CaptureError
from conchart.cli.reading import usual_workers
from conchart.reading import parts
from conchart.reading.options import ReadOptions
from conchart.reading.parts import NotInParts, cutting
from conchart.reading.parts.model import Surveyed
from conchart.reading.parts.survey import survey
from conchart.reading.selection import Selection
from tests.children import running, wait_until
from tests.conftest import CASES, ROOT, capture_of, sampled
from tests.reading.parts.whole import Here, Tables, cut_into, in_parts, records, rows

CAPTURES = [capture_of(Path(case)) for case in CASES if capture_of(Path(case)).suffix == ".pcap"]
MOVES = {"http3/moved", "http3/moved-limited", "http3/rebind", "http3/rebind-caddy", "http3/rebind-idle"}
"""A QUIC client changes its port: one process reads it."""
STEPS = {"wild/clock-steps-quic": "the clock steps"}
SMALL = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"
CHAIN = ROOT / "captures/terminators/nginx/input.pcap"
FEW = CAPTURES[:: max(1, len(CAPTURES) // 12)]
COMMAND = Path(sys.executable).with_name("conchart")


def named(path: Path) -> str:
    return "/".join(path.parts[-3:-1])


def whole(*paths: Path) -> Tables:
    with conchart.read(*paths, packets=True) as trace:
        return rows(trace)


@pytest.mark.parametrize("capture", FEW, ids=named)
def test_files_cut_anywhere_give_the_tables_of_one_reading(capture: Path, tmp_path: Path) -> None:
    length = len(records(capture)[1])
    chosen = random.Random(named(capture))
    ends = sorted(chosen.sample(range(1, length), min(chosen.randint(1, 8), length - 1)))
    files = cut_into(capture, ends, tmp_path)
    assert in_parts(files) == whole(*files), ends


@pytest.mark.thorough
@pytest.mark.parametrize("capture", sampled(CAPTURES[::2], 6), ids=named)
def test_every_second_capture_cut_into_files(capture: Path, tmp_path: Path) -> None:
    files = cut_into(capture, range(23, len(records(capture)[1]), 23), tmp_path)
    why = "QUIC client may have changed its port" if named(capture) in MOVES else STEPS.get(named(capture))
    if why:
        with pytest.raises(NotInParts, match=why):
            in_parts(files)
    else:
        assert in_parts(files) == whole(*files)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("capture", "pieces"),
    [*zip(sampled(CAPTURES[1::2], 6), cycle((2, 3, 8)))],
    ids=lambda of: of if isinstance(of, int) else named(of),
)
def test_every_other_capture_cut_into_ranges(capture: Path, pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "_CHAIN", 8)
    monkeypatch.setattr(parts, "cut", lambda number, path, pieces: cutting.cut(number, path, pieces, least=1_500))
    try:
        assert in_parts([capture], pieces=pieces) == whole(capture)
    except NotInParts:
        assert len(cutting.cut(0, str(capture), pieces, least=1_500)) > 1


def test_pieces_of_packets_in_two_files_are_put_together(tmp_path: Path) -> None:
    """Of a UDP datagram in three fragments, each file has one or two; the addresses are those of nobody else."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)

    def record(number: int, offset: int, data: bytes, *, more: bool) -> bytes:
        about = (0x2000 if more else 0) | offset // 8
        packet = struct.pack(
            ">BBHHHBBH4s4s", 0x45, 0, 20 + len(data), 7, about, 64, 17, 0, b"\x0a\0\0\1", b"\x0a\0\0\2"
        )
        packet += data
        return struct.pack("<IIII", 1_700_000_000, number * 1000, len(packet), len(packet)) + packet

    datagram = struct.pack(">HHHH", 5000, 53, 8 + 56, 0) + bytes(56)
    pieces = [
        record(number, offset, datagram[offset : offset + 24], more=offset + 24 < len(datagram))
        for number, offset in enumerate(range(0, len(datagram), 24))
    ]
    capture = tmp_path / "all.pcap"
    capture.write_bytes(head + b"".join(pieces))
    one = whole(capture)
    assert len(one["connections"]) == 1
    for ends in ([1], [2], [1, 2]):
        folder = tmp_path / "-".join(map(str, ends))
        folder.mkdir()
        files = cut_into(capture, ends, folder)
        assert in_parts(files) == whole(*files), ends


@pytest.mark.skipif(not shutil.which("editcap"), reason="editcap of wireshark-common cuts the file")
def test_comments_say_in_every_part_whose_a_connection_is(tmp_path: Path) -> None:
    source = ROOT / "captures/traces/processes/input.pcapng"
    subprocess.run(["editcap", "-c", "20", source, tmp_path / "part.pcapng"], check=True)
    files = sorted(tmp_path.glob("part*.pcapng"))
    assert len(files) > 2
    assert in_parts(files) == whole(*files)
    with conchart.read(*files) as trace:
        assert trace.fetch("SELECT count(*) = 2 FROM connections WHERE client_process IS NOT NULL") == [(True,)]


def test_a_cut_inside_a_record_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hostile packet may hold what looks like records: the part before the cut then ends inside it."""
    head, packets = records(SMALL)
    inside = len(head) + sum(map(len, packets[:20])) + 20
    whole_file = SMALL.stat().st_size
    torn = [
        cutting.Part(0, (str(SMALL),), size=inside, begin=0, end=inside),
        cutting.Part(0, (str(SMALL),), size=whole_file - inside, begin=inside),
    ]
    monkeypatch.setattr(parts, "cut", lambda *_: torn)
    with pytest.raises((NotInParts, CaptureError)):
        in_parts([SMALL])


def test_several_processes_read_files_and_the_page_is_the_same(tmp_path: Path) -> None:
    files = cut_into(CHAIN, [200, 500], tmp_path)
    with conchart.read(*files, packets=True) as one, conchart.read(*files, packets=True, workers=2) as other:
        assert rows(one) == rows(other)
        assert one.findings.fetchall() == other.findings.fetchall()
        assert one.sql("FROM links ORDER BY ALL").fetchall() == other.sql("FROM links ORDER BY ALL").fetchall()


def test_few_packets_are_read_in_one_piece(tmp_path: Path) -> None:
    """All details of a small capture are kept, which one process does."""
    files = cut_into(SMALL, [20], tmp_path)
    with conchart.read(*files) as one, conchart.read(*files, workers=2) as other:
        assert rows(one) == rows(other)
        assert one.count("packets") > 0


def test_parts_that_are_kept_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = cut_into(SMALL, [20, 40], tmp_path)
    folder = tmp_path / "parts"
    first = in_parts(files, folder=folder)
    read: list[tuple[str, ...]] = []

    def counted(part: cutting.Part, options: ReadOptions, work: Path) -> Surveyed:
        read.append(part.paths)
        return survey(part, options, work)

    monkeypatch.setattr(parts, "survey", counted)
    assert in_parts(files, folder=folder) == first
    assert read == []
    os.utime(files[1], ns=(1, 1))
    assert in_parts(files, folder=folder) == first
    assert len(read) == 1
    assert str(files[1]) in read[0]
    assert str(files[2]) not in read[0]


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"gone\.pcap: no such file"):
        conchart.read(SMALL, tmp_path / "gone.pcap", workers=2)


def test_urls_are_read_as_files_are(tmp_path: Path) -> None:
    cut_into(SMALL, [30], tmp_path)
    with conchart.read(f"file://{tmp_path}/*.pcap") as trace:
        assert trace.sql("SELECT path, packets FROM captures").fetchall() == [
            (f"file://{tmp_path}/0000.pcap", 30),
            (f"file://{tmp_path}/0001.pcap", len(records(SMALL)[1]) - 30),
        ]
    with pytest.raises(CaptureError, match="no file has such a name"):
        conchart.read(f"file://{tmp_path}/*.zst")


def test_a_folder_of_tables_is_opened_again(tmp_path: Path) -> None:
    folder = tmp_path / "run.parquet"
    with conchart.read(SMALL) as trace:
        for _ in range(2):  # the second one replaces the first one
            trace.write(f"{folder}/")
        with conchart.Trace.load(folder) as loaded:
            for table in ("connections", "phases", "findings", "links"):
                query = f"FROM {table} ORDER BY ALL"
                assert loaded.sql(query).fetchall() == trace.sql(query).fetchall()
    assert json.loads((folder / "manifest.json").read_text())["conchart"]
    (folder / "phases").rename(folder / "moved")
    with pytest.raises(CaptureError, match="cannot be opened"):
        conchart.Trace.load(folder)
    other = tmp_path / "mine"
    other.mkdir()
    with conchart.read(SMALL) as trace, pytest.raises(conchart.OutputError, match="nothing that conchart wrote"):
        trace.write(f"{other}/")


@pytest.mark.thorough
@pytest.mark.usefixtures("signals_reach_children")
def test_ctrl_c_ends_every_process(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.pcap" for number in range(2)]
    head, packets = records(SMALL)
    for file in files:
        file.write_bytes(head + b"".join(packets) * 3_000)
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    words = [str(COMMAND), *map(str, files), "-j", "2"]
    with running(words, env=environment, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: any(tmp_path.glob(".conchart-*/.part-*")), process)
        assert len(processes_with(str(tmp_path))) > 2
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err.strip()) == (130, "")
    wait_until(lambda: not processes_with(environment["TMPDIR"]))
    assert not list(tmp_path.glob(".conchart-*"))


def processes_with(folder: str) -> list[int]:
    """Give the processes whose environment names a folder: what a program started, whoever is its parent now."""
    found = []
    for about in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"TMPDIR={folder}\0".encode() in about.read_bytes():
                found.append(int(about.parent.name))
    return found


@pytest.mark.thorough
@pytest.mark.timeout(240)
def test_a_cluster_that_loses_a_worker_gives_the_same_tables(tmp_path: Path) -> None:
    """A real scheduler and two real workers on loopback; one is killed while tasks run."""
    pytest.importorskip("distributed", reason="Dask is not installed")
    files = cut_into(CHAIN, range(60, 900, 60), tmp_path)
    python, port = sys.executable, 18_786
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    log = (tmp_path / "log").open("w")
    scheduler = [python, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port)]
    worker = [python, "-m", "distributed.cli.dask_worker", f"tcp://127.0.0.1:{port}", "--nthreads", "1"]
    quiet: dict[str, Any] = {"env": environment, "stdout": log, "stderr": log}
    alone = ["--no-nanny", "--no-dashboard"]
    folder = tmp_path / "parts"
    with (
        running([*scheduler, "--no-dashboard"], **quiet),
        running([*worker, *alone], **quiet) as first,
        running([*worker, *alone], **quiet),
    ):
        wait_until(lambda: (tmp_path / "log").read_text().count("Registered to") >= 2)

        def kill_one() -> None:
            while not list(folder.glob("part-*")):
                time.sleep(0.01)
            first.kill()

        killer = Thread(target=kill_one)
        killer.start()
        with conchart.read(*files, packets=True, scheduler=f"tcp://127.0.0.1:{port}", parts=folder) as trace:
            found = rows(trace)
        killer.join()
    log.close()
    assert found == whole(*files)


@pytest.mark.parametrize(
    ("cores", "bytes_", "expected"), [(4, 2 << 30, 4), (16, 2 << 30, 16), (3, 8 << 30, 1), (4, (2 << 30) - 1, 1)]
)
def test_large_captures_are_read_by_as_many_processes_as_there_are_cores(
    cores: int, bytes_: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    assert usual_workers(bytes_) == expected


@pytest.mark.thorough
def test_a_scheduler_that_does_not_answer_is_named() -> None:
    pytest.importorskip("distributed", reason="Dask is not installed")
    with pytest.raises(conchart.UsageError, match="no Dask scheduler answers"):
        conchart.read(SMALL, scheduler="tcp://127.0.0.1:1")


def test_wanted_packets_are_the_same() -> None:
    with conchart.read(SMALL, filter="port 443", packets=True) as one:
        expected = rows(one)
    with conchart.Trace(duckdb.connect(":memory:")) as trace:
        trace.create()
        with trace.filling():
            options = ReadOptions(selection=Selection(filter="port 443"), packets=True)
            parts.read_parts(trace, [str(SMALL)], options, Here())
        assert rows(trace) == expected


@pytest.fixture(scope="session")
def s3_server(pytestconfig: pytest.Config) -> Path:
    """Give versitygw, an S3 server that stores objects as files; it is built once, where Go is there."""
    if program := shutil.which("versitygw"):
        return Path(program)
    folder = pytestconfig.rootpath / ".pytest_cache" / "go"
    if not (folder / "versitygw").exists():
        if not shutil.which("go"):
            pytest.skip("neither versitygw nor Go to build it")
        package = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
        environment = os.environ | {"GOBIN": str(folder), "GOFLAGS": "-mod=mod"}
        built = subprocess.run(
            ["go", "install", package], env=environment, capture_output=True, text=True, timeout=500, check=False
        )
        if built.returncode:
            pytest.skip(f"versitygw cannot be built: {built.stderr[-300:]}")
    return folder / "versitygw"


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_captures_in_an_object_store(s3_server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    place = tmp_path / "objects" / "captures" / "lb-1"
    place.mkdir(parents=True)
    files = cut_into(CHAIN, [200, 500], place)
    address = "127.0.0.1:18787"
    for name, value in {
        "AWS_ACCESS_KEY_ID": "access",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_ENDPOINT_URL": f"http://{address}",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    words: list[str | Path] = [
        s3_server,
        "--access",
        "access",
        "--secret",
        "secret",
        "--port",
        address,
        "posix",
        tmp_path / "objects",
    ]

    def answers() -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", 18787), timeout=1):
            return True
        return False

    with running(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        wait_until(answers, server)
        url = "s3://captures/lb-1/*.pcap"
        with conchart.read(url, packets=True) as one, conchart.read(url, packets=True, workers=2) as parted:
            stored = rows(one)
            assert stored == rows(parted)
            found = [path for (path,) in one.sql("SELECT path FROM captures ORDER BY capture").fetchall()]
        assert found == [f"s3://captures/lb-1/{file.name}" for file in files]
    expected = whole(*files)
    del expected["captures"], stored["captures"]  # which name the files
    assert stored == expected


def test_progress_for_programs_is_a_line_of_json(tmp_path: Path) -> None:
    files = cut_into(CHAIN, [500], tmp_path)
    choices: list[list[str]] = [[], ["-j", "2", "-a"]]
    for more in choices:
        words: list[str | Path] = [COMMAND, *files, "--progress", "json", "-w", tmp_path / "out.json", *more]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        lines = [json.loads(line) for line in done.stderr.splitlines()]
        size = sum(file.stat().st_size for file in files)
        assert (lines[-1]["bytes"], lines[-1]["of"]) == (size, size)
        assert lines[-1]["packets"] == len(records(CHAIN)[1])
        assert lines[-1]["seconds"] >= 0
