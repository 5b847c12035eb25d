"""Nothing that is read is replaced, whatever names it; nor, without ``--force``, what conchart did not write."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import click
import duckdb
import pytest

import conchart
from conchart.cli.command import COMMANDS, cli
from conchart.cli.paths import FileCommand, Input, Output
from conchart.errors import UsageError
from tests.cli.test_cli import Run, run
from tests.conftest import ROOT

__all__ = ["run"]  # a fixture

CAPTURE = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"

VALUES: dict[str, str] = {
    "CAPTURE": "{}",
    "CAPTURE...": "{}",
    "BEFORE": "{}",
    "AFTER": "{}",
    "FILE": "{}",
    "NAME=FILE[,FILE…]": "lb={}",
    "PRODUCT=FILE": "nginx={}",
    "DIR": "{folder}",
}
"""How each kind of option names a file. A new kind has to be added here."""
REQUIRED = {"explain": ["0"], "live": ["-i", "lo"], "whatif": ["--keepalive"]}
"""Of each command, what a run needs beside files."""
FILES = re.compile(r"FILE|DIR|OUT|CAPTURE|BEFORE|AFTER")


def commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(cli)
    for name in ("summary", *COMMANDS):
        command = cli.get_command(context, name)
        assert command
        yield name, command


def parameters(command: click.Command, kind: type[Input | Output]) -> list[click.Parameter]:
    return [parameter for parameter in command.params if isinstance(parameter.type, kind)]


PAIRS = [
    pytest.param(name, command, read, written, id=f"{name}-{read.name}-{written.name}")
    for name, command in commands()
    for read, written in product(parameters(command, Input), parameters(command, Output))
]


# --- names of a file


def itself(file: Path) -> str:
    return str(file)


def relative(file: Path) -> str:
    return os.path.relpath(file.parent / ".." / file.parent.name / file.name)


def symbolic(file: Path) -> str:
    link = file.parent / "other" / "link.html"
    link.parent.mkdir()
    link.symlink_to(file)
    return str(link)


def through_a_folder(file: Path) -> str:
    (file.parent.parent / "folder").symlink_to(file.parent)
    return str(file.parent.parent / "folder" / file.name)


def hard(file: Path) -> str:
    os.link(file, file.parent.parent / "hard.html")
    return str(file.parent.parent / "hard.html")


def descriptor(file: Path) -> str:
    return f"/dev/fd/{os.open(file, os.O_RDONLY)}"


def folder_above(file: Path) -> str:
    return f"{file.parent}/"


LINKS: list[Callable[[Path], str]] = [itself, relative, symbolic, through_a_folder, hard, descriptor, folder_above]


@pytest.fixture
def evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An input in a folder of its own. Its suffix is that of a rule: of a folder of rules, these are read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "read").mkdir()
    file = tmp_path / "read" / "evidence.md"
    file.write_bytes(b"what nobody can take again")
    return file


def arguments(name: str, command: click.Command, read: click.Parameter, evidence: Path) -> list[str]:
    """Give the arguments of a run that reads the file by this parameter, and other files where it has to."""
    value = VALUES[str(read.metavar)].format(evidence, folder=evidence.parent)
    words = [name, *REQUIRED.get(name, ())]
    if isinstance(read, click.Option):
        words += [read.opts[0], value]
    if name == "diff" or "--at" not in words:
        other = evidence.parent.parent / "other.pcap"
        other.touch()
        # Arguments stand before others: explain has a number after the capture.
        places = [
            value if one is read else str(other)
            for one in parameters(command, Input)
            if isinstance(one, click.Argument)
        ]
        words[1:1] = places
    return words


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.__name__)
@pytest.mark.parametrize(("name", "command", "read", "written"), PAIRS)
def test_no_output_replaces_an_input(
    run: Run,
    evidence: Path,
    name: str,
    command: click.Command,
    read: click.Parameter,
    written: click.Parameter,
    link: Callable[[Path], str],
) -> None:
    words, target = arguments(name, command, read, evidence), link(evidence)
    form = ["--format", "html"] if any(one.opts == ["--format"] for one in command.params) else []
    for force in ([], ["--force"]):
        code, out, err = run(*words, written.opts[0], target, *form, *force)
        assert (code, out) == (2, "")
        assert err.startswith(f"conchart: {written.opts[0]} {target}: ")
        assert ", and conchart never replaces what it reads\n" in err
    assert evidence.read_bytes() == b"what nobody can take again"


def test_every_parameter_that_names_a_file_says_so() -> None:
    for name, command in commands():
        for one in command.params:
            if FILES.search(str(one.metavar)) and "ID" not in str(one.metavar):
                assert isinstance(one.type, Input | Output), (name, one.name)
        if parameters(command, Output):
            assert isinstance(command, FileCommand), name
            assert any(one.opts == ["--force"] for one in command.params), name


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a capture and nothing else."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(CAPTURE, tmp_path / "a.pcap")
    return tmp_path


def refused(run: Run, *words: str) -> str:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    return err.removeprefix("conchart: ").splitlines()[0]


def test_two_outputs_need_two_places(run: Run, folder: Path) -> None:
    (folder / "sub").mkdir()
    reason = ", and each output needs a place of its own"
    assert refused(run, "a.pcap", "-w", "x.html", "-w", "sub/../x.html") == (
        f"-w sub/../x.html: this is the same file as the output -w x.html{reason}"
    )
    assert refused(run, "a.pcap", "-w", "x.tables", "-w", "x.tables/y.html").endswith(
        f"this is inside the output -w x.tables{reason}"
    )
    assert refused(run, "live", "-i", "lo", "--keep", "k.pcap", "-w", "k.pcap", "--format", "txt").endswith(reason)
    assert {path.name for path in folder.iterdir()} == {"a.pcap", "sub"}


def test_urls_and_patterns_stand_for_files(run: Run, folder: Path) -> None:
    for url in (f"file://{folder}/*.pcap", f"file://{folder}/a.pcap", f"simplecache::file://{folder}/a.pcap"):
        assert "this is the same file as the input CAPTURE" in refused(run, url, "-w", "a.pcap", "--format", "json")


def test_a_saved_trace_is_an_input(run: Run, folder: Path) -> None:
    assert run("a.pcap", "-w", "a.duckdb", "-w", "a.tables")[0] == 0
    assert "same file" in refused(run, "a.duckdb", "-w", "a.duckdb")
    assert "same file" in refused(run, "a.tables", "-w", "a.tables")
    assert "this is inside the input CAPTURE a.tables" in refused(run, "a.tables", "-w", "a.tables/connections.parquet")
    assert "same file" in refused(run, "diff", "a.duckdb", "a.pcap", "-w", "./a.duckdb")


def test_standard_input_and_output_may_be_files(folder: Path) -> None:
    program = f"{sys.executable} -c 'from conchart.cli import main; main()'"
    for line in (
        f"{program} - -w a.pcap --format html < a.pcap",
        f"{program} a.pcap >> a.pcap",
        f"{program} a.pcap -w - >> a.pcap",
    ):
        ended = subprocess.run(
            ["sh", "-c", line], capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
        assert ended.returncode == 2, ended.stderr
        assert "conchart never replaces what it reads" in ended.stderr
    assert (folder / "a.pcap").read_bytes() == CAPTURE.read_bytes()


def test_pipes_and_devices_are_never_refused(run: Run, folder: Path) -> None:  # noqa: ARG001
    assert run("a.pcap", "-w", "/dev/null", "--format", "json")[0] == 0


OTHERS = {
    "notes.html": (b"call the vendor", "a text file"),
    "other.pcapng": (b"\x0a\x0d\x0d\x0a\x1c\0\0\0", "a packet capture (pcapng)"),
    "slow.json": (b"\xd4\xc3\xb2\xa1\2\0\4\0", "a packet capture (pcap)"),
    "slow.txt": (b"\x1f\x8b\x08\0", "a compressed file (gzip or zstd)"),
    "shot.svg": (b"\x89PNG\r\n\x1a\n", "a picture (PNG)"),
    "table.csv": (b"PAR1\x15\x04", "a Parquet file"),
    "page.json": (b"<!DOCTYPE html>\n<title>x</title>", "an HTML page"),
    "package.html": (b'{"name": "x"}', "a JSON document"),
    "core.txt": (b"\x7fELF\x02\x01\0", "a binary file"),
    "latin.txt": (b"caf\xe9 au lait", "a binary file"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_conchart_did_not_write_is_replaced_only_by_force(run: Run, folder: Path, name: str) -> None:
    content, kind = OTHERS[name]
    (folder / name).write_bytes(content)
    (folder / f"link{Path(name).suffix}").symlink_to(name)
    for target in (name, f"link{Path(name).suffix}"):
        assert refused(run, "a.pcap", "-w", target) == (
            f"-w {target}: this file exists, and conchart did not write it: it is {kind}"
        )
    assert (folder / name).read_bytes() == content
    assert run("a.pcap", "-w", name, "--force")[0] == 0
    assert (folder / name).read_bytes() != content


def test_a_text_of_another_name_is_no_text_of_conchart(run: Run, folder: Path) -> None:
    (folder / "run.sh").write_text("#!/bin/sh\n")
    assert "it is a text file" in refused(run, "a.pcap", "-w", "run.sh", "--format", "txt")


def test_another_database_is_no_trace(run: Run, folder: Path) -> None:
    duckdb.connect(str(folder / "own.duckdb")).execute("CREATE TABLE accounts AS SELECT 1 AS id").close()
    assert "it is a DuckDB database" in refused(run, "a.pcap", "-w", "own.duckdb")


def test_what_conchart_wrote_is_replaced(run: Run, folder: Path) -> None:  # noqa: ARG001
    names = (
        "x.html",
        "x.json",
        "x.csv",
        "x.parquet",
        "x.duckdb",
        "x.txt",
        "x.svg",
        "x.png",
        "x.har",
        "x.pcapng",
        "x.otlp.json",
    )
    words = [word for name in names for word in ("-w", name)]
    assert run("a.pcap", *words)[0] == 0
    assert run("a.pcap", *words)[0] == 0


def test_an_empty_file_may_be_replaced(run: Run, folder: Path) -> None:
    (folder / "new.html").touch()
    assert run("a.pcap", "-w", "new.html")[0] == 0


def test_diff_and_whatif_keep_what_others_wrote(run: Run, folder: Path) -> None:
    (folder / "notes.html").write_text("call the vendor")
    for words in (("diff", "a.pcap", str(CAPTURE)), ("whatif", "a.pcap", "--keepalive"), ("explain", "a.pcap", "0")):
        assert "it is a text file" in refused(run, *words, "-w", "notes.html")
    assert "it is a text file" in refused(run, "live", "-i", "lo", "--keep", "notes.html")


def test_python_refuses_the_same(folder: Path) -> None:
    (folder / "notes.html").write_text("call the vendor")
    with conchart.read("a.pcap") as trace:
        with pytest.raises(UsageError, match="same file as the input capture a.pcap"):
            trace.write(folder / "a.pcap", format="html", force=True)
        with pytest.raises(UsageError, match="it is a text file"):
            trace.write("notes.html")
        trace.write("notes.html", force=True)
    assert (folder / "a.pcap").read_bytes() == CAPTURE.read_bytes()


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO 'a.pcap'",
        'copy connections to "a.pcap" (format csv)',
        "COPY (SELECT 1) TO $$a.pcap$$",
        "COPY connections TO /* here */ 'sub/../a.pcap' -- there",
        "SELECT 1; COPY (SELECT 1) TO 'link.csv'",
        "PREPARE p AS COPY (SELECT 1) TO 'a.pcap'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO 'a.pcap'",
        "EXPORT DATABASE '.'",
        "SET profiling_output = 'a.pcap'",
        "PRAGMA profiling_output = 'a.pcap'",
        "COPY (SELECT 1) TO '..' (PARTITION_BY (a))",
    ],
)
def test_sql_does_not_write_the_capture(run: Run, folder: Path, sql: str) -> None:
    (folder / "link.csv").symlink_to("a.pcap")
    (folder / "sub").mkdir()
    assert "conchart never replaces what it reads" in run("query", "a.pcap", sql)[2]
    assert (folder / "a.pcap").read_bytes() == CAPTURE.read_bytes()


@pytest.mark.parametrize("target", ["('a' || '.pcap')", "(getvariable('x'))", "$1", "E'a\\x2epcap'"])
def test_sql_names_its_files_as_strings(run: Run, folder: Path, target: str) -> None:
    assert refused(run, "query", "a.pcap", f"PREPARE p AS COPY (SELECT 1) TO {target}").startswith("query: ")
    assert (folder / "a.pcap").read_bytes() == CAPTURE.read_bytes()


def test_sql_may_write_other_files_unless_it_is_read_only(run: Run, folder: Path) -> None:
    sql = "COPY (SELECT 1 AS one) TO 'out.csv'"
    assert run("query", "a.pcap", sql, "--read-only")[0] == 2
    assert not (folder / "out.csv").exists()
    assert run("query", "a.pcap", sql)[0] == 0
    assert (folder / "out.csv").read_text() == "one\n1\n"


@pytest.mark.parametrize(
    "sql",
    [
        "FROM read_text('a.pcap')",
        "FROM 'out.csv'",
        "ATTACH 'x.duckdb'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "FROM read_csv('https://127.0.0.1/x.csv')",
    ],
)
def test_read_only_sql_has_no_files_and_no_network(run: Run, folder: Path, sql: str) -> None:
    (folder / "out.csv").write_text("a\n1\n")
    code, out, err = run("query", "a.pcap", sql, "--read-only")
    assert (code, out, err.startswith("conchart: query: ")) == (2, "", True)


def test_read_only_sql_has_all_tables(run: Run, folder: Path) -> None:  # noqa: ARG001
    for query in ("FROM findings", "FROM links", "SELECT count(*) FROM packets"):
        plain = run("query", "a.pcap", query, "--format", "json")
        assert plain[0] == 0
        assert run("query", "a.pcap", query, "--format", "json", "--read-only") == plain
