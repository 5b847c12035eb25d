"""The answer, before anything else: the worst findings, where most of the wait was, how good the capture is.

In: the tables ``findings``, ``servers``, ``remarks``, the longest waits. Out: :class:`Verdict`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from conchart.store.schema import SEVERITIES
from conchart.store.sql import literal
from conchart.store.tables import Tables
from conchart.telling.findings import Finding, Tally, by_severity, findings, tally_findings
from conchart.telling.longest import Aspect, Longest, longest
from conchart.telling.remarks import Remark, remarks
from conchart.telling.servers import in_vain, totals
from conchart.words.units import format_ns, format_share

MOST_FINDINGS = 3
ABOUT_THE_CAPTURE = "capture-quality"
"""A finding that is told as the capture's quality."""

Kind = Literal["finding", "wait", "clean"]


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
    """What users waited for it that no other entry of its kind counts."""
    share: str = ""
    """That, of all that users waited: ``52 %``."""
    cost: str = ""
    """The same in words."""
    change: str = ""
    """What to change, in one line."""
    detail: str = ""
    """What was seen: how often, the worst, whose doing it is."""
    name: str = ""
    """Of the finding's rule: ``conchart findings NAME`` shows its page."""
    number: int | None = None
    """Of the finding: its row."""
    stream: int | None = None
    """A connection to look at: ``conchart explain CAPTURE STREAM``."""
    frame: int | None = None
    """A frame to look at."""
    about: frozenset[Aspect] = frozenset()
    """Of a wait: what of all waits it names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is shown first."""

    entries: tuple[Entry, ...]
    """The worst findings, what users waited for them first; then where most of the wait was."""
    more: str
    """Findings that have no entry, counted: ``1 warning, 2 notes``; empty where there are none."""
    left: tuple[Tally, ...]
    """The same by title."""
    waited_ns: int
    in_vain: str
    """What was never served, and where; empty where all was."""
    quality: str
    """``capture complete``, or what is missing."""
    complete: bool

    @property
    def unsaid(self) -> "Verdict":
        """Without what readers are to find out by themselves."""
        return replace(self, entries=(), more="", left=())


def verdict(tables: Tables, *, names: bool = True, most: int = MOST_FINDINGS) -> Verdict:
    """Give the answer.

    Args:
        tables: Of the trace.
        names: With names and paths found in the capture.
        most: How many findings.
    """
    waited_ns = totals(tables).waited_ns
    told = _worst(tables, names=names, most=most)
    quality = _quality_titles(tables)
    left = tuple(one for one in tally_findings(tables, without=told) if one.title not in quality)
    entries = [_of_finding(one) for one in told]
    entries += (_of_wait(one, waited_ns) for one in longest(tables, waited_ns, names=names))
    vain = in_vain(tables)
    if not told and not any(one.severity != "note" for one in left):
        entries.insert(0, _clean("" if waited_ns else vain, notes=bool(left)))
    said = list(missing(remarks(tables)))
    return Verdict(
        entries=tuple(entries),
        more=by_severity(left),
        left=left,
        waited_ns=waited_ns,
        in_vain=vain,
        quality="; ".join(said) or "capture complete",
        complete=not said,
    )


def missing(told: Iterable[Remark]) -> Iterator[str]:
    """Say what the capture does not show, each thing once: what follows from another is not told beside it."""
    warnings = {remark.kind: remark.title for remark in told if remark.warning and remark.kind != "keys"}
    if "truncated" in warnings:
        warnings.pop("note", None)
    if len(warnings) > 1:
        warnings.pop("unseen", None)
    yield from warnings.values()


# --- findings


def _worst(tables: Tables, *, names: bool, most: int) -> list[Finding]:
    """Give the worst findings that are no notes: what users waited for them alone comes first."""
    found = [one for one in findings(tables, names=names, severities=SEVERITIES[1:]) if one.name != ABOUT_THE_CAPTURE]
    return sorted(found, key=lambda one: (-one.own_ns - one.vain_ns, -SEVERITIES.index(one.severity), one.number))[
        :most
    ]


def _quality_titles(tables: Tables) -> frozenset[str]:
    told = tables.fetch(f"SELECT DISTINCT title FROM findings WHERE finding = {literal(ABOUT_THE_CAPTURE)}")
    return frozenset(title for (title,) in told)


def _of_finding(finding: Finding) -> Entry:
    return Entry(
        kind="finding",
        severity=finding.severity,
        title=finding.title,
        where=finding.brief_where,
        cost_ns=finding.own_ns,
        share=finding.share if finding.own_ns else "",
        cost=finding.cost,
        change=finding.fixes[0] if finding.fixes else "",
        detail=finding.seen,
        name=finding.name,
        number=finding.number,
        stream=finding.streams[0] if finding.streams else None,
        frame=finding.frames[0] if finding.frames else None,
    )


def _of_wait(wait: Longest, waited_ns: int) -> Entry:
    return Entry(
        kind="wait",
        title=wait.title,
        where=wait.where,
        cost_ns=wait.ns,
        share=format_share(wait.ns, waited_ns),
        cost=f"{format_ns(wait.ns)} of {format_ns(waited_ns)} that users waited",
        detail=wait.detail,
        stream=wait.stream,
        frame=wait.frame,
        about=wait.about,
    )


def _clean(vain: str, *, notes: bool) -> Entry:
    if vain:
        return Entry(kind="clean", title="Nobody was served", detail=vain)
    return Entry(kind="clean", title="Nothing found that costs users time" if notes else "Nothing wrong found")
