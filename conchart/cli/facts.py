"""Facts about this installation, for ``--version -v`` and ``doctor``.

In: what is installed. Out: plain values. No path and no name of the machine is among them: they go into bug reports.
"""

import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

from conchart.store.schema import SCHEMA_VERSION
from conchart.version import VERSION

EXTRAS = {
    "pictures": "pictures of the lanes: -w out.svg, -w out.png",
    "dissect": "the fields of handshake messages: conchart explain -v, and ladders on the page",
    "cluster": "parts of captures on other machines (--scheduler) and in object stores (s3://…)",
    "charts": "lanes as a figure in notebooks: Trace.chart()",
    "frames": "tables as pandas, Polars and Arrow data frames: relation.df(), pl(), to_arrow_table()",
}
"""What each extra brings; ``setup.cfg`` says of which packages it consists, and a test compares the two."""

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)[^;]*(?:;.*\bextra == ['\"](?P<extra>\w+)['\"])?")


@dataclass(frozen=True, slots=True)
class Package:
    """A package that conchart is installed with, or would be with an extra."""

    name: str
    extra: str | None
    """None: conchart needs it."""
    version: str | None
    """None: it is not installed."""


def packages() -> list[Package]:
    """Give the packages that the metadata of conchart names, in its order; none where it was never installed."""
    try:
        lines = metadata.requires("conchart") or []
    except metadata.PackageNotFoundError:
        return []
    parsed = [match for line in lines if (match := _REQUIREMENT.match(line))]
    return [
        Package(found["name"], found["extra"], installed(found["name"]))
        for found in parsed
        if found["extra"] is None or found["extra"] in EXTRAS
    ]


def installed(name: str) -> str | None:
    """Give the version of an installed package."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def build_facts() -> Iterator[tuple[str, str]]:
    """Give names and values that a report of a bug needs."""
    from conchart import _native

    core = _native.build_facts()
    yield "conchart", VERSION
    yield "tables", f"version {SCHEMA_VERSION} of the saved form"
    yield "core", f"{core['version']}, {core['profile']} (opt-level {core['opt_level']}), {core['target']}"
    yield "compiler", core["rustc"]
    yield "python", f"{platform.python_implementation()} {platform.python_version()}"
    yield "system", platform.platform()
    for package in packages():
        brought_by = f" (extra {package.extra})" if package.extra else ""
        yield package.name, f"{package.version or 'not installed'}{brought_by}"
