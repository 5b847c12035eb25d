"""The page's scripts, as modules: that they can be joined, and what node, tsc and eslint say of them.

Node and what ``npm ci`` installs in this folder are tools of the tests alone; where they are missing, the tests that
need them are skipped. To install them: ``npm ci --prefix tests/scripts``.
"""

import json
import os
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from conchart import Trace, read
from conchart.analysis.sights import first_sights
from conchart.labels.filling import Fact
from conchart.labels.printable import endpoint, printable
from conchart.labels.stalls import STALLS
from conchart.outputs.options import DrawOptions
from conchart.outputs.page import comparison, page
from conchart.outputs.page.document import LOADING
from conchart.outputs.page.packed import Packer, compress_json, counted_from
from conchart.outputs.page.swimlanes import swimlanes
from conchart.outputs.pictures.picture_rows import clients_of
from conchart.reading.options import VIEWPOINTS
from conchart.report.facts import BRIEF, EXCHANGE, FACTS, HANDSHAKE, LINK, MESSAGES, PANEL, REQUEST, STALL, STALL_FRAMES
from conchart.report.report import Report
from conchart.report.rows import MAX_TEXT
from conchart.report.swimlanes import drawn_lanes
from tests.charts.unpacked import Page
from tests.conftest import CASES, ROOT, capture_of, empty_trace, name_of, sampled

HERE = Path(__file__).parent
SCRIPTS = ROOT / "conchart/outputs/page/scripts"
MODULES = sorted(path.stem for path in SCRIPTS.glob("*.js"))
PAGES = {"page": page.SCRIPTS, "places": page.SCRIPTS_OF_PLACES, "comparison": comparison.SCRIPTS}

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(not NODE, reason="no node on this machine")

_JOINABLE = re.compile(r'import \{ (\w+(?:, \w+)*) \} from "\./(\w+)\.js";')
_DECLARED = re.compile(r"^(?:export )?(?:async )?(?:function\*?|class|const|let) (.*)", re.MULTILINE)
_EXPORTED = re.compile(r"^export (?:async function|function|class|const) (\w+)", re.MULTILINE)


def source(module: str) -> str:
    return (SCRIPTS / f"{module}.js").read_text(encoding="utf-8")


def imports(module: str) -> dict[str, list[str]]:
    """Give the names that a module imports, by the module they come from."""
    found = _JOINABLE.findall(source(module))
    return {origin: names.split(", ") for names, origin in found}


def declared(module: str) -> list[str]:
    """Give the names at the top of a module: those of `const [a, { b: c }] = …`, too."""
    names = []
    for rest in _DECLARED.findall(source(module)):
        pattern = rest.partition(" = ")[0] if rest[0] in "[{" else re.split(r"\W", rest, maxsplit=1)[0]
        names += re.findall(r"(\w+)(?!\w|:)", pattern)
    return names


def installed(tool: str) -> str:
    """Give the path of a tool that npm installs; where it is not, skip."""
    path = HERE / "node_modules" / ".bin" / tool
    if not path.exists():
        pytest.skip(f"{tool} is not installed: npm ci --prefix tests/scripts")
    return str(path)


