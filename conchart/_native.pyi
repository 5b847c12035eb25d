"""The native core: a few functions wide."""

from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address

__all__ = [
    "CaptureError",
    "annotate_captures",
    "clock_steps",
    "fit_clock",
    "link_exchanges",
    "pack_columns",
    "read_capture",
    "share_waits",
    "spill_flows",
    "survey_pools",
]

class CaptureError(Exception):
    """Nothing could be read from a capture; the text is complete."""

def read_capture(
    paths: list[str],
    sink: Callable[[str, object], None],
    *,
    compile_filter: Callable[[int], list[tuple[int, int, int, int]]] | None,
    start: int | None,
    end: int | None,
    start_relative: bool,
    end_relative: bool,
    count: int | None,
    detailed: int | None,
    explained: int | None,
    statements: str,
    keylogs: list[str],
    progress: Callable[[int, int], None] | None,
    watch: Callable[[list[tuple[str, object]]], int] | None,
    sightings: bool = False,
    steps: Sequence[tuple[int, int]] = ...,
) -> tuple[int, list[tuple[IPv4Address | IPv6Address, IPv4Address | IPv6Address, int, int, bool]]]:
    """Read whole captures into tables.

    ``steps`` tells where the clock was set: from which frame on it shows how much more. That is taken away.

    Returns:
        The number of the last frame. Of fragmented packets that never became whole, 4,096 at most: source, destination,
        the frame of the first piece, the number of frames, whether it is UDP.
    """

def annotate_captures(
    captures: list[tuple[str, int]],
    output: str,
    comments: Callable[[], list[tuple[int, str]]],
    *,
    compile_filter: Callable[[int], list[tuple[int, int, int, int]]] | None,
    start: int | None,
    end: int | None,
    start_relative: bool,
    end_relative: bool,
    count: int | None,
) -> list[tuple[int, int]]:
    """Copy captures that were read before into one pcapng file, with comments on their frames.

    Args:
        captures: Paths, each with how many frames to look at.
        output: The file, which is replaced.
        comments: Gives the next comments with the numbers of their frames, in order; none at the end.
        compile_filter: As for ``read_capture``: what is not chosen is not copied.
        start: As for ``read_capture``.
        end: As for ``read_capture``.
        start_relative: As for ``read_capture``.
        end_relative: As for ``read_capture``.
        count: As for ``read_capture``.

    Returns:
        Of each capture how many frames were looked at, and how long they were together on the wire.
    """

def fit_clock(points: object) -> list[tuple[int, int, int, int, int | None, int, int]]:
    """Tell how far two clocks are apart, from packets that both saw.

    Args:
        points: Rows that speak Arrow, in the order of time: ``here_at`` (when the reference saw the packet),
            ``ahead_ns`` (when the other place saw it, by its own clock, less ``here_at``), ``outward`` (it went to the
            other place), ``here_frame``, ``there_frame``, ``segment`` (the same between two known steps of a clock).

    Returns:
        Of each stretch of time between two steps of the clock: its first instant, the first of the next one (or its
        last), how far the other clock is ahead at the first instant, what it gains in parts of 10⁹, how much that can
        be wrong (None if packets went in one direction alone), the number of packets, the segment.
    """

def clock_steps(points: object) -> list[tuple[int | None, list[int], list[int], int]]:
    """Find where one of two clocks was set, from packets that both saw.

    Args:
        points: As for ``fit_clock``.

    Returns:
        Of each step: whether the reference (0) or the other place (1) was set, or None if both are possible; at each of
        the two, the last frame before it and the first one after it; how much farther the other place is ahead after
        it.
    """

def link_exchanges(exchanges: object) -> list[object]:
    """Link the exchanges of proxies' two sides.

    Args:
        exchanges: Rows that speak Arrow, with the columns that ``analysis/hops.py`` selects.

    Returns:
        Batches of rows of ``links``.
    """

def pack_columns(rows: object) -> tuple[int, list[tuple[str, int, bool, int, bytes, bytes, list[str] | None]]]:
    """Write columns so that they compress well and a browser reads them without parsing.

    Args:
        rows: Rows that speak Arrow: whole numbers, truth values, texts.

    Returns:
        The number of rows, and of each column: its name; bytes of a value; whether each value is counted from the one
        before; the value that they are counted from otherwise; the values' bytes, plane after plane from the lowest; a
        1 for each value that is known and a 0 for one that is not, or nothing where all are; the texts, where values
        are numbers of texts.
    """

def share_waits(pieces: object, order: list[int]) -> list[tuple[int, int]]:
    """Tell how much of what each finding explains of users' waits is counted with another one.

    Args:
        pieces: Rows that speak Arrow, with the columns that ``analysis/findings.py`` selects; those of one finding
            and one connection do not overlap.
        order: The findings, as they count: where several lie over each other, the first one has the time.

    Returns:
        A finding and nanoseconds, of those that explain anything.
    """

def spill_flows(
    paths: list[str],
    flows: list[tuple[str, IPv4Address | IPv6Address, int, IPv4Address | IPv6Address, int, int]],
    outputs: list[str],
    *,
    compile_filter: Callable[[int], list[tuple[int, int, int, int]]] | None,
    start: int | None,
    end: int | None,
) -> list[object]:
    """Copy the packets of some flows out of captures, and every piece of a fragmented packet.

    Args:
        paths: The captures, whose frames count on.
        flows: Of each flow ``tcp`` or ``udp``, both of its ends, the number of its file among ``outputs``.
        outputs: The pcapng files, which are replaced.
        compile_filter: As for ``read_capture``: what is not chosen is not copied.
        start: As for ``read_capture``, since the epoch.
        end: As for ``read_capture``, since the epoch.

    Returns:
        Of each file a batch with a row per frame: its number in the capture.
    """

def survey_pools(connections: object, exchanges: object) -> object:
    """Tell what there was beside each connection of a pool when it was opened and when it ended.

    Args:
        connections: Rows that speak Arrow, with the columns that ``analysis/evidence.py`` selects.
        exchanges: The same, of what was asked on them.

    Returns:
        A batch with a row for each connection.
    """
