"""The budget of the core, in instructions: what reading costs may not grow unnoticed, nor faster than the capture.

In: captures of this repository and generated ones. Out: their counts beside the record, `record.json`. Within 3 % is
the same; more or less fails, and asks for a new record with the reason. The record is kept by compiler, C library and
vector instructions (`callgrind.machine`); where nothing was recorded the budget is not checked, and says so. The law of
growth needs no record: four times as much of one thing takes at most 4.4 times the instructions.

    python -m tests.cost.instructions
    python -m tests.cost.instructions --update "stalls are made when the first one is seen"
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import click

from tests.benchmarks import generate
from tests.conftest import ROOT
from tests.cost import made_up
from tests.cost.callgrind import bench, instructions, machine, missing

RECORD = ROOT / "tests" / "cost" / "record.json"
TOLERANCE = 0.03
MOST_GROWTH = 4.4
TIMES = 4
N = 1_000
"""Of each made-up thing, in the smaller of the two captures."""
N_OF = {"requests, pipelined": 2_000}
"""Of what is cheaper below a limit: 1,024 requests of a connection may be open."""
DETAILED = 20_000
"""Of so many frames, `conchart F` writes down each packet, record and message."""
STORIES = (
    "captures/hops/haproxy-https-http-16",
    "captures/large-transfers/congestion",
    "captures/multiplexed/h2load-haproxy-four",
    "captures/stalls/window-limited-far-client",
    "captures/udp/http3",
)
GENERATED: Mapping[generate.Shape, int] = dict.fromkeys(generate.SHAPES, 20_000)
"""How many packets of each shape of the benchmark."""

Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Job:
    """A capture to count."""

    name: str
    capture: Path
    detailed: int

    def count(self) -> tuple[str, int]:
        """Its name, and the instructions of reading it."""
        return self.name, instructions([self.capture], self.detailed)


def budget_jobs(folder: Path) -> Iterator[Job]:
    """The captures of the record; packets of generated ones are not written down, as of any large capture."""
    for story in STORIES:
        yield Job(story.removeprefix("captures/"), ROOT / story / "input.pcap", DETAILED)
    for shape, packets in GENERATED.items():
        path = folder / f"{shape}.pcap"
        generate.generate(shape, path, packets)
        yield Job(f"generated {shape}", path, 0)


def growth_jobs(folder: Path) -> Iterator[Job]:
    """Each shape at N and at four times N; the names end with how many."""
    for number, shape in enumerate(made_up.SHAPES):
        for n in sizes(shape):
            yield Job(f"{shape}: {n}", made_up.make(shape, n, folder / f"{number}-{n}.pcap"), 0)


def sizes(shape: str) -> tuple[int, int]:
    """How many of a shape the smaller and the larger capture have."""
    n = N_OF.get(shape, N)
    return n, TIMES * n


def counted(jobs: Iterable[Job]) -> dict[str, int]:
    """Count them, two at a time."""
    with ThreadPoolExecutor(2) as pool:
        return dict(pool.map(Job.count, list(jobs)))


def departures(recorded: Counts, now: Counts, unit: str = "instructions") -> list[str]:
    """What is no longer as it was recorded, in words."""
    lines = []
    for name in sorted(recorded.keys() | now.keys()):
        before, after = recorded.get(name), now.get(name)
        if before is None:
            lines.append(f"{name}: {after:,} {unit}, not recorded")
        elif after is None:
            lines.append(f"{name}: recorded, and not counted any more")
        elif abs(after - before) > TOLERANCE * before:
            change = f" ({after / before - 1:+.1%})" if before else ""
            lines.append(f"{name}: {before:,} {unit} before, {after:,} now{change}")
    return lines


def too_fast(counts: Counts) -> list[str]:
    """Which shapes grow faster than their captures, in words."""
    lines = []
    for shape in made_up.SHAPES:
        least, most = sizes(shape)
        small, large = counts[f"{shape}: {least}"], counts[f"{shape}: {most}"]
        if large > MOST_GROWTH * small:
            growth = f"{large / small:.2f} times the instructions for {TIMES} times as many"
            lines.append(f"{shape}: {growth}; at most {MOST_GROWTH} ({small:,} for {least:,}, {large:,} for {most:,})")
    return lines


@click.command()
@click.option("--update", "why", metavar="WHY", help="Record what is counted now, with the reason for the change.")
def main(why: str | None) -> None:
    """Compare what reading costs with the record, and what four times as much costs with the law."""
    if lacking := missing():
        click.echo(f"no instructions are counted: this machine lacks {', '.join(lacking)}")
        return
    bench()
    key = machine()
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        now = counted(budget_jobs(Path(folder)))
        grown = counted(growth_jobs(Path(folder)))
    for name, count in (now | grown).items():
        click.echo(f"{count:14,}  {name}")
    failed = too_fast(grown)
    recorded = record.get(key, {}).get("instructions")
    if why:
        record[key] = {"why": why, "instructions": now}
        RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
        click.echo(f"recorded for {key}")
    elif recorded is None:
        click.echo(f"no record for {key}: the budget is skipped")
    elif changed := departures(recorded, now):
        failed += [*changed, 'to record this: python -m tests.cost.instructions --update "why it changed"']
    for text in failed:
        click.echo(text)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
