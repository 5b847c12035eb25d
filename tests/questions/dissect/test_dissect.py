"""Scapy, in its own process, says what the core says; and whatever it is given, it ends with an answer."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from conchart.errors import ConchartError, MissingToolError
from conchart.questions import dissect as dissecting
from conchart.questions.dissect import Field, HandshakeMessage, dissect
from tests.laws.reading import Row, read
from tests.questions.dissect.captured import CLIENT_HELLO, PATHS, SERVER_HELLO, streams

CERTIFICATE, SERVER_KEY_EXCHANGE, CERTIFICATE_REQUEST = 11, 12, 13
HELLO_RETRY = "cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c"
"""The random that makes a HelloRetryRequest of a ServerHello (RFC 8446 section 4.1.3)."""
VERSIONS = ("SSLv3", "TLSv1.0", "TLSv1.1", "TLSv1.2", "TLSv1.3")

Message = tuple[HandshakeMessage, list[Field]]


def below(fields: list[Field], name: str) -> list[Field]:
    """The field of that name and what is nested in it."""
    start = next((place for place, field in enumerate(fields) if field.name == name), len(fields))
    end = next(
        (place for place in range(start + 1, len(fields)) if fields[place].depth <= fields[start].depth), len(fields)
    )
    return fields[start:end]


def values(fields: list[Field], extension: str, one: str) -> list[str]:
    """The values of a list, also where its only one stands beside its name."""
    found = below(fields, extension)
    return [field.value for field in found if field.name == one] or [field.value for field in found[:1]]


def named(fields: list[Field], name: str) -> str | None:
    return next((field.value for field in fields if field.name == name), None)


def hellos(messages: list[Message], kind: int) -> list[list[Field]]:
    return [fields for message, fields in messages if message.kind == kind]


def facts_of_scapy(messages: list[Message], row: Row) -> Iterator[tuple[str, object]]:
    """What scapy's fields say of a handshake, by the columns of ``handshakes``."""
    of_clients, of_servers = hellos(messages, CLIENT_HELLO), hellos(messages, SERVER_HELLO)
    retries = [fields for fields in of_servers if named(fields, "random") == HELLO_RETRY]
    if of_clients:
        first = of_clients[0]
        extensions = {field.name for field in below(first, "extensions")}
        offered = values(first, "supported_versions", "version") or values(first, "version", "version")
        resumes = "pre_shared_key" in extensions, bool(named(first, "session_ticket"))
        yield "version_offered", max((v for v in offered if v in VERSIONS), key=VERSIONS.index)
        yield "client_random", named(first, "random")
        yield "sni", named(first, "server_name")
        protocols = values(first, "application_layer_protocol_negotiation", "protocol")
        yield "alpn_offered", ",".join(protocols) or None
        shares = [group for group in values(first, "key_share", "group") if "GREASE" not in group]
        yield "key_shares", ",".join(shares) or None
        yield "ech", "encrypted_client_hello" in extensions
        yield "early_data_offered", "early_data" in extensions
        yield (
            "ticket_offered",
            ("psk_key_exchange_modes" if (row["version"] or row["version_offered"]) == "TLSv1.3" else "session_ticket")
            in extensions,
        )
        if any(resumes):
            yield "resumption_offered", "psk" if resumes[0] else "ticket"
        yield "client_hello_bytes", 4 + len(next(m.body for m, _ in messages if m.kind == CLIENT_HELLO))
    if of_servers:
        yield "hello_retry", bool(retries)
    if answers := [fields for fields in of_servers if fields not in retries]:
        chosen = answers[-1]
        version = named(chosen, "supported_versions") or named(chosen, "version")
        yield "version", version
        yield "cipher", named(chosen, "cipher suite")
        if version == "TLSv1.3":
            yield "named_group", named(below(chosen, "key_share"), "group")
            yield "kind", row["kind"] if "psk" in row["kind"] and named(chosen, "pre_shared_key") else "full"
        else:
            yield "alpn", named(chosen, "application_layer_protocol_negotiation")
            yield "session_id_issued", named(chosen, "session ID") not in ("empty", named(of_clients[0], "session ID"))
            certificates = [f for m, f in messages if m.kind == CERTIFICATE and m.sender == "server"]
            yield "kind", "full" if certificates else row["kind"] if row["kind"] != "full" else "resumed"
            if certificates:
                count = named(certificates[0], "certificates")
                yield "certificates", int(count) if count else None
                yield "client_auth", bool(hellos(messages, CERTIFICATE_REQUEST))
    for fields in hellos(messages, SERVER_KEY_EXCHANGE):
        yield "named_group", named(fields, "named curve")


