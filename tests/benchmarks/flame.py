"""A flame graph of the core: what it does while it reads a capture, as a self-contained SVG.

In: stacks that perf sampled in `conchart/native/benches/read.rs`, built as shipped. Out: an SVG in which a bar is as
wide as the share of samples in which a function was on the stack. What it called stands above it; what the compiler put
inside it is part of it. A click on a bar widens it, a click on the lowest shows everything again. Needs perf, and what
`live.py` needs for the capture.

    python -m tests.benchmarks.flame
    python -m tests.benchmarks.flame --capture F.pcap --svg F.svg
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import click

from tests.benchmarks import live
from tests.benchmarks.tools import ROOT
from tests.cost.callgrind import bench

SVG = ROOT / "docs" / "images" / "reading.svg"
ROOT_FUNCTION = "counted"
"""What lies below it is the start of the program."""
FREQUENCY = 997
TIMES = 30
"""How often the capture is read: enough for some thousand samples."""
WIDTH, ROW, MARGIN = 1_200, 17, 30
LETTER = 6.6
"""Width of a letter, in the units of the picture."""
NARROWEST = 0.001
"""Bars that are a smaller share of everything are left out."""

SCRIPT = """
const bars = [...document.querySelectorAll("g[data-x]")];
function widen(chosen) {
  const from = +chosen.dataset.x, share = +chosen.dataset.w;
  for (const bar of bars) {
    const left = (bar.dataset.x - from) / share, width = bar.dataset.w / share;
    const above = +bar.dataset.level >= +chosen.dataset.level;
    const first = Math.max(left, 0), last = Math.min(left + width, 1);
    bar.style.display = last - first > 0.0005 ? "" : "none";
    const [x, w] = above ? [left * WIDTH, width * WIDTH] : [0, WIDTH];
    const rectangle = bar.querySelector("rect"), text = bar.querySelector("text");
    rectangle.setAttribute("x", x);
    rectangle.setAttribute("width", Math.max(w - 0.5, 0.1));
    text.setAttribute("x", x + 3);
    text.textContent = bar.dataset.name.slice(0, Math.max(Math.floor((w - 6) / LETTER), 0));
  }
}
for (const bar of bars) bar.addEventListener("click", () => widen(bar));
"""


@dataclass(slots=True)
class Bar:
    """A function on the stack of those below it."""

    name: str
    samples: int = 0
    above: dict[str, Bar] = field(default_factory=dict)


def stacks(script: Iterable[str]) -> Iterator[list[str]]:
    """The stacks of `perf script -F ip,sym`, each from its lowest function to the one that ran."""
    stack: list[str] = []
    for line in script:
        words = line.split(None, 1)
        if words:
            stack.append(named(words[1].strip() if len(words) > 1 else "[unknown]"))
        elif stack:
            yield stack[::-1]
            stack = []
    if stack:
        yield stack[::-1]


def named(symbol: str) -> str:
    """A function's name without its crate's, its hash and the types it was made for."""
    symbol = re.sub(r"(::h[0-9a-f]{16}|\+0x[0-9a-f]+)$", "", symbol)
    while (shorter := re.sub(r"<[^<>]*>", "", re.sub(r"<([^<> ]+) as [^<>]+>", r"\1", symbol))) != symbol:
        symbol = shorter
    return re.sub(r"^:+|:+$|conchart_native::", "", symbol) or "[unknown]"


def folded(found: Iterable[list[str]]) -> Bar:
    """The stacks put together, from the function that is counted on."""
    lowest = Bar("everything")
    for stack in found:
        starts = [place for place, name in enumerate(stack) if name.split("::")[-1] == ROOT_FUNCTION]
        if not starts:
            continue
        lowest.samples += 1
        bar = lowest
        for name in stack[starts[0] + 1 :]:
            bar = bar.above.setdefault(name, Bar(name))
            bar.samples += 1
    return lowest


def depth(bar: Bar, least: float) -> int:
    """How many bars stand on each other, those that are shown."""
    return 1 + max((depth(each, least) for each in bar.above.values() if each.samples >= least), default=0)


def drawn(lowest: Bar, title: str) -> str:
    """The picture."""
    least = max(lowest.samples * NARROWEST, 1)
    height = depth(lowest, least) * ROW + 2 * MARGIN
    bars = "\n".join(_bars(lowest, 0, 0, lowest.samples, least, height - MARGIN))
    script = SCRIPT.replace("WIDTH", str(WIDTH)).replace("LETTER", str(LETTER))
    about = f'viewBox="0 0 {WIDTH} {height}" font-family="monospace" font-size="11"'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" {about}>
<title>{escape(title)}</title>
<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>
<text x="3" y="18" font-size="14">{escape(title)}</text>
{bars}
<script><![CDATA[{script}]]></script>
</svg>
"""


