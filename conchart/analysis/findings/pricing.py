"""Run the rules and compute the cost of each finding: the problem, its cause, its cost for users, the fix.

In: every other table. Out: the table ``findings``, worst first, ``explained_waits`` and ``explained_places``.

A rule gives for each server or client the delays that it explains, as stretches of a connection. What these cost users
is worked out here, for all rules in the same way: the part of each delay during which a user's wait ran through it,
where several together count once. It is measured on a clock that runs while users wait (``analysis/waits.py``) on the
user's connection, so that costs add up to no more than what users waited. A finding whose delays are mostly those of
another one that its rule names is a consequence of that; what two findings share otherwise is counted with one of them:
with what made an opening needless before what made it long, else with the worse one.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import duckdb

from conchart._native import share_waits
from conchart.analysis.findings.evidence import EVIDENCE, FORGET_EVIDENCE, MADE_OF, evidence
from conchart.analysis.findings.rule import Fix, Rule
from conchart.analysis.waits import USERS_WAITS, explain_waits
from conchart.errors import UsageError
from conchart.labels.filling import change_line, fill
from conchart.labels.printable import endpoint
from conchart.store.schema import SEVERITIES, TABLE_BY_NAME
from conchart.store.sql import ANSWERED, GOES_ON, PRODUCTS, SERVED, SURE, USERS_WAITED, literal, with_values
from conchart.store.steps import Steps
from conchart.store.tables import Tables

Row = dict[str, Any]
_DELAYS = "STRUCT(stream INTEGER, exchange INTEGER, start_at BIGINT, end_at BIGINT)[]"
_MOST_FRAMES = 20
_REQUESTS = {"answers", "asked", "exchanges", "queries"}
"""Tables whose rows are requests."""
_LEAST_RANKED = 8
_Z_95 = 1.96

_FOUND = f"""
    CREATE OR REPLACE TEMP TABLE found (
        rule VARCHAR, server_ip VARCHAR, server_port INTEGER, client_ip VARCHAR, delays {_DELAYS}, frames BIGINT[],
        confidence DOUBLE, side VARCHAR, facts VARCHAR)
