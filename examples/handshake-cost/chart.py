"""The lesson's chart: CPU of a connection by its bytes, both scales logarithmic, 1997 and today.

In: results, and the study's figures. Out: an SVG, whose description holds what was drawn.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from study import BYTES, CONNECTIONS

Line = tuple[str, str, bool, list[float]]
"""Name, colour, whether the sessions are reused, milliseconds for each of BYTES."""

# Okabe and Ito's colours, which everybody can tell apart.
THEN = {"SSLv3 DES-CBC3-SHA": "#D55E00", "SSLv3 RC4-MD5, RSA-1024": "#E69F00"}
NOW = {"1.2": ("session-id", "#56B4E9"), "1.3": ("psk", "#0072B2")}
PAPER, INK, GRID = "#ffffff", "#1b1f24", "#d5dae0"


def lines(found: dict[str, Any]) -> list[Line]:
    """Return what is drawn."""
    drawn: list[Line] = []
    for name, colour in THEN.items():
        for place, reused in enumerate((False, True)):
            key = "" if "RSA" in name else ", RSA-512"
            drawn.append((f"1997 {name}{key}", colour, reused, [pair[place] for pair in CONNECTIONS[name] if pair]))
    cpu = {(row["version"], row["cipher"], row["key"], row["how"], row["bytes"]): row for row in found["in_process"]}
    for version, (how, colour) in NOW.items():
        for reused in (False, True):
            rows = [cpu[version, "AES128-GCM", "RSA-2048", how if reused else "full", size] for size in BYTES]
            drawn.append((f"TLS {version} AES128-GCM, RSA-2048", colour, reused, [row["cpu_ns"] / 1e6 for row in rows]))
    return drawn


def draw(found: dict[str, Any], path: Path) -> None:
    """Draw to ``path``."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "conchart", "svg.fonttype": "none", "font.size": 11}):
        figure = Figure(figsize=(9, 5.4), facecolor=PAPER, layout="constrained")
        axes = figure.add_subplot(xscale="log", yscale="log", facecolor=PAPER)
        for name, colour, reused, values in lines(found):
            label = f"{name}, {'reused' if reused else 'full'}"
            style = {"linestyle": "--", "marker": "o", "markerfacecolor": PAPER} if reused else {"marker": "o"}
            axes.plot(BYTES, values, color=colour, label=label, linewidth=2, **style)
        axes.set_xticks(BYTES, [f"{size:,}" for size in BYTES])
        axes.minorticks_off()
        axes.set_yticks([10.0**power for power in range(-2, 4)], ["10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s"])
        axes.set_xlabel("bytes each way", color=INK)
        axes.set_ylabel("CPU of a connection, both ends", color=INK)
        axes.grid(color=GRID, linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.01, 0.5))
        description = json.dumps(
            {f"{name}, {'reused' if reused else 'full'}": values for name, _, reused, values in lines(found)}
        )
        figure.savefig(path, format="svg", metadata={"Date": None, "Description": description})
