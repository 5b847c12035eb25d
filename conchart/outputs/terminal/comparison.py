"""A comparison in text: what ``conchart diff`` prints, and what its ``-w out.txt`` holds.

In: a comparison. Out: lines for a rich console; plain letters where it has no colours.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from conchart.labels.phases import PHASE_BY_NAME, PHASES, PhaseKind
from conchart.labels.units import count_of, format_count, format_ns
from conchart.outputs.limits import TERMINAL
from conchart.outputs.terminal.attribution import stacked
from conchart.outputs.terminal.lanes import scale
from conchart.outputs.terminal.sheet import Sheet, plain_console
from conchart.outputs.terminal.strip import Axis, draw_strip, swatch
from conchart.outputs.terminal.words import fit, flow, names_text, wrapped
from conchart.questions.compare.model import Comparison, FindingChange, Hop, Side
from conchart.questions.compare.noise import Spread, Verdict
from conchart.report.lanes import Stretch
from conchart.report.servers import Server

_MOST_ALONE = 5
_BAR_LABEL = 7
_TITLE = 20
"""Columns of a measure's title."""
_WIDE = 98
"""Columns of the table with everything in it."""
_P95 = "95 %"
_CHANGES = {"gone": "gone", "new": "new", "changed": "still", "same": "still"}


def write_comparison_text(comparison: Comparison, path: Path) -> None:
    """Write it as plain text, 100 columns wide."""
    with path.open("w", encoding="utf-8", newline="\n") as sink:
        print_comparison(comparison, plain_console(sink))


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print headline, differences by server, findings, and the lanes of both, within the console's width."""
    sheet = Sheet(console)
    width, colours = sheet.width, sheet.colours
    sheet.tell(_facts(comparison))
    sheet.section("What differs (bars: what users waited for, on one scale)", _hops(comparison, width, colours=colours))
    sheet.section("Findings (what users waited for each)", _findings(comparison.findings, width))
    sheet.section("When (each capture from its first packet, on one scale)", _lanes(comparison, width, colours=colours))


def _facts(comparison: Comparison) -> Iterator[tuple[str, str]]:
    for label, side in (("Before", comparison.before), ("After", comparison.after)):
        yield label, f"{side.name} ({side.extent})"
    label = "Difference"
    for headline in comparison.headlines:
        yield label, headline.sentence
        if headline.remark:
            yield "", headline.remark
        label = ""
    for label, side in (("Only before", comparison.before), ("Only after", comparison.after)):
        if side.only:
            yield label, _alone(side)


def _alone(side: Side) -> str:
    servers = [
        f"{server.endpoint}{f' ({names_text(server.names)})' if server.names else ''}, "
        f"{count_of(server.connections, 'connection')}, waited {format_ns(server.waited_ns)}"
        for server in side.only[:_MOST_ALONE]
    ]
    more = len(side.only) - len(servers)
    return "; ".join((*servers, *([f"and {count_of(more, 'more server')}"] if more else [])))


def _hops(comparison: Comparison, width: int, *, colours: bool) -> Iterator[Text]:
    for number, hop in enumerate(comparison.hops[: TERMINAL.servers]):
        if number:
            yield Text()
        yield Text.assemble((_endpoints(hop), "bold"), f"  {names_text(hop.after.names or hop.before.names)}")
        yield from flow((Text(f"{noun} {before} → {after}") for noun, before, after in hop.counts()), width)
        yield from _bars(hop, comparison.waited_ns, width, colours=colours)
        yield from _table(hop, width)
    if len(comparison.hops) > TERMINAL.servers:
        yield Text(
            f"… and {count_of(len(comparison.hops) - TERMINAL.servers, 'more server')}: -w out.json has them all"
        )
    signs = {part.name: part.phase for hop in comparison.hops for part in (*hop.before.waited, *hop.after.waited)}
    if any(one.verdict is Verdict.TOO_FEW for hop in comparison.hops[: TERMINAL.servers] for one in hop.differences):
        yield Text(f"{Verdict.TOO_FEW.brief} {Verdict.TOO_FEW.value}", "dim")
    yield Text()
    yield from _legend(signs, width, colours=colours)


def _endpoints(hop: Hop) -> str:
    """Address and port; both where they differ, with what tells that they are one."""
    if hop.by == "address":
        return hop.after.endpoint
    return f"{hop.before.endpoint} → {hop.after.endpoint} (the same by {hop.by})"


