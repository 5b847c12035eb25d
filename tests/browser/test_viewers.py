"""HAR and trace events as Chromium's own DevTools import them: its modules, which the browser has on board."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import WebDriverException

import conchart
from conchart import Trace
from tests.conftest import ROOT

CASES = (
    "hops/tiers-beside-16",
    "hops/h2-nginx-keys-16",
    "hops/retries-16",
    "multiplexed/go-nginx-big-uploads",
    "reverse-proxy/https-no-keepalive",
    "udp/dns-before-http",
)

HAR = """
const { HARFormat, Importer } = await import("devtools://devtools/bundled/models/har/har.js");
const log = new HARFormat.HARRoot(JSON.parse(text)).log;
done(Importer.Importer.requestsFromHARLog(log).map((request) => ({
    url: request.url(), method: request.requestMethod, status: request.statusCode, ip: request.remoteAddress(),
    start: request.startTime, end: request.endTime, bytes: request.transferSize,
    connect: request.timing.connectEnd - request.timing.connectStart,
    wait: request.timing.receiveHeadersEnd - request.timing.sendEnd,
})));
"""
EVENTS = """
const { TraceModel } = await import("devtools://devtools/bundled/models/trace/trace.js");
const model = TraceModel.Model.createWithAllHandlers();
await model.parse(JSON.parse(text).traceEvents, {});
const { data } = model.parsedTrace(0);
const slices = [], depths = [], threads = [];
for (const [pid, { threads: lanes }] of data.Renderer.processes) {
    for (const [tid, lane] of lanes) {
        threads.push([pid, tid, lane.name]);
        for (const { cat, name, args } of lane.entries) slices.push([cat, name, args.stream, args.duration_ns]);
        const descend = (node) => { depths.push(node.depth); node.children.forEach(descend); };
        lane.tree.roots.forEach(descend);
    }
}
const processes = [...data.Meta.processNames].map(([pid, event]) => [pid, event.args.name]);
done({ slices, depths, threads, processes, flows: data.Flows.flows.map((flow) => flow.map((end) => end.args)) });
"""


@pytest.fixture(scope="module")
def devtools(chromium: webdriver.Chrome) -> webdriver.Chrome:
    """DevTools as a page: its modules can be imported there."""
    try:
        chromium.get("devtools://devtools/bundled/devtools_app.html")
    except WebDriverException:
        pytest.skip("this browser has no DevTools on board")
    chromium.set_script_timeout(60)
    return chromium


@pytest.fixture(params=CASES)
def trace(request: pytest.FixtureRequest) -> Iterator[Trace]:
    case = ROOT / "captures" / request.param
    keys = case / "keys.log"
    with conchart.read(case / "input.pcap", keylog=[keys] if keys.exists() else []) as trace:
        yield trace


def imported(devtools: webdriver.Chrome, script: str, path: Path) -> Any:  # noqa: ANN401  (what the script gives)
    """Let a script import a file; what it throws fails the test."""
    wrapped = f"const [text, done] = arguments; (async () => {{ {script} }})().catch((error) => done(error.stack));"
    result = devtools.execute_async_script(wrapped, path.read_text(encoding="utf-8"))
    assert not isinstance(result, str), result
    return result


def test_the_network_panel_imports_every_request(devtools: webdriver.Chrome, trace: Trace, tmp_path: Path) -> None:
    trace.write(tmp_path / "out.har")
    requests = imported(devtools, HAR, tmp_path / "out.har")
    expected = trace.sql(
        """
        SELECT coalesce(method, 'unknown'), coalesce(status, 0), coalesce(response_bytes, 0), round(wait_ns / 1e6, 3)
        FROM exchanges WHERE protocol IN ('http/1.0', 'http/1.1', 'h2', 'tls') AND response_at IS NOT NULL
        """
    ).fetchall()
    found = [(one["method"], one["status"], one["bytes"], round(one["wait"], 3)) for one in requests]
    assert Counter(found) >= Counter(expected)
    ((count,),) = trace.sql(
        "SELECT count(*) FROM exchanges WHERE protocol IN ('http/1.0', 'http/1.1', 'h2', 'tls')"
    ).fetchall()
    assert len(requests) == count > 0
    assert all(one["url"].startswith(("http://", "https://")) and one["end"] >= one["start"] for one in requests)


def test_the_performance_panel_imports_every_slice(devtools: webdriver.Chrome, trace: Trace, tmp_path: Path) -> None:
    trace.write(tmp_path / "out.perfetto.json")
    result = imported(devtools, EVENTS, tmp_path / "out.perfetto.json")
    phases = trace.sql("SELECT 'phase', kind, stream, end_at - start_at FROM phases").fetchall()
    slices = [tuple(one) for one in result["slices"] if one[0] == "phase"]
    assert Counter(slices) == Counter(phases)
    ((connections, exchanges, links),) = trace.sql(
        "SELECT (SELECT count(*) FROM connections), (SELECT count(*) FROM exchanges), (SELECT count(*) FROM links)"
    ).fetchall()
    counts = Counter(cat for cat, *_ in result["slices"])
    assert (counts["connection"], counts["exchange"]) == (connections, exchanges)
    assert len(result["depths"]) == len(result["slices"]), "nothing was dropped where slices overlap"
    assert max(result["depths"]) <= 2
    ((servers,),) = trace.sql("SELECT count(*) FROM servers").fetchall()
    assert len(result["processes"]) == servers
    assert all(name.startswith("connections ") for _, _, name in result["threads"])
    assert len(result["flows"]) == links
