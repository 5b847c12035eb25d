"""Parts that an earlier run kept, so that this run need not read them again.

In: the parts that are wanted, the folder. Out: what is known of those whose files did not change since.
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from conchart.reading.options import ReadOptions
from conchart.reading.parts.cutting import Part
from conchart.reading.parts.model import File, Surveyed, Torn
from conchart.version import version

_NAME = "surveyed.json"


def reusable_parts(parts: Iterable[Part], options: ReadOptions, work: Path) -> dict[int, Surveyed]:
    """Give the parts that are there already, by their numbers."""
    found = {}
    for part in parts:
        with suppress(OSError, ValueError, KeyError, TypeError):
            document = json.loads((work / f"part-{part.number:05}" / _NAME).read_text())
            if document["of"] == _of(part, options):
                about = document["surveyed"]
                torn = tuple(Torn(**one) for one in about.pop("torn"))
                files = tuple(File(**one | {"notes": tuple(one["notes"])}) for one in about.pop("files"))
                found[part.number] = Surveyed(**about | {"part": part, "torn": torn, "files": files})
    return found


def remember(surveyed: Surveyed, options: ReadOptions, folder: Path) -> None:
    """Write down what a part holds, beside its tables."""
    document = {"of": _of(surveyed.part, options), "surveyed": asdict(surveyed)}
    (folder / _NAME).write_text(json.dumps(document))


def _of(part: Part, options: ReadOptions) -> dict[str, object]:
    """Give what has to be the same for a part to be kept: the bytes, what was wanted of them, who read them."""
    document = {"part": asdict(part), "options": asdict(replace(options, memory=None)), "conchart": version()}
    return dict(json.loads(json.dumps(document)))
