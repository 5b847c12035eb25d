"""The native core: one function wide."""

from collections.abc import Callable

__all__ = ["CaptureError", "read_capture"]

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
