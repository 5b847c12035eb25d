"""The answer, before anything else: what users waited, divided into findings and what none explains, the largest first.

In: findings, totals, remarks, what could not be judged, what no finding explains. Out: :class:`Verdict`. Of the tables,
only who was served is counted here.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from conchart.labels.commands import NONE, Commands
from conchart.labels.units import SECOND, count_of, format_ns, format_share
from conchart.report.findings import Finding, Tally, by_severity, tally_findings
from conchart.report.partition import LEAST_SHARE, Unexplained
from conchart.report.remarks import Remark
from conchart.report.unjudged import Unjudged
from conchart.store.schema import SEVERITIES
from conchart.store.sql import ANSWERED, UNREAD
from conchart.store.tables import Tables

MOST_ROWS = 5
"""Of the partition; the others are added up."""
_MOST_LISTED = 100
"""Of the partition, where it is read by programs."""
ABOUT_THE_CAPTURE = "capture-quality"
"""A finding that is told as the capture's quality."""

LEAST_STANDOUT_NS = SECOND // 100
"""A part of the wait that is shorter does not stand out."""

Kind = Literal["state", "finding", "wait", "rest"]
State = Literal["nobody served", "faults", "no known fault", "not judged", "healthy"]
"""What the capture says of the traffic, the first that holds:

- *nobody served*: somebody tried, and nobody got an answer;
- *faults*: there are findings that are no notes; ``--fail-on warning`` exits with 1;
- *not judged*: nothing was found, but nothing could be judged, or not where half of the wait was;
- *no known fault*: nothing was found, but half of the wait or more lies in one part;
- *not judged*: nothing was found in what could be judged, or in what was served: a single attempt that fails is no
  fault, and nothing that anybody is to be content with;
- *healthy*: nothing was found, everything was judged, and everybody was served.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of the answer; every text is safe to print, and empty where there is nothing to say."""

    kind: Kind
    severity: str = ""
    """Of a finding."""
    title: str
    """What it is, without a full stop."""
    where: str = ""
    """Server and client."""
    cost_ns: int = 0
    """What users waited for it that no other entry counts."""
    share: str = ""
    """That, of all that users waited: ``52 %``."""
    cost: str = ""
    """The same in words."""
    change: str = ""
    """What to change, in one line."""
    detail: str = ""
    """What was seen: how often, the worst, whose doing it is."""
    next_step: str = ""
    """Of a wait: what to do next."""
    name: str = ""
    """Of the finding's rule: ``conchart findings NAME`` shows its page."""
    number: int | None = None
    """Of the finding: its row."""
    phase: str = ""
    """Of a wait, as tables have it, and whose time it is; empty where it is that of several."""
    owner: str = ""
    server_ip: str | None = None
    server_port: int | None = None
    stream: int | None = None
    """A connection to look at."""
    frame: int | None = None
    """A frame to look at."""
    command: str = ""
    """What shows more of it, to be typed as it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is shown first."""

    entries: tuple[Entry, ...]
    """The state, unless that is faults; then findings and waits, the largest first."""
    rows: tuple[Entry, ...]
    """The largest findings and waits, and the sum of the others: what they cost adds up to what users waited."""
    state: State
    sentence: str
    """The state in words."""
    unjudged: str
    """What could not be judged, and why; empty where all was, and where there are faults to look at first."""
    more: str
    """Findings that have no entry, counted: ``1 warning, 2 notes``; empty where there are none."""
    left: tuple[Tally, ...]
    """The same by title."""
    waited_ns: int
    """What users waited: what entries cost, and the rest."""
    rest_ns: int
    """What users waited that no entry counts."""
    rest: str
    """What that is: ``2 findings 6.10 ms; transfer 4.00 ms; parts below 1 % 2.10 ms``; empty where there is none."""
    in_vain: str
    """What was never served, and where; empty where all was."""
    quality: str
    """``capture complete``, or what is missing."""
    complete: bool
    command: str
    """What shows all findings in full, to be typed as it stands; empty where there are none, or nobody can."""

    @property
    def headline(self) -> str:
        """What users waited, in a sentence."""
        if self.waited_ns:
            return f"Users waited {format_ns(self.waited_ns)}."
        if self.state == "nobody served":
            return "Nobody was served."
        return "Nobody waited, as far as the capture shows."

    @property
    def unsaid(self) -> "Verdict":
        """Without what readers are to find out by themselves."""
        return replace(self, entries=(), rows=(), more="", left=(), unjudged="", rest_ns=0, rest="", command="")


