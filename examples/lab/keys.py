"""Throw-away keys of one run of a lab."""

from __future__ import annotations

import subprocess
from pathlib import Path

PROGRAM = Path(__file__).with_name("make-keys")


def make_keys(folder: Path, kind: str) -> Path:
    """Have openssl make keys of a ``kind`` (``rsa:2048``, ``ec``) in a new ``folder``; returns it."""
    folder.mkdir(mode=0o700)
    made = subprocess.run([PROGRAM, folder, kind], capture_output=True, text=True)
    if made.returncode:
        raise RuntimeError(f"{PROGRAM.name}: {made.stderr}")
    return folder
