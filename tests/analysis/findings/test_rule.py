"""The files of findings: what is wrong in one is told with its line, and in conchart's own nothing is wrong."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

import conchart
from conchart import Trace, UsageError
from conchart.analysis.findings import pricing as findings
from conchart.analysis.findings.evidence import EVIDENCE, evidence
from conchart.analysis.findings.pricing import advice, find
from conchart.analysis.findings.rule import Fix, Rule, chosen_thresholds, load_rules, parse_rule, thresholds
from conchart.analysis.waits import UsersWaits
from conchart.labels.filling import fill
from conchart.store.schema import TABLES
from conchart.store.sql import with_values
from conchart.store.steps import Steps
from conchart.store.tables import Tables
from tests.conftest import ON_ALL, ROOT, is_sample, places_of

RULES = load_rules()
IDS = [rule.name for rule in RULES]
EXAMPLES = ROOT / "tests/findings/rules"
CAPTURE = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"
ALWAYS = {"count", "cost_ns", "critical_ns", "each_ns"}
COLUMNS = {"server_ip", "server_port", "client_ip", "delays", "frames", "side", "confidence", "facts"}
DELAYS = "STRUCT(stream INTEGER, exchange INTEGER, start_at BIGINT, end_at BIGINT)[]"
WHOLE = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?")


@pytest.fixture(scope="module")
def gathered() -> Iterator[Trace]:
    """A capture with all that rules read."""
    with conchart.read(CAPTURE) as trace:
        for table in TABLES:
            trace.sql(f"FROM {table.name}")
        evidence(trace, chosen_thresholds({})).provide(EVIDENCE)
        yield trace


def columns_of(trace: Trace, rule: Rule) -> dict[str, duckdb.sqltypes.DuckDBPyType]:
    """Give the columns that the rule's SQL returns, with their types."""
    relation = trace.sql(with_values(rule.sql.rstrip("\n ;"), chosen_thresholds({})))
    return dict(zip(relation.columns, relation.types, strict=True))


@pytest.mark.parametrize("rule", RULES, ids=IDS)
def test_the_sql_returns_what_is_documented(rule: Rule, gathered: Trace) -> None:
    columns = columns_of(gathered, rule)
    assert {"facts"} <= columns.keys() <= COLUMNS
    if rule.severity == "quality":
        return  # What is wrong with the capture delays nobody.
    assert "delays" in columns
    assert rule.about != "server" or {"server_ip", "server_port"} <= columns.keys()
    assert rule.about != "client" or "client_ip" in columns
    ((_, one),) = columns["delays"].children
    assert isinstance(one, duckdb.sqltypes.DuckDBPyType)
    fields = dict(one.children)
    assert fields.keys() == {"stream", "exchange", "start_at", "end_at"}
    gathered.sql(f"SELECT NULL::{columns['delays']}::{DELAYS}")


@pytest.mark.parametrize("rule", RULES, ids=IDS)
def test_its_texts_name_facts_that_the_sql_returns_in_the_right_way(rule: Rule, gathered: Trace) -> None:
    facts = {name: str(kind) for name, kind in columns_of(gathered, rule)["facts"].children}
    for name, noun in re.findall(r"\{(\w+)(?::([^}]*))?\}", rule.seen + rule.who):
        assert name in facts.keys() | ALWAYS, f"{rule.path}:{rule.lines['seen']}: {name}"
        if name in facts and (noun or name.endswith("_ns")):
            assert WHOLE.fullmatch(facts[name]) or facts[name] == "DOUBLE", f"{name} is {facts[name]}"
    assert facts.keys() - ALWAYS <= rule.facts, f"{rule.path}: facts that nothing names"


@pytest.mark.parametrize("rule", RULES, ids=IDS)
def test_what_a_rule_refers_to_exists(rule: Rule) -> None:
    for case in (*rule.fault, *rule.clean):
        folder = ROOT / "captures" / case
        assert [*folder.glob("input.pcap*"), *places_of(folder)], f"{rule.path}: no capture {case}"
    assert rule.fault, f"{rule.path}: no capture shows it"
    assert rule.clean, f"{rule.path}: no capture is clean of it"
    assert set(rule.because) <= set(IDS) - {rule.name}
    assert set(rule.implies) <= set(IDS) - {rule.name}
    assert broken_links(ROOT / rule.path) == []