def _bars(bar: Bar, level: int, before: int, whole: int, least: float, bottom: int) -> Iterator[str]:
    """A bar and those above it, the widest first."""
    share, start = bar.samples / whole, before / whole
    width = share * WIDTH
    # The colour says nothing; the same name has the same.
    hue = 20 + zlib.crc32(bar.name.encode()) % 40
    y = bottom - (level + 1) * ROW
    label = escape(bar.name[: max(int((width - 6) / LETTER), 0)])
    name = escape(bar.name, quote=True)
    yield (
        f'<g data-x="{start:.6f}" data-w="{share:.6f}" data-level="{level}" data-name="{name}">'
        f"<title>{name}: {share:.1%}</title>"
        f'<rect x="{start * WIDTH:.2f}" y="{y}" width="{max(width - 0.5, 0.1):.2f}" height="{ROW - 1}"'
        f' fill="hsl({hue},85%,72%)"/><text x="{start * WIDTH + 3:.2f}" y="{y + 12}">{label}</text></g>'
    )
    for each in sorted(bar.above.values(), key=lambda each: (-each.samples, each.name)):
        if each.samples >= least:
            yield from _bars(each, level + 1, before, whole, least, bottom)
        before += each.samples


def sampled(capture: Path, folder: Path) -> list[str]:
    """What perf says of reading a capture.

    Raises:
        subprocess.CalledProcessError: perf failed; its words are on standard error.
    """
    data = folder / "perf.data"
    program = [str(bench()), "0", *[str(capture)] * TIMES]
    words = ["perf", "record", "--quiet", "-F", str(FREQUENCY), "--call-graph", "dwarf,16384", "-o", str(data)]
    subprocess.run([*words, "--", *program], check=True, stdout=subprocess.DEVNULL)
    words = ["perf", "script", "-i", str(data), "-F", "ip,sym", "--no-inline"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()


@click.command()
@click.option("--capture", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Instead of a new one.")
@click.option("--packets", default=100_000, show_default=True, help="Packets of the new capture.")
@click.option("--svg", default=SVG, type=click.Path(dir_okay=False, path_type=Path), help="Where the picture goes.")
def main(capture: Path | None, packets: int, svg: Path) -> None:
    """Draw where the core spends its time on resumed TLS connections on loopback."""
    if not shutil.which("perf"):
        raise click.ClickException("this machine lacks perf")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if capture is None:
            if lacking := live.missing():
                raise click.ClickException(f"this machine lacks {', '.join(lacking)}")
            capture = folder / "resumed.pcap"
            live.capture("resumed", capture, packets)
        lowest = folded(stacks(sampled(capture, folder)))
    if not lowest.samples:
        raise click.ClickException(f"perf saw nothing of {ROOT_FUNCTION}")
    title = f"The core reads resumed TLS connections: {lowest.samples:,} samples"
    svg.write_text(drawn(lowest, title), encoding="utf-8")
    click.echo(f"{svg.name}: {lowest.samples:,} samples")


if __name__ == "__main__":
    main()
