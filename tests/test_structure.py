"""The layout is the data flow: a stage imports only earlier stages, and files stay readable."""

import configparser
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

NATIVE = ROOT / "conchart" / "native" / "src"
MOST_LINES = 600


def stages() -> list[str]:
    """Give the modules of the crate in the order of `lib.rs`, which is the order of the data."""
    return re.findall(r"^(?:pub )?mod (\w+);", (NATIVE / "lib.rs").read_text(), re.MULTILINE)


def files_of(stage: str) -> list[Path]:
    return [path for path in (NATIVE / f"{stage}.rs", *(NATIVE / stage).rglob("*.rs")) if path.is_file()]


def test_every_file_of_the_crate_belongs_to_a_stage() -> None:
    assert {path for stage in stages() for path in files_of(stage)} == set(NATIVE.rglob("*.rs")) - {NATIVE / "lib.rs"}


@pytest.mark.parametrize("stage", stages())
def test_a_stage_imports_only_earlier_stages(stage: str) -> None:
    order = stages()
    # An error says which link type or frame it is about: the two stages know each other's words.
    allowed = {*order[: order.index(stage) + 1]} | ({"capture"} if stage == "error" else set())
    for path in files_of(stage):
        imported = set(re.findall(r"\bcrate::(\w+)", path.read_text())) & set(order)
        assert imported <= allowed, path.relative_to(ROOT)


def test_files_stay_readable() -> None:
    sources = [path for pattern in ("**/*.py", "charts/**/*.js") for path in (ROOT / "conchart").glob(pattern)]
    sources += NATIVE.rglob("*.rs")
    long = [path for path in sources if len(path.read_text().splitlines()) > MOST_LINES and "tests" not in path.parts]
    assert not [path for path in long if "target" not in path.parts and path.name != "tests.rs"]


def test_what_is_installed_with_conchart_is_imported_by_it() -> None:
    metadata = configparser.ConfigParser()
    metadata.read(ROOT / "setup.cfg")
    required = set(re.findall(r"^\w+", metadata["options"]["install_requires"], re.MULTILINE))
    source = "\n".join(path.read_text() for path in (ROOT / "conchart").rglob("*.py"))
    assert required - set(re.findall(r"^\s*(?:from|import) (\w+)", source, re.MULTILINE)) == set()
    assert required >= {"click", "libpcap", "plotly"}


def test_no_unsafe_outside_the_seam() -> None:
    for path in NATIVE.rglob("*.rs"):
        if path.name != "py.rs":
            assert not re.search(r"\bunsafe\b\s*(\{|fn|impl)", path.read_text()), path
