"""HAR: valid, exact to the nanosecond, and what the tables say."""

import json
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import conchart
from conchart import Trace
from conchart.labels.units import format_iso
from conchart.store.sql import PROTOCOLS
from tests.conftest import MS, ROOT, T0

SCRIPTS = ROOT / "tests/scripts"
HTTP = "protocol IN ('http/1.0', 'http/1.1', 'h2', 'h3', 'tls')"
PARTS = ("blocked", "dns", "connect", "send", "wait", "receive")

KIND_OF = {row["name"]: row["kind"] for row in PROTOCOLS}


def har_of(trace: Trace, folder: Path) -> dict[str, Any]:
    """Write HAR, ask the schema, and read it with every digit."""
    path = folder / "out.har"
    trace.write(path)
    log: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)["log"]
    for entry in log["entries"]:
        times = entry["timings"]
        assert entry["time"] == sum(times[part] for part in PARTS if times[part] != -1), "the sum rule"
        assert min(times["send"], times["wait"], times["receive"]) >= 0
        assert times["ssl"] <= times["connect"]
    return log


def validate(path: Path) -> None:
    node = shutil.which("node")
    if not node or not (SCRIPTS / "node_modules/har-schema").exists():
        pytest.skip("no node, or no har-schema: npm ci --prefix tests/scripts")
    command = [node, str(SCRIPTS / "validate_har.js"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def ns(milliseconds: Decimal | int) -> int:
    exact = Decimal(milliseconds) * 1_000_000
    assert exact == int(exact)
    return int(exact)


def har_agrees(trace: Trace, folder: Path) -> None:
    """Entries are the exchanges of HTTP, with their times."""
    entries = har_of(trace, folder)["entries"]
    requests = trace.sql(f"SELECT stream, request_frame, request_at FROM exchanges WHERE {HTTP}").fetchall()
    answered = trace.sql(
        f"""SELECT stream, request_ns, wait_ns, transfer_ns FROM exchanges
        WHERE {HTTP} AND response_at IS NOT NULL"""
    ).fetchall()
    ((opening,),) = trace.sql(
        f"""
        SELECT coalesce(sum(end_at - start_at), 0)
        FROM phases JOIN (SELECT stream, max(request_at) AS last_at FROM exchanges WHERE {HTTP} GROUP BY stream)
            USING (stream)
        WHERE kind IN ('syn', 'tls') AND start_at <= last_at
        """
    ).fetchall()
    started = [
        (int(entry["connection"]), entry["_request_frame"], entry["startedDateTime"])
        for entry in entries
        if entry["timings"]["connect"] == -1
    ]
    assert len(entries) == len(requests)
    assert set(started) <= {(stream, frame, format_iso(at)) for stream, frame, at in requests}
    timed = [
        (int(entry["connection"]), *(ns(entry["timings"][part]) for part in ("send", "wait", "receive")))
        for entry in entries
        if "_response_frame" in entry
    ]
    assert sorted(timed) == sorted(answered)
    assert sum(ns(entry["timings"]["connect"]) for entry in entries if entry["timings"]["connect"] != -1) == opening
    validate(folder / "out.har")


def test_the_first_request_of_a_connection_is_charged_with_its_handshakes(story: Trace, tmp_path: Path) -> None:
    (entry,) = har_of(story, tmp_path)["entries"]
    assert {name: str(value) for name, value in entry["timings"].items()} == {
        "blocked": "-1",
        "dns": "-1",
        "connect": "820.000000",
        "ssl": "800.000000",
        "send": "5.000000",
        "wait": "100.000000",
        "receive": "50.000000",
    }
    assert entry["time"] == Decimal(975)
    assert entry["startedDateTime"] == format_iso(T0)
    assert (entry["connection"], entry["comment"], entry["_inferred"]) == ("0", "tcp.stream eq 0", True)
    assert (entry["request"]["url"], entry["request"]["httpVersion"]) == ("https://shop.example/", "HTTP/1.1")


def test_a_later_request_is_not(story: Trace, tmp_path: Path) -> None:
    story.execute(
        f"""
        INSERT INTO exchanges BY NAME SELECT * REPLACE (1 AS number, 'http/1.1' AS protocol, 'web' AS kind,
            false AS inferred,
            'GET' AS method, 'shop.example' AS host, '/cart?item=7&q=a+b' AS target, {T0 + 980 * MS} AS request_at,
            3 AS request_ns, 123456789012345678 AS wait_ns, 1 AS transfer_ns, 200 AS status)
        FROM exchanges
        """
    )
    _, entry = har_of(story, tmp_path)["entries"]
    assert (entry["timings"]["connect"], entry["timings"]["ssl"]) == (-1, -1)
    assert str(entry["time"]) == "123456789012.345682", "no digit is lost, as it would be of a float"
    assert entry["request"]["url"] == "https://shop.example/cart?item=7&q=a+b"
    assert entry["request"]["queryString"] == [{"name": "item", "value": "7"}, {"name": "q", "value": "a b"}]
    assert "_inferred" not in entry


@pytest.mark.parametrize(
    ("host", "target", "url"),
    [
        ("a.example:8443", "/x", "https://a.example:8443/x"),
        ("a.example:443", "*", "https://a.example/*"),
        ("[2001:db8::1]:8443", "/", "https://[2001:db8::1]:8443/"),
        (None, "http://b.example/%zz?q=%20", "http://b.example/%25zz?q=%20"),
        ('"><script>', "/\x01 é\u2028]", "https://%22%3E%3Cscript%3E/%01%20%C3%A9%E2%80%A8%5D"),
        ("a@b/c#d:99999999", "//evil.example/", "https://a%40b%2Fc%23d%3A99999999//evil.example/"),
        ("[fe80::1%25<b>]", "x", "https://[fe80::1]/x"),
    ],
)
def test_whatever_was_sent_is_an_address(story: Trace, tmp_path: Path, host: str | None, target: str, url: str) -> None:
    story.execute(
        "UPDATE exchanges SET protocol = 'http/1.1', kind = 'web', method = 'G\"', host = ?, target = ?", [host, target]
    )
    (entry,) = har_of(story, tmp_path)["entries"]
    assert entry["request"]["url"] == url
    assert urlsplit(url).scheme in {"http", "https"}
    validate(tmp_path / "out.har")


def test_a_connect_asks_for_an_authority(story: Trace, tmp_path: Path) -> None:
    story.execute("DELETE FROM handshakes")
    story.execute(
        "UPDATE exchanges SET protocol = 'http/1.1', kind = 'web', method = 'CONNECT', target = 'b.example:443'"
    )
    (entry,) = har_of(story, tmp_path)["entries"]
    assert entry["request"]["url"] == "http://b.example:443/"


def test_a_request_without_response_waits_until_nobody_does(story: Trace, tmp_path: Path) -> None:
    story.execute(
        f"""UPDATE exchanges SET request_done_at = {T0 + 825 * MS}, wait_ns = NULL, transfer_ns = NULL;
        DELETE FROM phases WHERE kind = 'transfer'"""
    )
    (entry,) = har_of(story, tmp_path)["entries"]
    assert (entry["timings"]["wait"], entry["timings"]["receive"], entry["response"]["status"]) == (100, 0, 0)


@pytest.mark.parametrize("protocol", [name for name, kind in KIND_OF.items() if kind not in {"web", "rpc", "sealed"}])
def test_what_is_no_http_is_not_there(story: Trace, tmp_path: Path, protocol: str) -> None:
    story.execute("UPDATE exchanges SET protocol = ?, kind = ?", [protocol, KIND_OF[protocol]])
    log = har_of(story, tmp_path)
    assert (log["entries"], log["pages"]) == ([], [])
    validate(tmp_path / "out.har")


def test_what_tls_says_is_something_else_is_not_there(story: Trace, tmp_path: Path) -> None:
    story.execute("UPDATE handshakes SET alpn = NULL, alpn_offered = 'imap'")
    assert har_of(story, tmp_path)["entries"] == []


@pytest.mark.parametrize("keys", [True, False])
def test_requests_of_http3_are_there(tmp_path: Path, keys: bool) -> None:
    folder = ROOT / "captures/udp/http3"
    with conchart.read(folder / "input.pcap", keylog=[folder / "keys.log"] * keys) as trace:
        har_agrees(trace, tmp_path)
        entries = har_of(trace, tmp_path)["entries"]
    assert [entry["request"]["httpVersion"] for entry in entries] == ["HTTP/3"] * 5
    assert [entry.get("_inferred", False) for entry in entries] == [not keys] * 5
    urls = sorted(entry["request"]["url"] for entry in entries)
    assert urls[0] == ("https://shop.example/wait-10/bytes-6000" if keys else "https://shop.example/")
    assert {str(entry["timings"]["connect"] != -1) for entry in entries} == {"True", "False"}


def test_a_call_of_grpc_has_the_status_of_http_and_its_code(tmp_path: Path) -> None:
    with conchart.read(ROOT / "captures/messages/grpc/input.pcap") as trace:
        entries = har_of(trace, tmp_path)["entries"]
    validate(tmp_path / "out.har")
    assert {(entry["request"]["httpVersion"], entry["response"]["status"]) for entry in entries} == {("HTTP/2", 200)}
    codes = ["OK", "OK", "OK", "OK", "UNAVAILABLE", "DEADLINE_EXCEEDED", "UNIMPLEMENTED"]
    assert [entry["_grpc_status"] for entry in entries] == codes
