"""Plotly as every page carries it, packed once: deflating 4.8 MB took longer than all the rest of a small page.

    python -m tests.charts.pack_plotly

In: the script inside Plotly's Python package, its licence. Out: `conchart/charts/plotly`. A test compares the two.
"""

import json
import zlib
from importlib import metadata, resources
from pathlib import Path

from conchart.charts.document import policy_hash
from tests.conftest import ROOT

FOLDER = ROOT / "conchart/charts/plotly"


def script() -> str:
    """Give Plotly's script, with the ends of lines that browsers make of all others before they hash it."""
    text = resources.files("plotly").joinpath("package_data", "plotly.min.js").read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")


def licence() -> str:
    """Give the licence that Plotly's package has."""
    (path,) = (path for path in metadata.files("plotly") or () if path.name == "LICENSE.txt")
    return Path(str(path.locate())).read_text(encoding="utf-8")


def main() -> None:
    """Write the folder."""
    text = script()
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15, 9)
    packed = deflate.compress(text.encode()) + deflate.flush()
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "plotly.min.js.deflate").write_bytes(packed)
    about = {"package": f"plotly {metadata.version('plotly')}", "policy": policy_hash(text)}
    (FOLDER / "about.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    (FOLDER / "LICENSE").write_text(licence(), encoding="utf-8")


if __name__ == "__main__":
    main()