@pytest.mark.timeout(300)
@pytest.mark.thorough
def test_scapy_and_the_core_agree_on_every_handshake_in_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dissecting, "TIME_LIMIT_S", 240)
    rows: dict[tuple[Path, int], Row] = {}
    messages: list[tuple[tuple[Path, int], HandshakeMessage]] = []
    for path in PATHS:
        tables = read(path)
        of_capture = {row["stream"]: row for row in tables.handshakes if row["number"] == 0}
        senders = {
            row["frame"]: (row["stream"], row["sender"]) for row in tables.packets if row["stream"] in of_capture
        }
        for number, stream in streams(path, senders).items():
            rows[path, number] = of_capture[number]
            messages += [((path, number), each) for each in stream.messages(of_capture[number]["version"])]
    dissected: dict[tuple[Path, int], list[Message]] = defaultdict(list)
    for (handshake, message), fields in zip(messages, dissect([each for _, each in messages]), strict=True):
        dissected[handshake].append((message, fields))
    compared = [
        (handshake, column, value, rows[handshake][column])
        for handshake, of_one in dissected.items()
        for column, value in facts_of_scapy(of_one, rows[handshake])
    ]
    assert not [each for each in compared if each[2] != each[3]]
    assert len(dissected) > 500
    columns = {column for _, column, *_ in compared}
    assert columns >= {"version", "cipher", "sni", "alpn", "named_group", "kind", "certificates"}
    assert not [fields for of_one in dissected.values() for _, fields in of_one if named(fields, "undissected")]


def message(kind: int, body: str, version: str = "TLSv1.3", sender: str = "server") -> HandshakeMessage:
    return HandshakeMessage(kind=kind, version=version, body=bytes.fromhex(body), sender=sender)


def shown(fields: list[Field]) -> list[str]:
    return [f"{'  ' * field.depth}{field.name}: {field.value}".rstrip() for field in fields]


def test_what_tls_1_3_seals_is_read_when_it_was_opened() -> None:
    extensions, verify, finished, ticket, update = dissect(
        [
            message(8, "000b 0010 0005 0003 02 6832 0000 0000".replace(" ", "")),
            message(15, "0804 0004 01020304".replace(" ", "")),
            message(20, "ab" * 48),
            message(4, "00000e10 00000007 01 00 0002 beef 0008 002a 0004 00004000".replace(" ", "")),
            message(24, "01"),
        ]
    )
    assert shown(extensions) == [
        "extensions: 2",
        "  application_layer_protocol_negotiation: h2",
        "  server_name:",
    ]
    assert shown(verify) == ["signature:", "  algorithm: rsa_pss_rsae_sha256", "  signature: 01020304"]
    assert shown(finished) == ["verify data: 48 bytes, " + "ab" * 16 + "…"]
    assert shown(ticket)[:4] == ["ticket lifetime: 3600", "ticket age add: 7", "ticket nonce: 00", "ticket: beef"]
    assert shown(update) == ["request update: update_requested"]


def test_a_key_exchange_is_read_by_the_cipher_suite_before_it() -> None:
    hello = "0303" + "00" * 32 + "00" + "c02f" + "00"  # TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
    before, _, of_client = dissect(
        [
            message(16, "03aabbcc", "TLSv1.2", "client"),
            message(2, hello, "TLSv1.2"),
            message(16, "03aabbcc", "TLSv1.2", "client"),
        ]
    )
    assert shown(before) == ["key exchange: 03aabbcc"]
    assert shown(of_client) == ["key exchange: aabbcc"]


