"""The licences of what is inside a wheel beside our own code: crates, the C that they bring, Plotly's script.

    python -m tests.third_party            says whether the list is that of Cargo.lock
    python -m tests.third_party --write    writes it

In: ``cargo metadata``, the sources that cargo has fetched. Out: ``conchart/native/THIRD-PARTY.md``, which every wheel
carries among its licences. Which licences fit is for ``tests.licences`` to say.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from conchart.outputs.page.plotly_script import BASIC, VERSION
from tests.conftest import ROOT

MANIFEST = ROOT / "conchart/native/Cargo.toml"
LIST = MANIFEST.with_name("THIRD-PARTY.md")
TARGETS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "x86_64-unknown-linux-musl")
NAMES = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)([-._].*)?$", re.IGNORECASE)
BUNDLED = {"zstd-sys": ("zstd/LICENSE",), "libmimalloc-sys": ("c_src/mimalloc/LICENSE", "c_src/mimalloc/v2/LICENSE")}
"""C inside a crate, which has a licence of its own."""


def crates() -> list[dict[str, Any]]:
    """Give the crates that are linked into the core, by name; not those of its tests and of its build."""
    found: dict[str, dict[str, Any]] = {}
    for target in TARGETS:
        command = ["cargo", "metadata", "--locked", "--format-version=1", "--features=extension-module"]
        command += [f"--filter-platform={target}", f"--manifest-path={MANIFEST}"]
        graph = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        packages = {package["id"]: package for package in graph["packages"]}
        nodes = {node["id"]: node for node in graph["resolve"]["nodes"]}
        root = graph["resolve"]["root"]
        waiting, seen = [root], {root}
        while waiting:
            for dependency in nodes[waiting.pop()]["deps"]:
                if any(kind["kind"] is None for kind in dependency["dep_kinds"]) and dependency["pkg"] not in seen:
                    seen.add(dependency["pkg"])
                    waiting.append(dependency["pkg"])
        found |= {each: packages[each] for each in seen - {root}}
    return sorted(found.values(), key=lambda package: (package["name"], package["version"]))


def texts(package: dict[str, Any]) -> dict[str, str]:
    """Give the files about licences of a crate, by name."""
    folder = Path(package["manifest_path"]).parent
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and NAMES.match(path.name)]
    if re.search(r"\bMIT\b", package["license"]) and re.search(r"\bOR\b|/", package["license"]):
        # Of a choice, the text that we take: the others would be the same eleven kilobytes sixty times.
        chosen = [path for path in files if not re.search(r"apache|unlicense|zlib", path.name, re.IGNORECASE)]
        files = chosen or files
    files += [folder / name for name in BUNDLED.get(package["name"], ()) if (folder / name).is_file()]
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8", errors="replace").strip().replace("\r\n", "\n")
        for path in files
    }


def listed() -> str:
    """Write the list: names and licences first, then each text once."""
    found = crates()
    packages_by_text: dict[str, list[str]] = {}
    for package in found:
        for name, text in texts(package).items():
            packages_by_text.setdefault(text, []).append(f"{package['name']} {package['version']} ({name})")
    lines = ["# Licences of what a wheel of conchart contains beside conchart", ""]
    lines += [f"- {package['name']} {package['version']}: {package['license']}" for package in found]
    lines += [f"- {BASIC} {VERSION}: MIT (its notice is in the script that every page carries)", ""]
    for number, (text, of) in enumerate(sorted(packages_by_text.items(), key=lambda item: item[1][0]), 1):
        lines += [f"## Text {number}: {', '.join(of)}", "", *(f"    {line}".rstrip() for line in text.split("\n")), ""]
    return "\n".join(lines)


def main() -> None:
    """Write the list, or compare it."""
    if sys.argv[1:] == ["--write"]:
        LIST.write_text(listed(), encoding="utf-8")
    elif LIST.read_text(encoding="utf-8") != listed():
        sys.exit(f"{LIST.relative_to(ROOT)} is not that of Cargo.lock: python -m tests.third_party --write")


if __name__ == "__main__":
    main()
