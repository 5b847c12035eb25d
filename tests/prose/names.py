"""Identifiers that say that something was told, asked, said, known or kept, and not what it is.

In: Python, Rust and JavaScript. Out: each place. Names of tests are sentences, and may hold these words.
"""

import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

BANNED = {"told", "asked", "said", "known", "kept"}
SENTENCE = 5
"""A name of so many words is one."""
BUILT = {"target", "node_modules"}

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_HOLE = re.compile(r"\{([^{}]*)\}")
_HIDDEN = re.compile(r'/\*.*?\*/|//[^\n]*|b?"(?:\\.|[^"\\])*"', re.DOTALL)
"""Comments and texts of Rust and JavaScript."""


class Place(NamedTuple):
    """An identifier that is to get another name."""

    path: Path
    line: int
    name: str

    def __str__(self) -> str:
        """Write it as compilers do."""
        return f"{self.path}:{self.line}: {self.name} does not say what it is"


def vague(*folders: Path) -> Iterator[Place]:
    """Find all of them in the code of these folders."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".rs", ".js") and not BUILT & {*path.parts}:
                text = path.read_text(encoding="utf-8")
                names = of_python(text) if path.suffix == ".py" else of_others(text)
                yield from (Place(path, line, name) for line, name in names if is_vague(name))


def is_vague(name: str) -> bool:
    """Tell whether one of the words of a name is banned: ``told``, ``_asked_at``, ``isKnown``."""
    words = [word.lower() for word in _WORD.findall(name)]
    return len(words) < SENTENCE and not BANNED.isdisjoint(words)


def of_python(text: str) -> Iterator[tuple[int, str]]:
    """Give the identifiers with their lines, also those in f-strings."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string
        elif token.type == tokenize.STRING and token.string[0] in "fF":  # one token, before Python 3.12
            holes: Iterable[str] = _HOLE.findall(token.string)
            yield from (
                (token.start[0], name) for hole in holes for name in re.findall(r"(?<![\w.'\"])[A-Za-z_]\w*", hole)
            )


def of_others(text: str) -> Iterator[tuple[int, str]]:
    """Give the identifiers of Rust and JavaScript with their lines."""
    code = _HIDDEN.sub(lambda hidden: "\n" * hidden[0].count("\n") or '""', text)
    for number, line in enumerate(code.split("\n"), start=1):
        yield from ((number, name) for name in _NAME.findall(line))