"""
# Before and after it are one line each: `_explained` counts on it.
_ASK = """INSERT INTO found BY NAME SELECT {rule} AS rule, * REPLACE (to_json(facts) AS facts) FROM (
{sql}
)"""

# A user's clock runs while somebody waits on the connection (``waited_ns`` of it so far), and stands still in between:
# `from_ns` and `until_ns` are times on it. What a delay was paid for with is the time that passed on this clock.
_PRICE = f"""
    CREATE OR REPLACE TEMP TABLE numbered AS SELECT row_number() OVER ()::INTEGER AS id, * FROM found;
    CREATE OR REPLACE TEMP TABLE delays AS
    SELECT id, rule, delay.stream, delay.exchange, delay.start_at, delay.end_at
    FROM (SELECT id, rule, unnest(delays) AS delay FROM numbered);
    CREATE OR REPLACE TEMP TABLE paid AS
    WITH pieces AS (
        SELECT id, user_stream, greatest(delays.start_at, waited.start_at) AS start_at,
            least(delays.end_at, waited.end_at) AS end_at
        FROM delays JOIN waited USING (stream, exchange)
        WHERE delays.start_at < waited.end_at AND waited.start_at < delays.end_at),
    parted AS (
        SELECT *, sum(apart) OVER (PARTITION BY id, user_stream ORDER BY start_at, end_at) AS part
        FROM (
            SELECT *, (start_at > coalesce(max(end_at) OVER (
                PARTITION BY id, user_stream ORDER BY start_at, end_at
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), -1))::INTEGER AS apart
            FROM pieces)),
    merged AS (
        SELECT id, user_stream, min(start_at) AS start_at, max(end_at) AS end_at
        FROM parted GROUP BY id, user_stream, part),
    clocks AS (
        SELECT stream AS user_stream, start_at AS runs_at, end_at AS stops_at,
            coalesce(sum(end_at - start_at) OVER (
                PARTITION BY stream ORDER BY start_at
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)::BIGINT AS ran_ns
        FROM {USERS_WAITS} SEMI JOIN (SELECT user_stream AS stream FROM merged) USING (stream)
        SEMI JOIN (SELECT stream FROM connections WHERE {SERVED}) USING (stream))
    SELECT id, merged.user_stream, start_at, end_at, if({ANSWERED}, 0, end_at - start_at) AS vain_ns,
        coalesce(first.ran_ns + least(start_at, first.stops_at) - first.runs_at, 0) AS from_ns,
        coalesce(last.ran_ns + least(end_at, last.stops_at) - last.runs_at, 0) AS until_ns
    FROM merged JOIN (SELECT stream, state FROM connections) ON stream = merged.user_stream
    ASOF LEFT JOIN clocks first ON merged.user_stream = first.user_stream AND start_at >= first.runs_at
    ASOF LEFT JOIN clocks last ON merged.user_stream = last.user_stream AND end_at >= last.runs_at;
"""

_PRICED = f"""
    SELECT numbered.* EXCLUDE (delays) REPLACE (coalesce(frames[:{_MOST_FRAMES}], []) AS frames), guessed,
        coalesce(count, 0) AS count, coalesce(cost_ns, 0) AS cost_ns,
        coalesce(critical_ns, 0) AS critical_ns, coalesce(vain_ns, 0) AS vain_ns, each_ns, low_ns, high_ns,
        coalesce(unfinished, 0) AS unfinished
    FROM numbered
    LEFT JOIN (
        SELECT id, count(*) AS count, sum(end_at - start_at)::BIGINT AS cost_ns,
            count(*) FILTER (end_at > start_at AND end_at >= closed_at) AS unfinished
        FROM delays LEFT JOIN (
            SELECT stream, closed_at FROM connections WHERE {GOES_ON} AND NOT EXISTS (
                FROM exchanges WHERE exchanges.stream = connections.stream AND response_done_at = closed_at))
            USING (stream)
        GROUP BY id) USING (id)
    LEFT JOIN (
        SELECT id, (sorted[(n + 1) // 2] + sorted[n // 2 + 1]) // 2 AS each_ns,
            CASE WHEN n >= {_LEAST_RANKED}
                THEN sorted[greatest(1, floor((n - {_Z_95} * sqrt(n)) / 2))::BIGINT] END AS low_ns,
            CASE WHEN n >= {_LEAST_RANKED}
                THEN sorted[least(n, ceil(1 + (n + {_Z_95} * sqrt(n)) / 2))::BIGINT] END AS high_ns
        FROM (
            SELECT id, list_sort(list(end_at - start_at)) AS sorted, count(*) AS n
            FROM delays GROUP BY id)
        WHERE each_ns > 0) USING (id)
    LEFT JOIN (
        SELECT id, avg(exchanges.confidence) AS guessed
        FROM delays JOIN exchanges ON exchanges.stream = delays.stream AND number = delays.exchange
        GROUP BY id) USING (id)
    LEFT JOIN (
        SELECT id, sum(until_ns - from_ns)::BIGINT AS critical_ns, sum(vain_ns)::BIGINT AS vain_ns
        FROM paid GROUP BY id) USING (id)
"""
"""The interval is the median's, by ranks: it needs no distribution (Conover, Practical Nonparametric Statistics)."""

# How much of one finding's delays lies in another's: of what costs nothing, how many connections are the same. The
# overlap of every pair of delays counts. Between two events, the number of overlapping pairs is the number of delays of
# the one times that of the other: a walk in the order of time tells it, without a comparison of pairs.
_COMMON = """
    WITH delayed AS (SELECT DISTINCT id, rule, stream, exchange FROM delays),
    pairs AS (
        SELECT one.id AS one, other.id AS other, one.stream, one.exchange
        FROM delayed one
        JOIN (SELECT unnest($rules::VARCHAR[]) AS rule, unnest($causes::VARCHAR[]) AS cause) USING (rule)
        JOIN delayed other ON other.rule = cause AND other.stream = one.stream
            AND other.exchange IS NOT DISTINCT FROM one.exchange
        WHERE other.id <> one.id),
    events AS (
        SELECT one, other, pairs.stream, pairs.exchange, unnest([start_at, greatest(start_at, end_at)]) AS instant,
            unnest([1, -1]) AS ones, 0 AS others
        FROM pairs JOIN delays ON id = one AND delays.stream = pairs.stream
            AND delays.exchange IS NOT DISTINCT FROM pairs.exchange
        UNION ALL
        SELECT one, other, pairs.stream, pairs.exchange, unnest([start_at, greatest(start_at, end_at)]), 0,
            unnest([1, -1])
        FROM pairs JOIN delays ON id = other AND delays.stream = pairs.stream
            AND delays.exchange IS NOT DISTINCT FROM pairs.exchange)
    SELECT one, other, sum(lasting * together)::BIGINT, count(DISTINCT stream)
    FROM (
        SELECT one, other, stream, coalesce(lead(instant) OVER so_far - instant, 0) AS lasting,
            sum(ones) OVER so_far * sum(others) OVER so_far AS together
        FROM events
        WINDOW so_far AS (PARTITION BY one, other, stream, exchange ORDER BY instant ROWS UNBOUNDED PRECEDING))
    GROUP BY ALL
"""
_PAID = "SELECT id, user_stream, from_ns, until_ns FROM paid WHERE until_ns > from_ns"
# There may be as many as there are connections: they do not pass through Python.
_NAME_STREAMS = """
    UPDATE findings SET streams = happened.streams
    FROM (
        SELECT unnest(from_json($ids, '["INTEGER"]')) AS id,
            unnest(from_json($numbers, '["INTEGER"]')) AS found) numbered
    JOIN (SELECT id, list_sort(list(DISTINCT stream)) AS streams FROM delays GROUP BY id) happened USING (id)
    WHERE number = found
"""
# What an end calls itself: a server in its responses, a proxy also where it is a client, a client in its requests (but
# for FastCGI, where a web server says what its own client is). What a proxy hands on from its backend is not its own.
# The protocol of a database tells its product.
_SOFTWARE = f"""
    WITH declared AS (
        SELECT server_ip, server_port, mode(server_software) AS software
        FROM exchanges JOIN connections USING (stream) WHERE server_software IS NOT NULL GROUP BY ALL),
    own AS (
        FROM declared ANTI JOIN (
            SELECT fronts.server_ip, fronts.server_port, software
            FROM (SELECT DISTINCT front_stream, back_stream FROM links)
            JOIN connections fronts ON fronts.stream = front_stream
            JOIN connections backs ON backs.stream = back_stream
            JOIN declared ON declared.server_ip = backs.server_ip AND declared.server_port = backs.server_port
        ) USING (server_ip, server_port, software))
    SELECT 'server', server_ip, server_port, software FROM own
    UNION ALL
    SELECT 'server', server_ip, server_port, mode(MAP {PRODUCTS}[app]) FROM connections WHERE app IN {tuple(PRODUCTS)}
    GROUP BY ALL
    UNION ALL
    SELECT 'client', nodes.address, NULL, mode(software)
    FROM own JOIN nodes home ON home.address = server_ip AND home.port = server_port
    JOIN nodes ON nodes.node = home.node AND nodes.port IS NULL
    WHERE home.role = 'proxy' GROUP BY ALL
    UNION ALL
    SELECT 'client', client_ip, NULL, mode(user_agent)
    FROM exchanges JOIN connections USING (stream)
    WHERE user_agent IS NOT NULL AND protocol <> 'fastcgi'
        AND client_ip NOT IN (SELECT address FROM nodes WHERE port IS NULL AND role = 'proxy')
    GROUP BY ALL
"""
_SERVERS = "SELECT server_ip, server_port, role, names[1] FROM servers"


FORGET = FORGET_EVIDENCE + "".join(
    f"; DROP TABLE IF EXISTS {table}" for table in ("found", "numbered", "delays", "paid")
)
"""SQL that drops what ``find`` leaves."""


def find(tables: Tables, rules: Iterable[Rule], thresholds: Mapping[str, float]) -> None:
    """Fill ``findings``.

    Raises:
        UsageError: A rule's SQL is wrong; the message names file and line.
    """
    by_name = {rule.name: rule for rule in rules}
    steps = evidence(tables, thresholds)
    _ask(tables, steps, by_name.values(), thresholds)
    if not tables.count("found"):
        return
    steps.provide(("waited",))
    tables.execute(_PRICE)
    found = _rows(tables, _PRICED)
    ((users_waited_ns,),) = tables.fetch(USERS_WAITED)
    for row in found:
        spent_ns = row["critical_ns"] + row["vain_ns"]
        row["confidence"] = _confidence(by_name[row["rule"]], row["confidence"], row["guessed"])
        row["severity"] = _severity(by_name[row["rule"]], spent_ns, users_waited_ns + row["vain_ns"], thresholds)
    roots = _roots(tables, found, by_name)
    # What made an opening needless counts before what made it long. What is never more than a note may be meant so: it
    # takes nothing from what is wrong.
    causes = {name for rule in by_name.values() for name in rule.because}
    found.sort(
        key=lambda row: (
            by_name[row["rule"]].severity == "note",
            row["rule"] not in causes,
            -row["critical_ns"],
            *_place(row),
        )
    )
    standing = [row["id"] for row in found if row["id"] not in roots]
    shared = _shared(tables, standing)
    explain_waits(tables, standing, thresholds)
    found.sort(
        key=lambda row: (
            by_name[row["rule"]].severity != "quality",
            -SEVERITIES.index(row["severity"]),
            shared.get(row["id"], 0) - row["critical_ns"] - row["vain_ns"],
            -row["cost_ns"],
            *_place(row),
        )
    )
    software = {(end, ip, port): words for end, ip, port, words in tables.fetch(_SOFTWARE)}
    servers = {(ip, port): (role, name) for ip, port, role, name in tables.fetch(_SERVERS)}
    numbers = {row["id"]: number for number, row in enumerate(found)}
    for row in found:
        root = roots.get(row["id"])
        row |= _words(by_name[row["rule"]], row, software)
        row["hop"], name = servers.get((row["server_ip"], row["server_port"]), (None, None))
        row["server"] = name or (endpoint(row["server_ip"], row["server_port"]) if row["server_ip"] else None)
        row["number"], row["root"] = numbers[row["id"]], None if root is None else numbers[root]
        row["because"] = None if root is None else found[numbers[root]]["rule"]
        row["shared_ns"] = shared.get(row["id"], 0)
        row["waited_ns"] = users_waited_ns
    columns = TABLE_BY_NAME["findings"].types
    tables.add("findings", (tuple(row[column] for column in columns) for row in found))
    tables.execute(_NAME_STREAMS, {"ids": json.dumps([*numbers]), "numbers": json.dumps([*numbers.values()])})


def _place(row: Row) -> tuple[str, str, int, str]:
    """What tells apart rows that cost the same."""
    return row["rule"], row["server_ip"] or "", row["server_port"] or 0, row["client_ip"] or ""


def _words(rule: Rule, row: Row, software: Mapping[tuple[str, str | None, int | None], str]) -> Row:
    """What a row says to people."""
    facts = json.loads(row["facts"] or "{}")
    facts |= {name: row[name] for name in ("count", "cost_ns", "critical_ns", "each_ns") if row[name] is not None}
    software_of = {
        "server": software.get(("server", row["server_ip"], row["server_port"])),
        "client": software.get(("client", row["client_ip"], None)),
    }
    return {
        "finding": rule.name,
        "title": rule.title,
        "streams": [],
        "frames": list(dict.fromkeys(row["frames"])),
        "who": fill(rule.who, facts) or None,
        "evidence": fill(rule.seen, facts),
        "why": rule.why,
        "advice": advice([fix for fix in rule.fixes if _applies(fix, row["side"], facts)], software_of),
    }


def _ask(tables: Tables, steps: Steps, rules: Iterable[Rule], thresholds: Mapping[str, float]) -> None:
    tables.execute(_FOUND)
    for rule in _worth_asking(tables, steps, tuple(rules), thresholds):
        steps.provide_named(rule.sql)
        sql = with_values(rule.sql.rstrip("\n ;"), thresholds)
        try:
            tables.execute(_ASK.format(rule=literal(rule.name), sql=sql))
        except duckdb.OutOfMemoryException:
            raise
        except duckdb.Error as error:
            raise UsageError(_explained(rule, str(error))) from None


def _worth_asking(tables: Tables, steps: Steps, rules: tuple[Rule, ...], thresholds: Mapping[str, float]) -> list[Rule]:
    """Give those of which every table that they need has a row.

    What all need of a table is asked at once. Tables come before what is made of them: a rule that one of those refuses
    needs no evidence.
    """
    wanted = {table for rule in rules for table in rule.needs}
    has_rows = cache(tables.count)
    for table in sorted(wanted, key=lambda table: (table in EVIDENCE, table)):
        asking = [rule for rule in rules if table in rule.needs]
        if asking:
            met = set()
            if table not in MADE_OF or has_rows(MADE_OF[table]):
                steps.provide((table,))
                met = _met(tables, table, asking, thresholds)
            rules = tuple(rule for rule in rules if table not in rule.needs or rule.needs[table] in met)
    return [*rules]


def _met(tables: Tables, table: str, rules: list[Rule], thresholds: Mapping[str, float]) -> set[str]:
    """Give those conditions of rules for a table that hold for one of its rows at least."""
    conditions = sorted({rule.needs[table] for rule in rules})
    query = f"SELECT {', '.join(f'bool_or({condition})' for condition in conditions)} FROM {table}"
    try:
        results = tables.fetch(with_values(query, thresholds))[0]
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        if len(rules) == 1:
            raise UsageError(f"{rules[0].path}:{rules[0].lines['needs']}: needs: {str(error).strip()}") from None
        for rule in rules:  # one of them is wrong, and says so by itself
            _met(tables, table, [rule], thresholds)
        raise
    return {condition for condition, is_met in zip(conditions, results, strict=True) if is_met}


def _explained(rule: Rule, error: str) -> str:
    """DuckDB's words with the line of the file: the statement has one line before the rule's."""
    match = re.search(r"LINE (\d+):", error)
    line = rule.sql_line + (int(match[1]) - 2 if match else 0)
    return f"{rule.path}:{line}: {error.strip()}"


def _rows(tables: Tables, query: str, params: object = None) -> list[Row]:
    names, rows = tables.fetch_named(query, params)
    return [dict(zip(names, values, strict=True)) for values in rows]


def _severity(rule: Rule, spent_ns: int, waited_ns: int, thresholds: Mapping[str, float]) -> str:
    if rule.severity in ("note", "quality"):
        return "note" if rule.severity == "note" else "warning"
    if spent_ns and spent_ns >= thresholds["serious_share"] * waited_ns:
        return "serious"
    if rule.severity == "failure" or spent_ns and spent_ns >= thresholds["warning_share"] * waited_ns:
        return "warning"
    return "note"


def _confidence(rule: Rule, confidence: float | None, guessed: float | None) -> float | None:
    """A rule about requests is no surer than these are, where those are guesses."""
    if guessed is None or guessed >= SURE or not rule.needs.keys() & _REQUESTS:
        return confidence
    return guessed if confidence is None else min(confidence, guessed)


def _roots(tables: Tables, found: list[Row], rules: Mapping[str, Rule]) -> dict[int, int]:
    """Give of each consequence the finding that it is a consequence of, at the very root."""
    present = {row["rule"] for row in found}
    pairs = [(name, cause) for name in sorted(present) for cause in rules[name].because if cause in present]
    if not pairs:
        return {}
    names, causes = ([*column] for column in zip(*pairs, strict=True))
    cost = {row["id"]: row["cost_ns"] for row in found}
    best: dict[int, tuple[float, int]] = {}
    for one, other, common_ns, streams in tables.fetch(_COMMON, {"rules": names, "causes": causes}):
        share = common_ns / cost[one] if cost[one] else math.copysign(1, streams)
        if share >= 0.5:
            best[one] = max(best.get(one, (0, 0)), (share, -other))
    parents = {one: -other for one, (_, other) in best.items()}
    return {one: root for one in parents if (root := _top(one, parents)) != one}


def _top(one: int, parents: Mapping[int, int]) -> int:
    """Go up to what is no consequence; of those that name each other, it is the same one for all."""
    seen = [one]
    while (parent := parents.get(seen[-1])) is not None:
        if parent in seen:
            return min(seen[seen.index(parent) :])
        seen.append(parent)
    return seen[-1]


def _shared(tables: Tables, ids: list[int]) -> dict[int, int]:
    """Give of each finding, in the order in which they count, what users waited for it that one before counts."""
    return dict(share_waits(tables.sql(_PAID), ids))


def _applies(fix: Fix, side: str | None, facts: Mapping[str, Any]) -> bool:
    return side in (None, fix.at) and (not fix.when or bool(facts.get(fix.when)))


def advice(fixes: Iterable[Fix], software: Mapping[str, str | None]) -> str | None:
    """Say what to change: for the software at hand where that is known, else in general, then for others.

    The protocol tells a store: where it is another one, advice for stores is none.
    """
    suiting: list[Fix] = []
    general: list[Fix] = []
    others: list[Fix] = []
    by_end: dict[str, list[Fix]] = {}
    for fix in fixes:
        by_end.setdefault(fix.at, []).append(fix)
    for at, of_end in by_end.items():
        in_use = software.get(at)
        at_hand = [fix for fix in of_end if in_use and fix.suits(in_use)]
        suiting += at_hand
        general += [fix for fix in of_end if not fix.product and not at_hand]
        others += [fix for fix in of_end if fix.product and not in_use and fix.product not in PRODUCTS.values()]
    lines = dict.fromkeys(change_line(fix.product, fix.versions, fix.line) for fix in (*suiting, *general, *others))
    return "\n".join(lines) or None
