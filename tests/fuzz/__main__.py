"""Build the fuzz targets and run them, one after the other, on stable Rust.

Each target first replays its seeds (made of our captures) and the inputs that once broke it
(conchart/native/fuzz/regressions), then goes on from them. What crashes is written to the working folder.

Without --executions it is the short run of the gate: so few that it takes a minute, from the same random seed each
time. Exit code: 1 when a target crashed, 0 else; where libFuzzer cannot be built, that is said and nothing is run.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT
from tests.fuzz import seeds

FUZZ = ROOT / "conchart" / "native" / "fuzz"
COVERAGE = (
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
)
"""What cargo-fuzz passes to a nightly compiler as well."""


@dataclass(frozen=True, slots=True)
class Target:
    """How one target is run."""

    name: str
    longest: int
    """Longest input that is made, in bytes."""
    short: int
    """Executions in the gate: a few seconds."""


TARGETS = (
    Target("bpf", 600, 200_000),
    Target("packet", 1_500, 100_000),
    Target("tcp", 800, 10_000),
    Target("tls", 1_500, 4_000),
    Target("tls_keys", 1_200, 4_000),
    Target("http1", 1_500, 10_000),
    Target("http2", 1_200, 10_000),
    Target("datagrams", 3_000, 4_000),
    Target("pcapng", 2_000, 5_000),
    Target("file", 12_000, 1_000),
)


def build() -> Path:
    """Build all targets; give the folder they are in.

    Only the targets get the coverage counters: a build for a named platform keeps them out of build scripts.
    """
    about = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    host: str = re.findall(r"^host: (.*)$", about, re.MULTILINE)[0]
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--target", host]
    flags = " ".join(("--cfg=fuzzing", *COVERAGE))
    subprocess.run(command, cwd=FUZZ, check=True, env={**os.environ, "RUSTFLAGS": flags})
    return FUZZ / "target" / host / "release"


def run(target: Target, program: Path, work: Path, executions: int | None) -> tuple[str, bool]:
    """Run one target; give its line of the table, and whether it held."""
    corpus, crashes = work / "corpus" / target.name, work / "crashes" / target.name
    for folder in (corpus, crashes):
        folder.mkdir(parents=True, exist_ok=True)
    begin = ["-seed=1"] if executions is None else []
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as scratch:
        # libFuzzer writes what it learns into the first folder: the short run begins anew each time.
        place, new = Path(scratch, "tmp"), Path(scratch, "new")
        place.mkdir()
        new.mkdir()
        learnt = new if executions is None else corpus
        inputs = [learnt, work / "seeds" / target.name, FUZZ / "regressions" / target.name]
        command = [
            str(program / target.name),
            *begin,
            f"-runs={target.short if executions is None else executions}",
            f"-max_len={target.longest}",
            "-timeout=60",
            "-print_final_stats=1",
            f"-artifact_prefix={crashes}/",
            *(str(folder) for folder in inputs if folder.is_dir()),
        ]
        done = subprocess.run(command, env={**os.environ, "TMPDIR": str(place)}, capture_output=True, check=False)
    output = done.stderr.decode(errors="replace")

    def last(pattern: str) -> int:
        return int((re.findall(pattern, output) or ["0"])[-1])

    numbers = (
        last(r"number_of_executed_units:\s+(\d+)"),
        last(r"average_exec_per_sec:\s+(\d+)"),
        last(r"cov: (\d+)"),
        last(r" ft: (\d+)"),
        last(r"new_units_added:\s+(\d+)"),
    )
    line = f"{target.name:10}" + "".join(f"{number:>14,}" for number in numbers)
    if done.returncode == 0:
        return line + "    held", True
    reason = re.search(r"panicked at [^\n]*\n(?:[^\n]*\n){0,4}|ERROR: libFuzzer: [^\n]*", output)
    saved = re.findall(r"Test unit written to (\S+)", output)
    return f"{line}    BROKE: {' '.join(saved)}\n{(reason.group() if reason else output[-2000:])[:4000]}", False


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "target", nargs="*", metavar="TARGET", help="[default: all]", choices=[[], *(t.name for t in TARGETS)]
    )
    parser.add_argument("--executions", type=int, metavar="N", help="so many of each target  [default: the short run]")
    parser.add_argument(
        "--work", type=Path, metavar="DIR", default=FUZZ / "target" / "work", help="corpora and crashes"
    )
    chosen = parser.parse_args()
    if not shutil.which(os.environ.get("CXX", "c++")):
        sys.stdout.write("FUZZING IS SKIPPED: libFuzzer needs a C++ compiler, and there is no c++.\n")
        return 0
    program = build()
    seeds.write(chosen.work / "seeds")
    sys.stdout.write(
        f"{'target':10}{'executions':>14}{'per second':>14}{'edges':>14}{'features':>14}{'new inputs':>14}\n"
    )
    all_held = True
    for target in TARGETS:
        if not chosen.target or target.name in chosen.target:
            line, held = run(target, program, chosen.work, chosen.executions)
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
            all_held &= held
    return 0 if all_held else 1


if __name__ == "__main__":
    sys.exit(main())
