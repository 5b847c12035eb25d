"""The native core: two functions wide."""

from collections.abc import Callable

__all__ = ["CaptureError", "link_exchanges", "read_capture"]

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
    packets: bool,
    keylogs: list[str],
    progress: Callable[[int, int], None] | None,
) -> None: ...
def link_exchanges(exchanges: object) -> list[object]:
    """Link the exchanges of proxies' two sides.

    Args:
        exchanges: Rows that speak Arrow, with the columns that ``analysis/hops.py`` selects.

    Returns:
        Batches of rows of ``links``.
    """
