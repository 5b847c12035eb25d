"""What stores were asked, by shape: exact values of captures of real servers, and how they are told."""

from collections.abc import Iterator

import pytest

from conchart import Trace, read
from conchart.outputs.terminal.queries import brief_queries, query_lines
from conchart.report import queries as module
from conchart.report.queries import Query, queries, stores
from conchart.report.report import Report
from tests.charts.story import MS, Story
from tests.conftest import ROOT, TellTrace

DATABASE = ("10.0.0.2", 5432)


@pytest.fixture(scope="module")
def repeated() -> Iterator[Trace]:
    with read(ROOT / "captures/findings/repeated-queries/input.pcap") as trace:
        yield trace


def ask(story: Story, *waits: int, port: int = 50_000, **exchange: object) -> None:
    """Ask the same on a connection of its own, with these waits in ms."""
    phases = [one for ms in waits for one in (("request", MS), ("wait", ms * MS), ("transfer", MS))]
    facts = {"protocol": "postgresql", "method": "Query", "status": 0, **exchange}
    story.connect(("10.0.0.1", port), DATABASE, 0, phases, exchange=facts)


def test_repeated_queries_to_the_nanosecond(repeated: Trace) -> None:
    lines, sold = queries(repeated)
    assert lines == Query(
        server_ip="10.98.2.30",
        server_port=5432,
        protocol="postgresql",
        shape="SELECT name, price FROM line WHERE sold = ? ORDER BY place",
        count=72,
        waits=72,
        total_ns=58_153_913,
        p50_ns=532_081,
        p95_ns=3_942_244,
        worst_ns=5_350_099,
        stream=1,
        exchange=58,
        frame=147,
        errors=0,
        fronts=6,
        linked=72,
        place=0,
        shapes=2,
    )
    assert (sold.shape, sold.count, sold.frame, sold.askers) == (
        "SELECT id, what FROM sold WHERE buyer = ? ORDER BY id",
        6,
        47,
        "6 requests, 1 each",
    )


def test_waits_add_up_and_the_worst_is_where_it_is_said_to_be(repeated: Trace) -> None:
    for query in queries(repeated):
        waits = [
            ns
            for (ns,) in repeated.fetch(
                "SELECT wait_ns FROM exchanges WHERE method IN ('Query', 'Execute') AND target = ? ORDER BY 1",
                [query.shape],
            )
        ]
        assert (query.count, query.total_ns, query.worst_ns) == (len(waits), sum(waits), waits[-1])
        assert query.p50_ns == waits[(len(waits) - 1) // 2]
        assert query.p95_ns == waits[-(-19 * len(waits) // 20) - 1]
        ((worst, frame),) = repeated.fetch(
            f"SELECT wait_ns, request_frame FROM exchanges WHERE stream = {query.stream} AND number = {query.exchange}"
        )
        assert (worst, frame) == (query.worst_ns, query.frame)


@pytest.mark.parametrize(
    ("store", "shape", "facts"),
    [
        ("redis", "SET product:?", "100 times, 12.4 ms in all, p50 120 µs, p95 133 µs, worst 133 µs (frame 54)"),
        ("redis", "BLPOP queue", "1 time, nothing to wait for"),
        ("redis", "NOSUCH", None),
        (
            "mysql",
            "INSERT INTO product VALUES (?, ...)",
            "3 times, 1.64 ms in all, p50 791 µs, p95 805 µs, worst 805 µs (frame 17), 2 errors",
        ),
        ("mysql", "Prepare: SELECT name FROM product WHERE id = ?", None),
        (
            "postgresql",
            "SELECT name FROM product WHERE id = ?",
            "22 times, 2.23 ms in all, p50 45.3 µs, p95 437 µs, worst 637 µs (frame 16)",
        ),
        ("postgresql", "Parse: SELECT name FROM product WHERE id = ?", "1 time, 412 µs (frame 78)"),
    ],
)
def test_shapes_of_each_store(store: str, shape: str, facts: str | None) -> None:
    with read(ROOT / f"captures/stores/{store}/input.pcap") as trace:
        (query,) = [one for one in queries(trace) if one.shape == shape]
    assert query.protocol == store
    assert facts is None or query.facts == facts
    assert (query.errors == 1) == (shape == "NOSUCH")


@pytest.mark.parametrize(
    ("store", "count", "shapes"), [("redis", 120, 20), ("mysql", 55, 25), ("postgresql", 35, 14), ("mongodb", 50, 21)]
)
def test_openings_and_what_is_never_answered_are_no_queries(store: str, count: int, shapes: int) -> None:
    with read(ROOT / f"captures/stores/{store}/input.pcap") as trace:
        (listed,) = stores(trace, most=3)
        assert not {"AUTH", "HELLO ?", "Startup", "Authenticate", "Quit", "SSLRequest", "saslStart admin"} & {
            query.shape for query in queries(trace)
        }
    assert (listed.count, listed.shapes, len(listed.queries)) == (count, shapes, 3)
    assert listed.rest == f"and {shapes - 3} more shapes"
    assert sum(query.count for query in listed.queries) < count


def test_a_capture_without_stores_groups_nothing(
    trace_of: TellTrace, proxy_story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "rows", None)  # nothing else asks for links
    trace = trace_of(proxy_story)
    assert Report(trace).queries(5) == []
    assert Report(trace).stores(5) == []
    assert list(query_lines(Report(trace), 100)) == []
    assert list(brief_queries(Report(trace), 100, 3)) == []


def test_equal_waits_name_the_first_query(trace_of: TellTrace) -> None:
    story = Story()
    ask(story, 3, 9, 9, target="SELECT ?")
    ask(story, 9, port=50_001, target="SELECT ?")
    story.capture()
    (query,) = queries(trace_of(story))
    assert (query.count, query.total_ns, query.p50_ns, query.worst_ns) == (4, 30 * MS, 9 * MS, 9 * MS)
    assert (query.stream, query.exchange) == (0, 1)


def test_of_many_shapes_the_rest_is_counted(trace_of: TellTrace) -> None:
    story = Story()
    for number in range(8):
        ask(story, 8 - number, port=50_000 + number, target=f"SELECT c{number}")
    story.capture()
    trace = trace_of(story)
    lines = [str(line) for line in query_lines(Report(trace), 100)]
    assert lines[0] == "10.0.0.2:5432  postgresql: 8 queries of 8 shapes, 36.0 ms in all"
    assert lines[1] == "  SELECT c0"
    assert lines[-3] == "  and 3 more shapes"
    assert lines[-2].startswith('all shapes: conchart query CAPTURE "SELECT shape, count(*)')
    brief = [str(line) for line in brief_queries(Report(trace), 100, 3)]
    assert brief[0] == "1 time, 8.00 ms: SELECT c0"
    assert brief[2] == "and 6 more shapes: add -v"
    assert [str(line) for line in brief_queries(Report(trace), 100, 1)] == ["8 shapes: add -v"]
    assert list(brief_queries(Report(trace), 100, 0)) == []


def test_lines_fit_and_hostile_text_is_harmless(trace_of: TellTrace) -> None:
    story = Story()
    ask(story, 1, target="SELECT \x1b[31m" + "x" * 900)
    story.capture()
    trace = trace_of(story)
    for width in (40, 80):
        lines = [*query_lines(Report(trace), width), *brief_queries(Report(trace), width, 3)]
        assert all(line.cell_len <= width for line in lines)
        assert not any("\x1b" in str(line) for line in lines)


def test_the_sql_for_all_shapes_runs(repeated: Trace) -> None:
    assert repeated.fetch(module.ALL)[0][:2] == (queries(repeated)[0].shape, 72)
