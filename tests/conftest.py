"""A small story that every test of tables, exports and the command line can use."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import duckdb
import pytest

import conchart
from conchart import Trace, _native
from conchart.analysis import plan
from conchart.analysis.findings.rule import chosen_thresholds, load_rules
from conchart.labels.commands import NONE, commands
from conchart.store.schema import TABLE_BY_NAME, TABLES
from tests.charts.story import Story, reverse_proxy
from tests.children import default_signals

ROOT = Path(__file__).parent.parent
CASES = tuple(sorted(path.parent for path in (ROOT / "captures").glob("*/*/input.pcap*")))
"""The folders of our captures."""
MS = 1_000_000
T0 = 1_700_000_000_123_456_789
"""First packet of the story: an odd number above 2^53, so that a float anywhere shows."""

STORY = f"""
    INSERT INTO captures BY NAME
    SELECT 0 AS capture, 'story.pcap' AS path, 'pcap' AS format, 'EN10MB' AS link_types, 1240 AS packets,
        1240 AS selected, 345678 AS bytes,
        1 AS first_frame, {T0} AS first_at, {T0 + 2_000 * MS} AS last_at, 1000 AS resolution_ns,
        false AS truncated, 0 AS undecodable, 7 AS other, 0 AS snapped, NULL AS dropped, 0 AS duplicates, [] AS notes;

    INSERT INTO connections BY NAME
    SELECT * FROM (VALUES
        (1, 0, '10.0.0.6', 40001, '10.0.0.9', 443, {T0 + 500 * MS}, {T0 + 2_000 * MS}, 'complete', 1, 600, 'tls'),
        (0, 0, '10.0.0.5', 40000, '10.0.0.9', 443, {T0}, {T0 + 1_000 * MS}, 'complete', 2, 700, 'tls'),
        (2, 0, '2001:db8::1', 50000, '2001:db8::2', 80, {T0 + 100 * MS}, {T0 + 100 * MS}, 'unanswered', 3, 3, NULL)
    ) AS t(stream, capture, client_ip, client_port, server_ip, server_port, opened_at, closed_at, state, first_frame,
        last_frame, app);
    UPDATE connections SET transport = 'tcp', transport_stream = stream, opened_by = 'client', closed_by = 'server';
    UPDATE connections SET packets_client = 10, packets_server = CASE WHEN state = 'unanswered' THEN 0 ELSE 9 END;
    UPDATE connections SET bytes_client = 1200, bytes_server = 34567, rtt_server_ns = 20 * {MS}, retransmits_server = 2;

    UPDATE connections SET server_name = 'shop.example' WHERE stream = 0;

    INSERT INTO handshakes BY NAME
    SELECT 0 AS stream, 0 AS number, {T0 + 20 * MS} AS hello_at, {T0 + 820 * MS} AS ready_at, 'TLSv1.2' AS version,
        'full' AS kind, 'complete' AS outcome, 'shop.example' AS sni, 'http/1.1' AS alpn, false AS inferred;

    INSERT INTO exchanges BY NAME
    SELECT 0 AS stream, 0 AS number, 'tls' AS protocol, 'sealed' AS kind, {T0 + 820 * MS} AS request_at,
        5 * {MS} AS request_ns,
        100 * {MS} AS wait_ns, 50 * {MS} AS transfer_ns, 9000 AS response_bytes, true AS inferred, 0.9 AS confidence,
        true AS client_keepalive;

    INSERT INTO phases BY NAME
    SELECT stream, CASE WHEN kind IN ('request', 'wait', 'transfer') THEN 0 END AS exchange, kind,
        'client' AS start_by, 'server' AS end_by,
        {T0} + s * {MS} AS start_at,
        {T0} + e * {MS} AS end_at, s + 1 AS start_frame, e + 1 AS end_frame, false AS inferred
    FROM (VALUES
        (1, 'unseen', 500, 2000),
        (0, 'syn', 0, 20), (0, 'tls', 20, 820), (0, 'request', 820, 825), (0, 'wait', 825, 925),
        (0, 'transfer', 925, 975), (0, 'idle', 975, 990), (0, 'close', 990, 1000)
    ) AS t(stream, kind, s, e);

    INSERT INTO stalls BY NAME
    SELECT 0 AS stream, kind, detail, side, 'server' AS start_by, side AS end_by,
        {T0} + s * {MS} AS start_at, {T0} + e * {MS} AS end_at,
        s + 1 AS start_frame, released AS released_frame, e + 1 AS end_frame,
        delay * {MS} AS ack_delay_ns, 0.9 AS confidence, false AS unfinished
    FROM (VALUES
        ('nagle', 'delayed-ack', 'client', 700, 760, 759, 40), ('rto', 'tail', 'server', 500, 700, NULL, NULL),
        ('nagle', 'round-trip', 'client', 970, 988, 988, 0), ('sender', NULL, 'server', 930, 935, NULL, NULL)
    ) AS t(kind, detail, side, s, e, released, delay);
