"""Where the time went, per server and phase, and why. In: a report. Out: lines of text.

The headline says what users waited for; then for each server a line, a stacked bar, its shares; for each kind of stall
that matters a sentence.
"""

from collections.abc import Iterable, Iterator

from rich.text import Text

from conchart.labels.units import count_of, format_ns, format_share
from conchart.outputs.terminal.strip import Axis, draw_strip, swatch
from conchart.outputs.terminal.words import both_ends, flow, names_text, wrapped
from conchart.report.lanes import Stretch
from conchart.report.report import Report
from conchart.report.servers import Part, Server, headline, shares


def waits(report: Report, listed: list[Server]) -> Iterator[tuple[str, str]]:
    """Give the headline as labelled lines: what users waited for, the costliest server first."""
    label = "Waited"
    for server in headline(listed):
        called = f" ({names_text(server.names)})" if server.names else ""
        parts = ", ".join(
            f"{part.words} {share}{f' ({part.why})' if part.why else ''}" for part, share in shares(server)
        )
        yield label, f"{format_ns(server.waited_ns)} for {server.endpoint}{called}: {parts}"
        label = ""
    if report.in_vain:
        yield "In vain", report.in_vain


def attribution(listed: list[Server], count: int, width: int, *, colours: bool) -> Iterator[Text]:
    """Give the lines of the table, the costliest server first; ``count``: how many servers there are in all."""
    for number, server in enumerate(listed):
        if number:
            yield Text()
        yield from block(server, width, colours=colours)
    if count > len(listed):
        yield Text(f"… and {count_of(count - len(listed), 'more server')}")


def block(
    server: Server, width: int, *, colours: bool, with_strip: bool = True, with_split: bool = True
) -> Iterator[Text]:
    """Give the lines of one server, with a bar of its users' waits and what its own waits consist of."""
    title = Text.assemble((server.endpoint, "bold"), f"  {names_text(server.names)}" if server.names else "")
    yield both_ends(title, _numbers(server), width)
    if server.waited_ns and with_strip:
        yield draw_strip(stacked(server.waited), Axis(0, server.waited_ns, width, colours))
    parts = [*_legend(server, colours=colours), *_besides(server.besides, colours=colours)]
    yield from flow(parts, width)
    if server.split and with_split:
        for line in wrapped(str(server.split), width, indent="  "):
            yield Text(line)


def _numbers(server: Server) -> str:
    counts = [count_of(server.connections, "connection"), server.in_vain]
    if server.role != "closed":
        # What stands behind a front is part of the front's wait: it may be more, as requests are side by side there.
        whose = "proxies waited" if server.role == "backend" else "waited"
        counts += [count_of(server.requests, "request"), f"{whose} {format_ns(server.waited_ns)}"]
        if server.role != "backend" and server.users_ns < server.waited_ns:
            counts.append(f"{format_ns(server.waited_ns - server.users_ns)} of it for proxies")
    return ", ".join(filter(None, counts))


def stacked(parts: Iterable[Part]) -> list[Stretch]:
    """Lay the phases end to end, in their fixed order."""
    stretches, at = [], 0
    for part in parts:
        stretches.append(Stretch(part.phase.name, at, at + part.total_ns))
        at += part.total_ns
    return stretches


def _legend(server: Server, *, colours: bool) -> Iterator[Text]:
    for part in server.waited:
        words = f" {part.name} {format_ns(part.total_ns)} "
        share = (format_share(part.total_ns, server.waited_ns), "bold")
        why = f" ({part.why})" if part.why else ""
        yield Text.assemble(swatch(part.phase, colours=colours), words, share, why)


def _besides(parts: Iterable[Part], *, colours: bool) -> Iterator[Text]:
    """What nobody waited for has no share."""
    for part in parts:
        yield Text.assemble(swatch(part.phase, colours=colours), f" {part.name} {format_ns(part.total_ns)}")


def causes(report: Report, width: int) -> Iterator[Text]:
    """Say why the next byte did not come, where that cost much."""
    for cost in report.stalls:
        for line in wrapped(str(cost), width, indent="  "):
            yield Text(line)
