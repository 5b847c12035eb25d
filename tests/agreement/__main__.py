"""Command: how far conchart and tshark agree on captures.

python -m tests.agreement CAPTURE...
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from conchart.errors import CaptureError
from tests.agreement import ours, stored, tshark
from tests.agreement.explained import explanation
from tests.agreement.facts import HTTP_FACTS, TCP_FACTS, TLS_FACTS, Outcome, Tally, compare

COLUMNS = ("compared", "agree", "disagree", "explained")


def table(tally: Tally) -> Table:
    """One row per fact."""
    drawn = Table()
    for column in ("fact", *COLUMNS, "rate"):
        drawn.add_column(column, justify="left" if column == "fact" else "right")
    for fact, *counts in tally.rows():
        drawn.add_row(fact, *(f"{count:,}" for count in counts), f"{counts[1] / counts[0]:.2%}")
    groups = {"TCP": TCP_FACTS, "TLS": TLS_FACTS, "HTTP": HTTP_FACTS}
    rates = {name: (tally.rate(facts), tally.rate(facts, explained=True)) for name, facts in groups.items()}
    lines = [
        f"{name}: {rate:.3%} agree, {with_explained:.3%} agree or are explained in docs/agreement.md"
        for name, (rate, with_explained) in rates.items()
        if rate is not None and with_explained is not None
    ]
    drawn.caption = "\n".join(lines)
    return drawn


def files(paths: tuple[Path, ...]) -> list[Path]:
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


def outcomes(capture: Path, *, use_stored: bool) -> list[Outcome] | str:
    """What was compared on one capture, or why nothing was."""
    try:
        known = use_stored and stored.beside(capture).exists()
        reference = stored.read(capture) if known else tshark.read(capture)
        return list(compare(name_of(capture), reference, ours.read(capture)))
    except (CaptureError, tshark.TsharkError, subprocess.TimeoutExpired) as problem:
        return f"{capture.name}: {problem}"


@click.command()
@click.argument("captures", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--stored", "use_stored", is_flag=True, help="Compare with NAME.oracle.json.gz where it exists.")
@click.option("-v", "--verbose", is_flag=True, help="List every unexplained disagreement instead of the first few.")
@click.option("--json", "as_json", is_flag=True, help="Everything as JSON.")
@click.option("--fact", "wanted", multiple=True, help="List only disagreements about this fact.")
def main(
    captures: tuple[Path, ...], *, use_stored: bool, verbose: bool, as_json: bool, wanted: tuple[str, ...]
) -> None:
    """Compare conchart with tshark on CAPTURES (files or folders), fact by fact.

    Exit 1 when any fact disagrees that docs/agreement.md does not explain, 2 when there is no tshark.
    """
    if not tshark.installed():
        raise click.UsageError("tshark is not installed")
    tally = Tally(explain=explanation)
    unreadable: list[str] = []
    for capture in files(captures):
        result = outcomes(capture, use_stored=use_stored)
        if isinstance(result, str):
            unreadable.append(result)
        else:
            tally.add(result)
    disagreements = [one for fact, some in tally.disagreements.items() if not wanted or fact in wanted for one in some]
    if as_json:
        facts = [dict(zip(("fact", *COLUMNS), row, strict=True)) for row in tally.rows()]
        details = [{name: getattr(one, name) for name in one.__slots__} for one in disagreements]
        json.dump({"facts": facts, "disagreements": details, "unreadable": unreadable}, sys.stdout, indent=1)
    else:
        Console(soft_wrap=True).print(table(tally))
        for fact, some in tally.disagreements.items():
            if not wanted or fact in wanted:
                for one in some if verbose else some[:3]:
                    click.echo(str(one))
                if not verbose and len(some) > 3:
                    click.echo(f"... and {len(some) - 3} more about {fact} (--verbose lists them)")
        for text in unreadable:
            click.echo(f"not compared: {text}")
    sys.exit(1 if disagreements else 0)


if __name__ == "__main__":
    main()
