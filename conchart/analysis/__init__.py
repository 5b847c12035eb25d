"""Results that need more than one packet, computed once, on first use. Page, terminal, exports and SQL select them.

In: the tables that the native core filled. Out: the columns and tables that ``schema`` says are worked out. One module
per step; ``plan`` says what each reads and writes, and their order follows from that.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import duckdb

from conchart.analysis import behalf, changes, hops, phase_places
from conchart.analysis import vantage as vantage_steps
from conchart.analysis.behalf import find_behalf
from conchart.analysis.changes import compare_places
from conchart.analysis.checks import find_checks
from conchart.analysis.expected_log_lines import log_exchanges
from conchart.analysis.findings import pricing as findings
from conchart.analysis.findings.pricing import find
from conchart.analysis.findings.rule import Rule
from conchart.analysis.hops import link_hops
from conchart.analysis.keys import cover
from conchart.analysis.losses import find_losses
from conchart.analysis.phase_places import place_phases
from conchart.analysis.quality import appraise
from conchart.analysis.races import find_races
from conchart.analysis.servers import describe_servers
from conchart.analysis.sights import find_sights, first_sights
from conchart.analysis.splits import split_waits
from conchart.analysis.unjudged import tell_unjudged
from conchart.analysis.vantage import locate
from conchart.analysis.waits import UsersWaits, charge_servers, count_waits, explain_phases, find_owners, time_servers
from conchart.reading.knowledge import Vantage
from conchart.store.steps import Step
from conchart.store.tables import Tables

if TYPE_CHECKING:
    from conchart.reading.spans import Span

Facts = tuple[str, ...]

_OF_LOGS = ("logs", "log_lines", "log_times", "log_differences")
"""What access logs say: only traces with a log have a step for it, and rules that are about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What is known of a step whatever the capture is."""

    work: Callable[[Tables], None]
    reads: Facts
    writes: Facts
    forget: str = ""
    """SQL that drops the temporary tables that it leaves."""

    once: bool = False
    """Connections are counted or compared: it finds each once, also those that were captured twice."""


def plan(
    tables: Tables,
    *,
    vantage: Vantage | None = None,
    proxies: Iterable[Collection[str]] = (),
    rules: Iterable[Rule],
    thresholds: Mapping[str, float],
    spans: "Sequence[Span]" = (),
    logs: bool = False,
) -> list[Step]:
    """Give the steps that work out everything that is not in a packet.

    Args:
        tables: As the core filled them, the instants those of the viewpoint that is wanted; the others are empty.
        vantage: Where on the path the capture was taken, if somebody knows better than the packets tell.
        proxies: The addresses of each proxy that somebody knows.
        rules: What to look for.
        thresholds: From where on something is a finding, by name.
        spans: What programs wrote about the same time. Without any, the table ``spans`` stays empty.
        logs: Access logs were read beside the captures.
    """
    waits = UsersWaits(tables, thresholds)
    logging = _Part(
        work=log_exchanges,
        reads=("connections", "handshakes", "exchanges", "links"),
        writes=("expected_log_lines",),
        once=True,
    )
    parts = (
        _Part(
            work=partial(locate, override=vantage),
            reads=("captures", "connections"),
            writes=("connections.vantage", "captures.vantage"),
            forget=vantage_steps.FORGET,
        ),
        _Part(work=find_sights, reads=("connections",), writes=("connections.same_as",)),
        _Part(work=explain_phases, reads=("phases", "stalls", "handshakes", "exchanges"), writes=("phase_stalls",)),
        _Part(
            work=count_waits,
            reads=("connections", "connections.same_as", "exchanges", "phases", "phase_stalls", "races"),
            writes=("connections.waited_ns",),
        ),
        _Part(
            work=charge_servers,
            reads=("connections", "exchanges", "phases", "phase_stalls", "races", "on_behalf"),
            writes=("times",),
            once=True,
        ),
        _Part(
            work=find_behalf,
            reads=("connections", "exchanges", "links", "nodes"),
            writes=("on_behalf",),
            forget=behalf.FORGET,
            once=True,
        ),
        _Part(
            work=time_servers,
            reads=("captures", "connections", "exchanges", "phase_stalls"),
            writes=("exchanges.service_ns",),
        ),
        _Part(
            work=partial(find_owners, waits=waits),
            reads=(
                *("captures", "connections", "exchanges", "phases", "handshakes", "phase_stalls", "races", "links"),
                "on_behalf",
            ),
            writes=("wait_owners",),
            once=True,
        ),
        _Part(
            work=partial(link_hops, proxies=proxies),
            reads=("connections", "handshakes", "exchanges", "places", "paths", "clocks"),
            writes=("links", "nodes"),
            forget=hops.FORGET,
            once=True,
        ),
        _Part(work=find_races, reads=("connections", "handshakes", "exchanges"), writes=("races",), once=True),
        _Part(work=find_losses, reads=("captures", "places", "place_packets", "paths"), writes=("losses",)),
        _Part(
            work=compare_places,
            reads=("connections", "handshakes", "places", "place_packets", "paths", "links"),
            writes=("changes", "disorders"),
            forget=changes.FORGET,
        ),
        _Part(
            work=place_phases,
            reads=(
                *("captures", "connections", "exchanges", "phases", "phase_stalls"),
                *("places", "place_packets", "paths", "clocks", "losses", "links"),
            ),
            writes=("phase_places", "crossings"),
            forget=phase_places.FORGET,
        ),
        _Part(work=split_waits, reads=("connections", "exchanges", "links"), writes=("splits",), once=True),
        _Part(
            work=describe_servers,
            reads=(
                *("connections", "connections.waited_ns", "times"),
                *("handshakes", "exchanges", "links"),
            ),
            writes=("servers",),
            once=True,
        ),
        _Part(work=cover, reads=("connections", "handshakes"), writes=("coverage",), once=True),
        _Part(
            work=partial(find_checks, thresholds=thresholds),
            reads=("connections", "handshakes", "exchanges"),
            writes=("checks",),
            once=True,
        ),
        _Part(
            work=appraise,
            reads=(
                *("captures", "captures.vantage", "connections", "connections.same_as", "exchanges", "phases"),
                *("phase_stalls", "races", "on_behalf", "checks", "coverage", "spans"),
            ),
            writes=("remarks",),
        ),
        _Part(
            work=tell_unjudged,
            reads=("connections", "handshakes", "exchanges", "phases", "phase_stalls", "races", "on_behalf", "remarks"),
            writes=("unjudged",),
            once=True,
        ),
    )
    # Rules may read every table.
    before = (*parts, *((_tracing(spans),) if spans else ()), *((logging, _joining()) if logs else ()))
    everything = (*(fact for part in before for fact in (*part.reads, *part.writes)), "packets", *_OF_LOGS)
    finding = _Part(
        work=partial(
            find,
            rules=tuple(rule for rule in rules if logs or not rule.needs.keys() & set(_OF_LOGS)),
            thresholds=thresholds,
            waits=waits,
        ),
        reads=tuple(dict.fromkeys(everything)),
        writes=("findings", "explained_waits", "explained_places"),
        forget=findings.FORGET,
        once=True,
    )
    steps = (*before, finding) if logs else (*before, finding, logging)
    return [_step(tables, part) for part in steps]


def _joining() -> _Part:
    """The step that joins the lines of logs with exchanges."""
    from conchart.logs import joining  # not above: most captures have no log beside them

    return _Part(
        work=joining.join_logs,
        reads=("captures", "connections", "handshakes", "exchanges", "links", "expected_log_lines"),
        # Columns stand for the rest of their tables, whose rows are those of the files.
        writes=("logs.matched", "log_lines.stream", "log_times", "log_differences", "exchanges.from_log"),
        forget=joining.FORGET,
    )


def _tracing(spans: "Sequence[Span]") -> _Part:
    """The step that joins spans with exchanges."""
    from conchart.analysis.spans import match_spans  # not above: most captures have no spans beside them

    return _Part(
        work=partial(match_spans, spans=spans),
        reads=("connections", "exchanges", "links"),
        writes=("spans",),
        once=True,
    )


def _step(tables: Tables, part: _Part) -> Step:
    work = part.work.func if isinstance(part.work, partial) else part.work
    return Step(
        name=work.__name__,
        reads=frozenset((*part.reads, "connections.same_as") if part.once else part.reads),
        writes=frozenset(part.writes),
        run=partial(_run, tables, part),
    )


def _run(tables: Tables, part: _Part) -> None:
    """Run a step, and drop what its parts handed to each other: as much again as the tables. No failure leaves rows."""
    try:
        with first_sights(tables, ready=()) if part.once else nullcontext():
            part.work(tables)
    except BaseException:
        with suppress(duckdb.Error):
            for fact in part.writes:
                if "." not in fact:
                    tables.execute(f"DELETE FROM {fact}")
        raise
    finally:
        if part.forget:
            with suppress(duckdb.Error):
                tables.execute(part.forget)
