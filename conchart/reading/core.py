"""The one door to reading by the native core: options in its words, and captures by their own names in its errors.

In: captures, options. Out: batches of rows, for a function.
"""

from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address

from conchart import _native
from conchart.errors import CaptureError
from conchart.reading.options import ReadOptions

Torn = tuple[IPv4Address | IPv6Address, IPv4Address | IPv6Address, int, int, bool]
"""A fragmented packet that never became whole: source, destination, first frame, number of frames, is it UDP?"""
Show = Callable[[list[tuple[str, object]]], int]
"""Takes what there is besides so far, of what is under way; says after how many nanoseconds it wants more."""


def read_captures(
    paths: Sequence[str],
    take: Callable[[str, object], None],
    options: ReadOptions,
    *,
    names: Sequence[str],
    detailed: int,
    keylog: Sequence[str] = (),
    steps: Sequence[tuple[int, int]] = (),
    place_packets: bool = False,
    show: Show | None = None,
) -> tuple[int, list[Torn]]:
    """Read captures in one streaming pass.

    Args:
        paths: Where the core finds the captures.
        take: Gets the name of a table and a batch of its rows.
        options: Which packets, how much of them.
        names: What the captures are called.
        detailed: Up to so many packets, all details of them are kept, also of those that ``options`` does not name.
        keylog: Files with secrets.
        steps: Where the clock was set: from which frame on it shows how much more. That is taken away.
        place_packets: Give the table ``place_packets``, too.
        show: Who watches a growing capture.

    Returns:
        The number of the last frame; fragmented packets.

    Raises:
        CaptureError: Nothing could be read.
        UsageError: The filter does not compile.
    """
    try:
        return _native.read_capture(
            list(paths),
            take,
            compile_filter=options.selection.compiler(),
            detailed=None if options.packets else detailed,
            explained=options.explain,
            statements=options.statements,
            keylogs=list(keylog),
            progress=options.progress,
            watch=show,
            place_packets=place_packets,
            steps=steps,
            **options.selection.bounds,
        )
    except _native.CaptureError as error:
        text = str(error)
        for path, name in zip(paths, names, strict=True):
            text = text.replace(path, name)
        raise CaptureError(text) from None