"""


@pytest.fixture(autouse=True, scope="session")
def captures_stay() -> Iterator[None]:
    """No test changes one of our captures, or anything beside it that is read: what tests are given is read-only."""
    before = _states()
    yield
    assert _states() == before, "a test changed one of our captures"


def _states() -> dict[Path, tuple[int, int, int]]:
    inputs = (path for case in CASES for path in case.iterdir() if path.suffix not in (".txt", ".md"))
    states = ((path, path.stat()) for path in inputs)
    return {path: (state.st_ino, state.st_size, state.st_mtime_ns) for path, state in states}


def name_of(case: Path) -> str:
    """Give the name of one of our captures: ``reverse-proxy/https``."""
    return f"{case.parent.name}/{case.name}"


def capture_of(case: Path) -> Path:
    """Give the file of one of our captures."""
    (capture,) = case.glob("input.pcap*")
    return capture


OPENED = ("dns", "http3", "udp", "versions")
"""Folders whose stories are told with keys: of QUIC. Those of TLS over TCP are also about what is told without."""


def keys_of(case: Path) -> list[Path]:
    """Give the key log with which one of our captures is read, where there is one."""
    return [log for log in (case / "keys.log",) if case.parent.name in OPENED and log.exists()]


def logs_of(case: Path) -> dict[str, Any]:
    """Give the access log with which one of our captures is read, as arguments of ``read``; nothing of others."""
    if not (case / "log.json").exists():
        return {}
    settings = json.loads((case / "log.json").read_text(encoding="utf-8"))
    log = f"{settings['log']}={(case / 'access.log').relative_to(ROOT)}"
    return {"access_logs": [log], "log_formats": [settings["format"]] if settings["format"] else []}


def places_of(case: Path) -> dict[str, Path]:
    """Give the files of a capture at several places, in their order; nothing of others."""
    truth = case / "truth.json"
    if list(case.glob("input.pcap*")) or not truth.exists():
        return {}
    return {place: case / f"{place}.pcap" for place in json.loads(truth.read_text(encoding="utf-8"))["clocks"]}


IN_PLACES = tuple(case for case in sorted((ROOT / "captures" / "places").iterdir()) if places_of(case))
"""The folders of our captures at several places."""

THOROUGH = (
    "agreement",
    "analysis/test_changes.py",
    "benchmarks",
    "browser",
    "captures_are_real",
    "charts/test_comparison.py",
    "cli/test_diff.py",
    "cli/test_formats.py",
    "cli/test_live.py",
    "cli/test_replacing.py",
    "cli/test_signals.py",
    "cli/test_streams.py",
    "container",
    "cost",
    "exports/test_comparison.py",
    "exports/test_pcapng.py",
    "exports/test_text.py",
    "hops/test_links.py",
    "http3",
    "keyless",
    "keys/test_multiplexed.py",
    "laws/test_prefixes.py",
    "laws/test_segmentation.py",
    "lessons",
    "live",
    "logs",
    "reading/parts",
    "reading/places/test_command_line.py",
    "reading/places/test_handed_on.py",
    "reading/places/test_inputs.py",
    "reading/places/test_reported.py",
    "reading/places/test_topologies.py",
    "round_trips",
    "saved",
    "scripts",
    "site",
    "spans",
    "test_hostile.py",
    "test_statements.py",
    "test_worksheets.py",
    "whatif",
)
"""Folders and modules with the marker ``thorough``: labs, programs that capture or are ended, browsers, comparisons
with tshark, and features for whose tests alone it takes a minute. Only `tests/check --all` runs them."""
QUICK = ("browser/test_page.py",)
"""What of these `tests/check` runs all the same."""


def is_sample(name: str, one_in: int) -> bool:
    """Choose one of so many by the name alone: a capture that is added moves no other one in or out."""
    return crc32(name.encode()) % one_in == 0


ON_ALL = "CONCHART_LAWS" in os.environ
"""``CONCHART_LAWS=all`` tries on every capture what is tried on some: hours, and a few laws have exceptions there."""


def sampled(captures: Iterable[Path], one_in: int) -> list[Path]:
    """Choose captures of ours for a test that costs much: one of so many, always the same; those of others, all.

    With ``CONCHART_LAWS=all``, all.
    """
    return [path for path in captures if ON_ALL or not path.is_relative_to(ROOT) or is_sample(_case(path), one_in)]


def _case(path: Path) -> str:
    """Name the case that a capture or its folder is."""
    return name_of(path.parent if path.is_file() else path)


_FEW, _MANY = 2, 8
"""Cases of a test function that `tests/check` runs, and `tests/check --all`; those of our captures are chosen below."""
_WHOLE = ("agreement", "test_docs.py", "test_structure.py")
"""Folders and modules of which `tests/check --all` runs all cases: what other programs say, and what documents do."""


def quick_cases() -> set[str]:
    """Name the captures that `tests/check` reads: of each rule, the first with the fault.

    Of the others, one in 24: they are families with one parameter that varies, further captures of a rule, or what
    a rule must not find.
    """
    return {case for rule in load_rules() for case in rule.fault[:1]} | _some_cases(24)


def _gate_cases() -> set[str]:
    """Name those that `tests/check --all` reads: all with a fault, the first that is clean, and some of the others."""
    rules = load_rules()
    return {case for rule in rules for case in (*rule.fault, *rule.clean[:1])} | _some_cases(4) | quick_cases()


def _some_cases(one_in: int) -> set[str]:
    return {name for name in map(name_of, (*CASES, *IN_PLACES)) if is_sample(name, one_in)}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what only `tests/check --all` runs, and leave out what no gate does: ``pytest`` without a marker runs that.

    Tests of our captures go by the captures that are read for them. Of other functions, the gates run few or many of
    the cases: those whose names come first in an order that has nothing to do with them.
    """
    quick, gate = quick_cases(), _gate_cases()
    is_gate = config.option.markexpr == "thorough" and not config.getoption("--update-golden") and not ON_ALL
    cases_so_far: Counter[str] = Counter()
    left_out = set()
    for item in sorted(items, key=lambda item: crc32(item.nodeid.encode())):
        place = item.path.relative_to(ROOT / "tests")
        parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        within = {str(place), *map(str, place.parents)}
        is_thorough = within & {*THOROUGH} and str(place) not in QUICK
        cases = {name_of(Path(str(parameters[name]))) for name in ("every_case", "every_place") if name in parameters}
        function = item.nodeid.partition("[")[0]
        cases_so_far[function] += not cases
        if is_thorough or cases - quick or cases_so_far[function] > _FEW:
            item.add_marker(pytest.mark.thorough)
        if is_gate and (cases - gate or cases_so_far[function] > _MANY and not within & {*_WHOLE}):
            left_out.add(item)
    if left_out:
        config.hook.pytest_deselected(items=[*left_out])
        items[:] = [item for item in items if item not in left_out]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write what tests compare with anew: texts, pictures")


