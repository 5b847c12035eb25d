"""What belongs to a shell: completion, manual pages, facts of the build, the check of an installation."""

import configparser
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import conchart
from conchart import _native
from conchart.cli import doctor, facts, manual
from conchart.cli.command import COMMANDS, cli
from conchart.cli.completion import SHELLS, VARIABLE
from conchart.cli.facts import EXTRAS, Package
from tests.conftest import ROOT

MANUAL = ROOT / "docs" / "man"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with a program ``conchart``, and the captures of a user."""
    script = tmp_path / "bin" / "conchart"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from conchart.cli import main; main()" "$@"\n')
    script.chmod(0o755)
    (tmp_path / "desk" / "days").mkdir(parents=True)
    for name in ("slow.pcap", "keys.log"):
        (tmp_path / "desk" / name).touch()
    return tmp_path


def environment(programs: Path, **more: str) -> dict[str, str]:
    path = f"{programs / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **more}


def completed(programs: Path, *words: str) -> list[str]:
    """What the script of bash is told for a line that ends in the last word."""
    variables = {"COMP_WORDS": " ".join(("conchart", *words)), "COMP_CWORD": str(len(words)), VARIABLE: "bash_complete"}
    ended = subprocess.run(
        ["conchart"],
        env=environment(programs, **variables),
        cwd=programs / "desk",
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stderr == ""
    return ended.stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        (("do",), ["plain,doctor"]),
        (("d",), ["plain,diff", "plain,doctor", "plain,days/"]),
        (("sl",), ["file,sl"]),
        (("slow.pcap", "--see"), ["plain,--seen-from"]),
        (("slow.pcap", "sl"), ["file,sl"]),
        (("slow.pcap", "--table", "connec"), ["plain,connections"]),
        (("slow.pcap", "--keylog", "k"), ["file,k"]),
        (("slow.pcap", "--findings", ""), ["dir,"]),
        (("diff", "sl"), ["file,sl"]),
        (("query", "slow.pcap", "--format", "j"), ["plain,json"]),
        (("live", "-i", "an"), ["plain,any"]),
        (("completion", ""), ["plain,bash", "plain,zsh", "plain,fish"]),
    ],
    ids=" ".join,
)
def test_words_are_completed(programs: Path, words: tuple[str, ...], completions: list[str]) -> None:
    assert completed(programs, *words) == completions


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_a_shell_is_understood_by_it(programs: Path, shell: str) -> None:
    script = programs / f"conchart.{shell}"
    script.write_text(CliRunner().invoke(cli, ["completion", shell]).stdout)
    assert f"{VARIABLE}={shell}_complete" in script.read_text()
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed: nobody asks it whether it understands the script")
    subprocess.run([shell, "-n", script], check=True)


def test_fish_completes_with_the_script(programs: Path) -> None:
    if not shutil.which("fish"):
        pytest.skip("fish is not installed")
    code = 'conchart completion fish | source; complete --do-complete "conchart live --dur"'
    ended = subprocess.run(
        ["fish", "--no-config", "-c", code], env=environment(programs), capture_output=True, text=True, check=True
    )
    assert [line.split()[0] for line in ended.stdout.splitlines()] == ["--duration"]


def test_manual_pages_say_what_the_commands_say(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        manual.write(MANUAL)
    stored = {path.name: path.read_text(encoding="utf-8") for path in MANUAL.iterdir()}
    assert stored == manual.pages(), "pytest tests/cli/test_shell.py --update-golden"
    assert set(stored) == {"conchart.1", *(f"conchart-{name}.1" for name in COMMANDS)}


def test_every_option_is_in_the_manual() -> None:
    for name, text in manual.pages().items():
        plain = text.replace("\\-", "-")
        command = cli.get_command(click.Context(cli), name.removesuffix(".1").removeprefix("conchart-"))
        for parameter in command.params if command else ():
            assert any(option in plain for option in parameter.opts) or parameter.param_type_name == "argument"


@pytest.mark.parametrize("page", sorted(MANUAL.iterdir()), ids=lambda page: page.name)
def test_troff_prints_a_manual_page_without_a_warning(page: Path) -> None:
    if not shutil.which("man") or not shutil.which("groff"):
        pytest.skip("man and groff are not installed")
    printed = subprocess.run(
        ["man", "--warnings", "-l", page],
        env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert printed.stderr == ""
    assert "SEE ALSO" in printed.stdout


def test_the_version_alone_is_one_line_and_with_v_the_facts_of_the_build() -> None:
    assert CliRunner().invoke(cli, ["--version"]).stdout == f"conchart {conchart.__version__}\n"
    for words in (["--version", "-v"], ["-v", "--version"]):
        output = CliRunner().invoke(cli, words).stdout
        assert re.search(r"^core +\S+, (release|checked|dev\w*) \(opt-level \d\), \S+-\S+", output, re.MULTILINE)
        assert re.search(r"^compiler +rustc 1\.\d+", output, re.MULTILINE)
        assert re.search(r"^duckdb +1\.", output, re.MULTILINE)
        assert str(Path.home()) not in output
        assert socket.gethostname() not in output


def test_all_versions_are_one() -> None:
    manifest = (ROOT / "conchart/native/Cargo.toml").read_text()
    assert f'\nversion = "{conchart.__version__}"\n' in manifest
    assert _native.build_facts()["version"] == conchart.__version__
    declared = configparser.ConfigParser()
    declared.read(ROOT / "setup.cfg")
    assert declared["metadata"]["version"] == "attr: conchart.version.VERSION"
    assert f": {conchart.__version__}\n" in (ROOT / "docs/changelog.md").read_text().partition("\n### ")[0]


def test_every_extra_for_users_has_words() -> None:
    declared = configparser.ConfigParser()
    declared.read(ROOT / "setup.cfg")
    assert {*declared["options.extras_require"]} == {*EXTRAS, "test"} | {"site"} & {*declared["options.extras_require"]}


def examined(monkeypatch: pytest.MonkeyPatch | None = None) -> tuple[int, dict[str, dict[str, str]]]:
    result = CliRunner().invoke(cli, ["doctor", "--format", "json"], standalone_mode=False)
    lines = json.loads(result.stdout)
    return result.return_value, {line["name"]: line for line in lines}


def test_doctor_finds_nothing_wrong_where_tests_pass() -> None:
    code, lines = examined()
    assert code == 0
    assert not [line for line in lines.values() if line["state"] == "wrong"]
    assert lines["captures"]["state"] == "ok"
    assert "filters compile" in lines["libpcap"]["text"]
    assert set(EXTRAS) <= set(lines)


def test_doctor_names_a_missing_extra_and_the_command_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    packages = [Package("click", None, "8.2.0"), Package("scapy", "dissect", None)]
    monkeypatch.setattr(doctor, "packages", lambda: packages)
    code, lines = examined()
    assert (code, lines["dissect"]["state"]) == (0, "absent")
    assert "lacks scapy" in lines["dissect"]["text"]
    assert lines["dissect"]["advice"].startswith("pip install 'conchart[dissect]'")


def test_doctor_ends_with_one_where_a_needed_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "packages", lambda: [Package("duckdb", None, None)])
    code, lines = examined()
    assert (code, lines["duckdb"]["state"]) == (1, "wrong")


def test_doctor_goes_on_behind_what_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("this core is of another machine")

    monkeypatch.setattr(_native, "build_facts", broken)
    monkeypatch.setattr(_native, "read_capture", broken)
    code, lines = examined()
    assert code == 1
    assert "another machine" in lines["check"]["text"]
    assert lines["captures"]["state"] == "wrong"
    assert lines["interfaces"]["state"] == "ok"


def test_doctor_says_that_this_user_cannot_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> socket.socket:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(socket, "socket", refused)
    code, lines = examined()
    assert (code, lines["rights"]["state"]) == (0, "absent")
    assert "CAP_NET_RAW" in lines["rights"]["text"]
    assert "sudo conchart live" in lines["rights"]["advice"]


def test_packages_are_read_from_the_metadata() -> None:
    found = {package.name: package for package in facts.packages()}
    assert found["click"].extra is None
    assert found["scapy"].extra == "dissect"
    assert "pytest" not in found
