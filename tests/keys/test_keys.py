"""Keys: what was said inside TLS is read, times stay, and what keys are missing is told."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import ssl
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import conchart
from conchart import CaptureError, Trace
from conchart.analysis.keys import cover
from conchart.analysis.quality import appraise
from conchart.cli import main
from conchart.outputs.terminal.facts import facts
from conchart.report.remarks import remarks
from conchart.report.report import Report
from tests.conftest import ROOT, empty_trace
from tests.keys.secure import REQUEST, RESPONSE, Secure, ask_and_answer
from tests.laws.files import Format
from tests.laws.talk import Packet, Say, Talk, every

SUITES = (
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-RSA-CHACHA20-POLY1305",
    "ECDHE-RSA-AES128-SHA",
    "ECDHE-RSA-AES128-SHA256",
    "ECDHE-RSA-AES256-SHA384",
    "AES256-CCM8",
    "AES128-CCM",
)


@dataclass(frozen=True, slots=True)
class Made:
    """A capture and the secrets of what is in it."""

    path: Path
    key_log: Path
    packets: list[Packet]


Make = Callable[..., Made]


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a certificate and its key, in one file."""
    if not shutil.which("openssl"):
        pytest.skip("openssl makes the certificate")
    path = tmp_path_factory.mktemp("certificate") / "both.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=shop.example -keyout"
    subprocess.run([*command.split(), path, "-out", f"{path}.crt"], check=True, capture_output=True)
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


@pytest.fixture
def make(certificate: Path, tmp_path: Path) -> Make:
    """Make a capture of two requests inside TLS, and its key log."""

    def made(version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3, ciphers: str = "ALL:@SECLEVEL=0") -> Made:
        key_log, path = tmp_path / "keys.log", tmp_path / "made.pcap"
        try:
            steps = ask_and_answer(Secure(certificate=certificate, key_log=key_log, version=version, ciphers=ciphers))
        except ssl.SSLError as error:
            pytest.skip(f"this OpenSSL does not: {error}")
        packets = Talk(steps=steps).packets(every(1_000))
        path.write_bytes(Format().write(packets))
        return Made(path, key_log, packets)

    return made


def requests(trace: Trace) -> list[tuple[object, ...]]:
    return trace.sql(
        "SELECT method, host, target, status, request_bytes, response_bytes, inferred FROM exchanges ORDER BY number"
    ).fetchall()


EXPECTED = [("GET", "shop.example", "/cart?item=7", 404, len(REQUEST), len(RESPONSE), False)] * 2


@pytest.mark.parametrize("suite", SUITES)
def test_tls12_is_read_whatever_the_suite(make: Make, suite: str) -> None:
    made = make(ssl.TLSVersion.TLSv1_2, f"{suite}:@SECLEVEL=0")
    with conchart.read(made.path, keylog=made.key_log) as trace:
        assert requests(trace) == EXPECTED
        assert trace.sql("SELECT app, keys FROM connections JOIN handshakes USING (stream)").fetchall() == [
            ("http/1.1", "all")
        ]


def test_tls13_is_read_and_its_handshake_exact(make: Make) -> None:
    made = make()
    with conchart.read(made.path, keylog=[made.key_log]) as trace:
        assert requests(trace) == EXPECTED
        assert trace.sql("SELECT keys, alpn, client_auth, certificates, inferred FROM handshakes").fetchall() == [
            ("all", "http/1.1", False, 1, False)
        ]
        assert trace.sql("SELECT count(*) FROM phases WHERE inferred").fetchall() == [(0,)]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_times_are_those_without_keys(make: Make, version: ssl.TLSVersion) -> None:
    """The keyless reading is right about this simple conversation, so both must say the same."""
    made = make(version)
    columns = "request_at, request_done_at, response_at, response_done_at, request_frame, response_frame"
    exchanges = f"SELECT {columns} FROM exchanges ORDER BY number"
    handshakes = "SELECT hello_at, server_done_at, client_finished_at, ready_at, complete_at FROM handshakes"
    tiles = "SELECT kind, start_at, end_at, start_frame, end_frame FROM phases ORDER BY start_at, end_at"
    with conchart.read(made.path) as without, conchart.read(made.path, keylog=made.key_log) as trace:
        for query in (exchanges, handshakes, tiles):
            assert trace.sql(query).fetchall() == without.sql(query).fetchall()


def secrets_block(made: Made) -> bytes:
    """The key log as a Decryption Secrets Block."""
    key_log = made.key_log.read_bytes()
    body = struct.pack("<II", 0x544C534B, len(key_log)) + key_log + b"\0" * (-len(key_log) % 4)
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", 10) + length + body + length


def with_secrets(made: Made, *, last: bool) -> bytes:
    """The capture as pcapng, its key log at either end."""
    head, *packets = Format(container="pcapng").parts(made.packets)
    block = secrets_block(made)
    return b"".join([head, *packets, block] if last else [head, block, *packets])