@pytest.fixture(scope="session", params=CASES, ids=name_of)
def every_case(request: pytest.FixtureRequest) -> Path:
    """Run a test for each of our captures: its folder.

    pytest runs all tests of one capture, of whatever module, one after the other.
    """
    return Path(request.param)


@pytest.fixture(scope="session")
def every_trace(every_case: Path) -> Iterator[Trace]:
    """Run a test for each of our captures: its trace, read once for all of them. Tests read it and change nothing."""
    with read_story(every_case) as trace:
        yield trace


@pytest.fixture(scope="session", params=IN_PLACES, ids=name_of)
def every_place(request: pytest.FixtureRequest) -> Path:
    """Run a test for each of our captures at several places: its folder."""
    return Path(request.param)


@pytest.fixture(scope="session")
def placed_trace(every_place: Path) -> Iterator[Trace]:
    """Run a test for each of our captures at several places: their trace, as ``every_trace``."""
    with read_story(every_place) as trace:
        yield trace


def read_story(case: Path) -> Trace:
    """Read one of our captures with what is beside it: keys, an access log; of several places, all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        if places := places_of(case):
            return conchart.read(places={place: [path.relative_to(ROOT)] for place, path in places.items()})
        keys = [log.relative_to(ROOT) for log in keys_of(case)]
        return conchart.read(capture_of(case).relative_to(ROOT), keylog=keys, **logs_of(case))


def empty_trace() -> Trace:
    """Make a trace as of a capture without packets."""
    trace = Trace(duckdb.connect(":memory:"))
    trace.create()
    return trace


def analysed(trace: Trace, changes: str = "") -> Trace:
    """Analyse a trace, anew if it was before.

    Args:
        trace: Its tables are filled.
        changes: Statements to run first, on what the core fills.
    """
    for table in TABLES:
        if not table.from_core:
            trace.execute(f"DELETE FROM {table.name}")
    if changes:
        trace.execute(changes)
    if trace.commands == NONE:
        trace.commands = commands([path for (path,) in trace.fetch("SELECT path FROM captures ORDER BY capture")], "")
    steps = plan(trace, rules=load_rules(), thresholds=chosen_thresholds({}))
    trace.owe(steps)
    trace.provide(*(fact for step in steps for fact in step.writes))
    return trace


@pytest.fixture(scope="session")
def story_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Analyse the story once, for a copy of it costs an eighth: a database with its tables."""
    path = tmp_path_factory.mktemp("story") / "story.duckdb"
    with empty_trace() as trace:
        trace.execute(STORY)
        analysed(trace).execute(f"ATTACH '{path}' AS stored; COPY FROM DATABASE memory TO stored; DETACH stored")
    return path


