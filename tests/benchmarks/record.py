"""The record of what reading costs: a line per landing, and the page and the curve that show them.

In: results of a run. Out: a line of `record.jsonl`: date, commit, machine, and for each capture the ratios to tcpdump's
copy of the same run. Machines differ, so that ratios are kept and seconds are not; memory is kept, too. `document`
writes `docs/performance.md` between its marks, and `docs/images/performance.svg` anew.

    python -m tests.benchmarks.record
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tests.benchmarks.results import Result
from tests.benchmarks.targets import MAX_RATIO
from tests.benchmarks.tools import CONCHART, OURS, PEERS, REFERENCE, ROOT

RECORD = ROOT / "tests" / "benchmarks" / "record.jsonl"
PAGE = ROOT / "docs" / "performance.md"
CURVE = ROOT / "docs" / "images" / "performance.svg"
BEGIN, END = "<!-- from tests/benchmarks/record.jsonl -->", "<!-- until here -->"
ORDER = ("loopback", "apart", "generated")

Line = Mapping[str, Any]


def machine() -> dict[str, str | int]:
    """What the machine is, and nothing of whose it is."""
    models = re.findall(r"^model name\s*: (.+)$", read("/proc/cpuinfo"), re.MULTILINE)
    (memory,) = re.findall(r"^MemTotal:\s*(\d+) kB$", read("/proc/meminfo"), re.MULTILINE) or ("0",)
    return {
        "cpu": models[0] if models else platform.processor() or platform.machine(),
        "cores": os.cpu_count() or 1,
        "memory_gb": round(int(memory) / 1e6),
        "kernel": f"{platform.system()} {platform.release().split('-')[0]}",
    }


def read(path: str) -> str:
    """A file of /proc, or nothing where there is none."""
    return Path(path).read_text() if Path(path).exists() else ""


def line(what: str, checkout: Path, results: Sequence[Result], suffix: str, rounds: int) -> Line:
    """What a run found of one checkout; the names of its tools end with ``suffix``."""
    words = ["git", "-C", str(checkout), "rev-parse", "--short=9", "HEAD"]
    commit = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    return {
        "what": what,
        "date": datetime.now(timezone.utc).date().isoformat(),
        "commit": commit or "unknown",
        "machine": machine(),
        "rounds": rounds,
        "captures": {result.name: of_capture(result, suffix) for result in results},
    }


def of_capture(result: Result, suffix: str) -> dict[str, Any]:
    """What a run found of one capture."""
    copy = result.middle(REFERENCE)
    tools = {tool: cost for tool in OURS if (cost := of_tool(result, tool + suffix))}
    peers = {peer: cost for peer in PEERS if (cost := of_tool(result, peer))}
    found = result.middle(CONCHART + suffix).connections
    facts = {"packets": result.packets, "connections": found, "copy_s": round(copy.seconds or 0, 3)}
    return facts | {"tools": tools, "peers": peers}


def of_tool(result: Result, tool: str) -> dict[str, float]:
    """Ratios of wall and processor time to tcpdump's copy, and MiB; nothing of a tool that did not run."""
    wall, busy, run = result.ratio(tool), result.ratio(tool, "busy"), result.middle(tool)
    if wall is None or busy is None or run.memory is None:
        return {}
    cost: dict[str, float] = {"wall": round(wall, 2), "cpu": round(busy, 2), "mib": round(run.memory / 2**20)}
    return cost | ({"page_mib": round(run.written / 2**20, 1)} if run.written is not None else {})


def append(new: Line) -> None:
    """Keep a line."""
    with RECORD.open("a", encoding="utf-8") as file:
        file.write(json.dumps(new) + "\n")


def lines() -> list[Line]:
    """What was kept, the oldest first."""
    return [json.loads(text) for text in RECORD.read_text(encoding="utf-8").splitlines()]


def fingerprint() -> str:
    """Names the record in the curve that was drawn of it."""
    return hashlib.sha256(RECORD.read_bytes()).hexdigest()[:16]


def shown(landings: Sequence[Line]) -> str:
    """The record as Markdown: the newest landing in full, and reading in all of them."""
    newest = landings[-1]
    parts = ["## Every landing", "", *table_of_landings(landings), ""]
    parts += ["## The newest landing", "", *table_of_tools(newest)]
    return "\n".join(parts)


