"""Captures of the same traffic, taken at several places: what is refused before anything is read."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from conchart.errors import CaptureError, UsageError
from conchart.reading import places as in_places
from conchart.reading.knowledge import Knowledge
from conchart.reading.options import ReadOptions
from conchart.reading.source import Source
from conchart.store.tables import Tables
from tests.by_hand import tables_of
from tests.conftest import ROOT, places_of

FILES = {place: (str(path),) for place, path in places_of(ROOT / "captures/places/plain").items()}


def read(
    places: Mapping[str, tuple[str, ...]], *, trusted: tuple[str, ...] = ()
) -> tuple[Tables, list[tuple[int, int]]]:
    """Give the tables, and what was said of the progress."""
    tables, progress = tables_of(), list[tuple[int, int]]()
    with tables.filling():
        options = ReadOptions(progress=lambda *done: progress.append(done))
        in_places.read(tables, Source(places=places), options, Knowledge(trusted_clocks=trusted))
    return tables, progress


@pytest.mark.parametrize(
    ("places", "trusted", "words"),
    [
        ({"client": ("a.pcap",)}, (), "name two places at least"),
        ({"client": ("a.pcap",), "lb": ("b.pcap",)}, ("app",), "there is no place app; --at names client, lb"),
        ({"client": ("a.pcap",), "lb": ("./a.pcap",)}, (), "./a.pcap is named for client and for lb"),
    ],
)
def test_what_somebody_names_wrongly_is_refused(
    places: Mapping[str, tuple[str, ...]], trusted: tuple[str, ...], words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        read(places, trusted=trusted)
    assert words in str(caught.value)


def test_a_file_that_cannot_be_read_is_named_whichever_place_has_it(tmp_path: Path) -> None:
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"no capture at all")
    with pytest.raises(CaptureError, match=r"bad\.pcap"):
        read({"client": FILES["client"], "lb": (str(bad),)})


def test_each_place_has_a_row_a_clock_and_its_share_of_the_progress() -> None:
    tables, progress = read(FILES, trusted=("lb",))
    assert tables.fetch("SELECT number, place, reference FROM places ORDER BY number") == [
        (number, place, number == 0) for number, place in enumerate(FILES)
    ]
    methods = dict(tables.fetch("SELECT DISTINCT place, method FROM clocks"))
    assert (methods["client"], methods["lb"]) == ("reference", "trusted")
    sizes = [Path(path).stat().st_size for (path,) in FILES.values()]
    assert [size for size, _ in progress] == [sum(sizes[: number + 1]) for number in range(len(sizes))]
    ((packets,),) = tables.fetch("SELECT sum(packets)::BIGINT FROM places")
    assert progress[-1][1] == packets


def test_connections_that_several_places_saw_stand_once_with_the_places_on_their_way() -> None:
    tables, _ = read(FILES)
    ways = tables.fetch(
        "SELECT stream, list(position ORDER BY position), list(place ORDER BY position) FROM paths GROUP BY ALL"
    )
    ((streams,),) = tables.fetch("SELECT count(*) FROM connections")
    assert len(ways) == streams
    for _, positions, places in ways:
        assert positions == [*range(len(places))]
        assert len({*places}) == len(places)
    assert max(len(places) for _, _, places in ways) > 1
