"""The packed Plotly is Plotly's own, and a page is made without Plotly's Python package."""

import base64
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import conchart
from conchart.outputs.page.page import render
from conchart.outputs.page.plotly_script import PACKED, Unavailable, basic_script, carried, policy_hash, whole_script
from tests.conftest import ROOT

MAKE = """
import sys, zlib
def refuse(*_):
    raise AssertionError("deflated before there is a trace")
zlib.compressobj = refuse
from conchart.outputs.page.page import prepare_page
prepare_page()
assert not [name for name in sys.modules if name.split(".")[0] == "plotly"]
"""


def test_what_pages_carry_is_plotlys_own_script() -> None:
    script, policy = carried()
    text = zlib.decompress(base64.b64decode(script), -15).decode()
    name = text.splitlines()[1]
    assert re.fullmatch(r"\* plotly\.js (\(basic - minified\) )?v[\d.]+", name), "its licence stands in its first lines"
    assert "Licensed under the MIT license" in text[:400]
    # Built with another release of Plotly than the one beside us, the file is that release's.
    if "basic" not in name and name == whole_script().splitlines()[1]:
        assert text == whole_script().replace("\r\n", "\n")
    if "basic" in name:
        assert len(script) < 600_000, "most of a small page"
    assert policy == policy_hash(text)


def test_the_page_of_a_small_capture_is_small() -> None:
    """With the basic bundle: the whole Plotly has 1.4 MB more."""
    script, _ = carried()
    if "basic" not in zlib.decompress(base64.b64decode(script), -15).decode().splitlines()[1]:
        pytest.skip("this build has the whole Plotly: npm was not there")
    with conchart.read(ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap") as trace:
        assert len(render(trace).encode()) <= 910_000


def test_the_basic_bundle_is_the_known_package_or_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The fake npm writes another package; the real one is asked by every build (`.ci/run`)."""
    npm = tmp_path / "npm"
    npm.write_text('#!/bin/sh\necho other > "$4/plotly.tgz"\n')
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(Unavailable, match="another SHA-512"):
        basic_script()
    npm.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(Unavailable, match="npm pack"):
        basic_script()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Unavailable, match="not installed"):
        basic_script()


def test_scripts_draw_what_the_basic_bundle_can() -> None:
    scripts = "\n".join(path.read_text() for path in (ROOT / "conchart/outputs/page/scripts").glob("*.js"))
    traces = set(re.findall(r"\btype: \"(\w+)\"", scripts)) - {"linear", "rect", "line", "button", "checkbox", "text"}
    assert traces == {"scatter", "bar"}


def test_building_packs_the_script() -> None:
    assert PACKED.exists(), "pip install -e '.[test]' writes it"


def test_a_page_is_made_ready_without_deflating_plotly_or_importing_it() -> None:
    done = subprocess.run([sys.executable, "-c", MAKE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
