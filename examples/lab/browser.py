"""Chromium's command line for a site of the lab, over HTTP/3 from its first packet on."""

from __future__ import annotations

import base64
import hashlib
import subprocess
from pathlib import Path


def browser(certificate: Path, name: str, *, quic: bool = True) -> list[str]:
    """Return the words before the URL: no window, a profile and a netlog in its working directory.

    It trusts the key of ``certificate``. With ``quic`` it speaks HTTP/3 to ``name`` without being told by Alt-Svc.
    """
    return [
        "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
        "--disable-component-update", "--no-first-run", "--disable-sync", "--disable-default-apps",
        f"--ignore-certificate-errors-spki-list={key_hash(certificate)}",
        *[f"--origin-to-force-quic-on={name}:443"] * quic,
        "--user-data-dir=profile", "--log-net-log=net.json", "--net-log-capture-mode=IncludeSensitive", "--dump-dom",
    ]  # fmt: skip


def key_hash(certificate: Path) -> str:
    """Hash a certificate's public key as Chromium wants it: SHA-256 of SubjectPublicKeyInfo, in base64."""
    key = subprocess.run(["openssl", "x509", "-in", certificate, "-pubkey", "-noout"], check=True, capture_output=True)
    words = ["openssl", "pkey", "-pubin", "-outform", "der"]
    der = subprocess.run(words, check=True, input=key.stdout, capture_output=True)
    return base64.b64encode(hashlib.sha256(der.stdout).digest()).decode()
