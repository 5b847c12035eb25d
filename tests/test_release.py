"""The program that builds releases: what it names exists, and it refuses what is no release."""

import json
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests import third_party
from tests.conftest import ROOT

PROGRAM = ROOT / "docs/build-release"


@pytest.fixture(scope="module")
def release() -> dict[str, Any]:
    return runpy.run_path(str(PROGRAM))


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    ended = subprocess.run([sys.executable, PROGRAM, "--into", tmp_path], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == f"{tmp_path} is not empty\n"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_tests_that_it_runs_exist(release: dict[str, Any]) -> None:
    for name in (*release["QUICK"], release["STORIES"]):
        assert (ROOT / name).exists(), name


def test_the_sbom_has_the_crates_whose_licences_a_wheel_lists(release: dict[str, Any]) -> None:
    if not shutil.which("cargo"):
        pytest.skip("cargo is not installed: nobody knows what the core is built of")
    command = ["cargo", "metadata", "--locked", "--format-version=1", "--features=extension-module"]
    command += ["--filter-platform=x86_64-unknown-linux-gnu", f"--manifest-path={third_party.MANIFEST}"]
    graph = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    found = {f"{package['name']} {package['version']}" for package in release["crates"](graph)}
    listed = set(re.findall(r"^- (\S+ \S+): ", third_party.LIST.read_text(encoding="utf-8"), re.MULTILINE))
    assert len(found) > 50
    assert found <= listed


NEEDED: tuple[str, ...] = (
    "conchart/outputs/page/plotly.json",
    "conchart/_native.abi3.so",
    "x.dist-info/licenses/LICENSE",
)
NEEDED += ("x.dist-info/licenses/conchart/native/THIRD-PARTY.md", "x.data/data/share/man/man1/conchart.1")


@pytest.mark.parametrize(
    ("names", "platform", "message"),
    [
        (NEEDED, "manylinux_2_34_x86_64", "auditwheel finds another platform"),
        (NEEDED[1:], "manylinux_2_17_x86_64", "has no /page/plotly.json"),
        ((*NEEDED, "conchart/native/src/lib.rs"), "manylinux_2_17_x86_64", "has sources or tests"),
        ((*NEEDED, "large"), "manylinux_2_17_x86_64", "16.0 MB, more than 15"),
        (NEEDED, "manylinux_2_17_x86_64", ""),
    ],
)
def test_a_wheel_that_is_no_release_is_refused(
    release: dict[str, Any], tmp_path: Path, names: tuple[str, ...], platform: str, message: str
) -> None:
    wheel = tmp_path / "conchart.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in names:
            archive.writestr(name, "x" * (16_000_000 if name == "large" else 1))
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "auditwheel").write_text(
        f"#!/bin/sh\necho 'is consistent with the following platform tag:\n\"{platform}\".'\n"
    )
    (tools / "auditwheel").chmod(0o755)
    if message:
        with pytest.raises(SystemExit, match=message):
            release["check_wheel"](wheel, "x86_64-unknown-linux-gnu", tools)
    else:
        release["check_wheel"](wheel, "x86_64-unknown-linux-gnu", tools)


def test_sizes_are_counted_by_package(release: dict[str, Any], tmp_path: Path) -> None:
    for name in ("duckdb/a.py", "_duckdb.cpython-310-x86_64-linux-gnu.so", "duckdb-1.5.6.dist-info/RECORD", "six.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("12345")
    assert release["sizes"](tmp_path) == {"duckdb": 15, "six": 5}


def test_packages_that_a_database_does_not_know_are_named(
    release: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    release["audited"]([{"name": "click", "vulns": []}, {"name": "duckdb", "skip_reason": "not found"}])
    assert "SKIPPED: pip-audit: its database does not answer for duckdb" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="PYSEC-1"):
        release["audited"]([{"name": "click", "vulns": [{"id": "PYSEC-1"}]}])
