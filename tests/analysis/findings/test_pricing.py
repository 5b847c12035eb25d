"""What the delays that rules give cost users, which finding counts it, and how findings follow from that.

Almost everywhere one user waits once, from 0 to 600 ns: the connection opens until 100, is not used until 150, and the
response is over at 600. It closes at 1000.
"""

from typing import Any, Literal

import pytest

from conchart.analysis.findings.pricing import FORGET, find
from conchart.analysis.findings.rule import Fix, Rule, chosen_thresholds
from conchart.analysis.waits import UsersWaits
from conchart.errors import UsageError
from conchart.store.tables import Tables
from tests.by_hand import Row, connection, tables_of

Delay = tuple[int, int, int, int]
"""Connection, exchange, start and end."""
SERVERS = [{"server_ip": "10.0.0.9", "server_port": 80, "role": "server", "names": ["shop.example"], "users_ns": 550}]
PHASES = (("syn", 0, 100), ("idle", 100, 150), ("request", 150, 200), ("wait", 200, 500), ("transfer", 500, 600))
WAITED_NS = 550


def user(stream: int = 0, **facts: Any) -> dict[str, list[Row]]:  # noqa: ANN401
    """The rows of a connection on which a user waits."""
    served = facts.get("state") != "refused"
    exchange = {
        "stream": stream, "number": 0, "protocol": "http/1.1", "kind": "web", "request_at": 150, "request_done_at": 200,
        "response_at": 500, "response_done_at": 600, "confidence": facts.pop("confidence", 1.0), "inferred": False,
    }  # fmt: skip
    times: dict[str, Any] = {"syn_at": 0, "syn_ack_at": 50, "closed_at": 1000, "fin_by": "client"}
    phases = PHASES if served else (("syn", 0, 1000),)
    return {
        "connections": [connection(stream, f"10.0.0.1:{40_000 + stream}", **times | facts)],
        "exchanges": [exchange] * served,
        "phases": [
            {"stream": stream, "exchange": None if kind in ("syn", "idle") else 0, "kind": kind, "start_at": start,
             "end_at": end}
            for kind, start, end in phases
        ],
    }  # fmt: skip


def world(*users: dict[str, list[Row]], **more: list[Row]) -> Tables:
    """The tables of these users; of one, where none are given."""
    rows: dict[str, list[Row]] = {}
    for one in users or (user(),):
        for table, of_table in one.items():
            rows.setdefault(table, []).extend(of_table)
    return tables_of(**rows | {"servers": SERVERS} | more)


def rule(
    name: str, *delays: Delay, about: Literal["server", "client", "capture"] = "server", columns: str = "",
    **facts: Any,  # noqa: ANN401
) -> Rule:  # fmt: skip
    """A rule that gives one row, for the server, with these delays."""
    listed = ", ".join(
        f"{{'stream': {stream}, 'exchange': {exchange}, 'start_at': {start}, 'end_at': {end}}}"
        for stream, exchange, start, end in delays
    )
    sql = f"SELECT '10.0.0.9' AS server_ip, 80 AS server_port, [{listed}] AS delays, {columns} {{'n': 2}} AS facts"
    defaults: dict[str, Any] = {
        "title": name.title(), "seen": "{n:thing}", "why": "It is so.", "sql": sql, "page": "", "path": f"{name}.md",
        "sql_line": 7, "lines": {"needs": 3},
    }  # fmt: skip
    return Rule(name=name, about=about, **defaults | facts)


def found(tables: Tables, *rules: Rule, **thresholds: float) -> list[Row]:
    chosen = chosen_thresholds(thresholds)
    find(tables, rules, chosen, UsersWaits(tables, chosen))
    names, rows = tables.fetch_named("FROM findings ORDER BY number")
    return [dict(zip(names, values, strict=True)) for values in rows]


def costs(*delays: Delay, tables: Tables | None = None) -> tuple[int, int, int]:
    """Give how many delays there are, how long they take together, and what of it users waited."""
    (row,) = found(tables or world(), rule("slow", *delays))
    return row["count"], row["cost_ns"], row["critical_ns"]


def by_name(rows: list[Row], *columns: str) -> dict[str, tuple[Any, ...]]:
    """Give these columns of each finding. All cases of a test are findings of one analysis, which costs most."""
    return {row["finding"]: tuple(row[column] for column in columns) for row in rows}


def test_where_nothing_is_found_there_are_no_findings() -> None:
    assert found(tables_of()) == []
    nowhere = rule("nowhere", sql="SELECT '' AS server_ip, [] AS delays, {'n': 1} AS facts WHERE false")
    needless = rule("needless", (0, 0, 200, 300), needs={"exchanges": "status >= 500"})
    assert found(world(), nowhere, needless) == []


