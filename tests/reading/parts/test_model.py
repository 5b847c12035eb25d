"""What is known of parts: their times, and whether their clocks step."""

from dataclasses import replace
from pathlib import Path

import pytest

from conchart.reading.parts.cutting import Part
from conchart.reading.parts.model import File, Surveyed, clock_steps_between, file_of, files_of

TEN_YEARS_NS = 315_576_000 * 10**9


def surveyed(*times: tuple[int | None, int | None], begin: int = 0, end: int | None = None) -> Surveyed:
    """Give a part with a file for each first and last instant."""
    return Surveyed(
        part=Part(0, ("a.pcap",), begin=begin, end=end),
        folder="",
        frames=0,
        packets=0,
        selected=0,
        files=tuple(File(1, first, last, ()) for first, last in times),
        truncated=False,
        torn=(),
    )


def test_a_part_lasts_from_its_earliest_to_its_latest_packet() -> None:
    part = surveyed((30, 40), (None, None), (10, 20))
    assert (part.first_at, part.last_at) == (10, 40)
    assert (surveyed((None, None)).first_at, surveyed().last_at) == (None, None)


@pytest.mark.parametrize(
    ("times", "overlaps"),
    [
        (((10, 20), (20, 30)), False),
        (((10, 20), (19, 30)), True),
        (((10, 50), (20, 30), (40, 60)), True),
        (((10, 50), (None, None), (50, 60)), False),
        (((0, 0), (0, 5)), False),
        ((), False),
    ],
)
def test_files_overlap_where_one_begins_before_all_others_have_ended(
    times: tuple[tuple[int, int], ...],
    overlaps: bool,  # noqa: FBT001
) -> None:
    assert surveyed(*times).overlaps == overlaps


def test_a_range_that_ends_inside_a_record_is_torn_and_a_file_that_breaks_off_is_not() -> None:
    assert replace(surveyed(end=500), truncated=True).torn_at_end
    assert not replace(surveyed(), truncated=True).torn_at_end
    assert not surveyed(end=500).torn_at_end


def test_notes_tell_of_a_clock_that_steps() -> None:
    note = File(1, 0, 0, ("frame 7: the clock steps by a year",))
    assert replace(surveyed(), files=(note,)).clock_steps
    assert not replace(surveyed(), files=(File(1, 0, 0, ("frame 7 is cut",)),)).clock_steps


def test_between_ranges_of_a_file_the_clock_may_step_and_a_file_begins_whenever_it_likes() -> None:
    before, late = surveyed((0, 10)), (10 + TEN_YEARS_NS, 10 + TEN_YEARS_NS)
    assert clock_steps_between(before, surveyed(late, begin=24))
    assert not clock_steps_between(before, surveyed((late[0] - 1, late[1]), begin=24))
    assert clock_steps_between(surveyed((0, late[0])), surveyed((10, 10), begin=24)), "back"
    assert not clock_steps_between(before, surveyed(late))
    assert not clock_steps_between(before, surveyed((None, None), begin=24))


def test_files_of_a_table_are_listed_in_their_order(tmp_path: Path) -> None:
    folder = str(tmp_path)
    names = [file_of(folder, "phases", number) for number in (2, 0, 11)]
    for name in (*names, file_of(folder, "stalls")):
        Path(name).touch()
    assert files_of(folder, "phases") == [names[1], names[0], names[2]]
    assert files_of(folder, "stalls") == [f"{folder}/stalls-00000.parquet"]
    assert files_of(folder, "links") == []
