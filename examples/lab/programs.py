"""The programs of a lab: are they there, where Apache keeps its modules, as whom it runs, how each names itself."""

from __future__ import annotations

import grp
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

MODULE_FOLDERS = (
    "/usr/lib/apache2/modules",
    "/usr/lib64/httpd/modules",
    "/usr/lib/httpd/modules",
    "/usr/libexec/apache2",
)


@dataclass(frozen=True)
class Apache:
    """Apache 2.4 on this machine."""

    program: str
    modules: str

    @property
    def group(self) -> str:
        """The unprivileged group that this system has for it."""
        return next(
            name for name in ("www-data", "apache", "nogroup", "nobody") if name in {g.gr_name for g in grp.getgrall()}
        )

    @property
    def user(self) -> str:
        """The unprivileged user that this system has for it."""
        return self.group if self.group in ("www-data", "apache") else "nobody"


def require(programs: Iterable[str]) -> None:
    """Leave with a message unless we are root and all ``programs`` are installed."""
    if os.geteuid() != 0:
        sys.exit("make-captures: network namespaces need root; try sudo")
    if missing := [program for program in programs if not shutil.which(program)]:
        sys.exit(f"make-captures: please install {', '.join(missing)}")


def find_apache() -> Apache:
    """Return Apache, or leave with a message."""
    program = shutil.which("apache2") or shutil.which("httpd")
    modules = next((folder for folder in MODULE_FOLDERS if Path(folder, "mod_proxy_http.so").is_file()), None)
    if not program or not modules:
        sys.exit("make-captures: please install Apache 2.4")
    return Apache(program, modules)


def versions(commands: Iterable[Sequence[str]]) -> str:
    """List programs as each names itself, and the kernel."""
    names = []
    for words in commands:
        run = subprocess.run(words, capture_output=True, text=True, check=True)
        names.append((run.stdout or run.stderr).splitlines()[0])
    kernel = f"{os.uname().sysname} {os.uname().release}"
    return "\n".join(f"- {line}" for line in [*names, kernel])
