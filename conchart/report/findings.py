"""What is wrong, in sentences. In: the table ``findings``. Out: :class:`Finding`, with its consequences inside.

The costs shown add up to no more than users waited: what another finding counts already is told apart, and what a
consequence costs is in the cost of its root.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from conchart.labels.phases import UNDER_WAY
from conchart.labels.printable import endpoint, named_endpoint
from conchart.labels.units import count_of, format_ns, format_range, format_share
from conchart.report.rows import Row, rows
from conchart.store.schema import SEVERITIES
from conchart.store.sql import SURE
from conchart.store.tables import Tables

_TRIFLE = 50
"""A fiftieth more or less is the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong; the columns of ``findings``, with words."""

    number: int
    name: str
    """Of its rule."""
    title: str
    severity: str
    server: str
    """Name, address and port; empty where it is about no single server."""
    client: str
    """Address; empty where it is about all clients."""
    hop: str
    streams: tuple[int, ...]
    frames: tuple[int, ...]
    count: int
    cost_ns: int
    critical_ns: int
    shared_ns: int
    vain_ns: int
    waited_ns: int
    each_ns: int | None
    low_ns: int | None
    high_ns: int | None
    confidence: float | None
    unfinished: int
    """Delays that were under way at the last packet."""
    who: str
    evidence: str
    why: str
    fixes: tuple[str, ...]
    """What to change, one way each."""
    brief_server: str = ""
    """Name and port; empty where the server has no name."""
    server_ip: str | None = None
    server_port: int | None = None
    consequences: tuple["Finding", ...] = ()
    """The findings that it brings with it, worst first."""

    @property
    def full_title(self) -> str:
        """The title, and whether it is inferred."""
        inferred = self.confidence is not None and self.confidence < SURE
        return f"{self.title} (inferred)" if inferred else self.title

    @property
    def own_ns(self) -> int:
        """What users waited for it that no other finding counts."""
        return max(0, self.critical_ns - self.shared_ns)

    @property
    def share(self) -> str:
        """Of all users' waits, that for it: ``79 %``."""
        return format_share(self.own_ns, self.waited_ns)

    @property
    def where(self) -> str:
        """``shop.example (10.0.0.9:443), client 10.0.0.5``; empty where it is about the capture."""
        role = f"{self.hop} " if self.hop in ("front", "backend") else ""
        parts = (f"{role}{self.server}" if self.server else "", f"client {self.client}" if self.client else "")
        return ", ".join(filter(None, parts))

    @property
    def brief_where(self) -> str:
        """``front shop.example:443, client 10.0.0.5``."""
        return self.where.replace(self.server, self.brief_server) if self.brief_server else self.where

    @property
    def seen(self) -> str:
        """What was seen and who did it."""
        return "; ".join(filter(None, (self.evidence, self.who)))

    @property
    def cost(self) -> str:
        """``costs 240 ms of 304 ms that users waited (24 delays on 2 connections; median 9.80 ms)``."""
        if not self.cost_ns:
            return "costs no time"
        spent = f"{format_ns(self.cost_ns)} on {count_of(len(self.streams), 'connection')}"
        if not self.critical_ns and self.vain_ns:
            return f"cost users {format_ns(self.cost_ns)}, who got no answer ({self._delays})"
        if not self.critical_ns:
            return f"costs users nothing: nobody waited for the {spent}"
        if not self.own_ns:
            return f"no cost of its own: another finding already counts {format_ns(self.critical_ns)}"
        besides = f", and {format_ns(self.shared_ns)} that another finding already counts" if self.shared_ns else ""
        cost = f"costs {format_ns(self.own_ns)} of {format_ns(self.waited_ns)} that users waited{besides}"
        return f"{cost} ({'; '.join(self._counted())})"

    def _counted(self) -> Iterator[str]:
        """Count the delays: how long they are in all where users waited for a part of that, and in the middle."""
        yield self._delays
        if abs(self.cost_ns - self.critical_ns) > self.cost_ns // _TRIFLE:
            yield f"{format_ns(self.cost_ns)} in all"
        if self.each_ns is not None and self.count > 1:
            interval = ""
            if self.low_ns is not None and self.high_ns is not None:
                interval = f", {format_range(self.low_ns, self.high_ns)} with 95 % confidence"
            yield f"median {format_ns(self.each_ns)}{interval}"
        if self.confidence is not None and self.confidence < 1:
            yield f"{format_share(round(100 * self.confidence), 100)} sure"

    @property
    def _delays(self) -> str:
        """``24 delays on 2 connections``, ``1 delay``."""
        where = f" on {count_of(len(self.streams), 'connection')}" if self.count > 1 and self.streams else ""
        some = "" if self.unfinished == self.count else f"{self.unfinished} "
        return f"{count_of(self.count, 'delay')}{where}{f', {some}{UNDER_WAY}' if self.unfinished else ''}"

    @property
    def under_way(self) -> str:
        """``2 of 3 delays unfinished at the last packet``; empty where all came to an end."""
        if not self.unfinished:
            return ""
        some = "" if self.unfinished == self.count else f"{self.unfinished} of {self.count} delays "
        return f"{some}{UNDER_WAY}"

    @property
    def brings(self) -> str:
        """Its consequences in a sentence; empty where it has none."""
        consequences = (f"{one.title} ({one.brief})" for one in self.consequences)
        return f"brings with it: {'; '.join(consequences)}" if self.consequences else ""

    @property
    def brief(self) -> str:
        """How often and how long, of a consequence: what takes no time is counted by its connections."""
        if not self.critical_ns:
            return f"on {count_of(len(self.streams), 'connection')}"
        return f"{self._delays}, {format_ns(self.critical_ns)}"


