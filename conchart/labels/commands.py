"""What to type to see more of the same captures. In: the arguments of ``conchart.read``. Out: :class:`Commands`."""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from conchart.labels.printable import printable

_LONGEST = 1000
"""Characters: nobody wants to see a longer command; one of many files is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """Commands that run as they stand; empty where nobody can type one."""

    findings: str = ""
    """Shows the findings in full."""
    explaining: str = ""
    """Explains a connection, but for its number."""

    def explain(self, stream: int | None) -> str:
        """Give the command that explains this connection; empty where there is none."""
        return f"{self.explaining} {stream}" if self.explaining and stream is not None else ""


NONE = Commands()
"""Of what cannot be read again: standard input, what grew, names that cannot be printed."""


def commands(
    paths: Sequence[str],
    chosen: str,
    *,
    places: Mapping[str, Iterable[str | os.PathLike[str]]] | None = None,
    explains: bool = True,
    only_findings: Mapping[str, str] | None = None,
    **options: str | Iterable[str | os.PathLike[str]] | None,
) -> Commands:
    """Write the commands that read these captures with these options.

    Args:
        paths: Captures, or a saved trace.
        chosen: What chose packets, as options.
        places: Names of places and their captures, in place of ``paths``.
        explains: Whether a connection can be explained.
        only_findings: Options and values that explaining does not know.
        options: What else changes what is told, by the option's name: a value, or several.
    """
    in_places = [f"{name}={os.fspath(file)}" for name, files in (places or {}).items() for file in files]
    options = {"at": in_places, **options}
    shared = [*filter(None, [chosen]), *_options(options)]
    # What begins with a dash would be an option.
    files = [shlex.quote(f"./{path}" if path.startswith("-") else path) for path in paths]
    command = " ".join(["conchart findings", *shared, *_options(only_findings or {}), *files])
    explaining = " ".join(["conchart explain", *shared, *files])
    if not (paths or places) or "-" in paths or len(command) > _LONGEST or printable(command, len(command)) != command:
        return NONE
    return Commands(findings=command, explaining=explaining if explains else "")


def _options(options: Mapping[str, str | Iterable[str | os.PathLike[str]] | None]) -> Iterator[str]:
    for name, given in options.items():
        for value in [given] if isinstance(given, str) else given or ():
            yield f"--{name.replace('_', '-')} {shlex.quote(os.fspath(value))}"
