"""Captures in, outcomes out: what is compared on each, two captures at a time."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from conchart.errors import CaptureError
from tests.agreement import ours, stored, tshark
from tests.agreement.facts import Outcome, Stream, compare, pairs_of
from tests.agreement.rules import Case, holding
from tests.tshark import TsharkError

PROCESSES = 2


def files(paths: Iterable[Path]) -> list[Path]:
    """The captures named; of a folder, every file in it that is named like one."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        found += [one for one in inside if one == path or looks_like_capture(one)]
    return found


def looks_like_capture(path: Path) -> bool:
    """By its name: any of its suffixes is usual for captures, and it is not a file of facts."""
    named = {".pcap", ".pcapng", ".cap", ".dmp", ".dump", ".trace", ".snp"} & {*path.suffixes}
    return bool(named) and path.is_file() and not {".json", ".keylog", ".txt", ".md"} & {*path.suffixes}


def name_of(capture: Path) -> str:
    """What a report calls a capture: of ours, which are all ``input.pcap``, the case."""
    return f"{capture.parent.parent.name}/{capture.parent.name}" if capture.stem == "input" else capture.name


def outcomes(capture: Path, *, use_stored: bool = False) -> list[Outcome] | str:
    """What was compared on one capture, or why nothing was."""
    try:
        if use_stored and not stored.beside(capture).exists():
            return f"{name_of(capture)}: no stored facts"
        mine = ours.read(capture)
        if use_stored:
            return list(compare(name_of(capture), stored.read(capture), mine))
        return held_to_the_rules(name_of(capture), tshark.grouped(capture), mine)
    except (CaptureError, TsharkError, subprocess.TimeoutExpired) as problem:
        return f"{name_of(capture)}: {str(problem).splitlines()[0]}"


def held_to_the_rules(name: str, packets: dict[int, list[tshark.Frame]], mine: list[Stream]) -> list[Outcome]:
    """Compare with tshark; every disagreement knows which rules hold for it."""
    reference = [tshark.stream(number, some) for number, some in packets.items()]
    pairs = {theirs.number: own for theirs, own in zip(reference, pairs_of(reference, mine), strict=True)}
    return [
        one
        if one.agrees
        else replace(one, rules=holding(Case(one, packets.get(one.stream, []), pairs.get(one.stream))))
        for one in compare(name, reference, mine)
    ]


def outcomes_of(captures: list[Path], *, use_stored: bool = False) -> Iterator[tuple[Path, list[Outcome] | str]]:
    """Every capture with what was compared on it, in order."""
    work = functools.partial(outcomes, use_stored=use_stored)
    if len(captures) < PROCESSES:
        yield from ((capture, work(capture)) for capture in captures)
        return
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        yield from zip(captures, pool.map(work, captures, chunksize=4), strict=True)
