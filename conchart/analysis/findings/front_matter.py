"""Front matter: lines of YAML that give names and values, and the line on which each stands.

In: text. Out: :class:`Front`. To import YAML and to read conchart's own findings with it takes longer than to analyse a
small capture. What was read of those is kept in a file beside them, by the hash of the text: text that was changed has
another hash, and is read again.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from conchart.errors import UsageError

READ_BEFORE = Path(__file__).parent / "rules" / "front-matter.json"
"""Written by ``pytest tests/analysis/findings/test_front_matter.py --update-golden``."""


@dataclass(frozen=True, slots=True)
class Front:
    """What the text says."""

    told: dict[str, Any]
    """The values by their names."""
    lines: dict[str, int]
    """The line of each name; the first one is 0."""
    items: dict[str, list[int]]
    """Of what is a list, the line of each item."""


def front_matter(path: str, text: str, *, first_line: int) -> Front:
    """Read front matter.

    Args:
        path: Of the file, for messages.
        text: All of the front matter.
        first_line: Of the file, on which the text begins.

    Raises:
        UsageError: It cannot be read; the message names file and line.
    """
    if known := _read_before().get(_hash(text)):
        return Front(**known)
    return _parsed(path, text, first_line)


def kept(texts: Iterable[str]) -> str:
    """Write what these texts say, as ``READ_BEFORE`` has it."""
    read = {_hash(text): asdict(_parsed("", text, 1)) for text in texts}
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(read[key])}" for key in sorted(read)) + "\n}\n"


@cache
def _read_before() -> dict[str, dict[str, Any]]:
    try:
        read: dict[str, dict[str, Any]] = json.loads(READ_BEFORE.read_bytes())
    except (OSError, ValueError):  # all of it can be read again
        return {}
    return read


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _parsed(path: str, text: str, first_line: int) -> Front:
    import yaml  # not above: who adds no findings of their own never needs it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)  # libyaml's is ten times as fast, where it is there
    try:
        node = loader.get_single_node()
        told = loader.construct_document(node) if node else None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = first_line + (mark.line if mark else 0)
        raise UsageError(f"{path}:{line}: {getattr(error, 'problem', None) or error}") from None
    finally:
        loader.dispose()
    if not isinstance(told, dict) or node is None:
        raise UsageError(f"{path}:{first_line}: expected lines of the form name: value")
    return Front(
        told,
        {key.value: key.start_mark.line for key, _ in node.value},
        {
            key.value: [item.start_mark.line for item in value.value]
            for key, value in node.value
            if isinstance(value, yaml.SequenceNode)
        },
    )
