"""Who owned the socket: comments beside packets, in the formats of the programs that write them."""

import io
import struct
from pathlib import Path

import pytest

import conchart
from conchart import DrawOptions, Trace
from conchart.outputs.terminal import print_summary
from conchart.outputs.terminal.sheet import plain_console
from conchart.report.report import Report
from tests.charts.unpacked import Page
from tests.conftest import ROOT
from tests.laws.files import Format
from tests.laws.talk import Say, Talk

CASE = ROOT / "captures/traces/processes/input.pcapng"
NONE = [b""] * 50
"""Nothing beside the packets that follow."""
COLUMNS = "client_pid, client_process, client_container, client_pod, server_pid, server_process, server_pod"


def block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length


def option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def commented(folder: Path, options: list[bytes]) -> Trace:
    """Read a small talk over Ethernet, with these options beside each packet, in turn."""
    return conchart.read(written(folder / "commented.pcapng", options))


def written(path: Path, options: list[bytes]) -> Path:
    talk = Talk(steps=[Say("client", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), Say("server", b"HTTP/1.1 204 No\r\n\r\n")])
    data = Format(container="pcapng").write(talk.packets())
    at, content, number = 0, b"", 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        body = data[at + 8 : at + length - 4]
        if kind == 6:
            (captured,) = struct.unpack_from("<I", body, 12)
            body = body[: 20 + captured + -captured % 4] + options[number % len(options)] + option(0, b"")
            number += 1
        content += block(kind, body)
        at += length
    path.write_bytes(content)
    return path


def owners(trace: Trace) -> list[tuple[object, ...]]:
    return trace.fetch(f"SELECT {COLUMNS} FROM connections")


def test_the_proxy_is_named_on_both_sides_of_it() -> None:
    with conchart.read(CASE) as trace:
        rows = trace.fetch(f"SELECT server_port, {COLUMNS} FROM connections ORDER BY stream")
        pids = {pid for (pid,) in trace.fetch("SELECT DISTINCT coalesce(client_pid, server_pid) FROM connections")}
    (pid,) = pids
    front = (80, None, None, None, None, pid, "/usr/sbin/nginx", "shop/front-7d4f")
    back = (8080, pid, "/usr/sbin/nginx", "front", "shop/front-7d4f", None, None, None)
    assert rows == [front, front, back, back]


def test_a_comment_is_about_the_machine_that_captured(tmp_path: Path) -> None:
    """Ethernet does not say which way a packet went; the packet's flags do."""
    curl = option(1, b"PID: 7\nCmd: /usr/bin/curl\nArgs: curl -u me:secret a") + option(2, struct.pack("<I", 2))
    with commented(tmp_path, [curl, *NONE]) as trace:
        assert owners(trace) == [(7, "/usr/bin/curl", None, None, None, None, None)]
        assert "secret" not in repr([trace.fetch(f"FROM {table}") for table in ("connections", "captures")])


def test_without_a_direction_nobody_is_named(tmp_path: Path) -> None:
    with commented(tmp_path, [option(1, b"PID: 7\nCmd: /usr/bin/curl\nArgs: curl")]) as trace:
        assert owners(trace) == [(None,) * 7]


def test_netobserv_names_the_pods_of_both_ends(tmp_path: Path) -> None:
    def comment(end: str, name: str) -> bytes:
        short = "Src" if end == "Source" else "Dst"
        return option(1, f"{end}\n{short} Kind: Pod\n{short} Name: {name}\n{short} Namespace: shop\n".encode())

    out = comment("Source", "visitor") + comment("Destination", "checkout")
    with commented(tmp_path, [out, *NONE]) as trace:
        assert owners(trace) == [(None, None, None, "shop/visitor", None, None, "shop/checkout")]


def test_of_several_places_each_end_is_named_by_the_one_that_knows_it(tmp_path: Path) -> None:
    outbound, inbound = (option(2, struct.pack("<I", flags)) for flags in (2, 1))
    curl, shop = (option(1, text) for text in (b"PID: 7\nCmd: curl\nArgs: -", b"PID: 8\nCmd: shop\nArgs: -"))
    places = {
        "client": written(tmp_path / "client.pcapng", [curl + outbound, curl + inbound, *NONE]),
        "server": written(tmp_path / "server.pcapng", [shop + inbound, shop + outbound, *NONE]),
    }
    with conchart.read(places=places) as trace:
        assert owners(trace) == [(7, "curl", None, None, 8, "shop", None)]


@pytest.mark.parametrize(
    "options",
    [
        option(1, b"PID: 99999999999999999999\nCmd: \xff\xfe\x1b[31m" + b"x" * 60_000),
        option(1, b"PID: -7\nPodName: \n") + option(2, b""),
        struct.pack("<HH", 1, 65_000) + b"PID:",
        option(1, b"") * 2_000,
        option(1, b"\n" * 60_000),
    ],
)
def test_hostile_comments_do_no_harm(tmp_path: Path, options: bytes) -> None:
    flags = option(2, struct.pack("<I", 2))
    with commented(tmp_path, [flags + options]) as trace:
        ((pid, process, *_),) = owners(trace)
        assert pid is None
        assert process is None or len(str(process)) <= 256
        assert trace.fetch("SELECT status FROM exchanges") == [(204,)]
        printed = io.StringIO()
        print_summary(Report(trace), plain_console(printed), DrawOptions(verbose=True))
        assert "\x1b" not in printed.getvalue()


def test_lanes_are_called_by_their_processes_unless_names_are_unwanted() -> None:
    with conchart.read(CASE) as trace:
        for names in (True, False):
            printed = io.StringIO()
            print_summary(Report(trace, names=names), plain_console(printed), DrawOptions())
            assert ("nginx (pid" in printed.getvalue()) is names


def test_the_page_names_them(tmp_path: Path) -> None:
    with conchart.read(CASE) as trace:
        trace.write(tmp_path / "out.html")
        trace.write(tmp_path / "plain.html", options=DrawOptions(names=False))
    lanes = Page((tmp_path / "out.html").read_text()).data["lanes"]
    assert [bool(who) for who in lanes["client_who"]] == [False, False, True, True]
    assert [bool(who) for who in lanes["server_who"]] == [True, True, False, False]
    assert "client_who" not in Page((tmp_path / "plain.html").read_text()).data["lanes"]


def test_the_page_has_the_spans_of_a_request(tmp_path: Path) -> None:
    case = ROOT / "captures/traces/ids"
    with conchart.read(case / "input.pcap", spans=case.glob("*.otlp.json")) as trace:
        trace.write(tmp_path / "out.html")
        counts = trace.fetch("SELECT kind, count(*) FROM spans WHERE stream IS NOT NULL GROUP BY ALL ORDER BY ALL")
    notes = Page((tmp_path / "out.html").read_text()).data["notes"]
    assert counts == [("client", 128), ("server", 128)]
    assert sum(title == "Span" for title in notes["title"]) == 256
    assert sum("on the wire between the programs" in says for says in notes["says"]) == 128
