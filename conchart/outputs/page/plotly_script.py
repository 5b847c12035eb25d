"""Plotly's script as every page carries it: deflated once, when conchart is built. That takes longer than a small page.

In: Plotly's basic bundle from npm, which has the kinds of charts that the page draws (scatter, bar); where it cannot be
had, the whole ``plotly.min.js`` inside Plotly's Python package. Out: a file beside this one, or the same made now from
the whole script where conchart runs from sources that nobody built. ``setup.py`` runs this file by itself: it imports
nothing of conchart's.
"""

import base64
import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
import zlib
from importlib import resources
from pathlib import Path

PACKED = Path(__file__).parent / "plotly.json"
"""The script in base64, after raw DEFLATE (RFC 1951), and its hash. The script's first lines name its licence."""

BASIC = "plotly.js-basic-dist-min"
VERSION = "4.1.1"
INTEGRITY = "1oNF8PeQx2hv/y7tqEVWKD3JGwn/MGEMQ8mL9HUwsaqG9FGy/OU5FHUHvzqbqxN4mnwZGI9abTiE775C4kkjMQ=="
"""SHA-512 of the package of that version, in base64, as npm's registry has it."""
_SECONDS = 60


class Unavailable(Exception):
    """The basic bundle cannot be had; the message says why."""


def carried() -> tuple[str, str]:
    """Give the packed script, and the source expression of a content security policy that allows it."""
    stored = json.loads(PACKED.read_text(encoding="ascii") if PACKED.exists() else packed(whole_script()))
    return stored["script"], stored["policy"]


def packed(text: str) -> str:
    """Pack a script."""
    script = text.replace("\r\n", "\n")  # as browsers normalise it before they hash it
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15, 9)
    data = deflate.compress(script.encode()) + deflate.flush()
    return json.dumps({"policy": policy_hash(script), "script": base64.b64encode(data).decode()})


def whole_script() -> str:
    """Read the script of the Python package that is installed."""
    # Not plotly.offline, which imports all of Plotly for it. Where conchart was built, nobody asks: it is packed then.
    return resources.files("plotly").joinpath("package_data", "plotly.min.js").read_text(encoding="utf-8")


def basic_script() -> str:
    """Fetch the basic bundle with npm.

    Raises:
        Unavailable: npm is missing, did not answer in time, or gave something else than the known package.
    """
    npm = shutil.which("npm")
    if not npm:
        raise Unavailable("npm is not installed")
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", "--silent", "--pack-destination", folder, f"{BASIC}@{VERSION}"]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS, cwd=folder)
            (package,) = Path(folder).glob("*.tgz")
        except (OSError, ValueError, subprocess.SubprocessError) as problem:
            raise Unavailable(f"npm pack {BASIC}@{VERSION}: {problem}") from problem
        if base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode() != INTEGRITY:
            raise Unavailable(f"{BASIC}@{VERSION} has another SHA-512 than the known one")
        with tarfile.open(package) as archive:
            member = archive.extractfile("package/plotly-basic.min.js")
            if member is None:
                raise Unavailable(f"{BASIC}@{VERSION} has no plotly-basic.min.js")
            return member.read().decode()


def policy_hash(script: str) -> str:
    """Give the source expression that names an inline script (CSP level 3, section 2.3.1: hash-source)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
