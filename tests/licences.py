"""What others' code is licensed under that conchart is built of, installed with, or tested by.

    python -m tests.licences

In: `setup.cfg` and what is installed, by pip-licenses; `Cargo.toml` and `Cargo.lock`, by cargo. Out: nothing, or what
does not fit, and exit code 1. Which licences fit is decided here; why is told in
docs/decisions/scapy-in-its-own-process.md.
"""

from __future__ import annotations

import configparser
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires

from license_expression import AND, OR, get_spdx_licensing
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conftest import ROOT

SPDX = get_spdx_licensing()

PERMISSIVE = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "ISC",
        "MIT",
        "MIT-0",
        "MIT-CMU",
        "NCSA",
        "PSF-2.0",
        "Unicode-3.0",
        "Unlicense",
        "Zlib",
    }
)
"""What may be one program with our own code, under either of its licences, and with everything else in this list."""

FOR_TESTS = PERMISSIVE | {"MPL-2.0"}
"""What tests may be run with: its source is left as it is."""

ASKED_IN_ITS_OWN_PROCESS = {"scapy": "GPL-2.0-only"}
"""The exception, by name and licence: `tests/test_structure.py` sees to it that it stays in its process."""

OTHER_EXTRAS = ("charts", "cluster", "frames", "pictures", "site")
"""What tests and documents are made with, as far as it is installed."""

SPELLED = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""What packages say that are older than SPDX's identifiers in their metadata."""

MANIFESTS = (
    ROOT / "conchart" / "native" / "Cargo.toml",
    ROOT / "conchart" / "native" / "fuzz" / "Cargo.toml",
    ROOT / "tests" / "exports" / "qlog" / "Cargo.toml",
)


def permits(expression: str, allowed: frozenset[str]) -> bool:
    """Say whether a licence expression of SPDX leaves a choice that is allowed."""

    def fits(part: object) -> bool:
        if isinstance(part, OR):
            return any(fits(choice) for choice in part.args)
        if isinstance(part, AND):
            return all(fits(term) for term in part.args)
        return str(part) in allowed

    # Crates that are older than SPDX's operators write MIT/Apache-2.0.
    parsed = SPDX.parse(expression.replace("/", " OR "))
    return parsed is not None and fits(parsed)


def objections(
    licences: dict[str, str], allowed: frozenset[str], exceptions: dict[str, str] | None = None
) -> list[str]:
    """Name the packages whose licence is not allowed, and which is no exception, either."""
    return [
        f"{name}: {expression or 'no licence'}"
        for name, expression in sorted(licences.items())
        if not permits(expression, allowed) and (exceptions or {}).get(name) != expression
    ]


def of_crates(manifest: str) -> dict[str, str]:
    """The licences of a crate and of all that it is built of or tested with, on whatever system."""
    command = ["cargo", "metadata", "--locked", "--all-features", "--format-version=1", f"--manifest-path={manifest}"]
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return {package["name"]: package["license"] or "" for package in found["packages"]}


def of_packages(names: Iterable[str]) -> dict[str, str]:
    """The licences of installed Python packages, as expressions of SPDX."""
    command = [sys.executable, "-m", "piplicenses", "--format=json", "--from=mixed", "--with-system", "--packages"]
    found = json.loads(subprocess.run([*command, *sorted(names)], stdout=subprocess.PIPE, check=True).stdout)
    return {canonicalize_name(package["Name"]): expression(package["License"]) for package in found}


def expression(text: str) -> str:
    """Make an expression of what pip-licenses found: one already, or the names of classifiers."""
    names = [name for name in text.split("; ") if name != "DFSG approved"]
    return " AND ".join(SPELLED.get(name, name) for name in names)


def required(*extras: str) -> set[str]:
    """The packages that conchart needs with these extras, and those that they need, as far as they are installed."""
    declared = configparser.ConfigParser()
    declared.read(ROOT / "setup.cfg")
    texts = [declared["options"]["install_requires"], *(declared["options.extras_require"][extra] for extra in extras)]
    waiting = [Requirement(line) for text in texts for line in re.findall(r"^[^#\s].*", text, re.MULTILINE)]
    found: set[str] = set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in found or name == "conchart":
            continue
        try:
            lines = requires(name) or []
        except PackageNotFoundError:  # Of another system or version of Python.
            continue
        found.add(name)
        environments = [{"extra": extra} for extra in (*requirement.extras, "")]
        needed = [Requirement(line) for line in lines]
        waiting += [each for each in needed if not each.marker or any(map(each.marker.evaluate, environments))]
    return found


def main() -> None:
    """Say what does not fit."""
    installed, for_dissecting = required(), required("dissect")
    packages = of_packages(required("dissect", "test", *OTHER_EXTRAS))

    def among(names: set[str]) -> dict[str, str]:
        return {name: packages.get(name, "") for name in names}

    found = [
        *objections(among(installed), PERMISSIVE),
        *objections(among(for_dissecting), PERMISSIVE, ASKED_IN_ITS_OWN_PROCESS),
        *objections(packages, FOR_TESTS, ASKED_IN_ITS_OWN_PROCESS),
        *(each for manifest in MANIFESTS for each in objections(of_crates(str(manifest)), PERMISSIVE)),
    ]
    if found:
        sys.exit("Licences that do not fit:\n  " + "\n  ".join(dict.fromkeys(found)))


if __name__ == "__main__":
    main()
