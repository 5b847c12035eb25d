"""Files of places that are rotated, compressed, cut, empty or named wrongly."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path

import pytest

import conchart
from conchart import UsageError
from tests.cli.test_cli import Run
from tests.cli.test_cli import run as run  # noqa: PLC0414  (a fixture)
from tests.conftest import ROOT, places_of

PLAIN = {place: Path(path) for place, path in places_of(ROOT / "captures/places/plain").items()}
HEADER, RECORD = 24, 16
"""Bytes of a pcap file's header, and before each packet."""
COLUMNS = {
    "clocks": "place, reference, from_at, offset_ns, drift_ppb, uncertainty_ns, method, packets",
    "place_packets": "place, frame, seen_at, packet, stream",
    "losses": "from_place, to_place, frame",
    "connections": "client_ip, client_port, packets_client, packets_server, opened_at, closed_at",
}


def table_rows(places: dict[str, list[Path]]) -> dict[str, list[tuple[object, ...]]]:
    with conchart.read(places={place: list(map(str, files)) for place, files in places.items()}) as trace:
        return {
            table: trace.sql(f"SELECT {what} FROM {table} ORDER BY ALL").fetchall() for table, what in COLUMNS.items()
        }


def usual() -> dict[str, list[Path]]:
    return {place: [path] for place, path in PLAIN.items()}


def rotated(path: Path, into: Path, packets: int) -> list[Path]:
    """Cut a capture after so many packets."""
    data = path.read_bytes()
    at = HEADER
    for _ in range(packets):
        at += RECORD + int.from_bytes(data[at + 8 : at + 12], "little")
    (into / "lb-1.pcap").write_bytes(data[:at])
    (into / "lb-2.pcap").write_bytes(data[:HEADER] + data[at:])
    return [into / "lb-1.pcap", into / "lb-2.pcap"]


def test_rotated_files_of_a_place_tell_the_same(tmp_path: Path) -> None:
    assert table_rows(usual() | {"lb": rotated(PLAIN["lb"], tmp_path, 70)}) == table_rows(usual())


def test_rotated_files_are_given_by_commas(run: Run, tmp_path: Path) -> None:
    files = ",".join(map(str, rotated(PLAIN["lb"], tmp_path, 70)))
    code, out, err = run("--at", f"client={PLAIN['client']}", "--at", f"lb={files}", "--at", f"app={PLAIN['app']}")
    assert (code, err) == (0, "")
    assert "clock lb: 37.0 ms ± 10.0 ms ahead of client" in " ".join(out.split())


@pytest.mark.skipif(not shutil.which("zstd"), reason="zstd is not installed")
def test_compressed_files_tell_the_same(tmp_path: Path) -> None:
    (tmp_path / "lb.pcap.gz").write_bytes(gzip.compress(PLAIN["lb"].read_bytes()))
    subprocess.run(["zstd", "-q", PLAIN["app"], "-o", tmp_path / "app.pcap.zst"], check=True)
    packed = {"lb": [tmp_path / "lb.pcap.gz"], "app": [tmp_path / "app.pcap.zst"]}
    assert table_rows(usual() | packed) == table_rows(usual())


def test_a_cut_file_at_one_place_loses_nothing_on_the_way(tmp_path: Path) -> None:
    """What the cut file would have had is not lost: that place did not capture any more."""
    whole = PLAIN["app"].read_bytes()
    (tmp_path / "app.pcap").write_bytes(whole[: len(whole) // 2])
    found = table_rows(usual() | {"app": [tmp_path / "app.pcap"]})
    assert found["losses"] == []
    assert {row[0] for row in found["clocks"]} == {"client", "lb", "app"}


@pytest.mark.parametrize("place", ["client", "lb", "app"])
def test_an_empty_capture_at_one_place_takes_nothing_from_the_others(place: str, tmp_path: Path) -> None:
    (tmp_path / "empty.pcap").write_bytes(PLAIN[place].read_bytes()[:HEADER])
    places = usual() | {place: [tmp_path / "empty.pcap"]}
    others = [other for other in PLAIN if other != place]
    with conchart.read(places={name: list(map(str, files)) for name, files in places.items()}) as trace:
        assert trace.sql("SELECT count(*) FROM losses").fetchone() == (0,)
        streams = trace.sql("SELECT count(*) FROM connections").fetchone()
        unknown = trace.sql("SELECT place FROM clocks WHERE method = 'unknown'").fetchall()
    with conchart.read(places={name: [str(PLAIN[name])] for name in others}) as trace:
        assert streams == trace.sql("SELECT count(*) FROM connections").fetchone()
    # Nothing is known of the empty place's clock; if it is the reference, of no clock against it.
    assert (place,) in unknown or place == "client"


def test_a_file_of_no_bytes_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "none.pcap").touch()
    code, _, err = run("--at", f"client={PLAIN['client']}", "--at", f"lb={tmp_path / 'none.pcap'}")
    assert code == 3
    assert "the file is empty" in err


def test_swapped_names_do_not_swap_the_way() -> None:
    """Which place is nearer to the client follows from the packets, not from names or their order."""
    swapped = {"app": str(PLAIN["client"]), "lb": str(PLAIN["lb"]), "client": str(PLAIN["app"])}
    with conchart.read(places={place: [path] for place, path in swapped.items()}) as trace:
        order = (
            "SELECT DISTINCT list(place ORDER BY position) FROM paths GROUP BY stream HAVING count(*) > 1 ORDER BY ALL"
        )
        assert trace.sql(order).fetchall() == [(["app", "lb"],), (["lb", "client"],)]


def test_a_file_of_two_places_is_refused(run: Run) -> None:
    file = PLAIN["client"]
    code, _, err = run("--at", f"client={file}", "--at", f"lb={file}")
    assert code == 2
    assert "is named for client and for lb" in " ".join(err.split())
    with pytest.raises(UsageError, match="each place has files of its own"):
        conchart.read(places={"client": [str(file)], "lb": [str(file)]})


def test_a_name_given_twice_has_all_files(run: Run, tmp_path: Path) -> None:
    first, second = rotated(PLAIN["lb"], tmp_path, 70)
    at = [f"client={PLAIN['client']}", f"lb={first}", f"lb={second}"]
    words = [word for text in at for word in ("--at", text)]
    code, out, _ = run("query", *words, "SELECT count(*) AS n FROM captures", "--format", "csv")
    assert code == 0
    assert out.split() == ["n", "3"]