def captures_of(landings: Sequence[Line]) -> list[str]:
    """The captures of all lines, the real ones first."""
    names = dict.fromkeys(name for one in landings for name in one["captures"])
    return sorted(names, key=lambda name: ORDER.index(name.split()[0]))


def table_of_landings(landings: Sequence[Line]) -> list[str]:
    """A row per capture, a column per landing: wall and processor time of reading, and memory."""
    heads = [f"{one['what']}<br>{one['date']}, `{one['commit']}`" for one in landings]
    rows = [["`conchart.read` of", "target", *heads]]
    rows.append(["---", "--:", *["--:"] * len(heads)])
    for name in captures_of(landings):
        limit = MAX_RATIO.get(name.split()[-1])
        cells = [one["captures"].get(name, {}).get("tools", {}).get(CONCHART) for one in landings]
        texts = [f"{cost['wall']:.2f} × ({cost['cpu']:.2f} ×), {cost['mib']:,} MiB" if cost else "" for cost in cells]
        rows.append([name, f"{limit:.1f} ×" if limit else "", *texts])
    return [f"| {' | '.join(row)} |" for row in rows]


def table_of_tools(newest: Line) -> list[str]:
    """A row per capture, a column per tool: wall and processor time."""
    machine = newest["machine"]
    memory = f"{machine['memory_gb']} GB of memory, {machine['kernel']}"
    about = f"{newest['what']}, medians of {newest['rounds']}, on {machine['cpu']}, {machine['cores']} cores, {memory}."
    columns = [*OURS, *PEERS]
    present = [tool for tool in columns if any(tool in costs(one) for one in newest["captures"].values())]
    rows = [["capture", "packets", "connections", *[f"`{tool}`" for tool in present]]]
    rows.append(["---", *["--:"] * (len(present) + 2)])
    for name in captures_of([newest]):
        one = newest["captures"][name]
        found = [costs(one).get(tool) for tool in present]
        texts = [f"{cost['wall']:.2f} × ({cost['cpu']:.2f} ×)" if cost else "" for cost in found]
        rows.append([name, f"{one['packets']:,}", f"{one['connections'] or 0:,}", *texts])
    return [about, "", *[f"| {' | '.join(row)} |" for row in rows]]


def costs(one: Mapping[str, Any]) -> dict[str, Any]:
    """What each tool costs on a capture."""
    return {**one["tools"], **one["peers"]}


def document() -> None:
    """Write the page's tables and the curve."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{shown(lines())}\n\n{END}{after}", encoding="utf-8")
    draw(lines())


def draw(landings: Sequence[Line]) -> None:
    """Draw reading, in times of tcpdump's copy, from landing to landing."""
    # Here alone: what appends lines needs no pictures.
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter

    style: Any = {"svg.hashsalt": "conchart", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10}
    with mpl.rc_context(style):
        figure, axes = pyplot.subplots(figsize=(9, 4.5), layout="constrained")
        for name in captures_of(landings):
            if name.startswith("generated"):
                continue
            found = [one["captures"].get(name, {}).get("tools", {}).get(CONCHART) for one in landings]
            points = [(place, cost["wall"]) for place, cost in enumerate(found) if cost]
            dashes = "-" if name.startswith("loopback") else "--"
            axes.plot(*zip(*points, strict=True), marker="o", linestyle=dashes, label=name)
        axes.set_yscale("log")
        for labelled in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            labelled(FuncFormatter(lambda value, _: f"{value:g} ×"))
        axes.set_ylabel("time of conchart.read ÷ tcpdump's copy")
        axes.set_xticks(range(len(landings)), [f"{one['what']}\n{one['date']}" for one in landings])
        axes.margins(x=0.15)
        axes.grid(axis="y", alpha=0.3)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        CURVE.parent.mkdir(exist_ok=True)
        about = {"Date": None, "Creator": None, "Description": f"record {fingerprint()}"}
        figure.savefig(CURVE, format="svg", metadata=about)
        pyplot.close(figure)


if __name__ == "__main__":
    document()
