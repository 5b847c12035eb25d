"""TLS bytes made from nothing: hello messages, records and whole handshakes as what each side says.

In: names, versions, sizes. Out: bytes that a dissector accepts (RFC 5246, RFC 8446). No cryptography: what would be
encrypted is filler of a realistic length, because an observer without keys sees no more than that.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

CCS, ALERT, HANDSHAKE, APPLICATION = 20, 21, 22, 23
TLS12_CIPHERS = (0xC02F, 0xC030, 0xCCA8, 0x009C)
TLS13_CIPHERS = (0x1301, 0x1302, 0x1303)
CIPHERS = {
    0x009C: "TLS_RSA_WITH_AES_128_GCM_SHA256",
    0x1301: "TLS_AES_128_GCM_SHA256",
    0x1302: "TLS_AES_256_GCM_SHA384",
    0x1303: "TLS_CHACHA20_POLY1305_SHA256",
    0xC02F: "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    0xC030: "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    0xCCA8: "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
}
"""As IANA registered them."""
RETRY_RANDOM = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""A ServerHello with this random is a HelloRetryRequest (RFC 8446 section 4.1.3)."""

Kind = Literal["full", "session-id", "ticket", "psk", "psk-0rtt"]
Speaker = Literal["client", "server"]
Message = tuple[Speaker, bytes]


def filler(length: int, seed: object = 0) -> bytes:
    """Deterministic bytes that look encrypted: the same seed gives the same bytes."""
    return hashlib.shake_128(repr(seed).encode()).digest(length)


def vector(body: bytes, width: int) -> bytes:
    """A variable-length vector: a length of ``width`` bytes, then the body (RFC 8446 section 3.4)."""
    return len(body).to_bytes(width, "big") + body


def record(kind: int, body: bytes, version: int = 0x0303) -> bytes:
    """One TLS record (RFC 8446 section 5.1)."""
    return bytes([kind]) + version.to_bytes(2, "big") + vector(body, 2)


def message(kind: int, body: bytes) -> bytes:
    """One handshake message (RFC 8446 section 4)."""
    return bytes([kind]) + vector(body, 3)


def extension(kind: int, body: bytes) -> bytes:
    """One hello extension (RFC 8446 section 4.2)."""
    return kind.to_bytes(2, "big") + vector(body, 2)