def test_a_renegotiation_is_read_like_a_handshake_in_clear() -> None:
    """Frames and values: ``tshark -o tls.keylog_file:keys.log -Y tls.handshake``."""
    case = ROOT / "captures" / "handshakes" / "curl-apache-1.2-certificate-later"
    columns = "hello_at, server_hello_at, server_done_at, complete_at, version, cipher, sni, kind, client_auth, keys"
    query = f"SELECT {columns} FROM handshakes WHERE number = 1"
    with conchart.read(case / "input.pcap", keylog=case / "keys.log") as trace:
        (opened,) = trace.sql(query).fetchall()
    with conchart.read(case / "input.pcap") as trace:
        (hidden,) = trace.sql(query).fetchall()
    start, at = 1_795_233_693_000_000_000, (232_339_180, 256_286_490, 256_321_187, 286_936_742)
    assert opened[:4] == tuple(start + each for each in at)
    suite = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
    assert opened[4:] == ("TLSv1.2", suite, "shop.example", "full", True, "all")
    assert hidden == (opened[0], None, None, opened[3], None, None, None, None, None, None)


@pytest.mark.parametrize("side", ["CLIENT", "SERVER"])
def test_secrets_that_open_no_application_data_do_not_count(side: str, tmp_path: Path) -> None:
    """The handshake's are right, so only what follows it shows that the other one is not."""
    case = ROOT / "captures" / "handshakes" / "openssl-nginx-1.3-full"
    label = f"{side}_TRAFFIC_SECRET_0"
    damaged = tmp_path / "keys.log"
    damaged.write_text(
        re.sub(rf"^({label} \w+ )\w{{8}}", r"\g<1>00000000", (case / "keys.log").read_text(), flags=re.M)
    )
    query = "SELECT keys, missing_keys FROM handshakes"
    with conchart.read(case / "input.pcap", keylog=damaged) as trace:
        assert trace.sql(query).fetchall() == [("partial", label)]
        off = trace.sql("SELECT closed_at - opened_at - (SELECT sum(end_at - start_at) FROM phases) FROM connections")
        assert off.fetchall() == [(0,)]
        damaged_phases = trace.sql("SELECT start_at, end_at FROM phases WHERE kind = 'tls'").fetchall()
    with conchart.read(case / "input.pcap", keylog=case / "keys.log") as trace:
        assert trace.sql(query).fetchall() == [("all", None)]
        assert trace.sql("SELECT start_at, end_at FROM phases WHERE kind = 'tls'").fetchall() == damaged_phases


@pytest.mark.parametrize("last", [False, True])
def test_secrets_in_a_pcapng_file_are_used_wherever_they_stand(make: Make, last: bool) -> None:
    made = make()
    inside = made.path.with_suffix(".pcapng")
    inside.write_bytes(with_secrets(made, last=last))
    with conchart.read(inside) as trace:
        assert requests(trace) == EXPECTED
        assert trace.sql("SELECT notes FROM captures").fetchall() == [([],)]


@pytest.mark.parametrize(("tls", "secrets", "times"), [(False, False, 1), (True, True, 1), (True, False, 2)])
def test_a_file_is_read_once_more_only_for_a_secret_that_is_not_known(
    make: Make, tmp_path: Path, tls: bool, secrets: bool, times: int
) -> None:
    counters = Path("/proc/self/io")
    if not counters.exists():
        pytest.skip("only Linux counts what a process reads")
    made = make()
    form = Format(container="pcapng")
    other = Talk(client=("10.0.0.7", 40_000), server=("10.0.0.9", 9_000), steps=[Say("client", bytes(4_000_000))])
    header, *blocks = form.parts([*(made.packets if tls else ()), *other.packets()])
    path = tmp_path / "long.pcapng"
    path.write_bytes(header + (secrets_block(made) if secrets else b"") + b"".join(blocks))
    conchart.read(made.path).close()  # modules are imported

    def read() -> int:
        found = re.search(r"rchar: (\d+)", counters.read_text())
        assert found
        return int(found[1])

    before = read()
    with conchart.read(path) as trace:
        taken = read() - before
        assert set(EXPECTED).issubset(requests(trace)) == (tls and secrets)
    assert round(taken / path.stat().st_size, 1) == times


@pytest.mark.parametrize("last", [False, True])
def test_a_compressed_file_is_read_once_so_late_secrets_are_reported(make: Make, last: bool) -> None:
    made = make()
    inside = made.path.with_suffix(".pcapng.gz")
    inside.write_bytes(gzip.compress(with_secrets(made, last=last)))
    with conchart.read(inside) as trace:
        (notes,) = trace.sql("SELECT notes FROM captures").fetchall()[0]
        if last:
            assert "TLS secrets follow this packet" in notes[0]
            assert requests(trace)[0][0] is None
        else:
            assert (notes, requests(trace)) == ([], EXPECTED)


def test_a_key_log_without_secrets_is_an_error(make: Make, tmp_path: Path) -> None:
    made = make()
    empty = tmp_path / "empty.log"
    empty.write_text("# nothing\nhello\n")
    with pytest.raises(CaptureError, match="contains no TLS secrets: none of its 2 lines"):
        conchart.read(made.path, keylog=empty)
    with pytest.raises(CaptureError, match="no such file"):
        conchart.read(made.path, keylog=tmp_path / "missing.log")


