"""Run the rules and compute the cost of each finding: the problem, its cause, its cost for users, the fix.

In: every other table. Out: the table ``findings``, worst first, ``explained_waits`` and ``explained_places``.

A rule gives for each server or client the delays that it explains, as stretches of a connection. What these cost users
is worked out by the core, for all rules in the same way: the part of each delay during which a user's wait ran through
it, where several together count once. It is measured on a clock that runs while users wait (``analysis/waits.py``) on
the user's connection, so that costs add up to no more than what users waited. A finding whose delays are mostly those
of another one that its rule names is a consequence of that; what two findings share otherwise is counted with one of
them: with what made an opening needless before what made it long, else with the worse one.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import duckdb

from conchart.analysis.findings.evidence import EVIDENCE, FORGET_EVIDENCE, MADE_OF, evidence
from conchart.analysis.findings.rule import Fix, Rule
from conchart.analysis.waits import UsersWaits, explain_waits
from conchart.errors import UsageError
from conchart.labels.filling import change_line, fill
from conchart.labels.printable import endpoint
from conchart.store.schema import SEVERITIES, TABLE_BY_NAME
from conchart.store.sql import PRODUCTS, SURE, USERS_WAITED, literal, with_values
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
# Before a rule is one line, and after it: `_explained` counts on it.
_INSERT = "INSERT INTO found BY NAME "
_OF_RULE = """SELECT {rule} AS rule, * REPLACE (to_json(facts) AS facts) FROM (
{sql}
)
"""

_DELAYED = """
    CREATE OR REPLACE TEMP TABLE delays AS
    SELECT id, rule, delay.stream, delay.exchange, delay.start_at, delay.end_at
    FROM (SELECT row_number() OVER ()::INTEGER AS id, rule, unnest(delays) AS delay FROM found)
"""
_DELAYS = "SELECT id, stream, exchange, start_at, end_at FROM delays"
_WAITED = "SELECT user_stream, stream, exchange, start_at, end_at FROM waited"
_EXCHANGES = "SELECT stream, number, confidence, response_done_at FROM exchanges"
_ROWS = f"""
    SELECT row_number() OVER ()::INTEGER AS id,
        * EXCLUDE (delays) REPLACE (coalesce(frames[:{_MOST_FRAMES}], []) AS frames)
    FROM found
"""
_PRICE = ("count", "cost_ns", "unfinished", "each_ns", "low_ns", "high_ns", "guessed", "critical_ns", "vain_ns")
_FREE = (0, 0, 0, None, None, None, None, 0, 0)

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


FORGET = FORGET_EVIDENCE + "".join(f"; DROP TABLE IF EXISTS {table}" for table in ("found", "delays", "paid"))
"""SQL that drops what ``find`` leaves."""


def find(tables: Tables, rules: Iterable[Rule], thresholds: Mapping[str, float], waits: UsersWaits) -> None:
    """Fill ``findings``.

    Args:
        tables: Of the trace.
        rules: What to look for.
        thresholds: From where on something is a finding.
        waits: What users waited, which nobody needs afterwards.

    Raises:
        UsageError: A rule's SQL is wrong; the message names file and line.
    """
    by_name = {rule.name: rule for rule in rules}
    steps = evidence(tables, thresholds)
    _ask(tables, steps, by_name.values(), thresholds)
    if not tables.count("found"):
        return
    steps.provide(("waited",))
    tables.execute(_DELAYED)
    attribution = waits.read()
    prices = {id: price for id, *price in attribution.price(*map(tables.sql, (_DELAYS, _WAITED, _EXCHANGES)))}
    found = _rows(tables, _ROWS)
    ((users_waited_ns,),) = tables.fetch(USERS_WAITED)
    for row in found:
        row |= dict(zip(_PRICE, prices.get(row["id"], _FREE), strict=True))
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
    shared = dict(attribution.shared(standing))
    explain_waits(tables, attribution, standing)
    waits.forget()
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
    """Fill ``found`` by one statement: DuckDB works on its parts side by side."""
    tables.execute(_FOUND)
    chosen = _worth_asking(tables, steps, tuple(rules), thresholds)
    for rule in chosen:
        steps.provide_named(rule.sql)
    queries = [
        _OF_RULE.format(rule=literal(rule.name), sql=with_values(rule.sql.rstrip("\n ;"), thresholds))
        for rule in chosen
    ]
    # Inside a transaction no statement runs after one that failed, and so none would tell which rule is wrong.
    if queries and not tables.is_trial:
        try:
            tables.execute(_INSERT + "UNION ALL BY NAME\n".join(queries))
        except duckdb.OutOfMemoryException:
            raise
        except duckdb.Error:
            pass  # one of the rules is wrong: it says so by itself
        else:
            return
    for rule, query in zip(chosen, queries, strict=True):
        _ask_one(tables, rule, query)


def _ask_one(tables: Tables, rule: Rule, query: str) -> None:
    try:
        tables.execute(_INSERT + query)
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