def run(command: list[str], **variables: str) -> None:
    """Run a tool at the root of the tree, and show what it says if it complains."""
    done = subprocess.run(command, cwd=ROOT, env=os.environ | variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_names_of_destructured_declarations_are_seen() -> None:
    assert {"model", "lanes", "choose"} <= set(declared("main"))


@pytest.mark.parametrize("module", MODULES)
def test_imports_are_of_the_form_that_is_joined(module: str) -> None:
    lines = source(module).splitlines()
    assert [line for line in lines if line.startswith("import") and not _JOINABLE.fullmatch(line)] == []
    assert [line for line in lines if line.startswith("export") and not _EXPORTED.match(line)] == []


@pytest.mark.parametrize("module", MODULES)
def test_what_is_imported_is_exported_there(module: str) -> None:
    for origin, names in imports(module).items():
        assert set(names) <= set(_EXPORTED.findall(source(origin))), f"{module} from {origin}"


@pytest.mark.parametrize("scripts", PAGES.values(), ids=PAGES)
def test_a_page_joins_all_that_its_modules_import_in_their_order(scripts: tuple[str, ...]) -> None:
    for place, module in enumerate(scripts):
        assert set(imports(module)) <= set(scripts[:place]), module


@pytest.mark.parametrize("scripts", PAGES.values(), ids=PAGES)
def test_names_are_unique_over_the_modules_that_a_page_joins(scripts: tuple[str, ...]) -> None:
    names = Counter(name for module in scripts for name in declared(module))
    assert {name for name, times in names.items() if times > 1} == set()


def test_every_module_is_of_some_page() -> None:
    assert {module for scripts in PAGES.values() for module in scripts} | {LOADING} == set(MODULES)


@needs_node
@pytest.mark.timeout(240)
def test_units(tmp_path: Path) -> None:
    packed, texts = tmp_path / "packed.json", tmp_path / "texts.json"
    packed.write_text(json.dumps(_packed()), encoding="utf-8")
    texts.write_text(json.dumps([*_numbers(), *_facts()]), encoding="utf-8")
    tests = sorted(str(test.relative_to(ROOT)) for test in HERE.glob("*.test.js"))
    run([str(NODE), "--test", *tests], CONCHART_PACKED=str(packed), CONCHART_TEXTS=str(texts))


@needs_node
@pytest.mark.timeout(240)
@pytest.mark.parametrize("case", sampled(CASES, 8), ids=name_of)
def test_the_page_works_out_what_python_does(case: Path, tmp_path: Path) -> None:
    """Times as the ends of connections saw them, and connections that share a lane."""
    seen = tmp_path / "seen.json"
    seen.write_text(json.dumps({name_of(case): _seen(capture_of(case))}), encoding="utf-8")
    run([str(NODE), str(HERE / "viewpoint.test.js")], CONCHART_SEEN=str(seen))


@needs_node
def test_types() -> None:
    run([installed("tsc"), "--project", str(HERE)])


@needs_node
def test_lint() -> None:
    run([installed("eslint"), "--config", str(HERE / "eslint.config.js"), "--max-warnings=0", str(SCRIPTS), str(HERE)])


QUERIES = {
    "numbers": """
        SELECT i::UTINYINT AS small, -i AS negative, i * 1_000_003 * 4_099 AS large, (i - 99) * 70_000_000_007 AS steps,
            1_700_000_000_000_000 + i * i AS rising, nullif(i % 7, 3) AS gaps, NULL::INTEGER AS nothing, 5 AS same,
            i % 2 = 0 AS truth, (i * 7_919) % 65_537 AS mixed, CASE WHEN i % 5 > 0 THEN -i * 4_294_967_297 END AS deep
        FROM range(255) AS t(i)""",
    "extremes": """
        SELECT * FROM (VALUES (0, -9_007_199_254_740_991, NULL), (4_294_967_296, 0, 2_147_483_648),
            (4_294_967_295, 9_007_199_254_740_991, -2_147_483_649)) AS t(a, b, c)""",
    "texts": r"""
        SELECT * FROM (VALUES ('', NULL, 'a'), ('</script>', 'x', 'a'), (NULL, 'ä€😀', 'b'), ('<!--', 'x', 'a'),
            (chr(8238) || 'evil' || chr(0), '"\', 'b')) AS t(a, b, c)""",
    "lanes": "SELECT * FROM (VALUES (7), (NULL), (9_000_000_000_000), (0), (1), (4)) AS t(opened)",
    "counted": f"""
        SELECT lane, a, {counted_from("a", "b", "b", "a")}, {counted_from("lanes.opened", "c", "c", "opened")}
        FROM (VALUES (0, 5, 7, NULL), (0, NULL, 3, 1), (2, 4, NULL, 9_000_000_000_001), (5, -8, 2_147_483_648, 0))
            AS t(lane, a, b, c)
        JOIN (VALUES (0, 7), (2, 9_000_000_000_000), (5, 4)) AS l(lane, opened) USING (lane) ORDER BY lane, b""",
    "laned": "SELECT * FROM (VALUES (0, 0), (0, 1), (2, 0), (5, 0), (5, 1)) AS t(lane, n)",
    "empty": "SELECT 1 AS number, 'x' AS word WHERE false",
}
"""Tables with what a page may hold: nothing, what is not known, negative, large, hostile."""


def _packed() -> dict[str, object]:
    packer = Packer()
    expected = {}
    with empty_trace() as trace:
        for name, query in QUERIES.items():
            packer.add(name, trace, query)
            relation = trace.sql(query)
            expected[name] = [
                dict(zip(relation.columns, map(_page_value, row), strict=True)) for row in relation.fetchall()
            ]
        expected["counted"] = [
            dict(zip(("lane", "a", "b", "c"), row, strict=True))
            for row in ((0, None, 3, 1), (0, 5, 7, None), (2, 4, None, 9_000_000_000_001), (5, -8, 2_147_483_648, 0))
        ]
    data = compress_json({"title": "blocks", "tables": packer.layouts})
    return {"title": "blocks", "data": data, "blocks": packer.blocks(), "expected": expected}


WITH_FACTS = (
    "messages/grpc",
    "messages/websocket",
    "handshakes/openssl-nginx-1.3-0rtt",
    "reverse-proxy/https",
    "stalls/nagle-request-far-client",
    "crafted/gap",
    "crafted/syn-retransmission",
    "crafted/reordering",
    "crafted/zero-window",
)
"""Captures that have each fact between them."""
OF_TABLES: dict[str, tuple[Fact, ...]] = {
    "lanes": (*PANEL, BRIEF),
    "handshakes": (HANDSHAKE,),
    "exchanges": (REQUEST, EXCHANGE, MESSAGES),
    "stalls": (STALL, STALL_FRAMES),
    "links": (LINK,),
    "packets": (FACTS["packet"],),
}


def _facts() -> Iterator[tuple[Fact, dict[str, Any], str]]:
    """Give the facts of real captures: declaration, row, and the text that Python writes."""
    for name in WITH_FACTS:
        with read(ROOT / "captures" / name / "input.pcap", packets=True) as trace:
            data = Page(page.render(trace)).data
        for table, declarations in OF_TABLES.items():
            for values in zip(*data[table].values(), strict=True):
                row = defaultdict(lambda: None, zip(data[table], values, strict=True))
                row |= _as_model_has_it(table, row)
                for fact in declarations:
                    columns = re.findall(r"\{(\w+)", "".join(fact.texts))
                    yield fact, {column: row[column] for column in columns}, fact.of(row, MAX_TEXT)


def _as_model_has_it(table: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Give what ``model.js`` adds to a row of a table, as far as facts need it."""
    if table == "lanes":
        ends = {side: endpoint(row[f"{side}_ip"], row[f"{side}_port"]) for side in ("client", "server")}
        return ends | {"retransmits": row["retransmits_client"], "stalled": "held 40.0 ms", "is_udp": False}
    more = asdict(STALLS[row["kind"]]) if table == "stalls" else {}
    return more | ({"confidence": row["confidence"] / 100} if row["confidence"] is not None else {})


def _numbers() -> Iterator[tuple[Fact, dict[str, Any], str]]:
    """Give numbers of any size in each unit."""
    fact = Fact("", ("{n:ns}", "{n:exact}", "{n:size}", "{n}", "{n:number}", "{n:packet}", "{n:flag}{n:ratio}"))
    for n in sorted({0, *(digit * 10**power + more for power in range(15) for digit in (1, 9) for more in (-1, 0, 1))}):
        yield fact, {"n": n}, fact.of({"n": n})


def _seen(path: Path) -> dict[str, object]:
    """Give the lanes of a capture, read as each viewpoint saw them, and which connections share one in a picture."""
    seen: dict[str, object] = {}
    for viewpoint in VIEWPOINTS:
        with read(path, packets=True, seen_from=viewpoint) as trace, first_sights(trace):
            lanes = swimlanes(trace, DrawOptions(packets=True))
            seen[viewpoint] = {"data": compress_json(lanes.data | {"findings": []}), "blocks": lanes.blocks}
            if viewpoint == "capture":
                seen["shared"] = _shared(trace)
    return seen


def _shared(trace: Trace) -> list[list[dict[str, object]]]:
    """Give by server and client the streams in each lane."""
    lanes = Report(trace).swimlanes.lanes
    with drawn_lanes(trace):
        streams = [stream for (stream,) in trace.fetch("SELECT stream FROM drawn ORDER BY lane")]
    servers = [[place for place, _ in same] for _, same in groupby(enumerate(lanes), key=lambda lane: lane[1].group)]
    return [
        [
            {"client": client.name, "tracks": [[streams[place] for place in track] for track in client.tracks]}
            for client in clients_of(lanes, places, share=True)
        ]
        for places in servers
    ]


def _page_value(value: bool | int | str | None) -> int | str | None:
    """What the page makes of a value: truth is 1 or 0, and texts can be shown."""
    if isinstance(value, bool):
        return int(value)
    return printable(value) if isinstance(value, str) else value
