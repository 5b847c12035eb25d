"""The documents are true: their commands run, their links lead somewhere, and what they explain exists.

A command stands in a ```` ```console ```` block behind ``$ ``. The lines below it, if there are any, are its whole
output, standard error included; ``…`` stands for what is left out: part of a line, or on a line of its own, lines.
Commands run in a folder that holds what ``SAMPLES`` lists. ``tcpdump`` needs root, an interface and traffic: its
command lines are checked without capturing, by giving tcpdump everything but these and having it compile the filter.
Where it is not installed, that is skipped. So are those of ``conchart live``, whose options are parsed.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

import conchart
from conchart.cli.completion import completion
from conchart.cli.diff import diff
from conchart.cli.doctor import doctor
from conchart.cli.findings import findings
from conchart.cli.live import live
from conchart.cli.query import query
from conchart.cli.summary import summary
from conchart.cli.whatif import whatif
from conchart.labels.phases import PHASES
from conchart.reading import bpf
from conchart.store.schema import TABLES
from tests.conftest import ROOT
from tests.test_schema import documented

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
SAMPLES = {
    "trace.pcap": "captures/reverse-proxy/https/input.pcap",
    "slow.pcap": "captures/reverse-proxy/https-no-keepalive/input.pcap",
    "fixed.pcap": "captures/reverse-proxy/https-keepalive/input.pcap",
    # A ring that has wrapped: the oldest file comes first, and has the highest number.
    "ring.pcap1": "captures/reverse-proxy/http/input.pcap",
    "ring.pcap0": "captures/reverse-proxy/http-page/input.pcap",
    "lb-1.pcap": "captures/reverse-proxy/http/input.pcap",
    "lb-2.pcap": "captures/reverse-proxy/http-page/input.pcap",
}
TIME_LIMIT_S = 25


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    """Of its first line; for names of tests."""
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass(frozen=True, slots=True)
class Command:
    """A command line and what the page shows of its output."""

    block: Block
    text: str
    shown: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.block}: {' '.join(self.text.split())}"[:100]


def blocks() -> Iterator[Block]:
    for page in PAGES:
        lines = page.read_text(encoding="utf-8").splitlines()
        opened: int | None = None
        for number, line in enumerate(lines):
            if line.startswith("```"):
                if opened is None:
                    opened = number
                else:
                    body = lines[opened + 1 : number]
                    yield Block(page, opened + 2, lines[opened][3:].strip(), "\n".join(body))
                    opened = None
        assert opened is None, f"{page}: block of line {opened} has no end"


def commands(block: Block) -> Iterator[Command]:
    lines = block.text.splitlines()
    assert lines, str(block)
    assert lines[0].startswith("$ "), f"{block}: a console block begins with a command"
    while lines:
        text = lines.pop(0)[2:]
        while is_unfinished(text):
            text += "\n" + lines.pop(0)
        shown = []
        while lines and not lines[0].startswith("$ "):
            shown.append(lines.pop(0))
        yield Command(block, text, tuple(shown))


def is_unfinished(text: str) -> bool:
    """Tell whether a quotation goes on in the next line."""
    try:
        shlex.split(text)
    except ValueError:
        return True
    return False


BLOCKS = tuple(blocks())
COMMANDS = tuple(command for block in BLOCKS if block.language == "console" for command in commands(block))
DUMPS = tuple(command for command in COMMANDS if "tcpdump" in command.text.split())
LIVE = tuple(command for command in COMMANDS if command.text.startswith("sudo conchart live "))
RUNS = tuple(command for command in COMMANDS if command not in (*DUMPS, *LIVE))
SNIPPETS = tuple(block for block in BLOCKS if block.language == "python")


def is_quick(command: Command) -> bool:
    """Tell whether `tests/check` runs a command; those of the other pages take longer."""
    return command.block.page.name in ("README.md", "command-line.md")


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """Give a folder with the captures that the documents speak of."""
    for name, capture in SAMPLES.items():
        shutil.copyfile(ROOT / capture, tmp_path / name)
    os.utime(tmp_path / "ring.pcap1", (1_000_000_000, 1_000_000_000))
    (tmp_path / "captures").symlink_to(ROOT / "captures")
    programs = tmp_path / ".venv/bin"
    programs.mkdir(parents=True)
    for name, code in {"conchart": "from conchart.cli import main; main()", "python3": None}.items():
        script = programs / name
        words = [sys.executable, *(["-c", code] if code else [])]
        script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        script.chmod(0o755)
    return tmp_path


def run(text: str, desk: Path, stdin: Path | None = None) -> str:
    """Run a command line in the folder as a reader would; returns what it printed."""
    environment = {
        **os.environ,
        "PATH": f"{desk / '.venv/bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "error",
        "COLUMNS": "100",
    }
    with (stdin or Path(os.devnull)).open("rb") as source:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=desk, env=environment, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=TIME_LIMIT_S,
        )  # fmt: skip
    assert done.returncode == 0, f"{text}\nexit code {done.returncode}\n{done.stdout}"
    return done.stdout


def pattern(shown: tuple[str, ...]) -> str:
    """Make a regular expression of shown output."""
    lines = [".*\n" if line == "" else re.escape(line).replace("…", ".*") + "\n" for line in shown]
    return "".join("(?:.*\n)*?" if line == "…" else text for line, text in zip(shown, lines, strict=True))


@pytest.mark.parametrize(
    "command",
    [pytest.param(command, marks=() if is_quick(command) else pytest.mark.thorough) for command in RUNS],
    ids=str,
)
def test_command_runs_and_prints_what_is_shown(command: Command, desk: Path) -> None:
    # A command that fails on purpose says so: `; echo "exit code $?"`.
    text = f"set +e; {command.text}" if "$?" in command.text else command.text
    output = run(text, desk)
    if command.shown:
        assert re.fullmatch(pattern(command.shown), output), f"printed:\n{output}"


@pytest.mark.skipif(shutil.which("tcpdump") is None, reason="tcpdump is not installed")
@pytest.mark.parametrize("command", DUMPS, ids=str)
def test_tcpdump_understands_its_command_line(command: Command, desk: Path) -> None:
    dump, *rest = command.text.split(" | ")
    words = shlex.split(dump)
    if words[0] == "ssh":
        # The other machine's shell takes the words apart again.
        words = shlex.split(" ".join(words[2:]))
    words = words[words.index("tcpdump") :]
    # What `vlan` means depends on the link layer, so the file stands for the kind of interface.
    like_it = "slow.pcap" if words[words.index("-i") + 1] == "any" else "captures/crafted/gap/input.pcap"
    for option in ("-i", "-w"):
        at = words.index(option)
        del words[at : at + 2]
    listing = run(shlex.join([*words[:1], "-r", like_it, "-d", *words[1:]]), desk)
    assert "ret " in listing
    for others in rest:
        assert others.startswith("conchart - ")
        run(others, desk, stdin=desk / "slow.pcap")


@pytest.mark.parametrize("command", LIVE, ids=str)
def test_live_understands_its_command_line(command: Command) -> None:
    words = shlex.split(command.text)[3:]
    with live.make_context("live", words) as context:
        assert context.params["interface"]
        if expression := context.params["filter"]:
            bpf.compiler(expression)


@pytest.mark.parametrize("block", SNIPPETS, ids=str)
def test_python_snippet_runs(block: Block, desk: Path) -> None:
    (desk / "snippet.py").write_text(block.text, encoding="utf-8")
    run("python3 snippet.py", desk)


def test_every_kind_of_block_is_checked() -> None:
    assert {block.language for block in BLOCKS} == {"console", "python", "sh"}
    assert {block.page.name for block in BLOCKS if block.language == "sh"} == {"README.md"}
    assert COMMANDS
    assert DUMPS
    assert LIVE
    assert SNIPPETS


def test_readme_has_one_line_to_run_and_one_to_test(desk: Path) -> None:
    chart, test = (block.text for block in BLOCKS if block.language == "sh")
    assert test == "python3 -m venv .venv && " + (
        "SETUPTOOLS_RUST_CARGO_PROFILE=checked .venv/bin/pip install --quiet -e '.[test]' && tests/check"
    )
    assert os.access(ROOT / "tests/check", os.X_OK)
    setup, command = chart.split(" && .venv/bin/conchart ")
    assert setup == "python3 -m venv .venv && .venv/bin/pip install --quiet '.[dissect,pictures]'"
    run(f".venv/bin/conchart {command}", desk)
    assert (desk / "out.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Give the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.is_file(), f"{target}: no such file"
        assert found.is_relative_to(ROOT), f"{target}: outside of the project"
        assert not anchor or anchor in anchors(found), f"{target}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_files_exist(page: Path) -> None:
    for name in re.findall(r"`((?:captures|conchart|docs|examples|tests)/[\w./-]*)`", prose(page)):
        made_by_a_build = "target" in Path(name).parts
        assert made_by_a_build or (ROOT / name).exists(), name


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, todo = set(), [PAGES[0]]
    while todo:
        page = todo.pop()
        reached.add(page)
        targets = (target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+\.md[^)\s]*)\)", prose(page)))
        found = {(page.parent / target).resolve() for target in targets if not target.startswith("https://")}
        todo += (found & set(PAGES)) - reached
    assert reached == set(PAGES)


def test_tables_of_a_real_trace_are_the_documented_ones() -> None:
    with conchart.read(ROOT / SAMPLES["slow.pcap"], packets=True) as trace:
        for table in TABLES:
            assert sorted(trace.sql(f"FROM {table.name}").columns) == sorted(documented()[table.name])


def test_every_phase_is_documented_in_the_order_in_which_it_is_charged() -> None:
    text = (ROOT / "docs/phases.md").read_text(encoding="utf-8")
    names = {phase.name for phase in PHASES}
    assert set(re.findall(r"^## `(\w+)`$", text, flags=re.MULTILINE)) == names
    for page in (text, (ROOT / "docs/tables.md").read_text(encoding="utf-8")):
        assert all(f"`{name}`" in page for name in names)
    source = (ROOT / "conchart/native/src/phases.rs").read_text(encoding="utf-8")
    kinds = re.search(r"pub enum Kind \{([^}]*)\}", source)
    assert kinds is not None
    strongest_first = [kind.lower() for kind in reversed(re.findall(r"^\s*(\w+),$", kinds[1], re.MULTILINE))]
    assert f"applies: {', '.join(f'`{kind}`' for kind in strongest_first)}" in " ".join(text.split())


SUBCOMMANDS = (summary, completion, diff, doctor, findings, live, query, whatif)


@pytest.mark.parametrize("command", SUBCOMMANDS, ids=lambda command: str(command.name))
def test_every_option_is_documented(command: click.Command) -> None:
    text = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    for parameter in command.params:
        for name in parameter.opts if isinstance(parameter, click.Option) else ():
            assert re.search(rf"`{name}[ `]", text), f"{name} is not in docs/command-line.md"


def test_every_documented_option_exists() -> None:
    text = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    exist = {
        name
        for command in SUBCOMMANDS
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    assert set(re.findall(r"`(--?[a-zA-Z-]+)[ `]", text)) <= exist | {"-h", "--help", "--version"}
