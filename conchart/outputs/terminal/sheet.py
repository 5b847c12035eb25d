"""A console that is written from top to bottom: labelled lines first, then sections with a title.

In: lines. Out: the same on the console, neither wrapped nor cropped: whoever gives a line has cut it to the width.
"""

from collections.abc import Callable, Iterable
from typing import IO

from rich.console import COLOR_SYSTEMS, Console
from rich.text import Text

from conchart.outputs.terminal.words import wrapped

PLAIN_WIDTH = 100
"""Columns where there is no terminal to ask."""
_LABEL = 12
"""Columns of the labels."""


class Sheet:
    """What is written on a console."""

    def __init__(self, console: Console, write: Callable[[str], object] | None = None) -> None:
        """Take a console; its width is the sheet's.

        Args:
            console: Whose width and colours these are.
            write: What takes each line in the console's place, as the console would write it, in a tenth of the time:
                the console measures the terminal for each line, and looks for places to break it.
        """
        self._console = console
        self._write = write
        self._system = COLOR_SYSTEMS[console.color_system] if console.color_system else None
        self.width = console.width
        self.room = console.width - _LABEL
        """Columns beside a label."""
        # 16 colours cannot tell the phases apart.
        self.colours = console.color_system in ("256", "truecolor") and not console.no_color

    def show(self, line: Text) -> None:
        """Write a line."""
        line.rstrip()
        if self._write is None:
            self._console.print(line, no_wrap=True, overflow="ignore", crop=False, soft_wrap=True)
        elif self._system is None:
            self._write(line.plain)
        else:
            self._write(self._coloured(line))

    def _coloured(self, line: Text) -> str:
        words = []
        # A line gives its parts their styles, and what it is put together with, its own.
        for text, style, _ in Text.assemble(line).render(self._console):
            shown = style.without_color if style and self._console.no_color else style
            words.append(shown.render(text, color_system=self._system) if shown else text)
        return "".join(words)

    def label(self, label: str, lines: Iterable[str | Text]) -> None:
        """Write lines with the label beside the first."""
        for number, line in enumerate(lines):
            self.show(Text.assemble((f"{'' if number else label:<{_LABEL}}", "bold"), line))

    def tell(self, labelled: Iterable[tuple[str, str]]) -> None:
        """Write sentences beside their labels."""
        for label, text in labelled:
            self.label(label, wrapped(text, self.room))

    def section(self, title: str, lines: Iterable[Text]) -> None:
        """Write a title and what stands below it; nothing if there is nothing."""
        for number, line in enumerate(lines):
            if number == 0:
                self.show(Text())
                self.show(Text(title, "bold underline"))
            self.show(line)


def plain_console(sink: IO[str]) -> Console:
    """Make a console without colours for a file."""
    return Console(file=sink, width=PLAIN_WIDTH, color_system=None, force_terminal=False)