COSTS: dict[str, tuple[list[Delay], tuple[int, int, int]]] = {
    "nothing": ([], (0, 0, 0)),
    "all of the wait": ([(0, 0, 200, 500)], (1, 300, 300)),
    "beyond the end": ([(0, 0, 550, 900)], (1, 350, 50)),
    "after the response": ([(0, 0, 600, 900)], (1, 300, 0)),
    "over the pause": ([(0, 0, 50, 200)], (1, 150, 100)),
    "in the pause": ([(0, 0, 110, 140)], (1, 30, 0)),
    "an instant": ([(0, 0, 300, 300)], (1, 0, 0)),
    "two that overlap": ([(0, 0, 200, 300), (0, 0, 250, 400)], (2, 250, 200)),
    "one within another": ([(0, 0, 200, 400), (0, 0, 250, 300), (0, 0, 350, 450)], (3, 350, 250)),
    "two that touch": ([(0, 0, 200, 300), (0, 0, 300, 400)], (2, 200, 200)),
    "two apart": ([(0, 0, 200, 300), (0, 0, 400, 450)], (2, 150, 150)),
    "no such exchange": ([(0, 1, 200, 300)], (1, 100, 0)),
    "no such connection": ([(9, 0, 200, 300)], (1, 100, 0)),
}
"""Delays; how many, how long together, what users waited in them."""


def test_a_delay_costs_what_users_waited_in_it_once() -> None:
    """Not what lies after the response, nor in the pause; not of exchanges and connections that nobody waited for."""
    rows = found(world(), *(rule(name, *delays) for name, (delays, _) in COSTS.items()))
    assert by_name(rows, "count", "cost_ns", "critical_ns") == {name: expected for name, (_, expected) in COSTS.items()}


def test_a_delay_behind_a_front_costs_what_the_user_of_the_front_waited() -> None:
    """Not what the user waits for later on the same connection, when the delay goes on."""
    front, back = user(), user(1, opened_at=210, syn_at=210, syn_ack_at=211)
    front["exchanges"].append(
        {**front["exchanges"][0], "number": 1, "request_at": 610, "request_done_at": 610, "response_at": 700,
         "response_done_at": 700}
    )  # fmt: skip
    front["phases"].append({"stream": 0, "exchange": 1, "kind": "wait", "start_at": 610, "end_at": 700})
    back["exchanges"][0] |= {"request_at": 220, "request_done_at": 220, "response_at": 400, "response_done_at": 700}
    back["phases"] = [{"stream": 1, "exchange": 0, "kind": "wait", "start_at": 220, "end_at": 400}]
    ends = {"front_stream": 0, "front_exchange": 0}
    tables = world(
        front, back, on_behalf=[{"stream": 1, "exchange": 0, **ends, "method": "link"}],
        links=[{**ends, "back_stream": 1, "back_exchange": 0, "method": "id", "confidence": 1.0}],
    )  # fmt: skip
    assert costs((1, 0, 250, 650), tables=tables) == (1, 400, 350), "the user has the response at 600"


def test_what_two_findings_claim_is_counted_by_the_worse_one() -> None:
    worse, less = found(world(), rule("less", (0, 0, 200, 300)), rule("more", (0, 0, 250, 500)))
    assert [(row["finding"], row["number"], row["critical_ns"], row["shared_ns"]) for row in (worse, less)] == [
        ("more", 0, 250, 0),
        ("less", 1, 100, 50),
    ]
    assert {row["waited_ns"] for row in (worse, less)} == {WAITED_NS}


def test_of_equal_findings_the_first_by_name_counts_and_what_is_wholly_shared_comes_last() -> None:
    same = (0, 0, 200, 300)
    rows = found(world(), rule("b", same), rule("c", (0, 0, 200, 250)), rule("a", same), rule("d", (0, 0, 510, 570)))
    assert [(row["finding"], row["critical_ns"] - row["shared_ns"]) for row in rows] == [
        ("a", 100),
        ("d", 60),
        ("b", 0),
        ("c", 0),
    ]


@pytest.mark.parametrize(
    ("small", "shared"),
    [({}, {"large": 0, "small": 100}), ({"cause": True}, {"large": 100, "small": 0})],
    ids=["plain", "cause"],
)
def test_what_may_be_the_cause_of_something_counts_before_what_costs_more(
    small: dict[str, bool], shared: dict[str, int]
) -> None:
    """``other`` may be a consequence of it, and is not there."""
    other = rule("other", because=("small",) if small else (), needs={"exchanges": "false"})
    rows = found(world(), rule("large", (0, 0, 200, 500)), rule("small", (0, 0, 200, 300)), other)
    assert {row["finding"]: row["shared_ns"] for row in rows} == shared


