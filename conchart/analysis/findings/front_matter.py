"""Front matter: lines of YAML that give names and values, and the line on which each stands.

In: text. Out: :class:`Front`. To import YAML and to read conchart's own findings with it takes longer than to analyse a
small capture. So a build writes what it read of those to a file beside them, by the hash of the text: text that was
changed has another hash, and is read again. ``setup.py`` runs this file by itself: it imports nothing of conchart's.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

RULES = Path(__file__).parent / "rules"
"""The folder of conchart's own rules and of their thresholds."""
READ_BEFORE = RULES / "front-matter.json"
"""What a build read. Where conchart runs from sources that nobody built, it is missing, and all is read again."""
DELIMITER = "---"
FIRST_LINE = 2
"""Of a rule's front matter: the delimiter comes before."""


class FrontMatterError(Exception):
    """It cannot be read; the message says why."""

    def __init__(self, problem: str, line: int = 0) -> None:
        """Say on which line of the front matter; the first one is 0."""
        super().__init__(problem)
        self.line = line


@dataclass(frozen=True, slots=True)
class Front:
    """What the text says."""

    values: dict[str, Any]
    """The values by their names."""
    lines: dict[str, int]
    """The line of each name; the first one is 0."""
    items: dict[str, list[int]]
    """Of what is a list, the line of each item."""


def front_matter(text: str) -> Front:
    """Read front matter.

    Raises:
        FrontMatterError: It is no YAML, or gives no names and values.
    """
    if stored := _read_before().get(_hash(text)):
        return Front(**stored)
    return _parsed(text)


def halves(text: str) -> tuple[str, str]:
    """Part the front matter of a rule from the rest of its file.

    Raises:
        FrontMatterError: There is none.
    """
    lines = text.split("\n")
    if lines[0] != DELIMITER or DELIMITER not in lines[1:]:
        raise FrontMatterError(f"a finding begins with front matter between two lines of {DELIMITER}", -1)
    end = lines.index(DELIMITER, 1)
    return "\n".join(lines[1:end]), "\n".join(lines[end + 1 :])


def texts() -> list[str]:
    """Give all front matter of conchart's own."""
    rules = (halves(path.read_text(encoding="utf-8"))[0] for path in sorted(RULES.glob("*.md")))
    return [*rules, (RULES / "thresholds.yaml").read_text(encoding="utf-8")]


def read_ahead() -> str:
    """Read all of it; give what ``READ_BEFORE`` is to have."""
    return json.dumps({_hash(text): asdict(_parsed(text)) for text in texts()})


@cache
def _read_before() -> dict[str, dict[str, Any]]:
    try:
        read: dict[str, dict[str, Any]] = json.loads(READ_BEFORE.read_bytes())
    except (OSError, ValueError):  # all of it can be read again
        return {}
    return read


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _parsed(text: str) -> Front:
    import yaml  # not above: who adds no findings of their own never needs it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)  # libyaml's is ten times as fast, where it is there
    try:
        node = loader.get_single_node()
        values = loader.construct_document(node) if node else None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        raise FrontMatterError(problem, mark.line if mark else 0) from None
    finally:
        loader.dispose()
    if not isinstance(values, dict) or node is None:
        raise FrontMatterError("expected lines of the form name: value")
    return Front(
        values,
        {key.value: key.start_mark.line for key, _ in node.value},
        {
            key.value: [item.start_mark.line for item in value.value]
            for key, value in node.value
            if isinstance(value, yaml.SequenceNode)
        },
    )
