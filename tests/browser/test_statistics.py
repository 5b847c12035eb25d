"""What sums up the connections shown: a stretch of time, the capture over time, distributions, as SQL has them."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

import conchart
from conchart.labels.stalls import COLOURS, DETAIL, stall_kind
from conchart.outputs.page.page import write_html
from conchart.store.tables import Tables
from tests.browser.conftest import Opened
from tests.browser.test_page import RANGE, wait_for
from tests.charts.story import MS, START_AT, Story, many, reverse_proxy
from tests.charts.test_page import HOSTILE, hostile_story
from tests.conftest import ROOT, TellTrace

pytestmark = pytest.mark.timeout(180)  # a browser on a busy machine

Look = Callable[[Tables], Opened]

UNITS = {"ns": 1, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
SERIES = "return document.getElementById('series').data"
UNFOLD = "for (const id of ['over-time', 'distributions']) document.getElementById(id).open = true"


@pytest.fixture
def look(chromium: webdriver.Chrome, tmp_path: Path) -> Look:
    def look_at(tables: Tables) -> Opened:
        path = tmp_path / "page.html"
        write_html(tables, path)
        page = Opened(chromium, path)
        page.run(UNFOLD)
        return page

    return look_at


def busy() -> Story:
    """Many connections, some of them stalled."""
    story = many(60)
    for stream in range(0, 60, 4):
        start = story.connections[stream]["opened_at"] - START_AT
        story.stall(stream, "nagle" if stream % 8 else "zero-window", start + 2 * MS, start + 9 * MS + stream)
    return story


def nanoseconds(text: str) -> int:
    """Read a time as the page writes it, all digits of it."""
    number, unit = re.sub(r"[\u2009]", "", text).split("\xa0")
    whole, _, rest = number.partition(".")
    digits = len(str(UNITS[unit])) - 1
    assert len(rest) == digits
    return int(whole + rest)


def measure(page: Opened, start: str, end: str) -> None:
    page.run("document.getElementById('drag-measure').click()")
    for name, text in (("from", start), ("to", end)):
        field = page.driver.find_element(By.ID, f"range-{name}")
        field.clear()
        field.send_keys(text)
    page.driver.find_element(By.ID, "range-to").submit()
    wait_for(page, lambda: bool(page.driver.find_elements(By.ID, "range-length")))


def range_text(page: Opened) -> str:
    text: str = page.run("return document.getElementById('range-result').querySelector('p').textContent")
    return text.replace("\u2009", "").replace("\xa0", " ")


def phases_shown(page: Opened, row: int) -> dict[str, int]:
    """Of a row of the range, the time of each phase."""
    script = (
        "return [...document.querySelectorAll('#range-result tbody tr')[arguments[0]].querySelectorAll('[data-kind]')]"
        ".map((node) => [node.dataset.kind, node.textContent])"
    )
    return {kind: nanoseconds(text) for kind, text in page.run(script, row)}


def phases_in(tables: Tables, start: int, end: int, where: str = "true") -> dict[str, int]:
    """The time of each phase between two instants after the first packet; what was stalled is not called idle."""
    ((origin,),) = tables.sql("SELECT min(opened_at) FROM connections").fetchall()
    length = f"sum(least(end_at, {origin + end}) - greatest(start_at, {origin + start}))::BIGINT"
    within = (
        f"JOIN connections USING (stream) WHERE end_at > {origin + start} AND start_at < {origin + end} AND {where}"
    )
    found = Counter(dict(tables.sql(f"SELECT kind, {length} FROM phases {within} GROUP BY ALL").fetchall()))
    for kind, detail, ns in tables.sql(
        f"SELECT kind, {DETAIL}, {length} FROM phase_stalls {within} AND phase = 'idle' GROUP BY ALL"
    ).fetchall():
        found["idle"] -= ns
        found[stall_kind(kind, detail).word] += ns
    return {kind: ns for kind, ns in found.items() if ns}


def test_a_stretch_that_is_typed_says_what_sql_says(look: Look, trace_of: TellTrace) -> None:
    tables = trace_of(busy())
    page = look(tables)
    start, end = 40 * MS + 1, 300 * MS + 7
    measure(page, "40.000001 ms", "0.300000007 s")
    assert phases_shown(page, 0) == phases_in(tables, start, end)
    servers = tables.sql("SELECT server_ip FROM servers").fetchall()
    addresses = page.run("return [...document.querySelectorAll('#range-result tbody code')].map((c) => c.textContent)")
    assert sorted(address.partition(":")[0] for address in addresses) == sorted(ip for (ip,) in servers)
    for row, address in enumerate(addresses, start=1):
        where = f"server_ip = '{address.partition(':')[0]}'"
        assert phases_shown(page, row) == phases_in(tables, start, end, where)
    low, high = START_AT + start, START_AT + end
    ((opened, closed, alive, handshakes, requests),) = tables.sql(
        f"""SELECT count(*) FILTER (opened_at >= {low} AND opened_at < {high}),
            count(*) FILTER (closed_at > {low} AND closed_at <= {high}),
            count(*) FILTER (opened_at < {high} AND (closed_at > {low} OR opened_at >= {low})),
            (SELECT count(*) FROM handshakes WHERE hello_at >= {low} AND hello_at < {high}),
            (SELECT count(*) FROM exchanges WHERE request_at >= {low} AND request_at < {high}) FROM connections"""
    ).fetchall()
    assert range_text(page) == (
        f"Length 260.000006 ms: {alive} connections open, {opened} opened and {closed} closed in it; "
        f"{handshakes} handshakes and {requests} requests began."
    )
    stalls = page.run("return [...document.querySelectorAll('#range-result .stalls li')].map((li) => li.textContent)")
    expected = tables.sql(
        f"""SELECT sum(least(end_at, {high}) - greatest(start_at, {low}))::BIGINT AS ns, count(DISTINCT stream)
            FROM stalls WHERE end_at > {low} AND start_at < {high} GROUP BY kind ORDER BY ns DESC"""
    ).fetchall()
    found = [re.search(r": (.*?) on (\d+) connection", stall) for stall in stalls]
    assert [(nanoseconds(one[1]), int(one[2])) for one in found if one] == expected


def test_of_a_real_capture_the_whole_is_told_to_the_nanosecond(look: Look) -> None:
    with conchart.read(ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap") as tables:
        page = look(tables)
        measure(page, "0 s", "1000 s")
        ((length,),) = tables.sql("SELECT max(closed_at) - min(opened_at) FROM connections").fetchall()
        assert nanoseconds(page.run("return document.getElementById('range-length').textContent")) == length
        assert phases_shown(page, 0) == phases_in(tables, 0, length)


@pytest.mark.parametrize(
    ("capture", "word"),
    [
        ("reverse-proxy/https-slow-client", "deferred"),
        ("findings/gap-before-clienthello", "deferred"),
        ("reverse-proxy/https-no-keepalive", "held"),
    ],
)
def test_a_stretch_adds_up_to_what_users_waited(look: Look, capture: str, word: str) -> None:
    """Time between messages in which somebody had something to send is waited for: drawn so, and measured so."""
    with conchart.read(ROOT / f"captures/{capture}/input.pcap") as tables:
        page = look(tables)
        measure(page, "0 s", "1000 s")
        drawn = page.run("return document.getElementById('plot').data.map((trace) => [trace.name, trace.fillcolor])")
        assert [word, COLOURS[word]] in drawn
        ((span,),) = tables.sql("SELECT max(closed_at) - min(opened_at) FROM connections").fetchall()
        servers = tables.sql("SELECT server_ip, server_port, waited_ns FROM servers WHERE waited_ns > 0").fetchall()
        first = 1 if len(servers) > 1 else 0
        shown = "return [...document.querySelectorAll('#range-result tbody tr')].map(row => row.lastChild.textContent)"
        assert sorted(nanoseconds(text) for text in page.run(shown)[first:]) == sorted(ns for *_, ns in servers)
        assert phases_shown(page, 0) == phases_in(tables, 0, span)
        assert phases_shown(page, 0)[word] > 0


def test_dragging_measures_once_it_is_asked_to_and_leaves_the_view(look: Look, trace_of: TellTrace) -> None:
    tables = trace_of(reverse_proxy())
    page = look(tables)
    whole = page.run(RANGE)
    panel = page.driver.find_element(By.ID, "range")
    assert not panel.is_displayed()
    page.driver.find_element(By.ID, "lanes").send_keys("m")
    wait_for(page, panel.is_displayed)
    assert page.run("return document.getElementById('drag-measure').checked")
    wait_for(page, lambda: page.run("return document.getElementById('plot')._fullLayout.dragmode") == "select")
    plot = page.driver.find_element(By.ID, "plot")
    page.run("arguments[0].scrollIntoView({block: 'center'})", plot)
    drag = ActionChains(page.driver, duration=80).move_to_element_with_offset(plot, -100, 30)
    drag.click_and_hold().move_by_offset(120, 0).move_by_offset(80, 0).release().perform()
    wait_for(page, lambda: bool(page.driver.find_elements(By.ID, "range-length")))
    start, end = (nanoseconds(page.run(f"return document.getElementById('range-{n}').value")) for n in ("from", "to"))
    width = page.run("return document.getElementById('plot')._fullLayout._size.w")
    assert end - start == pytest.approx((whole[1] - whole[0]) * 200 / width, rel=0.03)
    assert phases_shown(page, 0) == phases_in(tables, start, end)
    assert page.run(RANGE) == whole
    page.driver.find_element(By.ID, "range-zoom").click()
    wait_for(page, lambda: page.run(RANGE) == [start, end])
    page.driver.find_element(By.ID, "lanes").send_keys("m")
    page.driver.find_element(By.ID, "range-clear").click()
    wait_for(page, lambda: not panel.is_displayed())
    assert page.console() == []


def test_what_is_no_time_is_refused(look: Look, trace_of: TellTrace) -> None:
    page = look(trace_of(reverse_proxy()))
    page.run("document.getElementById('drag-measure').click()")
    page.driver.find_element(By.ID, "range-from").send_keys("soon")
    page.driver.find_element(By.ID, "range-to").send_keys("20 ms")
    page.driver.find_element(By.ID, "range-to").submit()
    assert not page.run("return document.getElementById('range-from').checkValidity()")
    assert not page.driver.find_elements(By.ID, "range-length")


def test_a_filter_narrows_everything(look: Look, trace_of: TellTrace) -> None:
    tables = trace_of(busy())
    page = look(tables)
    measure(page, "0", "5 s")
    Select(page.driver.find_element(By.ID, "filter-server")).select_by_index(1)
    chosen = page.run("return document.getElementById('filter-server').selectedOptions[0].textContent")
    where = f"server_ip = '{chosen.partition(':')[0]}'"
    wait_for(page, lambda: phases_shown(page, 0) == phases_in(tables, 0, 5_000 * MS, where))
    ((count,),) = tables.sql(f"SELECT count(*) FROM connections WHERE {where}").fetchall()
    page.run("document.getElementById('series').scrollIntoView()")
    wait_for(page, lambda: len(page.run(SERIES) or ()) == 5)
    seconds = page.run("return document.getElementById('series').data[1].width") / 1e9
    wait_for(page, lambda: round(seconds * sum(page.run(SERIES)[1]["y"][:-1])) in {count - 1, count})
    page.run("document.getElementById('distribution').scrollIntoView()")
    wait_for(page, lambda: len(page.run("return [...document.querySelectorAll('#distribution-table tbody tr')]")) == 1)


def test_series_are_what_sql_counts(look: Look, trace_of: TellTrace) -> None:
    tables = trace_of(busy())
    page = look(tables)
    page.run("document.getElementById('series').scrollIntoView()")
    wait_for(page, lambda: len(page.run(SERIES) or ()) == 5)
    _, opened, handshakes, requests, waits = page.run(SERIES)
    length = opened["width"]
    assert str(int(length)).strip("0") in {"1", "2", "5"}
    for trace, table, instant in (
        (opened, "connections", "opened_at"),
        (handshakes, "handshakes", "hello_at"),
        (requests, "exchanges", "request_at"),
    ):
        rows = tables.sql(f"SELECT ({instant} - {START_AT}) // {length}, count(*) FROM {table} GROUP BY ALL").fetchall()
        counts = [int(text.split()[0]) for text in trace["customdata"]]
        assert {part: n for part, n in enumerate(counts) if n} == dict(rows)
    percentiles = tables.sql(
        f"""SELECT (request_at - {START_AT}) // {length}, quantile_disc(wait_ns, 0.95), count(*)
            FROM exchanges GROUP BY ALL"""
    ).fetchall()
    assert {part: ns for part, ns in enumerate(waits["y"]) if ns is not None} == {
        part: ns for part, ns, _ in percentiles
    }
    assert [waits["marker"]["opacity"][part] < 1 for part, *_ in percentiles] == [n < 20 for *_, n in percentiles]


def test_series_follow_the_lanes_and_lead_them(look: Look, trace_of: TellTrace) -> None:
    page = look(trace_of(busy()))
    page.run("document.getElementById('series').scrollIntoView({block: 'center'})")
    axis = "return document.getElementById('series')._fullLayout.xaxis.range.map(Number)"
    wait_for(page, lambda: len(page.run(SERIES) or ()) == 5)
    whole = page.run(RANGE)
    assert page.run(axis) == whole
    series = page.driver.find_element(By.ID, "series")
    drag = ActionChains(page.driver, duration=80).move_to_element_with_offset(series, 0, -30)
    drag.click_and_hold().move_by_offset(60, 0).move_by_offset(40, 0).release().perform()
    wait_for(page, lambda: page.run(RANGE) != whole)
    wait_for(page, lambda: page.run(axis) == page.run(RANGE))
    page.run("document.getElementById('zoom-reset').click()")
    wait_for(page, lambda: page.run(axis) == whole)
    assert page.console() == []


@pytest.mark.parametrize(
    ("measured", "query"),
    [
        ("wait", "SELECT server_ip, wait_ns AS ns FROM exchanges JOIN connections USING (stream)"),
        (
            "request",
            "SELECT server_ip, request_ns + wait_ns + transfer_ns AS ns FROM exchanges JOIN connections USING (stream)",
        ),
        ("handshake", "SELECT server_ip, ready_at - hello_at AS ns FROM handshakes JOIN connections USING (stream)"),
        ("connection", "SELECT server_ip, closed_at - opened_at AS ns FROM connections"),
        (
            "phase-transfer",
            """SELECT server_ip, end_at - start_at AS ns FROM phases JOIN connections USING (stream)
                WHERE kind = 'transfer'""",
        ),
    ],
)
def test_percentiles_are_those_of_sql(look: Look, trace_of: TellTrace, measured: str, query: str) -> None:
    tables = trace_of(busy())
    page = look(tables)
    page.run("document.getElementById('distribution').scrollIntoView()")
    Select(page.driver.find_element(By.ID, "distribution-measure")).select_by_value(measured)
    read = (
        "return [...document.querySelectorAll('#distribution-table tbody tr')].map((row) =>"
        " [row.cells[0].textContent, ...[...row.cells].slice(1).map((cell) => cell.title || cell.textContent)])"
    )
    rows = tables.sql(
        f"SELECT server_ip, count(ns), quantile_disc(ns, [0.5, 0.95, 0.99]), max(ns) FROM ({query}) GROUP BY ALL"
    ).fetchall()
    expected = {ip: [n, *ranks, most] for ip, n, ranks, most in rows}

    def shown() -> dict[str, list[int]]:
        return {name.partition(":")[0]: [int(n), *map(nanoseconds, times)] for name, n, *times in page.run(read)}

    wait_for(page, lambda: shown() == expected)
    curves = page.run("return document.getElementById('distribution').data.map((trace) => trace.y[trace.y.length - 1])")
    assert curves == [100] * len(expected)
    page.run("document.getElementById('distribution-histogram').click()")
    sums = "return document.getElementById('distribution').data.map((trace) => trace.y.reduce((a, b) => a + b, 0))"
    wait_for(page, lambda: sorted(page.run(sums)) == sorted(n for n, *_ in expected.values()))


def test_what_is_not_in_view_is_not_drawn(look: Look, trace_of: TellTrace) -> None:
    page = look(trace_of(busy()))
    drawn = "return ['series', 'distribution'].map((id) => Boolean(document.getElementById(id).data))"
    page.run("window.scrollTo(0, 0)")
    assert page.run(drawn) == [False, False]
    page.run("document.getElementById('series').scrollIntoView()")
    wait_for(page, lambda: page.run(drawn)[0])


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_are_shown_as_they_are(look: Look, trace_of: TellTrace, text: str) -> None:
    page = look(trace_of(hostile_story(text)))
    measure(page, "0", "10 ms")
    page.run("document.getElementById('distribution').scrollIntoView()")
    wait_for(page, lambda: bool(page.run("return document.getElementById('distribution').data")))
    odd = [f"#{part} {tag}" for part in ("range", "over-time", "distributions") for tag in ("script", "img", "iframe")]
    assert page.run("return document.querySelectorAll(arguments[0]).length", ", ".join(odd)) == 0
    assert page.console() == []