@pytest.fixture
def story(story_file: Path) -> Iterator[Trace]:
    """Two TLS connections to one server, one of them seen from its middle, and an unanswered one over IPv6."""
    database = duckdb.connect(":memory:")
    database.execute(f"ATTACH '{story_file}' AS stored (READ_ONLY); COPY FROM DATABASE stored TO memory; DETACH stored")
    with Trace(database) as trace:
        trace.commands = commands(["story.pcap"], "")
        yield trace


TellTrace = Callable[[Story], Trace]


@pytest.fixture
def trace_of() -> Iterator[TellTrace]:
    """Build the trace of a story; closed when the test ends."""
    opened: list[Trace] = []

    def build(story: Story) -> Trace:
        opened.append(empty_trace())
        story.fill(opened[-1])
        return analysed(opened[-1])

    yield build
    for trace in opened:
        trace.close()


@pytest.fixture
def proxy_story() -> Story:
    """Three TLS connections of a client to a proxy, each causing one HTTP/1.0 connection to the backend."""
    return reverse_proxy()


class Batch:
    """What the native core hands over: an object that gives a fresh Arrow stream whenever asked, and nothing else."""

    def __init__(self, table: str, query: str | duckdb.DuckDBPyRelation) -> None:
        """Make a batch of a table; columns of the core's that a query leaves out are NULL."""
        self.streams = 0
        if not isinstance(query, str):
            self._relation = query
            return
        database = duckdb.connect(":memory:")
        database.execute(f"{TABLE_BY_NAME[table].ddl}; INSERT INTO {table} BY NAME {query}")
        self._relation = database.sql(f"SELECT {', '.join(TABLE_BY_NAME[table].from_core)} FROM {table}")

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        self.streams += 1
        return self._relation.__arrow_c_stream__(requested_schema)


Core = Callable[..., None]


@pytest.fixture
def fake_core(monkeypatch: pytest.MonkeyPatch) -> Callable[[Core], None]:
    """Put a function in the place of the native core's one."""

    def install(core: Core) -> None:
        monkeypatch.setattr(_native, "read_capture", core)

    return install


@pytest.fixture
def story_core(story: Trace, fake_core: Callable[[Core], None]) -> list[dict[str, object]]:
    """Let ``read`` give the story whatever the file; the list collects what the core was asked for."""
    calls: list[dict[str, object]] = []

    def core(paths: list[str], sink: Callable[[str, object], None], **options: object) -> None:
        calls.append({"paths": paths, **options})
        for table in ("captures", "connections", "handshakes", "exchanges", "phases", "stalls"):
            owed = ", ".join(TABLE_BY_NAME[table].from_core)
            sink(table, Batch(table, story.sql(f"SELECT {owed} FROM {table}")))

    fake_core(core)
    return calls


@pytest.fixture
def signals_reach_children() -> Iterator[None]:
    """Let programs that a test starts have the default action of each signal, whatever the caller ignores."""
    with default_signals():
        yield