def broken_links(file: Path) -> list[str]:
    """Give each link of a page that leads nowhere, with its line."""
    broken = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            path, _, _ = target.partition("#")
            if path and not target.startswith("https://") and not (file.parent / path).exists():
                broken.append(f"{file}:{number}: no file {target}")
    return broken


def test_a_link_to_nowhere_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\n[here](a.md#a), [x](https://example.com),\n[there](b.md)\n")
    assert broken_links(tmp_path / "a.md") == [f"{tmp_path / 'a.md'}:4: no file b.md"]


@pytest.mark.parametrize("rule", RULES, ids=IDS)
def test_a_page_is_worth_reading(rule: Rule) -> None:
    title, *rest = rule.page.split("\n")
    assert title == f"# {rule.title}"
    assert not rule.title.endswith(".")
    assert any(line.strip() for line in rest), "prose"
    assert max(map(len, rule.page.split("\n"))) <= 200
    for fix in rule.fixes:
        assert len(fix.line) <= 320
        assert "\n" not in fix.line


@pytest.mark.parametrize("rule", RULES, ids=IDS)
def test_a_fix_can_be_followed_as_it_stands(rule: Rule) -> None:
    for fix in rule.fixes:
        assert not re.match(r"(?i)(no|not|without) ", fix.line), fix.line
        assert not re.search(r"-[iw] [A-Z]+\b", fix.line), fix.line
        # What is so by itself is nothing to change.
        assert not re.search(r"\b(the|are|is the) default\b", fix.line), fix.line


@pytest.mark.parametrize("rule", RULES, ids=IDS)
def test_each_end_has_advice_that_is_true_of_any_software(rule: Rule) -> None:
    for at in {fix.at for fix in rule.fixes}:
        of_end = [fix for fix in rule.fixes if fix.at == at]
        assert of_end[0].product is None, f"{rule.path}: {at}: the general line comes first"
        first = (advice(rule.fixes, {}) or "").split("\n")[0]
        assert first == rule.fixes[0].line


def test_envoy_has_a_line_wherever_nginx_has_one_and_its_configuration_too() -> None:
    without = {
        (rule.name, fix.at)
        for rule in RULES
        for fix in rule.fixes
        if fix.product == "nginx" and not any(other.product == "Envoy" and other.at == fix.at for other in rule.fixes)
    }
    # It always sets TCP_NODELAY; it takes early data over QUIC alone; it passes pieces on as they come. Its lines for
    # QUIC handshakes, clients that move, and what its log does not count are the general ones.
    assert without == {
        ("nagle-delayed-ack", "server"), ("nagle-delayed-ack", "client"),
        ("early-data-rejected", "server"), ("early-data-unused", "server"), ("sender-stalls", "server"),
        ("quic-amplification", "server"), ("quic-retry-cost", "server"), ("migration-stall", "server"),
        ("log-hides-setup", "server"), ("log-hides-transfer", "server"),
    }  # fmt: skip


def test_every_threshold_is_explained_and_used() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "conchart/analysis").rglob("*.py"))
    texts = sources + "".join(rule.sql for rule in RULES)
    for name, threshold in thresholds().items():
        assert threshold.means, name
        assert re.search(rf"\${name}\b|\[\"{name}\"\]", texts), f"{name} is used nowhere"
    for rule in RULES:
        unknown = set(re.findall(r"\$(\w+)", rule.sql)) - thresholds().keys()
        assert not unknown, f"{rule.path}:{rule.sql_line}: no threshold {unknown}"


