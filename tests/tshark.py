"""tshark's answers, asked once: the same question about the same bytes is answered from a cache that git ignores.

In: tshark's arguments. Out: what it prints. The cache lies in pytest's own folder: `pytest --cache-clear` empties it.
"""

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CACHE = ROOT / ".pytest_cache" / "tshark"
KEYLOG = "tls.keylog_file:"
"""Begins an argument that names a file."""


class TsharkError(Exception):
    """tshark is missing, failed, or said nothing."""


def installed() -> bool:
    """Whether there is a tshark to ask."""
    return shutil.which("tshark") is not None


needs_tshark = pytest.mark.skipif(not installed(), reason="tshark is not installed")


def ask(arguments: Sequence[str | Path], timeout: float = 300) -> str:
    """Give what tshark prints, from the cache where it was asked before.

    Raises:
        TsharkError: It failed, and printed nothing.
    """
    cached = CACHE / _digest(arguments)
    if cached.exists():
        return zlib.decompress(cached.read_bytes()).decode()
    text = _run(arguments, timeout)
    CACHE.mkdir(parents=True, exist_ok=True)
    # Written whole or not at all: other processes of pytest ask at the same time.
    with tempfile.NamedTemporaryFile(dir=CACHE, delete=False) as file:
        file.write(zlib.compress(text.encode()))
    Path(file.name).replace(cached)
    return text


def _run(arguments: Sequence[str | Path], timeout: float) -> str:
    # Its own empty home: nobody's profile changes the answers.
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"HOME": home, "XDG_CONFIG_HOME": home, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        done = subprocess.run(["tshark", *arguments], capture_output=True, env=environment, timeout=timeout)
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode and not text:
        raise TsharkError(done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or done.returncode)
    return text


def _digest(arguments: Sequence[str | Path]) -> str:
    """Give a question its name: the version of tshark, the words, and the contents of files, wherever they are."""
    whole = hashlib.sha256(_version())
    for argument in arguments:
        word = str(argument)
        path = Path(word.removeprefix(KEYLOG))
        content = hashlib.sha256(path.read_bytes()).digest() if path.is_file() else word.encode()
        whole.update(hashlib.sha256(KEYLOG.encode() * word.startswith(KEYLOG) + content).digest())
    return whole.hexdigest()


@functools.cache
def _version() -> bytes:
    return subprocess.run(["tshark", "--version"], capture_output=True, check=True).stdout.splitlines()[0]