def test_a_note_takes_nothing_from_what_is_wrong() -> None:
    rows = found(world(), rule("note", (0, 0, 200, 500), severity="note"), rule("wrong", (0, 0, 200, 210)))
    shown = [(row["finding"], row["severity"], row["shared_ns"]) for row in rows]
    assert shown == [("wrong", "warning", 0), ("note", "note", 10)]


BECAUSE: dict[str, tuple[list[Delay], list[Delay], bool]] = {
    "half": ([(0, 0, 200, 300)], [(0, 0, 250, 400)], True),
    "less": ([(0, 0, 200, 300)], [(0, 0, 251, 400)], False),
    "another exchange": ([(0, 0, 200, 300)], [(0, 1, 200, 300)], False),
    "another connection": ([(0, 0, 200, 300)], [(1, 0, 200, 300)], False),
    "most of two": ([(0, 0, 200, 300), (1, 0, 200, 210)], [(0, 0, 200, 300)], True),
    "in pieces": ([(0, 0, 200, 300)], [(0, 0, 200, 225), (0, 0, 275, 300)], True),
    "an instant": ([(0, 0, 300, 300)], [(0, 0, 200, 201)], True),
    "an instant elsewhere": ([(0, 0, 300, 300)], [(1, 0, 200, 201)], False),
}
"""The delays of a finding and of what may be its cause, and whether it is."""


def test_a_consequence_lies_at_least_half_in_its_cause() -> None:
    """Of what takes no time, the cause is on the same exchange."""
    late = [rule(name, *delays, because=(f"{name}: cause",)) for name, (delays, _, _) in BECAUSE.items()]
    early = [rule(f"{name}: cause", *cause) for name, (_, cause, _) in BECAUSE.items()]
    rows = found(world(user(), user(1)), *late, *early)
    because = by_name(rows, "because")
    for name, (_, _, is_one) in BECAUSE.items():
        assert because[name] == (f"{name}: cause" if is_one else None,), name
        assert because[f"{name}: cause"] == (None,)
    for row in rows:
        root = None if row["root"] is None else rows[row["root"]]["finding"]
        assert row["because"] == root
        assert root is None or row["shared_ns"] == 0, "it does not stand for itself, and shares nothing"


def test_a_consequence_of_a_consequence_is_one_of_the_root_and_those_that_name_each_other_have_one_root() -> None:
    delay = (0, 0, 200, 300)
    chain = [rule("c", delay, because=("b",)), rule("b", delay, because=("a",)), rule("a", delay)]
    ring = [rule("x", delay, because=("y",)), rule("y", delay, because=("x",)), rule("z", delay, because=("y",))]
    because = {name: cause for name, (cause,) in by_name(found(world(), *chain, *ring), "because").items()}
    assert because == {"a": None, "b": "a", "c": "a", "x": None, "y": "x", "z": "x"}


def test_what_users_waited_in_vain_is_no_part_of_what_they_waited() -> None:
    (row,) = found(world(user(), user(1, state="refused")), rule("refused", (1, -1, 0, 1000), (0, 0, 200, 210)))
    assert (row["cost_ns"], row["critical_ns"], row["vain_ns"], row["severity"]) == (1010, 10, 1000, "serious")


SEVERITIES: tuple[tuple[Literal["cost", "note", "failure", "quality"], int, str], ...] = (
    ("cost", 254, "note"),
    ("cost", 255, "warning"),
    ("cost", 309, "warning"),
    ("cost", 310, "serious"),
    ("failure", 210, "warning"),
    ("failure", 310, "serious"),
    ("note", 310, "note"),
    ("quality", 310, "warning"),
)
"""What a rule allows, where its delay ends, and how bad that is."""


def test_severity_is_the_share_of_all_waits_within_what_a_rule_allows() -> None:
    """Of 550 ns, 55 are a tenth and 110 a fifth."""
    rules = [rule(f"{kind} {end}", (0, 0, 200, end), severity=kind) for kind, end, _ in SEVERITIES]
    rows = found(world(), *rules, warning_share=0.1, serious_share=0.2)
    assert by_name(rows, "severity") == {f"{kind} {end}": (severity,) for kind, end, severity in SEVERITIES}
    assert [row["severity"] for row in rows] == ["warning", *["serious"] * 2, *["warning"] * 3, *["note"] * 2]
    assert rows[0]["finding"] == "quality 310", "what is wrong with the capture comes first"


