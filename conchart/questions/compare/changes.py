"""Findings gone, new, changed: matched by finding and server.

In: the findings of both captures, which server is which. Out: :class:`FindingChange`, what costs most first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from conchart.labels.printable import endpoint
from conchart.questions.compare.model import FindingChange, Hop
from conchart.questions.compare.samples import Endpoint
from conchart.report.rows import Row, rows
from conchart.store.tables import Tables

_SEVERITIES = ("note", "warning", "serious")

# What is about several clients of a server is one thing here. A consequence is told inside its root, which counts its
# cost; and what two findings share is counted with one of them, so that costs add up to no more than users waited.
_FINDINGS = """
    SELECT finding, any_value(title ORDER BY number) AS title, list(severity) AS severities, server_ip, server_port,
        bool_or(root IS NULL) AS is_root, sum(count)::BIGINT AS count,
        coalesce(sum(critical_ns - shared_ns) FILTER (root IS NULL), 0)::BIGINT AS own_ns
    FROM findings GROUP BY finding, server_ip, server_port ORDER BY min(number)
"""

_Key = tuple[str, Endpoint | None]


@dataclass(frozen=True, slots=True)
class _Found:
    row: Row
    server: str


def finding_changes(
    before: Tables, after: Tables, hops: Sequence[Hop], names: Mapping[Endpoint, str]
) -> list[FindingChange]:
    """Compare what was found.

    Args:
        before: Tables of the one capture.
        after: Tables of the other.
        hops: The servers that both have.
        names: What to call servers, where that is known.
    """
    same = {
        (hop.before.server_ip, hop.before.server_port): (hop.after.server_ip, hop.after.server_port) for hop in hops
    }
    one, other = _found(before, names, same), _found(after, names, {})
    changes = []
    for key in dict.fromkeys((*one, *other)):
        found = [side[key] for side in (one, other) if key in side]
        if any(each.row["is_root"] for each in found):
            changes.append(_change(key, one.get(key), other.get(key)))
    return sorted(changes, key=lambda change: -abs((change.after_ns or 0) - (change.before_ns or 0)))


def _found(tables: Tables, names: Mapping[Endpoint, str], same: Mapping[Endpoint, Endpoint]) -> dict[_Key, _Found]:
    found = {}
    for row in rows(tables, _FINDINGS):
        ip, port = row["server_ip"], row["server_port"]
        place: Endpoint | None = None if ip is None else (ip, port or 0)
        title = names.get(place, "") if place else ""
        address = "" if ip is None else ip if port is None else endpoint(ip, port)
        server = f"{title} ({address})" if title else address
        found[row["finding"], same.get(place, place) if place else None] = _Found(row, server)
    return found


def _change(key: _Key, before: _Found | None, after: _Found | None) -> FindingChange:
    latest = after or before
    assert latest is not None
    values = [(side.row["own_ns"], side.row["count"]) if side else None for side in (before, after)]
    severities = [severity for side in (before, after) if side for severity in side.row["severities"]]
    return FindingChange(
        change="new" if not before else "gone" if not after else "same" if values[0] == values[1] else "changed",
        finding=key[0],
        title=latest.row["title"],
        severity=max(severities, key=lambda word: _SEVERITIES.index(word) if word in _SEVERITIES else -1),
        server=latest.server,
        before_ns=before.row["own_ns"] if before else None,
        after_ns=after.row["own_ns"] if after else None,
        before_count=before.row["count"] if before else None,
        after_count=after.row["count"] if after else None,
    )
