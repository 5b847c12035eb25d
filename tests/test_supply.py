"""What a wheel brings along is listed in it, builds are locked, and the gates know the same licences."""

import configparser
import re
import shutil
import subprocess

import pytest

from tests import third_party
from tests.conftest import ROOT
from tests.licences import PERMISSIVE


def test_every_crate_in_the_wheel_is_listed_with_its_licence_and_the_texts() -> None:
    if not shutil.which("cargo"):
        pytest.skip("cargo is not installed: nobody knows what the core is built of")
    assert third_party.LIST.read_text(encoding="utf-8") == third_party.listed(), "python -m tests.third_party --write"
    text = third_party.LIST.read_text(encoding="utf-8")
    for of_c in ("zstd/LICENSE", "c_src/mimalloc"):
        assert of_c in text


def test_the_wheel_carries_the_list() -> None:
    declared = configparser.ConfigParser()
    declared.read(ROOT / "setup.cfg")
    files = declared["metadata"]["license_files"].split()
    assert files == ["LICENSE", str(third_party.LIST.relative_to(ROOT))]
    assert all((ROOT / name).is_file() for name in files)


def test_cargo_deny_allows_nothing_that_our_own_gate_refuses() -> None:
    text = (ROOT / "conchart/native/deny.toml").read_text()
    (allowed,) = re.findall(r"^allow = \[(.*?)\]", text, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r'"(.*?)"', allowed)) <= PERMISSIVE


def test_a_build_takes_the_locked_crates() -> None:
    assert 'args = ["--locked"]' in (ROOT / "pyproject.toml").read_text()
    if shutil.which("cargo"):
        manifest = ROOT / "conchart/native/Cargo.toml"
        subprocess.run(
            ["cargo", "metadata", "--locked", "--format-version=1", f"--manifest-path={manifest}"],
            check=True,
            stdout=subprocess.DEVNULL,
        )


def _deny(*checks: str) -> subprocess.CompletedProcess[str]:
    if not shutil.which("cargo-deny"):
        pytest.skip("cargo-deny is not installed: cargo install --locked cargo-deny")
    manifest = ROOT / "conchart/native/Cargo.toml"
    command = ["cargo", "deny", f"--manifest-path={manifest}", "--locked", "check", *checks]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.thorough
def test_every_crate_has_a_licence_that_fits_and_comes_from_the_registry() -> None:
    ended = _deny("bans", "licenses", "sources")
    assert ended.returncode == 0, ended.stderr


@pytest.mark.thorough
def test_no_crate_has_a_known_vulnerability() -> None:
    ended = _deny("advisories")
    if re.search(r"failed to (fetch|clone|load)", ended.stderr):
        pytest.skip("cargo-deny: the database of advisories cannot be reached")
    assert ended.returncode == 0, ended.stderr
