"""Files made from a prediction: the format by suffix, written whole or not at all.

In: a :class:`~conchart.questions.predict.Prediction`, a report of the capture, a path. Out: the file.
"""

import json
from pathlib import Path
from typing import Any

from conchart.errors import UsageError
from conchart.files.whole import whole_file
from conchart.outputs.terminal.predictions import print_prediction
from conchart.outputs.terminal.sheet import plain_console
from conchart.questions.predict import Bar, Prediction, Side
from conchart.questions.predict.sentences import assumptions, question
from conchart.report.report import Report
from conchart.store.schema import SCHEMA_VERSION

SUFFIXES = (".html", ".json", ".txt")


def check(path: Path) -> None:
    """Refuse what ``write`` would refuse, before a long capture is read.

    Raises:
        UsageError: No format has this suffix.
    """
    if path.suffix.lower() not in SUFFIXES:
        given = f"the suffix {path.suffix!r}" if path.suffix else "no suffix"
        raise UsageError(f"cannot write {path}: {given}; conchart whatif writes {' '.join(SUFFIXES)}")


def write(prediction: Prediction, report: Report, path: Path) -> None:
    """Write ``path`` in the format of its suffix.

    Raises:
        UsageError: As ``check``.
        OutputError: The file cannot be written; what was there before is untouched.
    """
    check(path)
    with whole_file(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as sink:
        match path.suffix.lower():
            case ".json":
                # In one piece: with indents, or bit by bit, Python writes it ten times slower.
                sink.write(json.dumps(_document(prediction), ensure_ascii=False, allow_nan=False) + "\n")
            case ".txt":
                print_prediction(prediction, plain_console(sink))
            case _:
                from conchart.outputs.page.predictions import render

                sink.write(render(prediction, report))


def _document(prediction: Prediction) -> dict[str, Any]:
    change = prediction.change
    return {
        "conchart": SCHEMA_VERSION,
        "whatif": {"changes": change.words, "rtt_ns": change.rtt_ns, "server": change.server},
        "question": question(change),
        "measured": _side(prediction.measured),
        "predicted": _side(prediction.predicted),
        "unanswered": prediction.unanswered,
        "unread": prediction.unread,
        "unknown_handshakes": prediction.unknown_handshakes,
        "unknown_paths": prediction.unknown_paths,
        "assumptions": list(assumptions(prediction)),
    }


def _side(side: Side) -> dict[str, Any]:
    requests = {"requests": len(side.requests_ns)}
    if side.requests_ns:
        requests |= {"request_median_ns": side.percentile(50), "request_95_ns": side.percentile(95)}
    return {
        "start_at": side.start_at,
        "total_ns": side.total_ns,
        **requests,
        "connections": side.connections,
        "handshakes_full": side.handshakes_full,
        "handshakes_resumed": side.handshakes_resumed,
        "waited_ns": side.waited_ns,
        "waits": dict(side.waits),
        "timeline": [dict(zip(Bar._fields, bar, strict=True)) for bar in side.bars],
    }