_FINDINGS = """
    SELECT number, root, finding AS name, title, severity, server, server_ip, server_port,
        coalesce(client_ip, '') AS client, coalesce(hop, '') AS hop, streams, frames, count, cost_ns, critical_ns,
        shared_ns, vain_ns, waited_ns, each_ns, low_ns, high_ns, confidence,
        unfinished, coalesce(who, '') AS who, evidence, why,
        CASE WHEN advice IS NULL THEN [] ELSE string_split(advice, chr(10)) END AS fixes
    FROM findings ORDER BY root IS NULL, number
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Findings of one severity and title that stand for themselves."""

    severity: str
    title: str
    count: int


def tally_findings(listed: Iterable[Finding], *, without: Iterable[Finding] = ()) -> list[Tally]:
    """Count what stands for itself, but for some findings: by severity and title, the worst first."""
    left_out = {finding.number for finding in without}
    counts = Counter((one.severity, one.title) for one in listed if one.number not in left_out)
    return [Tally(severity=severity, title=title, count=count) for (severity, title), count in counts.items()]


def findings(tables: Tables, *, names: bool = True) -> list[Finding]:
    """List what stands for itself, worst first, with what it brings with it."""
    inside: dict[int, list[Finding]] = {}
    listed: list[Finding] = []
    for row in rows(tables, _FINDINGS):
        root = row.pop("root")
        found = _finding(row, tuple(inside.get(row["number"], ())), names=names)
        (listed if root is None else inside.setdefault(root, [])).append(found)
    return listed


def _finding(row: Row, consequences: tuple[Finding, ...], *, names: bool) -> Finding:
    name, ip, port = row.pop("server"), row["server_ip"], row["server_port"]
    address = "" if ip is None else ip if port is None else endpoint(ip, port)
    named = names and name and address and name != address
    row["server"] = f"{name} ({address})" if named else address
    row["brief_server"] = named_endpoint(name, port) if named and port is not None else ""
    lists = {column: tuple(row.pop(column)) for column in ("streams", "frames", "fixes")}
    return Finding(**(row | lists), consequences=consequences)


def by_severity(listed: Iterable[Tally]) -> str:
    """Count them: ``1 serious, 2 notes``; empty where there are none."""
    counts: Counter[str] = Counter()
    for one in listed:
        counts[one.severity] += one.count
    nouns = {"note": ("note", "notes"), "warning": ("warning", "warnings"), "serious": ("serious", "serious")}
    return ", ".join(count_of(counts[word], *nouns[word]) for word in reversed(SEVERITIES) if counts[word])
