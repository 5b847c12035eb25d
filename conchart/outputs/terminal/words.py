"""Words of the summary: names, lines. In: table values. Out: ``str`` and ``Text``, safe to print."""

import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from conchart.labels.printable import printable

_CUT = "…"
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|[nµm]?s\b)")


def fit(text: str, width: int) -> str:
    """Make text exactly ``width`` cells wide; too long, it loses its middle: both ends of an address matter."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    if width < 5:
        return set_cell_size(text, max(0, width))
    head = (width - 1) // 2
    tail = text
    while cell_len(tail) > width - 1 - head:
        tail = tail[1:]
    return set_cell_size(set_cell_size(text, head) + _CUT + tail, width)


def both_ends(left: Text, right: str, width: int) -> Text:
    """Put one text at the left edge and one at the right; the left one gives way."""
    room = width - cell_len(right) - 2
    if left.cell_len > room:
        left = left.copy()
        left.truncate(max(8, room), overflow="ellipsis")
    return Text.assemble(left, " " * max(2, width - left.cell_len - cell_len(right)), right)


def flow(parts: Iterable[Text], width: int) -> Iterator[Text]:
    """Set parts side by side, three spaces apart, on as many lines as they need."""
    line = Text()
    for part in parts:
        if line and line.cell_len + 3 + part.cell_len > width:
            yield line
            line = Text()
        line = Text.assemble(line, "   " if line else "", part)
    if line:
        yield line


def names_text(names: Sequence[str] | None) -> str:
    """Write the names a server was called by: the commonest, and how many more."""
    if not names:
        return ""
    more = f" +{len(names) - 1}" if len(names) > 1 else ""
    return printable(names[0], limit=60) + more


def wrapped(text: str, width: int, *, indent: str = "") -> list[str]:
    """Break text at spaces, but no path, and nothing between a number and its unit; indent all lines but the first."""
    # What fits on a line, as nearly all does, is neither searched nor taken apart.
    if len(text) <= max(40, width) and text.isprintable():
        return [text.rstrip()]
    joined = _BEFORE_UNIT.sub("\u00a0", text)
    lines = wrap(joined, max(40, width), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines] or [""]


def clipped(text: str, width: int, most: int | None = None) -> list[str]:
    """Break text as :func:`wrapped` does; of more than ``most`` lines, cut the last one. No line is wider.

    It is cut between words, but inside a long one that would leave the line half empty.
    """
    lines = wrapped(text, width)
    if most is not None and len(lines) > most:
        last = f"{lines[most - 1]} {_CUT}"
        if 4 * cell_len(last) < 3 * width:
            last = " ".join(lines[most - 1 : most + 1])
        lines = [*lines[: most - 1], last]
    return [line if cell_len(line) <= width else f"{set_cell_size(line, width - 1).rstrip()}{_CUT}" for line in lines]
