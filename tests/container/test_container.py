"""The image: built from wheels without a network, run without rights on a file system that is read-only.

What an engine, a base image or wheels are missing for is skipped, aloud. ``CONCHART_BASE`` names another base image,
``CONCHART_WHEELS`` a folder with a wheel of conchart.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.timeout(900)
CAPTURE = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"
ENGINE = next((name for name in ("podman", "docker") if shutil.which(name)), "")
BASE = os.environ.get("CONCHART_BASE", "docker.io/library/python:3.13-slim")
TAG = f"conchart-test-{os.getpid()}"
CAREFUL = ("--rm", "--read-only", "--tmpfs", "/tmp", "--network", "none", "--cap-drop", "all")


def engine(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([ENGINE, *words], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not ENGINE or engine("info").returncode:
        pytest.skip("no engine for containers: neither podman nor docker runs here")
    if engine("image", "inspect", BASE).returncode and engine("pull", BASE).returncode:
        pytest.skip(f"the base image {BASE} is not here, and cannot be pulled (CONCHART_BASE names another one)")
    probe = engine(
        "run", "--rm", "--network", "none", BASE, "python3", "-c", "import sys; print(*sys.version_info[:2])"
    )
    if probe.returncode:
        pytest.skip(f"{ENGINE} cannot run a container here: {probe.stderr.strip()[-200:]}")
    folder = tmp_path_factory.mktemp("wheels")
    gather(folder, ".".join(probe.stdout.split()))
    command = ("build", "--network", "none", "--build-arg", f"BASE={BASE}", "--tag", TAG)
    built = engine(*command, "--file", ROOT / "docs/Containerfile", folder)
    assert built.returncode == 0, built.stdout + built.stderr
    yield TAG
    engine("rmi", "--force", TAG)


def gather(folder: Path, python: str) -> None:
    """Put a wheel of conchart and of all that it needs into a folder."""
    pip = (sys.executable, "-m", "pip", "--quiet")
    if given := os.environ.get("CONCHART_WHEELS"):
        (wheel, *_) = Path(given).glob("conchart-*-manylinux*_x86_64.whl")
        shutil.copy(wheel, folder)
    else:
        profile = {"SETUPTOOLS_RUST_CARGO_PROFILE": "checked"}
        made = subprocess.run(
            [*pip, "wheel", "--no-deps", "--wheel-dir", folder, ROOT], env={**os.environ, **profile}, check=False
        )
        if made.returncode:
            pytest.skip("no wheel of conchart could be built here (CONCHART_WHEELS names a folder with one)")
    (own,) = folder.glob("conchart-*.whl")
    platforms = [f"--platform={tag}_x86_64" for tag in ("manylinux_2_28", "manylinux_2_17", "manylinux2014", "linux")]
    wanted = [*pip, "download", "--only-binary=:all:", f"--python-version={python}", *platforms]
    if subprocess.run([*wanted, "--dest", folder, own], check=False).returncode:
        pytest.skip("the wheels of the dependencies cannot be fetched here")


def test_a_capture_is_read_without_rights_and_without_a_network(image: str) -> None:
    mount = ("-v", f"{CAPTURE.parent}:/captures:ro")
    ended = engine("run", *CAREFUL, *mount, image, "input.pcap", "-f", "tcp port 443")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("Users waited 304 ms.")


def test_nothing_can_be_written_into_the_image_and_the_user_is_nobody(image: str) -> None:
    code = "import os; print(os.getuid(), os.access('/opt/conchart', os.W_OK), os.path.exists('/opt/conchart/bin/pip'))"
    ended = engine("run", *CAREFUL, "--entrypoint", "python", image, "-c", code)
    assert ended.stdout.split() == ["65532", "False", "False"], ended.stderr


def test_a_page_is_written_by_the_user_of_the_mounted_folder(image: str, tmp_path: Path) -> None:
    shutil.copy(CAPTURE, tmp_path / "slow.pcap")
    mount = ("--user", f"{os.getuid()}:{os.getgid()}", "-v", f"{tmp_path}:/captures")
    ended = engine("run", *CAREFUL, *mount, image, "slow.pcap", "-w", "slow.html")
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "slow.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def rights(image: str, *words: str) -> str:
    ended = engine("run", "--rm", "--read-only", "--tmpfs", "/tmp", *words, image, "doctor", "--format", "json")
    assert ended.returncode == 0, ended.stderr
    (state,) = (line["state"] for line in json.loads(ended.stdout) if line["name"] == "rights")
    return str(state)


def test_it_can_capture_with_the_two_capabilities_and_not_without(image: str) -> None:
    assert rights(image, "--network", "none", "--cap-drop", "all") == "absent"
    two = ("--cap-drop", "all", "--cap-add", "net_raw", "--cap-add", "net_admin", "--user", "0")
    assert rights(image, "--network", "none", *two) == "ok"
    live = ("live", "-i", "lo", "-d", "1s", "-Z", "root")
    ended = engine("run", "--rm", "--read-only", "--tmpfs", "/tmp", "--network", "none", *two, image, *live)
    assert ended.returncode == 0, ended.stderr
