"""What is measured in one process: every combination of version, cipher, key, way to shake hands, and bytes."""

from __future__ import annotations

from dataclasses import dataclass

from study import BYTES

KEYS = {"RSA-2048": "rsa:2048", "RSA-4096": "rsa:4096", "ECDSA P-256": "ec"}
"""By name in the tables: what ``lab/make-keys`` calls it."""
HOWS = {"1.2": ("full", "session-id", "ticket"), "1.3": ("full", "psk", "0rtt")}
SUITES = {
    "1.2": {
        "AES128-GCM": "ECDHE-{}-AES128-GCM-SHA256",
        "AES256-GCM": "ECDHE-{}-AES256-GCM-SHA384",
        "ChaCha20-Poly1305": "ECDHE-{}-CHACHA20-POLY1305",
        "NULL-SHA": "ECDHE-{}-NULL-SHA",
    },
    "1.3": {
        "AES128-GCM": "TLS_AES_128_GCM_SHA256",
        "AES256-GCM": "TLS_AES_256_GCM_SHA384",
        "ChaCha20-Poly1305": "TLS_CHACHA20_POLY1305_SHA256",
    },
}
"""As OpenSSL calls them. TLS 1.3 has no NULL: the nearest, TLS_SHA256_SHA256 of RFC 9150, is not in OpenSSL 3.0."""
GROUPS = ("X25519", "X25519MLKEM768")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One combination."""

    version: str
    cipher: str
    key: str
    how: str
    bytes: int
    """Each way."""

    @property
    def suite(self) -> str:
        """The cipher suite in OpenSSL's words."""
        return SUITES[self.version][self.cipher].format("ECDSA" if self.key.startswith("ECDSA") else "RSA")


@dataclass(frozen=True, kw_only=True)
class GoCell:
    """One combination in Go, which speaks TLS 1.3 with AES128-GCM."""

    group: str
    key: str
    how: str
    bytes: int


CELLS = [
    Cell(version=version, cipher=cipher, key=key, how=how, bytes=size)
    for version, ciphers in SUITES.items()
    for cipher in ciphers
    for key in KEYS
    for how in HOWS[version]
    for size in BYTES
]
GO_CELLS = [
    GoCell(group=group, key=key, how=how, bytes=size)
    for key in KEYS
    for how in ("full", "psk")
    for size in BYTES
    for group in GROUPS
]
