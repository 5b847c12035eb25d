"""The packed Plotly is Plotly's own, and a page is made without Plotly's Python package."""

import base64
import subprocess
import sys
import zlib
from importlib import resources

from conchart.charts.plotly_script import PACKED, carried, policy_hash

MAKE = """
import sys, zlib
def refuse(*_):
    raise AssertionError("deflated before there is a trace")
zlib.compressobj = refuse
from conchart.charts.page import prepare_page
prepare_page()
assert not [name for name in sys.modules if name.split(".")[0] == "plotly"]
"""


def test_what_pages_carry_is_plotlys_own_script() -> None:
    script, policy = carried()
    text = zlib.decompress(base64.b64decode(script), -15).decode()
    own = resources.files("plotly").joinpath("package_data", "plotly.min.js").read_text(encoding="utf-8")
    assert text.splitlines()[1].startswith("* plotly.js v"), "its licence stands in its first lines"
    assert "Licensed under the MIT license" in text[:400]
    # Built with another release of Plotly than the one beside us, the file is that release's.
    if text.splitlines()[1] == own.splitlines()[1]:
        assert text == own.replace("\r\n", "\n")
    assert policy == policy_hash(text)


def test_building_packs_the_script() -> None:
    assert PACKED.exists(), "pip install -e '.[test]' writes it"


def test_a_page_is_made_ready_without_deflating_plotly_or_importing_it() -> None:
    done = subprocess.run([sys.executable, "-c", MAKE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
