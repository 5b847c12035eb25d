"""docs/tables.md and the schema say the same, column by column."""

import gzip
import re
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import conchart
from conchart import Trace
from conchart.store.schema import TABLE_BY_NAME, TABLES, VOCABULARIES, Table
from tests.conftest import ROOT, logs_of, places_of
from tests.laws.files import Format
from tests.laws.hello import Tls, record
from tests.laws.talk import Say, Talk
from tests.logs.making import encrypted

DOCUMENT = ROOT / "docs/tables.md"
_HEADING = re.compile(r"## (\w+) —")
_ROW = re.compile(r"\| ([\w, ]+) \| ([A-Z]*(?:\[\])?) \| ?(.*)\|$")


def named(cell: str) -> list[str]:
    """Give the columns of a row: ``a_client, _server`` are ``a_client`` and ``a_server``."""
    first, *others = cell.split(", ")
    return [first, *(re.sub("_[a-z]+$", name, first) if name.startswith("_") else name for name in others)]


def documented() -> dict[str, list[str]]:
    """Give the columns of each table that the document explains."""
    tables: dict[str, list[str]] = {}
    columns: list[str] = []
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        if heading := _HEADING.match(line):
            columns = tables.setdefault(heading[1], [])
        elif row := _ROW.match(line):
            columns += named(row[1])
    return tables


def with_types(text: str) -> str:
    """Write the types of columns as the core and the schema declare them: the document only has what they mean."""
    lines, types = [], dict[str, str]()
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            types = TABLE_BY_NAME[heading[1]].types if heading[1] in TABLE_BY_NAME else {}
        row = _ROW.match(line)
        if row and types:
            kinds = {"ENUM" if (kind := types[name]).startswith("ENUM") else kind for name in named(row[1])}
            line = f"| {row[1]} | {' or '.join(sorted(kinds))} | {row[3]}|"
        lines.append(line)
    return "\n".join(lines) + "\n"


def test_types_in_the_document_are_those_of_the_tables(pytestconfig: pytest.Config) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    if pytestconfig.getoption("--update-golden"):
        DOCUMENT.write_text(with_types(text), encoding="utf-8")
    assert with_types(text) == text, "pytest tests/test_schema.py --update-golden writes them"


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_column_is_explained_once(table: Table) -> None:
    assert sorted(documented()[table.name]) == sorted(table.types)


NAMED = {
    "TRANSPORT": "flow/table.rs",
    "DNS_OVER": "exchange/mod.rs",
    "SIDE": "rows.rs",
    "STATE": "tcp/state.rs",
    "SESSION": "tls/found.rs",
    "OUTCOME": "tls/found.rs",
    "COVERAGE": "tls/found.rs",
    "PHASE": "phases.rs",
    "STALL": "stalls/mod.rs",
    "DETAIL": "stalls/mod.rs",
    "MARK": "tcp/classifier.rs",
    "COVER": "tls/transcript.rs",
}
"""Where the core has the words of a vocabulary: as the arms of one ``match``."""

ADDED = {"DETAIL": {"hello"}, "STATE": {"abandoned"}}
"""Words that the analysis adds: `analysis/waits.py` tells a late ClientHello."""


@pytest.mark.parametrize("vocabulary", NAMED)
def test_the_core_has_no_other_words_than_the_schema(vocabulary: str) -> None:
    """A word that the schema does not know would end the reading."""
    source = (ROOT / "conchart/native/src" / NAMED[vocabulary]).read_text(encoding="utf-8")
    functions = re.findall(r"-> &'static str \{\s+match \w+ \{(.*?)\n    \}", source, re.DOTALL)
    named = [set(re.findall(r'=> "([^"]+)"', function)) for function in functions]
    assert set(VOCABULARIES[vocabulary]) - ADDED.get(vocabulary, set()) in named


def test_a_vocabulary_is_in_the_order_of_the_alphabet() -> None:
    """Then ORDER BY, min and max give of an ENUM what they give of a text."""
    assert {name: list(words) for name, words in VOCABULARIES.items()} == {
        name: sorted(words) for name, words in VOCABULARIES.items()
    }


def test_every_documented_table_exists() -> None:
    assert set(documented()) == {table.name for table in TABLES}


FURTHER = (
    "http3/retry",
    "udp/dns-before-http",
    "udp/http3",
    "udp/services",
    "crafted/h2-goaway-messy",
    "crafted/gap",
    "crafted/health-checks-messy",
    "crafted/refused",
    "crafted/reordering",
    "crafted/zero-window",
    "handshakes/chromium-apache-1.3-http1",
    "handshakes/concurrent-curl-apache-1.2",
    "handshakes/curl-apache-1.2-client-certificate",
    "findings/keepalive-race",
    "handshakes/gnutls-nginx-1.3-0rtt",
    "multiplexed/chromium-apache-later",
    "hops/chain-announced-v2-beside-1",
    "hops/ids-echoed-16",
    "hops/nginx-http-http-1",
    "messages/grpc",
    "reverse-proxy/https-no-keepalive",
    "http3/negotiated",
    "traces/processes",
)
"""Captures that have, together, a value of nearly every column."""