def test_malformed_lines_are_named_by_number_only(make: Make) -> None:
    made = make()
    made.key_log.write_text("CLIENT_RANDOM sesame\n" + made.key_log.read_text() + "CLIENT_RANDOM too\n")
    with conchart.read(made.path, keylog=made.key_log) as trace:
        (notes,) = trace.sql("SELECT notes FROM captures").fetchall()[0]
        assert len(notes) == 1
        assert "line 1 is not 'LABEL CLIENT_RANDOM SECRET', nor are 1 others" in notes[0]
        assert "sesame" not in notes[0]
        assert requests(trace) == EXPECTED


def test_secrets_leave_no_trace_in_what_is_written(make: Make, tmp_path: Path) -> None:
    made = make()
    secrets = [line.split()[2] for line in made.key_log.read_text().splitlines() if not line.startswith("#")]
    assert secrets
    with conchart.read(made.path, keylog=made.key_log) as trace:
        for name in ("out.json", "out.html", "out.txt"):
            trace.write(tmp_path / name)
            text = (tmp_path / name).read_text()
            assert not [secret for secret in secrets if secret in text]


@pytest.mark.parametrize("command", [(), ("query",)])
def test_the_command_line_takes_key_logs(
    make: Make, command: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    made = make()
    query = ["SELECT status FROM exchanges", "--format", "csv"] if command else []
    with pytest.raises(SystemExit) as left:
        main([*command, str(made.path), *query, "--keylog", str(made.key_log)])
    out, _ = capfd.readouterr()
    assert not left.value.code
    assert ("404" in out) if command else ("; 1 of 1 TLS connection decrypted;" in out)


def test_nothing_is_said_of_keys_that_nobody_gave(make: Make) -> None:
    made = make()
    with conchart.read(made.path) as trace:
        assert trace.coverage.fetchall() == []
        assert "Keys" not in dict(facts(Report(trace)))
        assert trace.sql("SELECT keys, missing_keys FROM handshakes").fetchall() == [(None, None)]


def test_what_keys_are_missing_is_told_by_server_and_connection() -> None:
    with empty_trace() as trace:
        trace.execute("""
            INSERT INTO connections BY NAME SELECT range AS stream, '10.0.0.2' AS server_ip, 8443 AS server_port
            FROM range(5);
            INSERT INTO handshakes BY NAME SELECT *, 0 AS number FROM (VALUES (0, 'all', NULL), (1, 'all', NULL),
                (2, 'none', NULL), (3, 'none', NULL), (4, 'partial', 'SERVER_TRAFFIC_SECRET_0'))
                AS t(stream, keys, missing_keys)
        """)
        cover(trace)
        appraise(trace)
        line = "2 of 5 TLS connections decrypted; none for 10.0.0.2:8443 (2)"
        line += "; missing SERVER_TRAFFIC_SECRET_0 for #4"
        assert dict(facts(Report(trace)))["Keys"] == line
        (remark,) = [remark for remark in remarks(trace) if remark.kind == "keys"]
        assert remark.warning
        assert remark.title == line


CORPUS = os.environ.get("CONCHART_CORPUS")
"""Where captures with a key log are: decrypted connections, and the HTTP/1 requests in them.

Found with ``tshark -o tls.keylog_file:KEYLOG``, which also opens the old suites of wsnotes that conchart cannot.
"""
REAL = {
    "envoymtls__trace-trace.cap": (1, ["GET 200"]),
    "illtls12__captures-capture.pcap": (1, []),
    "illtls13__captures-capture.pcap": (1, []),
    "mercury__data-test_decrypt.pcap": (16, []),
    "ssldump__tls1.2_aes256.pcap": (1, []),
    "ssldump__tls1.3_chacha.pcap": (1, []),
    "ssldump__tls1.3_curl_google.pcap": (1, []),
    "wsnotes__tls-all-dump.pcapng": (12, ["GET 200"] * 12),
    "zeek__tls-tls-1.2-stream-keylog.pcap": (1, ["GET 200"] * 14 + ["GET 304"] * 2),
}


@pytest.mark.skipif(not CORPUS, reason="CONCHART_CORPUS names no folder of captures")
@pytest.mark.parametrize("name", REAL)
def test_real_captures_are_opened(name: str) -> None:
    path = Path(CORPUS or "") / name
    opened, expected = REAL[name]
    with conchart.read(path, keylog=f"{path}.keylog") as trace:
        assert trace.sql("SELECT count(*) FROM handshakes WHERE keys = 'all'").fetchall() == [(opened,)]
        found = trace.sql(
            "SELECT concat_ws(' ', method, status) AS text FROM exchanges WHERE protocol LIKE 'http/1%' ORDER BY text"
        ).fetchall()
        assert [row[0] for row in found] == expected
        off = trace.sql("""
            SELECT stream FROM connections JOIN phases USING (stream) GROUP BY stream, opened_at, closed_at
            HAVING sum(end_at - start_at) <> closed_at - opened_at
        """).fetchall()
        assert off == []