def _bars(hop: Hop, longest_ns: int, width: int, *, colours: bool) -> Iterator[Text]:
    for label, side in (("before", hop.before), ("after", hop.after)):
        took = format_ns(side.waited_ns)
        axis = Axis(0, longest_ns, max(16, width - _BAR_LABEL - 10), colours)
        yield Text.assemble(f"{label:<{_BAR_LABEL}}", draw_strip(stacked(side.waited), axis), f" {took:>9}")


def _table(hop: Hop, width: int) -> Iterator[Text]:
    """Without the 95th percentiles where there is no room for them."""
    wide = width >= _WIDE
    columns = f"{'n':>7} {'median':>9}{f' {_P95:>9}' if wide else ''}"
    yield Text(f"{'':<{_TITLE}}{'before':>{len(columns)}}   {'after':>{len(columns)}}", "dim")
    yield Text(f"{'':<{_TITLE}}{columns}   {columns}", "dim")
    for one in hop.differences:
        verdict = (one.verdict.brief, "bold" if one.verdict.differs else "dim")
        title = f"{'  ' if one.measure.step else ''}{one.measure.title}"
        yield Text.assemble(
            f"{title:<{_TITLE}}{_spread(one.before, wide=wide)}   {_spread(one.after, wide=wide)}   ", verdict
        )


def _spread(spread: Spread, *, wide: bool) -> str:
    quantiles = (spread.median, spread.p95) if wide else (spread.median,)
    return f"{format_count(spread.n):>7}" + "".join(f" {'–' if ns is None else format_ns(ns):>9}" for ns in quantiles)


def _findings(changes: tuple[FindingChange, ...], width: int) -> Iterator[Text]:
    for change in changes[: TERMINAL.findings]:
        server = f", {change.server}" if change.server else ""
        words = wrapped(f"{change.title}{server}: {cost(change)}", width - 8)
        for number, line in enumerate(words):
            yield Text.assemble((f"{'' if number else _CHANGES[change.change]:<8}", "bold"), line)
    if len(changes) > TERMINAL.findings:
        yield Text(f"… and {count_of(len(changes) - TERMINAL.findings, 'more')}")


def cost(change: FindingChange) -> str:
    """Say what a finding cost: ``59.3 µs before, 55.1 µs after``."""
    if change.change == "same":
        return f"{format_ns(change.after_ns or 0)}, before and after"
    costs = (("before", change.before_ns), ("after", change.after_ns))
    return ", ".join(f"{format_ns(ns)} {when}" for when, ns in costs if ns is not None)


def _lanes(comparison: Comparison, width: int, *, colours: bool) -> Iterator[Text]:
    sides = (("Before", comparison.before), ("After", comparison.after))
    drawn = [lane for _, side in sides for lane in side.lanes.drawn]
    if not drawn:
        return
    labels = min(max(cell_len(_label(lane.stream, lane.client)) for lane in drawn), max(20, width // 4))
    axis = Axis(0, comparison.span_ns, max(16, width - labels - 14), colours)
    for when, side in sides:
        for server, group in groupby(side.lanes.drawn, key=lambda lane: lane.server):
            yield Text.assemble((f"{when}: ", "dim"), (_served(comparison, side, server).endpoint, "bold"))
            for lane in group:
                stretches = [Stretch(piece.kind, piece.start_ns, piece.end_ns) for piece in lane.pieces]
                strip = draw_strip(stretches or [Stretch("unseen", lane.start_ns, lane.end_ns)], axis)
                took = format_ns(lane.end_ns - lane.start_ns)
                yield Text.assemble(f"  {fit(_label(lane.stream, lane.client), labels)} ", strip, f" {took:>9}")
        if side.lanes.besides:
            yield Text(f"  … and {count_of(side.lanes.besides, 'more connection')} {when.lower()}")
    for line in scale(axis):
        yield Text(" " * (labels + 3) + line, "dim")
    yield Text()
    kinds = (PHASE_BY_NAME[piece.kind] for lane in drawn for piece in lane.pieces)
    yield from _legend({phase.name: phase for phase in kinds}, width, colours=colours)


def _label(stream: int, client: str) -> str:
    return f"{stream:>3} {client}"


def _served(comparison: Comparison, side: Side, number: int) -> Server:
    """Give the server of a lane."""
    if number >= len(comparison.hops):
        return side.only[number - len(comparison.hops)]
    hop = comparison.hops[number]
    return hop.before if side is comparison.before else hop.after


def _legend(signs: Mapping[str, PhaseKind], width: int, *, colours: bool) -> Iterator[Text]:
    """Say what signs mean: the phases by what they are called."""
    ordered = sorted(signs.items(), key=lambda sign: PHASES.index(sign[1]))
    yield from flow((Text.assemble(swatch(phase, colours=colours), f" {name}") for name, phase in ordered), width)