GOOD = (EXAMPLES / "slow-opening.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("good", "bad", "line", "words"),
    [
        ("---\n", "", 1, "a finding begins with front matter between two lines of ---"),
        ("title:", "titel:", 2, "nothing is called titel"),
        ("title: ", "title: [", 3, ".*expected ',' or ']'"),
        ("about: server\n", "", 1, "it has no 'about'"),
        ("about: server", "about: sevrer", 3, "about is one of server, client, capture, not 'sevrer'"),
        ("needs: {asked: true}", "needs: [asked]", 4, "needs has the form table: condition"),
        ("needs: {asked: true}", "needs: {asked: 1}", 4, "needs has the form table: condition"),
        ("needs: {asked: true}", "needs: {asked: number > $many}", 4, "needs: no threshold many"),
        ("needs: {asked: true}", "severity: bad", 4, "severity is one of cost, note, failure, quality, not 'bad'"),
        ("why: Somebody", "why: 1\nshape: Somebody", 7, "why is text"),
        ("keepalive_timeout 75s;", "keepalive: 75s", 10, "."),
        ("product: nginx", "prodct: nginx", 10, "a fix: nothing is called prodct"),
        ("product: nginx", 'product: nginx, versions: "1.x"', 10, "a fix: cannot read the version '1.x'"),
        ("at: client", "at: proxy", 11, "a fix: at must be server or client, not 'proxy'"),
        ("{at: client, line: keep connections}", "keep connections", 11, "a fix: it has the form"),
        (", line: keep connections", "", 11, "a fix: it has no 'line'"),
        ("```sql", "```", 13, "a finding needs exactly one ```sql block, not 0"),
        ("## Detect", "```sql\nSELECT 1\n```\n", 13, "a finding needs exactly one ```sql block, not 2"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_line(good: str, bad: str, line: int, words: str) -> None:
    assert good in GOOD
    with pytest.raises(UsageError, match=rf"^x\.md:{line}: {words}"):
        parse_rule("x.md", GOOD.replace(good, bad, 1))


@pytest.mark.parametrize("key", ["because", "implies"])
def test_the_name_of_no_finding_is_told_with_its_line(key: str, tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text(GOOD.replace("needs:", f"{key}: [theirs]\nneeds:", 1))
    with pytest.raises(UsageError, match=rf"mine\.md:4: {key}: no finding theirs"):
        load_rules([tmp_path])


@pytest.mark.parametrize(
    ("good", "bad", "line", "words"),
    [
        ("FROM setups", "FROM setup", 23, "Table with name setup does not exist"),
        ("list(stream + 1 ", "list(strem + 1 ", 22, '"strem" not found'),
        ("$reuse_least", "$reuse_leats", 20, "reuse_leats"),
        ("{'opened': count(*)", "{'opened' count(*)", 22, "syntax error"),
        (" AS facts", " AS fact", 20, '"facts" in REPLACE list'),
        ("'who': 'the client ' || client_ip", "'who': error(client_ip)", 20, "10.77"),
    ],
)
def test_wrong_sql_is_told_with_its_line(good: str, bad: str, line: int, words: str, tmp_path: Path) -> None:
    assert good in GOOD
    (tmp_path / "mine.md").write_text(GOOD.replace(good, bad, 1))
    with conchart.read(CAPTURE, findings=[tmp_path]) as trace:
        for _ in range(2):  # who asks again is told again
            with pytest.raises(UsageError, match=rf"(?s)mine\.md:{line}: .*(?:{words})"):
                trace.provide("findings")


def test_adding_a_finding_is_adding_a_file(tmp_path: Path) -> None:
    (tmp_path / "slow-opening.md").write_text(GOOD)
    with conchart.read(CAPTURE, findings=[tmp_path]) as trace:
        mine = "FROM findings WHERE finding = 'slow-opening' AND server = 'shop.example'"
        row = trace.sql(f"SELECT severity, streams, count, evidence, who {mine}").fetchone()
        (cost,) = trace.sql(f"SELECT critical_ns {mine}").fetchall()
        # Between the SYN and the ClientHello the connection idles for a moment, and nobody waits.
        (paid,) = trace.sql(
            "SELECT sum(end_at - start_at) FROM phases SEMI JOIN handshakes USING (stream) WHERE kind IN ('syn', 'tls')"
        ).fetchall()
    assert row == ("serious", [0, 2, 4], 3, "3 connections opened", "the client 10.77.1.10")
    assert cost == paid
    with conchart.read(CAPTURE, findings=[tmp_path], thresholds={"reuse_least": 100}) as trace:
        assert trace.sql("SELECT * FROM findings WHERE finding = 'slow-opening'").fetchall() == []


def test_a_file_of_the_same_name_replaces_a_finding(tmp_path: Path) -> None:
    (tmp_path / "backend-no-keepalive.md").write_text(GOOD)
    (mine,) = [rule for rule in load_rules([tmp_path]) if rule.name == "backend-no-keepalive"]
    assert mine.title == "Opening a connection takes time"
    assert len(load_rules([tmp_path])) == len(RULES)


def test_a_folder_without_findings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no findings in"):
        load_rules([tmp_path])
    (tmp_path / "latin.md").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="cannot read findings in"):
        load_rules([tmp_path])


@pytest.mark.parametrize(
    ("product", "versions", "software", "suits"),
    [
        ("nginx", None, "nginx/1.22.1", True),
        ("nginx", None, "Apache/2.4.66 (Debian)", False),
        ("nginx", "<1.29.7", "nginx/1.29.6", True),
        ("nginx", "<1.29.7", "nginx/1.29.7", False),
        ("nginx", "<1.29.7", "nginx/1.9.0", True),
        ("nginx", ">=1.9, <1.29.7", "nginx/1.30", False),
        ("nginx", ">=1.9, <1.29.7", "nginx/1.8.1", False),
        ("nginx", ">=1.9", "nginx/1.9.0", True),
        ("nginx", "=1.9", "nginx/1.9.0", True),
        ("nginx", "<=1.9", "nginx/1.9.1", False),
        ("nginx", ">1.9", "nginx", True),
        ("Apache", ">=2.4", "Apache/2.4.66 (Debian) OpenSSL/3.5.4", True),
        ("OpenSSL", "<3", "Apache/2.4.66 (Debian) OpenSSL/3.5.4", False),
        ("Go", None, "Go-http-client/1.1", True),
        ("Go", None, "Google-Cloud", False),
        ("curl", ">=8", "curl/7.88.1", False),
        (None, None, "nginx/1.22.1", False),
    ],
)
def test_a_fix_is_for_a_product_and_its_versions(
    product: str | None, versions: str | None, software: str, suits: bool
) -> None:
    assert Fix(line="x", product=product, versions=versions).suits(software) is suits


FIXES = (
    Fix(line="old", product="nginx", versions="<1.29.7"),
    Fix(line="new", product="nginx", versions=">=1.29.7"),
    Fix(line="anybody"),
    Fix(line="reuse", product="Go", at="client"),
    Fix(line="pool", product="Java", at="client"),
    Fix(line="somebody", at="client"),
)


@pytest.mark.parametrize(
    ("server", "client", "lines"),
    [
        ("nginx/1.22.1", "Go-http-client/1.1", ["nginx <1.29.7: old", "Go: reuse"]),
        ("nginx/1.29.7", None, ["nginx >=1.29.7: new", "somebody", "Go: reuse", "Java: pool"]),
        ("Caddy", "Java/21", ["Java: pool", "anybody"]),
        ("Caddy", "curl/8", ["anybody", "somebody"]),
        (
            None,
            None,
            ["anybody", "somebody", "nginx <1.29.7: old", "nginx >=1.29.7: new", "Go: reuse", "Java: pool"],
        ),
    ],
)
def test_the_advice_is_for_the_software_at_hand(server: str | None, client: str | None, lines: list[str]) -> None:
    assert advice(FIXES, {"server": server, "client": client}) == "\n".join(lines)
    assert advice((), {"server": server, "client": client}) is None


def test_facts_are_written_as_people_read_them() -> None:
    facts = {"n": 1, "many": 1234, "gap_ns": 40_000_000, "name": "a\x1b[31m", "share": 0.5}
    assert fill("{n:entry|entries}, {many:entry|entries}", facts) == "1 entry, 1\u2009234 entries"
    assert fill("{gap_ns} by {name} of {share}", facts) == "40.0 ms by a\ufffd[31m of 0.5"


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{n} failed; {no} were silent", "1 failed"),
        ("{no} were silent; {n} failed", "1 failed"),
        ("{n} failed, the longest {gap_ns}: {no}", "1 failed, the longest 40.0 ms"),
        ("{n} failed, the longest {no}: {n}, later", "1 failed: 1, later"),
        ("most often {n} ({no})", "most often 1"),
        ("{n} late ({gap_ns}, {no} at most), {n} early", "1 early"),
        ("{no} of {n}", ""),
    ],
)
def test_what_is_not_known_is_left_out_with_its_clause(template: str, text: str) -> None:
    assert fill(template, {"n": 1, "gap_ns": 40_000_000, "no": None}) == text


def test_a_rule_that_needs_what_a_capture_has_none_of_is_not_asked(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text(GOOD.replace("FROM setups", "FROM nowhere"))
    with conchart.read(ROOT / "captures/crafted/refused/input.pcap", findings=[tmp_path]) as trace:
        assert trace.sql("FROM findings WHERE finding = 'mine'").fetchall() == []


@pytest.mark.parametrize(
    ("needs", "words"),
    [
        ("{nothing: true}", "Table with name nothing does not exist"),
        ("{asked: numbre > 1}", 'column "numbre" not found'),
        ("{asked: number >}", "syntax error"),
    ],
)
def test_a_need_that_is_wrong_is_told_with_its_line(needs: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text(GOOD.replace("{asked: true}", needs))
    with (
        conchart.read(CAPTURE, findings=[tmp_path]) as trace,
        pytest.raises(UsageError, match=rf"mine\.md:4: needs: (?s:.*){words}"),
    ):
        trace.provide("findings")


@pytest.mark.parametrize(
    "capture",
    sorted({folder for rule in RULES for folder in rule.fault if ON_ALL or is_sample(folder, 12)}),
)
@pytest.mark.thorough
def test_of_what_is_not_asked_nothing_would_be_found(capture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    skipped: set[str] = set()

    def ask_all(tables: Tables, steps: Steps, rules: tuple[Rule, ...], values: dict[str, float]) -> list[Rule]:
        skipped.update(rule.name for rule in rules)
        skipped.difference_update(rule.name for rule in worth_asking(tables, steps, rules, values))
        return list(rules)

    worth_asking = findings._worth_asking
    monkeypatch.setattr(findings, "_worth_asking", ask_all)
    folder = ROOT / "captures" / capture
    places = places_of(folder)
    with conchart.read(*([] if places else [folder / "input.pcap"]), places=places) as trace:
        found = {name for (name,) in trace.sql("SELECT finding FROM findings").fetchall()}
    assert skipped
    assert not found & skipped


SHAPES = ROOT / "docs/reading-the-chart.md"
BEGIN, END = "--update-golden writes it. -->\n", "<!-- End. -->"


def shapes(rules: tuple[Rule, ...] | list[SimpleNamespace]) -> str:
    """Give the table of what findings look like."""
    rows = [f"| {r.shape} | {r.title} | [{r.name}](../{r.path}) |" for r in rules if r.shape]
    return (
        "\n".join(["| what you see | what it often is | finding |", "|---|---|---|", *sorted(rows), ""]) if rows else ""
    )


def test_the_shapes_in_the_documents_are_those_of_the_files(pytestconfig: pytest.Config) -> None:
    text = SHAPES.read_text(encoding="utf-8")
    begin = text.index(BEGIN) + len(BEGIN)
    end = text.index(END)
    if pytestconfig.getoption("--update-golden"):
        text = text[:begin] + shapes(RULES) + text[end:]
        SHAPES.write_text(text, encoding="utf-8")
        end = text.index(END)
    assert text[begin:end] == shapes(RULES)


def test_a_finding_without_a_shape_is_no_row() -> None:
    one = SimpleNamespace(name="b", title="B is so", shape="long T", path="conchart/analysis/findings/rules/b.md")
    other = SimpleNamespace(name="c", title="C is so", shape="", path="conchart/analysis/findings/rules/c.md")
    assert shapes([one, other]).splitlines()[2:] == [
        "| long T | B is so | [b](../conchart/analysis/findings/rules/b.md) |"
    ]


@pytest.mark.parametrize(
    ("front", "backend", "lines"),
    [
        ("nginx/1.22.1", "Apache/2.4.66", ["nginx: pool"]),
        ("nginx/1.22.1", None, ["nginx: pool"]),
        (None, "Apache/2.4.66", ["nginx: pool", "Apache: balance"]),
        ("Apache/2.4.66", "Apache/2.4.66", ["nginx: pool", "Apache: balance"]),
    ],
)
def test_a_proxy_is_what_its_front_says_unless_its_backend_says_that(
    front: str | None, backend: str | None, lines: list[str]
) -> None:
    nginx, apache = Fix(line="pool", product="nginx", at="client"), Fix(line="balance", product="Apache", at="client")
    rule = replace(parse_rule("x.md", GOOD), fixes=(nginx, apache))
    with conchart.read(CAPTURE) as trace:
        trace.execute("DELETE FROM findings")
        trace.execute(
            "UPDATE exchanges SET server_software = CASE WHEN stream % 2 = 0 THEN $front ELSE $backend END",
            {"front": front, "backend": backend},
        )
        find(trace, [rule], chosen_thresholds({}), UsersWaits(trace, chosen_thresholds({})))
        ((advised,),) = trace.sql("SELECT advice FROM findings WHERE hop = 'backend'").fetchall()
    assert advised.split("\n") == lines


def nodes(tree: object) -> Iterator[dict[str, Any]]:
    """Walk DuckDB's tree of a statement."""
    if isinstance(tree, dict):
        yield tree
    for value in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from nodes(value)


def sources(tree: dict[str, Any]) -> list[str]:
    """Name the tables that a FROM clause joins."""
    return [node["table_name"] for node in nodes(tree) if node.get("type") == "BASE_TABLE"]


@pytest.mark.parametrize("rule", RULES, ids=IDS)
def test_no_column_is_hidden_by_another_of_its_name(rule: Rule, gathered: Trace) -> None:
    """Of ``SELECT setups.*, … AS ended_by``, whoever selects from it gets the one in ``setups``."""
    columns = {
        table: {name for (name,) in gathered.sql(f"SELECT column_name FROM (DESCRIBE {table})").fetchall()}
        for (table,) in gathered.sql(
            "SELECT table_name FROM duckdb_tables() UNION SELECT view_name FROM duckdb_views() WHERE NOT internal"
        ).fetchall()
    }
    # A parameter in place of its value would do as well: the tree is all that is wanted.
    sql = re.sub(r"\$\w+", "1", rule.sql.rstrip("\n ;"))
    ((text,),) = gathered.sql("SELECT json_serialize_sql($sql)", {"sql": sql}).fetchall()
    for node in nodes(json.loads(text)):
        if node.get("type") != "SELECT_NODE":
            continue
        chosen = node["select_list"]
        for star in (one for one in chosen if one["class"] == "STAR"):
            tables = [star["relation_name"]] if star["relation_name"] else sources(node["from_table"])
            here = set().union(*(columns.get(table, set()) for table in tables))
            here -= {name if isinstance(name, str) else name["column"] for name in star["exclude_list"]}
            named = {one["alias"] or one.get("column_names", [""])[-1] for one in chosen if one is not star}
            replaced = {one["key"] if isinstance(one, dict) else one for one in star["replace_list"]}
            assert named & here <= replaced, rule.path


BY_EQUALITY = {"handshake-flight-loss", "slow-start-limited", "syn-retransmission"}
"""Rules with a subquery about the same connection or server: DuckDB hashes that."""


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.name not in BY_EQUALITY], ids=lambda rule: rule.name)
def test_no_row_is_compared_with_every_row_of_another_table(rule: Rule, gathered: Trace) -> None:
    """``x NOT IN (SELECT … WHERE start_at < hello_at)`` reads a column from outside: N rows times M, and 4 GB."""
    ((_, plan),) = gathered.fetch(f"EXPLAIN {with_values(rule.sql, chosen_thresholds({}))}")
    assert "DELIM_JOIN" not in plan, "join the other table by the connection, with the first of its instants"


@pytest.mark.parametrize("rule", RULES, ids=IDS)
def test_a_rule_says_what_it_reads_of_openings(rule: Rule) -> None:
    """Connections that are older than the capture have none of this."""
    text = " ".join((rule.sql, *rule.needs, *rule.needs.values()))
    reads = re.search(r"\b(setups|syn_at|syn_ack_at|ack_at|accepted_at|syn_retransmits|setup_ns)\b|syn-rto", text)
    assert (rule.opening != "none") == bool(reads), rule.path
