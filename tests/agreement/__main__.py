"""Command: how far conchart and tshark agree on captures.

python -m tests.agreement CAPTURE...
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from tests.agreement import page, places
from tests.agreement.facts import FACTS
from tests.agreement.places import Matched, Place
from tests.agreement.run import files, name_of, outcomes_of
from tests.tshark import installed

Counts = Counter[tuple[str, bool]]


def table(counts: Counts, recorded: list[Place]) -> Table:
    """One row per fact."""
    drawn = Table()
    columns = ("compared", "agree", "rate", "by rule", "by hand", "not looked up")
    for column in ("fact", *columns):
        drawn.add_column(column, justify="left" if column == "fact" else "right")
    ways = Counter((place.where.fact, place.checked) for place in recorded)
    facts = {fact for fact, _ in counts}
    for fact in [*(fact for fact in FACTS if fact in facts), *sorted(facts - {*FACTS})]:
        agree, total = counts[fact, True], counts[fact, True] + counts[fact, False]
        numbers = [f"{ways[fact, way]:,}" for way in ("rule", "hand", "no")]
        drawn.add_row(fact, f"{total:,}", f"{agree:,}", f"{agree / total:.2%}", *numbers)
    return drawn


@click.command()
@click.argument("captures", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--stored", "use_stored", is_flag=True, help="Compare with NAME.oracle.json.gz, where it exists.")
@click.option("--record", is_flag=True, help="Write the places and the page's figures anew.")
@click.option("--json", "as_json", is_flag=True, help="Every disagreement as JSON.")
def main(captures: tuple[Path, ...], *, use_stored: bool, record: bool, as_json: bool) -> None:
    """Compare conchart with tshark on CAPTURES (files or folders), fact by fact.

    Exit 1 when a disagreement is not among the known places, when a known place is gone, or when the rule of its class
    does not hold; 2 when there is no tshark.
    """
    if not installed():
        raise click.UsageError("tshark is not installed")
    counts: Counts = Counter()
    differing, compared, not_compared = [], set(), []
    for capture, result in outcomes_of(files(captures), use_stored=use_stored):
        if isinstance(result, str):
            not_compared.append(result)
        else:
            compared.add(name_of(capture))
            counts += page.counted(result)
            differing += [outcome for outcome in result if not outcome.agrees]
    path, recorded = places.LIVE, places.load(places.LIVE)
    found = places.match(recorded, differing, compared)
    if use_stored:  # mostly what tshark says on the spot as well; the rest has a file of its own
        shared = [place for place, _ in found.matched]
        path, recorded = places.STORED, places.load(places.STORED)
        found = places.match(recorded, found.new, compared)
    else:
        shared = []
    if record:
        recorded = places.renewed(recorded, found)
        places.save(recorded, path)
        if not use_stored:
            everywhere = {place.where.capture for place in recorded} <= compared
            wrong = {section.title for section in page.sections().values() if section.verdict == "Wrong: conchart"}
            figures = page.figures(counts, recorded, wrong) if everywhere else None
            page.PAGE.write_text(page.rewritten(page.PAGE.read_text(), recorded, figures))
    here = [place for place in recorded if place.where.capture in compared]
    report(counts, found, shared + here, as_json=as_json)
    for text in not_compared:
        click.echo(f"not compared: {text}", err=True)
    sys.exit(1 if found.problems() and not record else 0)


def report(counts: Counts, found: Matched, recorded: list[Place], *, as_json: bool) -> None:
    """What was compared, and what has to be looked into."""
    if as_json:
        rows = [{"fact": fact, "agrees": agrees, "count": number} for (fact, agrees), number in sorted(counts.items())]
        json.dump({"facts": rows, "problems": found.problems()}, sys.stdout, indent=1)
        return
    drawn = table(counts, recorded)
    ways = Counter(place.checked for place in recorded)
    agree, total = sum(number for (_, agrees), number in counts.items() if agrees), counts.total()
    drawn.caption = (
        f"{agree:,} of {total:,} agree; {ways['rule']:,} checked by rule, {ways['hand']:,} looked up by hand, "
        f"{ways['no']:,} not looked up, {len(found.new):,} new"
    )
    Console(soft_wrap=True).print(drawn)
    for line in found.problems():
        click.echo(line)


if __name__ == "__main__":
    main()
