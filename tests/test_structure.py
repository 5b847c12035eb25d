"""The layout is the data flow: a stage imports only earlier stages, and files stay readable."""

import ast
import configparser
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT

NATIVE = ROOT / "conchart" / "native" / "src"
MOST_LINES = 600

PACKAGE = ROOT / "conchart"
STAGES = (
    ("errors", "version", "_native"),
    ("labels", "files"),
    ("store",),
    ("reading",),
    ("logs",),
    ("analysis",),
    ("report",),
    ("questions",),
    ("outputs",),
    ("trace",),
    ("__init__",),
    ("cli",),
)
"""The modules and packages of Python in the order of the data: each imports only what stands in a line above its own,
or is of its own package."""


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
    allowed = {*order[: order.index(stage) + 1]}
    for path in files_of(stage):
        imported = set(re.findall(r"\bcrate::(\w+)", path.read_text())) & set(order)
        assert imported <= allowed, path.relative_to(ROOT)


@cache
def modules() -> dict[str, Path]:
    """Give every module of the package: ``conchart.cli.query`` and its file."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(("conchart", *parts)).removesuffix(".__init__")] = path
    return found


def imports(module: str) -> Iterator[str]:
    """Give what a module imports, wherever it does: inside functions and for types alone, too."""
    names = {*modules(), "conchart._native"}
    for node in ast.walk(ast.parse(modules()[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom):
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & names
            yield from inner or {node.module or ""} & names


def stage(module: str) -> int:
    name = module.split(".")[1] if "." in module else "__init__"
    (place,) = (place for place, names in enumerate(STAGES) if name in names)
    return place


@pytest.mark.parametrize("module", modules())
def test_a_module_imports_only_earlier_stages_and_its_own_package(module: str) -> None:
    own = module.split(".")[:2]
    later = [other for other in imports(module) if stage(other) >= stage(module) and other.split(".")[:2] != own]
    assert not later


BULK = ("", ".ladders", ".packed", ".page", ".swimlanes")
"""Modules of the page that write whole tables, or hand them on."""


def test_what_is_shown_comes_from_the_report_and_no_tables() -> None:
    """What they show can be made by hand; whatever they say is a value that another output may say, too."""
    bulk = {f"conchart.outputs.page{name}" for name in BULK}
    faces = ("comparison", "notebook", "page", "pictures", "predictions", "terminal")
    shown = {module for module in modules() if module.startswith(tuple(f"conchart.outputs.{face}" for face in faces))}
    shown -= bulk
    assert len(shown) > 20
    for module in shown:
        others = set(imports(module)) - {"conchart.store.schema"}  # documents name its version
        assert not {other.split(".")[1] for other in others} & {"store", "analysis", "trace"}, module


MIRRORED = ("analysis", "reading.places", "reading.parts", "questions", "report", "logs")
"""Packages whose modules have a test module each: ``analysis/waits.py`` has ``tests/analysis/test_waits.py``."""


def module_of_tests(module: str) -> Path:
    """Give the file of the tests of a module; of a package's own code, it is called like the package."""
    source = modules()[module].relative_to(PACKAGE)
    return ROOT / "tests" / source.parent / f"test_{module.rpartition('.')[2]}.py"


def has_code(module: str) -> bool:
    """Tell whether there is anything to test: constants, fields and names of other modules are not."""
    tree = ast.parse(modules()[module].read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) for node in ast.walk(tree))


def has_tests(path: Path) -> bool:
    return path.exists() and re.search(r"^def test_\w+", path.read_text(encoding="utf-8"), re.MULTILINE) is not None


def test_every_module_has_a_test_module_of_its_name() -> None:
    mirrored = [
        module for module in modules() if f"{module}.".startswith(tuple(f"conchart.{name}." for name in MIRRORED))
    ]
    lacking = [module for module in mirrored if has_code(module) and not has_tests(module_of_tests(module))]
    assert lacking == [], "modules without tests in a file of their name (module_of_tests)"


def test_no_two_modules_import_each_other() -> None:
    """Not by a detour either: whatever has nothing left to import is taken away, until nothing is left."""
    left = {module: {other for other in imports(module) if other in modules()} - {module} for module in modules()}
    while ready := [module for module, others in left.items() if not others & left.keys()]:
        for module in ready:
            del left[module]
    assert not left


def test_files_stay_readable() -> None:
    sources = [path for pattern in ("**/*.py", "outputs/**/*.js") for path in (ROOT / "conchart").glob(pattern)]
    sources += NATIVE.rglob("*.rs")
    long = [path for path in sources if len(path.read_text().splitlines()) > MOST_LINES and "tests" not in path.parts]
    assert not [path for path in long if "target" not in path.parts and path.name != "tests.rs"]


def test_what_is_installed_with_conchart_is_used_by_it() -> None:
    metadata = configparser.ConfigParser()
    metadata.read(ROOT / "setup.cfg")
    required = set(re.findall(r"^\w+", metadata["options"]["install_requires"], re.MULTILINE))
    source = "\n".join(path.read_text() for path in (ROOT / "conchart").rglob("*.py"))
    required = required - {"pyyaml"} | {"yaml"}  # it is called otherwise than its package
    used = re.findall(r"^\s*(?:from|import) (\w+)|resources\.files\(\"(\w+)\"\)", source, re.MULTILINE)
    assert required - {name for names in used for name in names} == set()
    assert required >= {"click", "dpkt", "libpcap"}
    extras = metadata["options.extras_require"]
    # Needed when conchart is built, and by notebooks: docs/decisions/plotly-when-it-is-built.md.
    assert "plotly" in extras["charts"]
    assert "plotly" in (ROOT / "pyproject.toml").read_text()
    assert "scapy" in extras["dissect"]


def imported(path: Path) -> set[str]:
    """The packages that a file imports, wherever it does."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


def test_scapy_is_imported_by_one_script_that_nobody_imports_and_that_imports_nothing_of_ours() -> None:
    """Its licence asks for that, see docs/decisions/scapy-in-its-own-process.md; of what crafts captures, too."""
    script = PACKAGE / "questions" / "dissect" / "scapy_fields.py"
    sources = [*PACKAGE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    assert [path for path in sources if "scapy" in imported(path)] == [script]
    assert "conchart" not in imported(script)
    assert not [module for module in modules() if "conchart.questions.dissect.scapy_fields" in imports(module)]
    assert not [path for path in (ROOT / "examples").rglob("*.py") if "conchart" in imported(path)]


def test_dpkt_is_imported_only_where_packets_are_listed() -> None:
    assert [path.name for path in PACKAGE.rglob("*.py") if "dpkt" in imported(path)] == ["packets.py"]


def test_no_unsafe_outside_the_seam() -> None:
    for path in NATIVE.rglob("*.rs"):
        if path.name != "py.rs":
            assert not re.search(r"\bunsafe\b\s*(\{|fn|impl)", path.read_text()), path
