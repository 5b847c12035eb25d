"""The gate for licences lets nothing through that may not be one program with the core."""

from __future__ import annotations

import pytest

from tests import licences
from tests.conftest import ROOT
from tests.licences import ASKED_IN_ITS_OWN_PROCESS, FOR_TESTS, PERMISSIVE, expression, objections, permits, required


@pytest.mark.parametrize(
    ("terms", "fits"),
    [
        ("MIT OR Apache-2.0", True),
        ("MIT/Apache-2.0", True),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("MIT OR Apache-2.0 OR LGPL-2.1-or-later", True),
        ("MIT AND LGPL-2.1-or-later", False),
        ("GPL-2.0-only", False),
        ("GPL-3.0-or-later WITH Classpath-exception-2.0", False),
        ("LicenseRef-Proprietary", False),
        ("UNKNOWN", False),
        ("", False),
    ],
)
def test_an_expression_fits_when_it_leaves_a_choice_that_does(terms: str, fits: bool) -> None:
    assert permits(terms, PERMISSIVE) is fits


def test_scapy_passes_by_name_and_licence_and_nothing_else_does() -> None:
    doctored = {"scapy": "GPL-2.0-only", "scapy-like": "GPL-2.0-only", "click": "BSD-3-Clause", "mute": ""}
    assert objections(doctored, PERMISSIVE, ASKED_IN_ITS_OWN_PROCESS) == [
        "mute: no licence",
        "scapy-like: GPL-2.0-only",
    ]
    assert objections({"scapy": "GPL-3.0-only"}, FOR_TESTS, ASKED_IN_ITS_OWN_PROCESS) == ["scapy: GPL-3.0-only"]
    assert objections({"scapy": "GPL-2.0-only"}, PERMISSIVE) == ["scapy: GPL-2.0-only"]


def test_older_ways_to_name_a_licence_are_understood() -> None:
    assert expression("DFSG approved; MIT License") == "MIT"
    assert expression("Apache Software License; MIT License") == "Apache-2.0 AND MIT"


def test_what_is_needed_is_followed_to_its_end() -> None:
    assert required() >= {"click", "dpkt", "duckdb", "markupsafe", "pygments"}
    assert not required() & {"scapy", "cryptography", "plotly", "pytest"}
    assert required("charts") >= {"narwhals", "plotly"}
    assert required("dissect") >= {"scapy", "cryptography", "cffi"}
    assert "pluggy" in required("test")


def test_a_dependency_that_does_not_fit_ends_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(licences, "of_packages", lambda names: dict.fromkeys(names, "MIT") | {"click": "GPL-2.0-only"})
    monkeypatch.setattr(
        licences, "of_crates", lambda manifest: {"arrow-array": "Apache-2.0", "readline": "GPL-3.0-or-later"}
    )
    with pytest.raises(SystemExit) as ended:
        licences.main()
    assert ended.value.code == "Licences that do not fit:\n  click: GPL-2.0-only\n  readline: GPL-3.0-or-later"


def test_our_own_code_says_the_same_everywhere() -> None:
    ours = "MIT OR Apache-2.0"
    assert f"\nlicense = {ours}\n" in (ROOT / "setup.cfg").read_text()
    for manifest in licences.MANIFESTS:
        assert f'\nlicense = "{ours}"\n' in manifest.read_text()
    text = (ROOT / "LICENSE").read_text()
    assert text.startswith(f"SPDX-License-Identifier: {ours}\n")
    assert "Permission is hereby granted, free of charge" in text
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert "MIT or Apache-2.0" in (ROOT / "README.md").read_text()
