"""Plotly's script as every page carries it: deflated once, when conchart is built. That takes longer than a small page.

In: ``plotly.min.js`` inside Plotly's Python package. Out: a file beside this one, or the same made now where conchart
runs from sources that nobody built. ``setup.py`` runs this file by itself: it imports nothing of conchart's.
"""

import base64
import hashlib
import json
import zlib
from importlib import resources
from pathlib import Path

PACKED = Path(__file__).parent / "plotly.json"
"""The script in base64, after raw DEFLATE (RFC 1951), and its hash. The script's first lines name its licence."""


def carried() -> tuple[str, str]:
    """Give the packed script, and the source expression of a content security policy that allows it."""
    told = json.loads(PACKED.read_text(encoding="ascii") if PACKED.exists() else packed())
    return told["script"], told["policy"]


def packed() -> str:
    """Pack the script of the package that is installed."""
    # Not plotly.offline, which imports all of Plotly for it.
    text = resources.files("plotly").joinpath("package_data", "plotly.min.js").read_text(encoding="utf-8")
    script = text.replace("\r\n", "\n")  # as browsers normalise it before they hash it
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15, 9)
    data = deflate.compress(script.encode()) + deflate.flush()
    return json.dumps({"policy": policy_hash(script), "script": base64.b64encode(data).decode()})


def policy_hash(script: str) -> str:
    """Give the source expression that names an inline script (CSP level 3, section 2.3.1: hash-source)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