MEDIANS: tuple[tuple[list[int], tuple[int | None, int | None, int | None]], ...] = (
    ([], (None, None, None)),
    ([0, 0, 0], (None, None, None)),
    ([10, 0, 0], (None, None, None)),
    ([7], (7, None, None)),
    ([10, 3, 4], (4, None, None)),
    ([10, 3, 4, 5], (4, None, None)),
    ([*range(1, 8)], (4, None, None)),
    ([*range(8, 0, -1)], (4, 1, 8)),
    ([*range(1, 21)], (10, 5, 16)),
)


def test_of_several_delays_the_median_is_given_and_of_eight_and_more_its_interval() -> None:
    """Of two in the middle, it is their mean, rounded down."""
    rules = [rule(f"{lengths}", *((0, 0, 200, 200 + ns) for ns in lengths)) for lengths, _ in MEDIANS]
    expected = {f"{lengths}": values for lengths, values in MEDIANS}
    assert by_name(found(world(), *rules), "each_ns", "low_ns", "high_ns") == expected


def test_a_finding_about_requests_is_no_surer_than_they_are() -> None:
    guess, fact = (0, 0, 200, 300), (1, 0, 200, 300)
    high, low = "0.9 AS confidence,", "0.4 AS confidence,"
    of_requests: dict[str, Any] = {"needs": {"exchanges": "true"}}
    rules = [
        rule("guess", guess, columns=high, **of_requests),
        rule("worse than its guess", guess, columns=low, **of_requests),
        rule("says nothing", guess, **of_requests),
        rule("fact", fact, columns=high, **of_requests),
        rule("mean", guess, fact, columns=high, **of_requests),
        rule("of a connection", guess, columns=high, needs={"connections": "true"}),
        rule("of a connection, says nothing", guess),
    ]
    assert by_name(found(world(user(confidence=0.5), user(1, confidence=0.7)), *rules), "confidence") == {
        "guess": (0.5,),
        "worse than its guess": (0.4,),
        "says nothing": (0.5,),
        "fact": (0.9,),
        "mean": (0.6,),
        "of a connection": (0.9,),
        "of a connection, says nothing": (None,),
    }


def test_a_row_has_words_places_and_the_ends_of_its_delays() -> None:
    users = (user(), user(1, fin_by=None, state="open"))
    users[1]["exchanges"][0]["response_done_at"] = None
    fixes = (Fix(line="do"), Fix(line="not", at="client"), Fix(line="if", when="n"), Fix(line="never", when="m"))
    slow = rule(
        "slow", (1, 0, 500, 1000), (0, 0, 200, 1000), (1, 0, 400, 400), who="{n} of them", fixes=fixes,
        columns="'server' AS side, [5, 3, 5, 4] || range(100, 200) AS frames,",
    )  # fmt: skip
    (row,) = found(world(*users), slow)
    assert row["streams"] == [0, 1]
    assert row["frames"] == [5, 3, 4, *range(100, 116)], "the first twenty, each once"
    assert row["unfinished"] == 1, "only of the connection that goes on, and lasts until its last packet"
    assert (row["title"], row["evidence"], row["who"], row["advice"]) == ("Slow", "2 things", "2 of them", "do\nif")
    assert (row["server"], row["hop"]) == ("shop.example", "server")
    capture = rule("capture", about="capture", severity="quality", sql="SELECT {'n': 1} AS facts")
    first, _ = found(world(), slow, capture)
    assert [first[name] for name in ("finding", "server", "hop", "who", "advice")] == ["capture", *[None] * 4]
    assert (first["streams"], first["frames"], first["count"], first["evidence"]) == ([], [], 0, "1 thing")


def test_what_findings_explain_of_a_wait_is_its_union_without_consequences() -> None:
    tables = world()
    rules = [rule("a", (0, 0, 150, 350)), rule("b", (0, 0, 300, 400)), rule("c", (0, 0, 160, 200), because=("a",))]
    found(tables, *rules, rule("d", (0, 0, 700, 800)))
    explained = tables.fetch("SELECT phase, sum(explained_ns) FROM explained_waits GROUP BY phase ORDER BY phase")
    assert explained == [("request", 50), ("wait", 200)]
    tables.execute(FORGET)
    assert tables.fetch("SELECT table_name FROM duckdb_tables() WHERE temporary") == []


def test_the_sql_of_a_rule_is_wrong_in_a_line_of_its_file() -> None:
    wrong = rule("slow", sql="SELECT\n    missing")
    with pytest.raises(UsageError, match=r"^slow\.md:8: .*missing"):
        found(world(), wrong)
    with pytest.raises(UsageError, match=r"^b\.md:3: needs: .*numbre"):
        found(world(), rule("a", needs={"exchanges": "number = 0"}), rule("b", needs={"exchanges": "numbre = 0"}))