def test_a_message_that_scapy_cannot_read_leaves_the_others_alone() -> None:
    fine = message(24, "01")
    unknown, first, long, cut, second = dissect(
        [message(99, "00"), fine, message(1, "00" * (dissecting.MOST_BYTES + 1)), message(2, "0303"), fine]
    )
    assert shown(unknown) == ["undissected: 1 bytes: scapy does not support this type of message"]
    assert first == second == [Field("request update", "update_requested", 0)]
    assert shown(long) == [f"undissected: {dissecting.MOST_BYTES + 1:,} bytes: too long for scapy"]
    assert cut[0].name == "undissected"


def test_hostile_messages_are_answered_in_short_and_in_print() -> None:
    sample = random.Random(8446)
    real = [
        each
        for path in PATHS[::40]
        for tables in [read(path)]
        for stream in streams(path, {row["frame"]: (row["stream"], row["sender"]) for row in tables.packets}).values()
        for each in stream.messages("TLSv1.2")
    ][:100]
    hostile = []
    for each in [*real, *real]:
        body = bytearray(each.body)
        for _ in range(sample.randrange(1, 8)):
            if body:
                body[sample.randrange(len(body))] = sample.choice((0, 1, 0x1B, 0x7F, 0xFF, sample.randrange(256)))
        version = sample.choice((*VERSIONS, None))
        hostile.append(HandshakeMessage(kind=each.kind, version=version, body=bytes(body), sender=each.sender))
    hostile += [message(kind, sample.randbytes(50).hex()) for kind in range(256)]
    # As many cipher suites as there is room for.
    hostile.append(message(1, "0303" + "00" * 32 + "00" + "fffe" + "1301" * 0x7FFF + "0100"))
    answers = dissect(hostile)
    assert len(answers) == len(hostile)
    assert len(answers[-1]) < 100
    assert any(fields[0].name != "undissected" for fields in answers if fields)
    for fields in answers:
        assert len(fields) <= 401
        for field in fields:
            assert field.name.isprintable()
            assert field.value.isprintable()
            assert len(field.value) <= 250


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("import os; print('[]', flush=True); os._exit(7)", "scapy ended with 7"),
        ("import time; print('[]', flush=True); time.sleep(60)", "scapy took longer than 1 s"),
        ("print('[]'); print('[[\"cut', end='')", "scapy ended with 0"),
    ],
)
def test_what_was_said_before_the_end_counts(
    script: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "script.py").write_text(script)
    monkeypatch.setattr(dissecting, "SCRIPT", tmp_path / "script.py")
    monkeypatch.setattr(dissecting, "TIME_LIMIT_S", 1)
    assert dissect([message(24, "01"), message(24, "01")]) == [[], [Field("undissected", f"1 bytes: {why}", 0)]]


@pytest.mark.parametrize("tool", ["scapy", "cryptography"])
def test_without_scapy_it_is_said_what_is_missing(tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(dissecting, "find_spec", lambda name: None if name == tool else found(name))
    with pytest.raises(MissingToolError, match=f"need {tool}.*\n.*pip install 'conchart\\[dissect\\]'") as error:
        dissect([])
    assert isinstance(error.value, ConchartError)
    assert error.value.exit_code == 2


def test_scapy_and_the_core_are_never_one_process() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", str(dissecting.SCRIPT)],
        input=json.dumps([{"kind": 24, "version": "TLSv1.3", "body": "01"}]).encode(),
        capture_output=True,
        check=True,
    )
    modules = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.decode().splitlines()}
    assert "scapy" in modules
    assert not modules & {"conchart", "duckdb"}
    asking = "import sys, conchart.trace, conchart.questions.dissect as d; d.dissect([d.HandshakeMessage("
    asking += "kind=24, version='TLSv1.3', body=b'1', sender='client')]); sys.exit('scapy' in sys.modules)"
    subprocess.run([sys.executable, "-c", asking], check=True)