def refused_with_drops(folder: Path) -> Path:
    """Make a capture of a TLS handshake that is answered by an alert, in a file that says that packets were lost."""
    path = folder / "drops.pcapng"
    talk = Talk(steps=[Say("client", Tls().messages()[0][1]), Say("server", record(21, b"\2\x28"))])
    # draft-ietf-opsawg-pcapng section 4.6: of interface 0, isb_ifdrop is 3.
    statistics = struct.pack("<IIIIIHHQHHI", 5, 40, 0, 0, 0, 5, 8, 3, 0, 0, 40)
    path.write_bytes(Format(container="pcapng").write(talk.packets()) + statistics)
    return path


def upload_by_way_of_a_proxy(folder: Path) -> Path:
    """Make a capture of a request that a proxy has put its name on, and whose body waits until the server wants it."""
    path = folder / "upload.pcapng"
    request = b"PUT / HTTP/1.1\r\nHost: shop.example\r\nVia: 1.1 proxy.example\r\nExpect: 100-continue\r\n"
    talk = Talk()
    talk.steps = [
        Say("client", request + b"Content-Length: 4\r\n\r\n"),
        Say("server", b"HTTP/1.1 100 Continue\r\n\r\n"),
        Say("client", b"body"),
        Say("server", b"HTTP/1.1 204 No Content\r\nKeep-Alive: timeout=5, max=99\r\n\r\n"),
    ]
    path.write_bytes(Format(container="pcapng").write(talk.packets()))
    return path


def with_too_few_keys(folder: Path) -> tuple[Path, Path]:
    """Give a capture, and a key log from which a secret of the server's is missing."""
    case = ROOT / "captures/handshakes/curl-nginx-1.3-full"
    keys = folder / "keys.log"
    lines = (case / "keys.log").read_text().splitlines(keepends=True)
    keys.write_text("".join(line for line in lines if not line.startswith("SERVER_TRAFFIC")))
    return case / "input.pcap", keys


def with_logs(folder: Path) -> Iterator[Trace]:
    """Give traces with an access log beside them: one that breaks off, one of all that a line may tell, names."""
    crowd = ROOT / "captures/logs/haproxy-crowd"
    lines = (crowd / "access.log").read_bytes()
    (folder / "broken.gz").write_bytes(gzip.compress(lines)[:-100])
    (folder / "told.log").write_text(
        '1795701082.5 - a.example "GET / HTTP/1.1" 200 1 2 c0ffee 0.1\n1795701082.5 - - - - - - - -\n'
    )
    text = '$msec $x $host "$request" $status $bytes_sent $request_length $request_id $request_time'
    (folder / "malformed.log").write_bytes(lines + b"nonsense\n")
    logs = [f"haproxy={folder / 'broken.gz'}", f"haproxy={folder / 'malformed.log'}", f"nginx={folder / 'told.log'}"]
    yield conchart.read(crowd / "input.pcap", access_logs=logs, log_formats=[f"nginx={text}"])
    slow = ROOT / "captures/logs/nginx-slow-client"
    yield conchart.read(slow / "input.pcap", **logs_of(slow))
    yield encrypted(folder)


def traces(folder: Path) -> Iterator[Trace]:
    yield conchart.read(refused_with_drops(folder))
    yield conchart.read(upload_by_way_of_a_proxy(folder))
    capture, keys = with_too_few_keys(folder)
    yield conchart.read(capture, keylog=keys)
    for http3 in (ROOT / "captures/http3" / case for case in ("resumed", "rebind-idle", "tunnels")):
        yield conchart.read(http3 / "input.pcap", keylog=http3 / "keys.log")
    yield conchart.read(ROOT / "captures/udp/ip-race-won/input.pcap")
    yield conchart.read(ROOT / "captures/wild/nat-snat-any/input.pcap")
    yield conchart.read(capture, filter="tcp port 443", explain=0, seen_from="server")
    yield conchart.read(ROOT / "captures/stores/postgresql/input.pcap", statements="full")
    yield conchart.read(
        ROOT / "captures/hops/nginx-close-http-https-16/input.pcap", findings=[ROOT / "tests/findings/rules"]
    )
    yield conchart.read(ROOT / "captures/places/tunnel/router.pcap")
    instrumented = ROOT / "captures/traces/ids"
    yield conchart.read(instrumented / "input.pcap", spans=instrumented.glob("*.otlp.json"))
    for case in ("loss", "firewall", "tunnel"):
        yield conchart.read(places=places_of(ROOT / "captures/places" / case))
    yield from with_logs(folder)
    for case in FURTHER:
        yield conchart.read(*(ROOT / "captures" / case).glob("input.pcap*"), packets=True)


@pytest.mark.timeout(120)
@pytest.mark.thorough
def test_every_column_is_filled_by_somebody(tmp_path: Path) -> None:
    """A column that no stage fills is NULL in every capture."""
    empty = {table.name: set(table.types) for table in TABLES}
    with ExitStack() as stack:
        for trace in map(stack.enter_context, traces(tmp_path)):
            for table, columns in empty.items():
                if columns:
                    counts = trace.sql(
                        f"SELECT {', '.join(f'count({name}) AS {name}' for name in columns)} FROM {table}"
                    )
                    empty[table] = {
                        name for name, count in zip(counts.columns, counts.fetchall()[0], strict=True) if not count
                    }
    assert {table: columns for table, columns in empty.items() if columns} == {}