def verdict(
    *,
    waited_ns: int,
    findings: Sequence[Finding],
    waits: Sequence[Unexplained],
    in_vain: str,
    served: "Served",
    lacking: Sequence[Unjudged],
    remarks: Iterable[Remark],
    commands: Commands = NONE,
    most: int = MOST_ROWS,
) -> Verdict:
    """Give the answer: so many rows of the partition, the worst finding that is no note among them in any case.

    Args:
        waited_ns: What users waited.
        findings: All that stand for themselves.
        waits: What no finding explains, the largest first.
        in_vain: What was never served, in words.
        served: Who was served.
        lacking: What could not be judged.
        remarks: On the quality of the capture.
        commands: What to type to see more.
        most: How many rows.
    """
    parts = _parts(findings, waits)
    chosen = _chosen(parts, waited_ns, most)
    shown = [one for one in chosen if isinstance(one, Finding)]
    quality = {one.title for one in findings if one.name == ABOUT_THE_CAPTURE}
    left = tuple(one for one in tally_findings(findings, without=shown) if one.title not in quality)
    standout = _standout(waits, waited_ns)
    state = _state(
        served,
        faults=any(map(_is_fault, findings)),
        lacking=lacking,
        waited_ns=waited_ns,
        stands_out=standout is not None,
        in_vain=bool(in_vain),
    )
    of_state = _of_state(state, served, in_vain, standout, waited_ns, findings, judged=not lacking)
    entries = [_entry(one, waited_ns, commands) for one in chosen]
    gaps = list(missing(remarks))
    return Verdict(
        entries=tuple(entries if state == "faults" else [of_state, *entries]),
        rows=_rows(parts, chosen, waited_ns, commands),
        state=state,
        sentence=": ".join(filter(None, (of_state.title, of_state.detail))),
        unjudged="" if state in ("faults", "nobody served") else "; ".join(one.words for one in lacking),
        more=by_severity(left),
        left=left,
        waited_ns=waited_ns,
        rest_ns=waited_ns - sum(entry.cost_ns for entry in entries),
        rest=_in_rest(
            [one for one in findings if one.own_ns and one not in chosen], [one for one in waits if one not in chosen]
        ),
        in_vain=in_vain,
        quality="; ".join(gaps) or "capture complete",
        complete=not gaps,
        command=commands.findings if shown or left else "",
    )


def missing(remarks: Iterable[Remark]) -> Iterator[str]:
    """Say what the capture does not show, each thing once: what follows from another is not told beside it."""
    warnings = {remark.kind: remark.title for remark in remarks if remark.warning and remark.kind != "keys"}
    if "truncated" in warnings:
        warnings.pop("note", None)
    if len(warnings) > 1:
        warnings.pop("unseen", None)
    yield from warnings.values()


# --- the partition


def _is_fault(finding: Finding) -> bool:
    return finding.severity != SEVERITIES[0] and finding.name != ABOUT_THE_CAPTURE


def _parts(findings: Sequence[Finding], waits: Sequence[Unexplained]) -> list[Finding | Unexplained]:
    """Give the parts, the largest first, findings before waits of the same size; also faults that cost nothing."""
    listed = [one for one in findings if one.own_ns or _is_fault(one)]
    return sorted([*listed, *waits], key=_place)


def _chosen(parts: Sequence[Finding | Unexplained], waited_ns: int, most: int) -> list[Finding | Unexplained]:
    """Give the largest parts; notes only where they are a percent or more; a fault in any case."""
    large = [
        one
        for one in parts
        if (_is_fault(one) or LEAST_SHARE * one.own_ns >= waited_ns if isinstance(one, Finding) else one.part)
    ]
    first, others = large[:most], large[most:]
    worst = next((one for one in large if isinstance(one, Finding) and _is_fault(one)), None)
    if worst in others:
        first[-1] = worst
    return first


def _place(part: Finding | Unexplained) -> tuple[int, int, int]:
    """What tells the order: the size, then the severity."""
    if isinstance(part, Finding):
        # Nobody waits for some faults. They are more than a part of the wait that does not stand out.
        is_timeless = _is_fault(part) and not part.critical_ns and not part.vain_ns
        size_ns = LEAST_STANDOUT_NS if is_timeless else part.own_ns + part.vain_ns
        return (-size_ns, -SEVERITIES.index(part.severity), part.number)
    return (-part.ns, 0, 0)


def _in_rest(findings: Sequence[Finding], waits: Sequence[Unexplained]) -> str:
    """Name what has no entry; parts below a percent are added up."""
    parts: Counter[str] = Counter()
    if findings:
        parts[count_of(len(findings), "finding")] = sum(one.own_ns for one in findings)
    for one in waits:
        parts[one.part or "parts below 1 %"] += one.ns
    return (
        next(iter(parts)) if len(parts) == 1 else "; ".join(f"{words} {format_ns(ns)}" for words, ns in parts.items())
    )


def _rows(
    parts: Sequence[Finding | Unexplained],
    chosen: Sequence[Finding | Unexplained],
    waited_ns: int,
    commands: Commands,
) -> tuple[Entry, ...]:
    """Give the largest parts and those that are chosen, and one row for the sum of all others."""
    largest = parts[:_MOST_LISTED]
    listed = [*largest, *(one for one in chosen if one not in largest)]
    rows = tuple(_entry(one, waited_ns, commands) for one in listed)
    if len(listed) == len(parts):
        return rows
    rest_ns = waited_ns - sum(row.cost_ns for row in rows)
    title = count_of(len(parts) - len(listed), "smaller part")
    return (*rows, Entry(kind="rest", title=title, cost_ns=rest_ns, share=format_share(rest_ns, waited_ns)))


