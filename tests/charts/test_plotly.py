"""The packed Plotly is Plotly's own, and a page is made without Plotly's Python package."""

import json
import subprocess
import sys
import zlib
from importlib import metadata

from conchart.charts.document import policy_hash
from tests.charts.pack_plotly import FOLDER, licence, script

RENEW = "python -m tests.charts.pack_plotly writes it anew"

MAKE = """
import sys, zlib
def refuse(*_):
    raise AssertionError("deflated before there is a trace")
zlib.compressobj, deflate = refuse, zlib.compressobj
from conchart.charts.page import prepare_page
prepare_page()
assert not [name for name in sys.modules if name.split(".")[0] == "plotly"]
"""


def test_what_pages_carry_is_plotlys_own_script_with_its_licence() -> None:
    about = json.loads((FOLDER / "about.json").read_text(encoding="utf-8"))
    assert about["package"] == f"plotly {metadata.version('plotly')}", RENEW
    carried = zlib.decompress((FOLDER / "plotly.min.js.deflate").read_bytes(), -15).decode()
    assert carried == script(), RENEW
    assert about["policy"] == policy_hash(carried)
    assert (FOLDER / "LICENSE").read_text(encoding="utf-8") == licence()


def test_a_page_is_made_ready_without_deflating_plotly_or_importing_it() -> None:
    done = subprocess.run([sys.executable, "-c", MAKE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
