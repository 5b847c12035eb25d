"""What is said of single connections: to the letter for some, held against tshark for all, and never nothing."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import conchart
from conchart import Trace
from conchart.outputs.terminal.ladder import print_ladder
from conchart.outputs.terminal.sheet import Sheet, plain_console
from conchart.questions.explain import Clock, Ladder, connections, ladder
from conchart.questions.explain.ladder import _Stalled
from tests.conftest import ROOT
from tests.tshark import ask, needs_tshark

GOLDENS = Path(__file__).parent / "goldens"

EXPLAINED = (
    ("reverse-proxy/https-no-keepalive", 0, False),
    ("reverse-proxy/https-slow-client", 0, False),
    ("reverse-proxy/http-page", 1, False),
    ("round-trips/tls12-client", 0, False),
    ("round-trips/tls13-server", 0, False),
    ("round-trips/hello-retry-middle", 0, False),
    ("findings/handshake-failure", 0, False),
    ("stalls/resumed-held-client", 1, False),
    ("stalls/rto-tail-client", 0, False),
    ("stalls/syn-rto-once-client", 0, False),
    ("handshakes/gnutls-nginx-1.3-0rtt", 1, False),
    ("handshakes/curl-nginx-1.3-full", 0, True),
    ("udp/dns-before-http", 0, False),
    ("far-away/directory-starttls", 1, True),
    ("wild/giveup-acked", 0, False),
    ("wild/giveup-noack", 0, False),
    ("wild/noanswer-fin-30s", 0, False),
    ("findings/foreign-reset", 1, False),
    ("http3/one", 0, True),
    ("http3/one", 0, False),
    ("http3/tail-lost", 0, True),
    ("http3/retry", 1, True),
    ("http3/early", 1, True),
)
"""Capture, stream, and whether its keys are used."""


def read(case: Path, stream: int, *, keys: bool = False) -> Trace:
    (capture,) = case.glob("input.pcap*")
    return conchart.read(capture, explain=stream, keylog=[case / "keys.log"] if keys else [])


def ladder_of(trace: Trace, stream: int) -> Ladder:
    (connection,) = connections(trace, stream)
    return ladder(connection)


@pytest.mark.parametrize(("case", "stream", "keys"), EXPLAINED, ids=lambda value: str(value).replace("/", "-"))
def test_a_connection_is_explained(
    case: str, stream: int, keys: bool, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    golden = GOLDENS / f"{case.replace('/', '-')}-{stream}{'-keys' if keys else ''}.txt"
    output = tmp_path / "output.txt"
    with read(ROOT / "captures" / case, stream, keys=keys) as trace, output.open("w", encoding="utf-8") as sink:
        print_ladder(ladder_of(trace, stream), Sheet(plain_console(sink)))
    if pytestconfig.getoption("--update-golden"):
        golden.write_text(output.read_text(encoding="utf-8"), encoding="utf-8")
    assert output.read_text(encoding="utf-8") == golden.read_text(encoding="utf-8")


@pytest.mark.thorough
def test_every_packet_is_a_rung_and_says_what_it_carries(every_trace: Trace) -> None:
    ((selected,),) = every_trace.sql("SELECT sum(selected) FROM captures").fetchall()
    packets = dict(every_trace.sql("SELECT stream, count(*) FROM packets GROUP BY stream").fetchall())
    explained = {one.stream: ladder(one) for one in connections(every_trace)}
    if selected <= 20_000:
        assert {stream: len(one.rungs) for stream, one in explained.items()} == packets
    for one in explained.values():
        assert all(rung.label for rung in one.rungs)
        at = [rung.seen_at for rung in one.rungs]
        assert at == sorted(at)
        assert at[0] == one.opened_at
        seen = set(at)
        assert all({silence.start_at, silence.end_at} <= seen for silence in one.silences)
        ends = [(silence.start_at, silence.end_at) for silence in one.silences]
        assert all(before[1] <= after[0] for before, after in zip(ends, ends[1:], strict=False))


def test_of_a_large_capture_only_the_explained_connection_is_there() -> None:
    capture = ROOT / "captures/multiplexed/h2load-nginx-thirty/input.pcap"
    with conchart.read(capture, explain=0) as small:
        everything = small.sql("FROM packets WHERE stream = 0 ORDER BY frame").fetchall()
        small.execute("DELETE FROM packets")
        assert list(connections(small)) == []
    assert everything


TRANSUM = ("art", "st", "reqspread", "rspspread")
CLEAR = ("reverse-proxy/http", "reverse-proxy/http-page", "stalls/clean-far-client", "hops/nginx-http-http-1")


@needs_tshark
@pytest.mark.parametrize("case", CLEAR)
def test_response_times_are_those_of_wiresharks_transum(case: str) -> None:
    capture = ROOT / "captures" / case / "input.pcap"
    fields = [
        option
        for name in ("tcp.stream", "frame.number", *(f"transum.{one}" for one in TRANSUM))
        for option in ("-e", name)
    ]
    options = ["--enable-protocol", "transum", "-2", "-r", str(capture), "-Y", "transum.art && tcp.len > 0"]
    out = ask([*options, "-T", "fields", *fields])
    theirs = {}
    for line in out.splitlines():
        stream, frame, *seconds = line.split("\t")
        if all(seconds):
            theirs[int(stream), int(frame)] = tuple(round(float(one) * 1e9) for one in seconds)
    assert theirs
    with conchart.read(capture) as trace:
        frames = {
            (stream, number): frame
            for stream, number, frame in trace.sql("SELECT stream, number, request_frame FROM exchanges").fetchall()
        }
        ours = {}
        for connection in connections(trace):
            by: dict[int, dict[str, Clock]] = {}
            for clock in ladder(connection).clocks:
                by.setdefault(clock.exchange, {})[clock.name] = clock
            for exchange, figures in by.items():
                place = (connection.stream, frames[connection.stream, exchange])
                ours[place] = tuple(figures[f"transum.{name}"].took_ns for name in TRANSUM)
    assert {place: ours[place] for place in theirs.keys() & ours.keys()} == {
        place: theirs[place] for place in theirs.keys() & ours.keys()
    }
    assert len(theirs.keys() & ours.keys()) >= len(theirs) * 0.9


def test_names_of_the_capture_are_left_out_where_they_are_not_wanted() -> None:
    with read(ROOT / "captures/reverse-proxy/https", 0) as trace:
        with_names, without = (
            " ".join(rung.says for rung in ladder(next(connections(trace, 0, names=names))).rungs)
            for names in (True, False)
        )
    assert "shop.example" in with_names
    assert "shop.example" not in without


def test_lines_stay_within_the_terminal(tmp_path: Path) -> None:
    output = tmp_path / "output.txt"
    with (
        read(ROOT / "captures/reverse-proxy/https-no-keepalive", 0) as trace,
        output.open("w", encoding="utf-8") as sink,
    ):
        print_ladder(ladder_of(trace, 0), Sheet(Console(file=sink, width=90, color_system=None, force_terminal=False)))
    lines = output.read_text(encoding="utf-8").splitlines()
    assert max(map(len, lines)) <= 90


@given(
    st.lists(st.integers(0, 40), max_size=12, unique=True).map(sorted),
    st.lists(st.sampled_from([("client", "nagle"), ("client", "rto"), ("server", "rto")]), min_size=6, max_size=6),
    st.integers(0, 30),
    st.integers(0, 9),
)
def test_stalls_of_a_handshake_are_the_parts_that_lie_in_it(
    cuts: list[int], kinds: list[tuple[str, str]], begins: int, took: int
) -> None:
    stalls = list(zip(kinds, cuts[::2], cuts[1::2], strict=False))
    rows = [
        {"start_at": start, "end_at": end, "side": side, "kind": kind, "detail": None}
        for (side, kind), start, end in stalls
    ]
    expected: dict[str, int] = {}
    for (side, kind), start, end in stalls:
        inside = min(end, begins + took) - max(start, begins)
        if side == "client" and inside > 0:
            word = {"nagle": "held", "rto": "lost"}[kind]
            expected[word] = expected.get(word, 0) + inside
    assert _Stalled(rows).within("client", begins, begins + took) == expected
    assert _Stalled(rows).within("client", None, begins) == {}
