"""Counts the core's instructions: `conchart/native/benches/read.rs` under valgrind.

In: captures. Out: instructions between the opening of the capture and the last Arrow batch. Two runs on one machine
differ by less than a thousandth. Machines differ by more: in the compiler, in the C library, and in the vector
instructions that memchr and zlib choose when they start. `machine` names what a count holds for.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.benchmarks.tools import ROOT

MANIFEST = ROOT / "conchart" / "native" / "Cargo.toml"
COUNTED = "*read::counted*"
"""The function of the bench in which callgrind counts."""
CPU_INFO = Path("/proc/cpuinfo")
MOST_S = 600


def missing() -> list[str]:
    """What this machine lacks to count."""
    return [program for program in ("valgrind", "cargo", "rustc") if not shutil.which(program)]


def machine() -> str:
    """What a count holds for: compiler, C library, vector instructions, and valgrind, which may hide some of these."""
    words = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    facts = dict(line.split(": ", 1) for line in words.splitlines() if ": " in line)
    flags = CPU_INFO.read_text().split() if CPU_INFO.exists() else []
    level = "avx2" if "avx2" in flags else "no avx2"
    valgrind = subprocess.run(["valgrind", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    return f"rustc {facts['release']}, {facts['host']}, {' '.join(platform.libc_ver())}, {level}, {valgrind}"


@cache
def bench() -> Path:
    """Build the bench as it is shipped, whatever the environment says of profiles, and say where it is."""
    words = ["cargo", "build", "--release", "--locked", "--bench", "read", "--manifest-path", str(MANIFEST)]
    words += ["--message-format", "json-render-diagnostics"]
    built = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, env=plain())
    messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
    (path,) = (message["executable"] for message in messages if message.get("executable"))
    return Path(path)


def plain() -> dict[str, str]:
    """The environment without what changes the code that the compiler makes."""
    changing = re.compile(r"CARGO_PROFILE_|CARGO_BUILD_|(CARGO_ENCODED_)?RUSTFLAGS$|CFLAGS$|MIMALLOC_")
    return {name: value for name, value in os.environ.items() if not changing.match(name)}


def instructions(captures: Sequence[Path], detailed: int) -> int:
    """Count what reading the captures takes; of ``detailed`` frames, every packet, record and message is a row.

    Raises:
        RuntimeError: valgrind or the core failed; the text holds what they said.
    """
    words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"--toggle-collect={COUNTED}"]
    words += [str(bench()), str(detailed), *map(str, captures)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=MOST_S, env=plain(), check=False)
    counts = re.findall(r"Collected : (\d+)", done.stderr)
    if done.returncode or not counts or counts[0] == "0":
        raise RuntimeError(f"{' '.join(words)}: exit {done.returncode}\n{done.stderr}")
    return int(counts[0])
