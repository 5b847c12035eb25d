"""Command: does every capture of a folder give tables, and do its phases tile every connection?

In: files or folders. Out: those that crashed, hung, raised or broke the tiling. Captures are read by a process of its
own, so that a crash costs one capture and is told.

    python -m tests.agreement.survive CAPTURE...
"""

from __future__ import annotations

import select
import subprocess
import sys
from collections import Counter
from pathlib import Path

import click

from tests.agreement.run import files

WORKER = """
import sys, traceback
import conchart
from conchart.errors import CaptureError
BROKEN = '''
SELECT c.stream, c.closed_at - c.opened_at AS lasted, coalesce(sum(p.end_at - p.start_at), 0) AS charged
FROM connections c LEFT JOIN phases p USING (stream) GROUP BY ALL HAVING lasted <> charged ORDER BY c.stream LIMIT 1'''
for line in sys.stdin:
    path = line.rstrip("\\n")
    try:
        with conchart.read(path, packets=True) as trace:
            broken = trace.sql(BROKEN).fetchall()
        verdict = f"tiling: stream, lasted, charged: {broken[0]}" if broken else "read"
    except CaptureError as error:
        verdict = "unreadable: " + str(error).replace("\\n", " ")
    except BaseException as error:
        verdict = "raised: " + " ".join(traceback.format_exception_only(error)).replace("\\n", " ")
    print(verdict, flush=True)
"""


def start() -> subprocess.Popen[str]:
    """A worker: one path per line in, one verdict per line out."""
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", WORKER], stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def verdict(worker: subprocess.Popen[str], capture: Path, seconds: float) -> str | None:
    """What the worker says of a capture; None when it needs to be replaced."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(f"{capture}\n")
    worker.stdin.flush()
    ready, _, _ = select.select([worker.stdout], [], [], seconds)
    return worker.stdout.readline().strip() or None if ready else None


@click.command()
@click.argument("captures", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--seconds", default=30.0, show_default=True, help="Longest time for one capture.")
def main(captures: tuple[Path, ...], seconds: float) -> None:
    """Read CAPTURES (files or folders) and report what does not survive.

    Exit 1 when any capture crashed, hung, raised anything but an error of its own, or broke the tiling.
    """
    counts: Counter[str] = Counter()
    worker = start()
    for capture in files(captures):
        outcome = verdict(worker, capture, seconds)
        if outcome is None:
            worker.kill()
            _, words = worker.communicate()
            last = words.strip().splitlines()[-1:] or ["no message"]
            outcome = f"crashed or hung (exit {worker.returncode}): {last[0]}"
            worker = start()
        kind = outcome.split(":")[0].split(" (")[0]
        counts[kind] += 1
        if kind != "read":
            click.echo(f"{capture.name}: {outcome}")
    worker.communicate("")
    click.echo(", ".join(f"{count} {kind}" for kind, count in counts.most_common()))
    sys.exit(0 if set(counts) <= {"read", "unreadable"} else 1)


if __name__ == "__main__":
    main()
