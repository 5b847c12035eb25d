"""Where packets come from: files, URLs, what is still growing; or the files of several places.

In: arguments of ``conchart.read``. Out: names under which the native core reads the captures, and what these
are called in the tables.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from conchart.reading.live.growing import Growing
from conchart.store.tables import Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Captures: ``paths``, or those of ``places``."""

    paths: tuple[str | Growing, ...] = ()
    """Paths and URLs (with ``*``: all that it stands for), in the order of their times; ``-`` is standard input."""
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The files of each place, in the order of their times."""

    @property
    def names(self) -> list[str]:
        """Say what each capture that ``paths`` has is called."""
        return [path.name if isinstance(path, Growing) else path for path in self.paths]

    @property
    def growing(self) -> list[Growing]:
        """Give what is still growing."""
        return [path for path in self.paths if isinstance(path, Growing)]

    @property
    def is_read_once(self) -> bool:
        """Can a capture not be read a second time?"""
        return bool(self.growing) or "-" in self.paths

    def expanded(self) -> "Source":
        """Give the source with the URLs that patterns stand for.

        Raises:
            CaptureError: No file has such a name.
        """
        if not any("://" in name for name in self.names):
            return self
        from conchart.reading.parts.cutting import expanded  # not above: few captures are URLs

        paths = ((path,) if isinstance(path, Growing) else expanded(path) for path in self.paths)
        return replace(self, paths=tuple(path for several in paths for path in several))

    @contextmanager
    def opened(self) -> Iterator[list[str]]:
        """Give the path under which the native core reads each capture, as long as the block lasts.

        Raises:
            CaptureError: One cannot be opened.
        """
        with ExitStack() as flowing:
            yield [_enter(flowing, path) for path in self.paths]

    def name_captures(self, tables: Tables, opened: Sequence[str]) -> None:
        """Put into the rows of captures what they are called, and what the capturing machine says of growing ones."""
        for number, (path, name) in enumerate(zip(self.paths, opened, strict=True)):
            if isinstance(path, Growing):
                notes = [f"ended before it was told to: {path.broken}"] if path.broken else []
                tables.execute(
                    "UPDATE captures SET path = ?, dropped = coalesce(dropped, ?), notes = list_concat(notes, ?) "
                    "WHERE capture = ?",
                    [path.name, path.dropped, notes, number],
                )
            elif path != name:
                tables.execute("UPDATE captures SET path = ? WHERE capture = ?", [path, number])


def _enter(flowing: ExitStack, path: str | Growing) -> str:
    if isinstance(path, Growing):
        return flowing.enter_context(path.opened())
    if "://" not in path:
        return path
    from conchart.reading.parts.cutting import Part

    return flowing.enter_context(Part(0, (path,)).opened())[0]
