"""The rules of docs/contributing.md about sentences, as far as vale can check them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

import click

from conchart.cli.command import COMMANDS, cli

CONFIGURATION = Path(__file__).with_name("vale.ini")
MISSING = "vale is not installed: go install github.com/errata-ai/vale/v3/cmd/vale@v3.7.1"
CODE = "**/{node_modules,target}/**"


class Alert(NamedTuple):
    """One place that breaks a rule."""

    path: str
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        """Write it as compilers do."""
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"


@cache
def installed() -> str | None:
    """Give the path of vale: on the PATH, or where ``go install`` puts it."""
    home = os.environ.get("GOBIN") or Path(os.environ.get("GOPATH", Path.home() / "go")) / "bin"
    return shutil.which("vale") or shutil.which("vale", path=home)


def alerts(*paths: Path) -> list[Alert]:
    """Give everything that vale finds in these files and folders."""
    vale = installed()
    assert vale, MISSING
    command: list[str | Path] = [vale, "--config", CONFIGURATION, "--output=JSON", "--no-exit", f"--glob=!{CODE}"]
    done = subprocess.run([*command, *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [
        Alert(path, alert["Line"], alert["Check"], f"{alert['Message']} …{alert['Match'][:70]}")
        for path, alerts in json.loads(done.stdout).items()
        for alert in alerts
    ]
    return sorted(found)


def helps() -> str:
    """Give the help of every command and option, as Markdown."""
    context = click.Context(cli, info_name="conchart")
    paragraphs = []
    for name in ("summary", *COMMANDS):
        command = cli.get_command(context, name)
        assert command
        prose, _, _ = (command.help or "").partition("\b")
        paragraphs.append(prose)
        paragraphs += [option.help or "" for option in command.params if isinstance(option, click.Option)]
    return "\n\n".join(re.sub(r"\s+", " ", paragraph) for paragraph in paragraphs)