def application(length: int, seed: object = 0) -> bytes:
    """Application data whose ciphertext is ``length`` bytes, in records of at most 16 KiB + 16."""
    whole, rest = divmod(length, 16_400)
    sizes = [16_400] * whole + ([rest] if rest else [])
    return b"".join(record(APPLICATION, filler(size, (seed, number))) for number, size in enumerate(sizes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """What one handshake shall be."""

    version: Literal["TLSv1.2", "TLSv1.3"] = "TLSv1.3"
    kind: Kind = "full"
    sni: str | None = "www.example.com"
    alpn: str | None = None
    """Offered always; chosen by the server in clear with TLS 1.2 only."""
    cipher: int = 0x1301
    retry: bool = False
    """The server answers the first ClientHello with a HelloRetryRequest (TLS 1.3)."""
    certificate_bytes: int = 900
    tickets: int = 2
    """NewSessionTicket messages after a TLS 1.3 handshake."""
    seed: int = 0

    def messages(self) -> list[Message]:
        """Who says what, up to and with the last handshake byte, in order."""
        return _tls13(self) if self.version == "TLSv1.3" else _tls12(self)


def client_hello(tls: Tls, *, second: bool = False) -> bytes:
    """A ClientHello message without its record header."""
    modern = tls.version == "TLSv1.3"
    session = filler(32, ("session", tls.seed)) if modern or tls.kind == "session-id" else b""
    ciphers = (*TLS13_CIPHERS, *TLS12_CIPHERS) if modern else TLS12_CIPHERS
    extensions = []
    if tls.sni is not None:
        extensions.append(extension(0, vector(b"\0" + vector(tls.sni.encode(), 2), 2)))
    extensions.append(extension(10, vector(b"\0\x1d\0\x17\0\x18", 2)))
    extensions.append(extension(11, vector(b"\0", 1)))
    extensions.append(extension(35, filler(176, ("ticket", tls.seed)) if tls.kind == "ticket" else b""))
    if tls.alpn is not None:
        extensions.append(extension(16, vector(vector(tls.alpn.encode(), 1), 2)))
    extensions.append(extension(13, vector(bytes.fromhex("040308040401050308050501"), 2)))
    extensions.append(extension(23, b""))
    if modern:
        group = b"\0\x17" if second else b"\0\x1d"
        share = group + vector(filler(65 if second else 32, ("share", tls.seed)), 2)
        extensions.append(extension(43, vector(b"\x03\x04\x03\x03", 1)))
        extensions.append(extension(45, vector(b"\1", 1)))
        extensions.append(extension(51, vector(share, 2)))
        if tls.kind == "psk-0rtt" and not second:
            extensions.append(extension(42, b""))
        if tls.kind in ("psk", "psk-0rtt"):
            identity = vector(filler(192, ("psk", tls.seed)), 2) + filler(4, tls.seed)
            binder = vector(filler(32, ("binder", tls.seed)), 1)
            extensions.append(extension(41, vector(identity, 2) + vector(binder, 2)))  # the last one: RFC 8446 4.2.11
    body = b"\x03\x03" + filler(32, ("client", tls.seed)) + vector(session, 1)
    body += vector(b"".join(code.to_bytes(2, "big") for code in ciphers), 2) + vector(b"\0", 1)
    return message(1, body + vector(b"".join(extensions), 2))


def server_hello(tls: Tls, *, retry: bool = False) -> bytes:
    """A ServerHello, or a HelloRetryRequest, without its record header."""
    modern = tls.version == "TLSv1.3"
    random = RETRY_RANDOM if retry else filler(32, ("server", tls.seed))
    session = filler(32, ("session", tls.seed)) if modern or tls.kind == "session-id" else b""
    if not modern and tls.kind == "full":
        session = filler(32, ("new session", tls.seed))
    extensions = []
    if modern:
        extensions.append(extension(43, b"\x03\x04"))
        group = b"\0\x17" if tls.retry else b"\0\x1d"
        share = group if retry else group + vector(filler(65 if tls.retry else 32, ("server share", tls.seed)), 2)
        extensions.append(extension(51, share))
        if tls.kind in ("psk", "psk-0rtt") and not retry:
            extensions.append(extension(41, b"\0\0"))
    else:
        extensions.append(extension(0xFF01, b"\0"))
        if tls.alpn is not None:
            extensions.append(extension(16, vector(vector(tls.alpn.encode(), 1), 2)))
    body = b"\x03\x03" + random + vector(session, 1) + tls.cipher.to_bytes(2, "big") + b"\0"
    return message(2, body + vector(b"".join(extensions), 2))


def _der(tag: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return bytes([tag]) + (b"\x82" + vector(body, 2) if len(body) > 127 else vector(body, 1))


def certificate(tls: Tls) -> bytes:
    """An X.509 version 3 certificate (RFC 5280 section 4.1) of about ``certificate_bytes``; its signature is filler."""
    sha256_rsa = _der(0x30, _der(6, bytes.fromhex("2a864886f70d01010b")), _der(5))
    rsa = _der(0x30, _der(6, bytes.fromhex("2a864886f70d010101")), _der(5))
    common_name = _der(0x30, _der(6, b"\x55\x04\x03"), _der(12, b"conchart test"))
    name = _der(0x30, _der(0x31, common_name))
    validity = _der(0x30, _der(0x17, b"200101000000Z"), _der(0x17, b"491231235959Z"))
    key = _der(0x30, _der(2, b"\0" + filler(256, ("modulus", tls.seed))), _der(2, b"\1\0\1"))
    version, serial = _der(0xA0, _der(2, b"\2")), _der(2, b"\1")
    body = _der(0x30, version, serial, sha256_rsa, name, validity, name, _der(0x30, rsa, _der(3, b"\0" + key)))
    signature = filler(max(tls.certificate_bytes - len(body) - len(sha256_rsa) - 9, 128), ("signature", tls.seed))
    return _der(0x30, body, sha256_rsa, _der(3, b"\0" + signature))


def _tls12(tls: Tls) -> list[Message]:
    """RFC 5246 section 7.3; figure 1 for a full handshake, figure 2 for a resumed one."""
    hello = record(HANDSHAKE, client_hello(tls), 0x0301)
    change, finished = record(CCS, b"\1"), record(HANDSHAKE, filler(40, ("finished", tls.seed)))
    if tls.kind != "full":
        reply = record(HANDSHAKE, server_hello(tls))
        return [("client", hello), ("server", reply + change + finished), ("client", change + finished)]
    exchange = b"\3\0\x1d" + vector(filler(32, ("ecdhe", tls.seed)), 1) + b"\4\1" + vector(filler(256, tls.seed), 2)
    flight = b"".join(
        record(HANDSHAKE, part)
        for part in (
            server_hello(tls),
            message(11, vector(vector(certificate(tls), 3), 3)),
            message(12, exchange),
            message(14, b""),
        )
    )
    key = record(HANDSHAKE, message(16, vector(filler(32, ("client ecdhe", tls.seed)), 1)))
    ticket = record(HANDSHAKE, message(4, bytes(4) + vector(filler(176, ("new ticket", tls.seed)), 2)))
    return [
        ("client", hello),
        ("server", flight),
        ("client", key + change + finished),
        ("server", ticket + change + finished),
    ]


def _tls13(tls: Tls) -> list[Message]:
    """RFC 8446 section 2, with the dummy ChangeCipherSpec records of appendix D.4."""
    change = record(CCS, b"\1")
    early = record(APPLICATION, filler(120, ("early", tls.seed))) if tls.kind == "psk-0rtt" else b""
    messages: list[Message] = [("client", record(HANDSHAKE, client_hello(tls), 0x0301) + early)]
    if tls.retry:
        messages.append(("server", record(HANDSHAKE, server_hello(tls, retry=True)) + change))
        messages.append(("client", change + record(HANDSHAKE, client_hello(tls, second=True))))
    lengths = [23, 53] if tls.kind != "full" else [23, tls.certificate_bytes + 25, 281, 53]
    flight = record(HANDSHAKE, server_hello(tls)) + (b"" if tls.retry else change)
    flight += b"".join(record(APPLICATION, filler(size, (tls.seed, size))) for size in lengths)
    end_of_early = record(APPLICATION, filler(21, ("end of early data", tls.seed))) if early else b""
    finished = record(APPLICATION, filler(53, ("client finished", tls.seed)))
    messages.append(("server", flight))
    messages.append(("client", (b"" if tls.retry else change) + end_of_early + finished))
    if tls.tickets:
        tickets = (record(APPLICATION, filler(250, ("ticket", tls.seed, number))) for number in range(tls.tickets))
        messages.append(("server", b"".join(tickets)))
    return messages
