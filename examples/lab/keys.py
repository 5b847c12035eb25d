"""Throw-away keys of one run of a lab."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

PROGRAM = Path(__file__).with_name("make-keys")


def make_keys(folder: Path, kind: str) -> Path:
    """Have openssl make keys of a ``kind`` (``rsa:2048``, ``ec``) in a new ``folder``; returns it."""
    folder.mkdir(mode=0o700)
    # A group of its own: a signal to the lab ends the openssl behind the script, too.
    made = subprocess.Popen(
        [PROGRAM, folder, kind], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=os.setpgrp
    )
    try:
        _, errors = made.communicate()
    except BaseException:
        os.killpg(made.pid, signal.SIGKILL)
        made.communicate()  # until the last of the group has closed its end
        raise
    if made.returncode:
        raise RuntimeError(f"{PROGRAM.name}: {errors}")
    return folder
