"""A certificate that needs many packets: it has many names, and an RSA key and signature of 4,096 bits."""

from __future__ import annotations

import subprocess
from pathlib import Path

from alley import NAME

NAMES = 150


def long_chain(keys: Path) -> Path:
    """Make it beside the keys of the lab, signed by the same authority; returns the certificate."""
    names = [NAME, *(f"customer-{number:03}.{NAME}" for number in range(NAMES))]
    certificate, request, extensions = keys / "long.crt", keys / "long.csr", keys / "long.ext"
    extensions.write_text("subjectAltName=" + ",".join(f"DNS:{name}" for name in names) + "\n")
    for words in (
        ["req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={NAME}", "-keyout", keys / "long.key", "-out", request],
        ["x509", "-req", "-in", request, "-days", "2", "-CA", keys / "authority.crt", "-CAkey", keys / "authority.key",
         "-CAcreateserial", "-extfile", extensions, "-out", certificate],
    ):  # fmt: skip
        subprocess.run(["openssl", *words], check=True, capture_output=True)
    return certificate
