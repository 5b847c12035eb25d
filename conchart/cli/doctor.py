"""``conchart doctor``: what is installed, what extras would bring, and whether this process can capture."""

import json
import os
import platform
import shutil
import socket
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import click

from conchart.cli.facts import EXTRAS, Package, build_facts, packages
from conchart.errors import ConchartError, UsageError
from conchart.labels.printable import printable
from conchart.labels.units import format_bytes

_WRONG = 1
_OLDEST_PYTHON = (3, 10)
_LITTLE_SPACE = 1 << 30
"""Tables beyond the memory limit go to the temporary folder."""
_SYN = bytes.fromhex(
    "0242ac1100020242ac110003080045000028000140004006e2a0ac110003ac110002"  # Ethernet and IPv4
    "9c4001bb00000001000000005002ffff00000000"  # TCP: port 40000 to 443, SYN
)
"""A frame, of which a capture is made that the core must be able to read."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    part: str
    name: str
    state: Literal["ok", "absent", "wrong"]
    """``absent``: something that only some uses of conchart need. ``wrong``: something that all of them need."""
    text: str
    advice: str | None = None


@click.command()
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def doctor(form: str) -> int:
    """Check this installation, and whether this user can capture.

    The report lists the build, the packages, the extras with the abilities that they add, and the rights and interfaces
    for "conchart live". It ends with the steps that mend what is missing. Nothing is captured, and no file is left
    behind.

    \b
    Exit codes:
      0 captures can be read (extras and the right to capture may be missing)
      1 something that every use of conchart needs is missing or broken
    """  # noqa: D301  (click's mark for lines it must not wrap)
    findings = list(_examined())
    if form == "json":
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=1))
    else:
        _print(findings)
    return _WRONG if any(finding.state == "wrong" for finding in findings) else 0


def _print(findings: list[Finding]) -> None:
    wide = max(len(finding.name) for finding in findings)
    marks = {"ok": "ok     ", "absent": "absent ", "wrong": "WRONG  "}
    part = None
    for finding in findings:
        if finding.part != part:
            click.echo(f"{'' if part is None else chr(10)}{finding.part}")
            part = finding.part
        click.echo(f"  {marks[finding.state]} {finding.name:<{wide}}  {printable(finding.text)}".rstrip())
    steps = dict.fromkeys(finding.advice for finding in findings if finding.advice)
    if steps:
        click.echo("\nTo mend it")
        for step in steps:
            click.echo(f"  {printable(step)}")


def _examined() -> Iterator[Finding]:
    for name, look in (
        ("Build", _build),
        ("Packages", _packages),
        ("Extras", _extras),
        ("Reading", _reading),
        ("Capturing", _capturing),
    ):
        yield from _whatever_happens(name, look)


def _whatever_happens(part: str, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Go on with the report, whatever is broken: a core for another machine, damaged metadata."""
    try:
        yield from look()
    except Exception as error:
        yield Finding(part, "check", "wrong", f"{type(error).__name__}: {error}")


def _build() -> Iterator[Finding]:
    old = sys.version_info[:2] < _OLDEST_PYTHON
    facts = dict(build_facts())
    for name in ("conchart", "tables", "core", "compiler", "system"):
        yield Finding("Build", name, "ok", facts[name])
    yield Finding(
        "Build", "python", "wrong" if old else "ok", facts["python"], "conchart needs Python 3.10" if old else None
    )


def _packages() -> Iterator[Finding]:
    needed = [package for package in packages() if package.extra is None]
    if not needed:
        yield Finding("Packages", "conchart", "absent", "runs from a source tree that was never installed")
    for package in needed:
        advice = None if package.version else "pip install --force-reinstall conchart"
        yield Finding(
            "Packages", package.name, "ok" if package.version else "wrong", package.version or "not installed", advice
        )


def _extras() -> Iterator[Finding]:
    all_packages = packages()
    for extra, brings in EXTRAS.items():
        lacking = [package.name for package in all_packages if package.extra == extra and not package.version]
        yield _extra(extra, brings, [package for package in all_packages if package.extra == extra], lacking)


def _extra(extra: str, brings: str, consists: list[Package], lacking: list[str]) -> Finding:
    if lacking or not consists:
        advice = f"pip install 'conchart[{extra}]'   # {brings}"
        return Finding("Extras", extra, "absent", f"{brings}; lacks {', '.join(lacking) or 'everything'}", advice)
    return Finding("Extras", extra, "ok", brings)


def _reading() -> Iterator[Finding]:
    yield _checked("Reading", "captures", _read_one, "pip install --force-reinstall conchart")
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    little = free < _LITTLE_SPACE
    yield Finding(
        "Reading",
        "temporary",
        "absent" if little else "ok",
        f"{format_bytes(free)} free for tables that exceed the memory limit",
        "set TMPDIR to a folder with more space" if little else None,
    )


def _checked(part: str, name: str, check: Callable[[], str], advice: str) -> Finding:
    try:
        return Finding(part, name, "ok", check())
    except (ConchartError, OSError, ImportError, AttributeError, RuntimeError) as error:
        return Finding(part, name, "wrong", f"{type(error).__name__}: {error}", advice)


def _read_one() -> str:
    """Read a capture of one packet."""
    from conchart.trace import read

    with tempfile.TemporaryDirectory() as folder:
        capture = Path(folder, "one.pcap")
        header = struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1)
        capture.write_bytes(header + struct.pack("=IIII", 1, 0, len(_SYN), len(_SYN)) + _SYN)
        with read(capture) as trace:
            ((connections,),) = trace.fetch("SELECT count(*) FROM connections")
    if connections != 1:
        raise RuntimeError(f"a capture of one connection was read as {connections}")
    return "a capture of one packet was read into tables"


def _capturing() -> Iterator[Finding]:
    yield _checked(
        "Capturing", "libpcap", _libpcap, "install libpcap (Debian: libpcap0.8), or conchart without filters"
    )
    interfaces = [name for _, name in socket.if_nameindex()]
    yield Finding("Capturing", "interfaces", "ok" if interfaces else "absent", ", ".join(interfaces) or "none")
    refusal = _refusal()
    yield Finding(
        "Capturing",
        "rights",
        "absent" if refusal else "ok",
        refusal or "this user can open an interface",
        "sudo conchart live -i any, or capture with tcpdump and read the file" if refusal else None,
    )
    if os.geteuid() == 0:
        yield Finding("Capturing", "user", "ok", _successor())


def _libpcap() -> str:
    from conchart.reading import bpf

    bpf.compile_filter("tcp port 443", 1)
    return f"{bytes(bpf.library().lib_version()).decode(errors='replace')}; filters compile"


def _refusal() -> str:
    """Say why this process cannot capture: nothing if it can. No packet is received."""
    if platform.system() != "Linux":
        devices = sorted(Path("/dev").glob("bpf*"))
        return "" if any(os.access(device, os.R_OK) for device in devices) else "no right to read /dev/bpf*"
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    except PermissionError:
        return "no right to open an interface (CAP_NET_RAW)"
    except OSError as error:
        return f"the system opens no interface for packets: {error.strerror}"
    return ""


def _successor() -> str:
    from conchart.reading.live.privileges import unprivileged

    try:
        entry = unprivileged()
    except UsageError as error:
        return str(error)
    return f"once it captures, conchart live runs as {entry.pw_name}" if entry else "conchart live keeps root"