def _entry(part: Finding | Unexplained, waited_ns: int, commands: Commands) -> Entry:
    entry = _of_finding(part) if isinstance(part, Finding) else _of_wait(part, waited_ns)
    return replace(entry, command=commands.explain(entry.stream))


def _of_finding(finding: Finding) -> Entry:
    return Entry(
        kind="finding",
        severity=finding.severity,
        title=finding.full_title,
        where="; ".join(filter(None, (finding.brief_where, finding.under_way))),
        cost_ns=finding.own_ns,
        share=finding.share if finding.own_ns else "",
        cost=finding.cost,
        change=finding.fixes[0] if finding.fixes else "",
        detail=finding.seen,
        name=finding.name,
        number=finding.number,
        server_ip=finding.server_ip,
        server_port=finding.server_port,
        stream=finding.streams[0] if finding.streams else None,
        frame=finding.frames[0] if finding.frames else None,
    )


def _of_wait(wait: Unexplained, waited_ns: int) -> Entry:
    return Entry(
        kind="wait",
        title=wait.title,
        where=wait.where,
        cost_ns=wait.ns,
        share=format_share(wait.ns, waited_ns),
        cost=f"{format_ns(wait.ns)} of {format_ns(waited_ns)} that users waited",
        detail=wait.detail,
        next_step=wait.next_step,
        phase=wait.kind,
        owner=wait.owner,
        server_ip=wait.server_ip,
        server_port=wait.server_port,
        stream=wait.stream,
        frame=wait.frame,
    )


# --- the state


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Who was served, counted."""

    answered: int
    """Connections at servers that took part."""
    responses: int
    """Requests with a response."""
    failed: int
    """Connections whose TLS handshake failed."""
    refused: int
    """Connections that were refused or never answered."""

    @property
    def nobody(self) -> bool:
        """Somebody tried, in vain."""
        return not self.responses and self.answered <= self.failed and self.refused + self.failed > 0


_SERVED = f"""
    SELECT count(*) FILTER ({ANSWERED}) AS answered,
        (SELECT count(*) FROM exchanges WHERE response_at IS NOT NULL) AS responses,
        count(*) FILTER (stream IN (SELECT stream FROM handshakes WHERE outcome = 'failed')) AS failed,
        count(*) FILTER (NOT ({ANSWERED})) AS refused
    FROM connections WHERE NOT {UNREAD}
"""


def served(tables: Tables) -> Served:
    """Count who was served."""
    ((answered, responses, failed, refused),) = tables.fetch(_SERVED)
    return Served(answered=answered, responses=responses, failed=failed, refused=refused)


def _standout(waits: Sequence[Unexplained], waited_ns: int) -> tuple[str, int] | None:
    """Name a part that no finding explains and that is half of all and no trifle, or else such a phase."""
    parts = Counter({f"{one.part} at {one.where}": one.ns for one in waits if one.part})
    phases: Counter[str] = Counter()
    for one in waits:
        phases[one.phase] += one.ns if one.phase else 0
    for counted in (parts, phases):
        for words, ns in counted.most_common(1):
            if ns >= LEAST_STANDOUT_NS and 2 * ns >= waited_ns:
                return words, ns
    return None


def _state(
    served: Served, *, faults: bool, lacking: Sequence[Unjudged], waited_ns: int, stands_out: bool, in_vain: bool
) -> State:
    timeless_ns = sum(one.waited_ns or 0 for one in lacking if one.timeless)
    if served.nobody:
        return "nobody served"
    if faults:
        return "faults"
    if _nothing_judged(served, lacking) or timeless_ns and 2 * timeless_ns >= waited_ns:
        return "not judged"
    if stands_out:
        return "no known fault"
    return "not judged" if lacking or in_vain else "healthy"


def _nothing_judged(served: Served, lacking: Sequence[Unjudged]) -> bool:
    """Tell whether no rule could judge the waits of any connection."""
    return served.answered <= sum(one.connections or 0 for one in lacking if one.timeless and one.why != "unread")


def _of_state(
    state: State,
    served: Served,
    vain: str,
    standout: tuple[str, int] | None,
    waited_ns: int,
    findings: Sequence[Finding],
    *,
    judged: bool,
) -> Entry:
    title, detail = "Nothing wrong found", ""
    if notes := [one for one in findings if one.name != ABOUT_THE_CAPTURE]:
        title = "Nothing serious found" if any(one.own_ns for one in notes) else "Nothing found that costs users time"
    if state == "nobody served":
        failed = f"{count_of(served.failed, 'TLS handshake')} failed" if served.failed else ""
        title, detail = "Nobody was served", ", ".join(filter(None, (vain, failed)))
    elif state == "no known fault" and standout:
        title = "No known fault"
        words, ns = standout
        detail = f"{format_share(ns, waited_ns)} of what users waited is one part: {words}"
    elif state == "faults":
        title = f"Faults found ({by_severity(tally_findings(findings))})"
    elif state == "not judged" and judged and served.answered:
        title = f"{title} in what was served"
    elif state == "not judged":
        title = f"{title} in what could be judged" if served.answered else "Nothing could be judged"
    return Entry(kind="state", title=title, detail=detail)
