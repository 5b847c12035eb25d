"""The tables of the lesson's README, from ``results.json`` and the study. Nothing else has a figure of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from grid import cells
from lab.lesson import machine_named, table
from load import KINDS
from rack import KEYS, TERMINATORS
from study import CONTROL, KEY_2048, MOST, NO_REUSE

Found = dict[str, Any]

CORES = (1, 2)
BUSY = 0.9
"""Of its CPUs. A terminator that was less busy at its most could have borne more."""


def tables(found: Found) -> dict[str, str]:
    """Return every table of the page, by the name of its place."""
    return {
        "machine": machine(found),
        "most": most(found),
        "ratios": ratios(found),
        "then": then(found),
        "handshakes": handshakes(found),
        "queue": queue(found),
    }


def machine(found: Found) -> str:
    """Say on what it was measured."""
    return (
        f"{machine_named(found['machine'])}; {', '.join(found['programs'])}. Each step of the search takes "
        f"{found['seconds']:g} s; it ends when what was borne and what was not are {percent(found['precision'])} apart."
    )


def percent(share: float) -> str:
    """A share as people write it."""
    return f"{share * 100:.0f} %"


def columns() -> list[tuple[str, int, str]]:
    """Key, cores and kind of each column."""
    return [(key, cores, kind) for key in KEYS for cores in CORES for kind in KINDS]


def most(found: Found) -> str:
    """Requests a second; ≥ where the terminator was not busy."""
    rows = {(row["terminator"], row["key"], row["cores"], row["kind"]): row for row in found["most"]}
    lines = []
    for key, cores, kind in columns():
        line = [f"{key}, {_cores(cores)}, {kind}"]
        for name in TERMINATORS:
            row = rows[name, key, cores, kind]
            line.append(f"{'≥ ' if idle(row) else ''}{row['per_second']:,}")
        lines.append(line)
    return table(["requests a second", *TERMINATORS], lines)


def idle(row: Found) -> bool:
    """Say whether a terminator could have borne more.

    With two cores, all that is not the terminator works on one of them, too: nobody can tell.
    """
    return bool(row["cores"] == 1 and row["cpu"] < BUSY)


def ratios(found: Found) -> str:
    """The same as ratios to nginx, and what keeping, resuming, another key and a second core bring to each."""
    rates = cells(found["most"])
    lines = []
    for key, cores, kind in columns():
        nginx = rates["nginx", key, cores, kind]
        shares = [f"{rates[name, key, cores, kind] / nginx:.2f}" for name in TERMINATORS]
        lines.append([f"{key}, {_cores(cores)}, {kind}: ÷ nginx", *shares])
    for title, above, below in (
        ("resumed ÷ full (RSA, 1 core)", ("RSA-2048", 1, "resumed"), ("RSA-2048", 1, "full")),
        ("keepalive ÷ full (RSA, 1 core)", ("RSA-2048", 1, "keepalive"), ("RSA-2048", 1, "full")),
        ("ECDSA ÷ RSA (full, 1 core)", ("ECDSA", 1, "full"), ("RSA-2048", 1, "full")),
        ("2 cores ÷ 1 (RSA, full)", ("RSA-2048", 2, "full"), ("RSA-2048", 1, "full")),
    ):
        lines.append([title, *(f"{rates[(name, *above)] / rates[(name, *below)]:.2f}" for name in TERMINATORS)])
    return table(["", *TERMINATORS], lines)


def _cores(cores: int) -> str:
    return "1 core" if cores == 1 else f"{cores} cores"


def then(found: Found) -> str:
    """The study's figures, and the ratios that today has for them."""
    rates = cells(found["most"])
    names = ("nginx", "hitch", "stunnel")
    lines = [
        [f"2011: {context}, 3 of 4 resumed", *(_rate(figures[name], figures["nginx"]) for name in names)]
        for context, figures in MOST.items()
    ]
    for cores in CORES:
        today = {name: round(rates[name, "RSA-2048", cores, "resumed"]) for name in names}
        lines.append(
            [
                f"today: {_cores(cores)}, RSA-2048, 3 of 4 resumed",
                *(_rate(today[name], today["nginx"]) for name in names),
            ]
        )
    gain = rates["hitch", "RSA-2048", 1, "resumed"] / rates["hitch", "RSA-2048", 1, "full"]
    lines.append(["2011: 3 of 4 resumed ÷ none", "–", f"{CONTROL / NO_REUSE:.2f}", "–"])
    lines.append(["today: 3 of 4 resumed ÷ none (1 core)", "–", f"{gain:.2f}", "–"])
    lines.append(["2011: RSA of 1,024 bits ÷ 2,048", "–", f"{CONTROL / KEY_2048:.1f}", "–"])
    return table(["requests a second / ÷ nginx", *(name.replace("hitch", "stud, hitch") for name in names)], lines)


def _rate(rate: int | None, nginx: int | None) -> str:
    return "–" if rate is None or nginx is None else f"{rate:,} / {rate / nginx:.2f}"


def shares(found: Found) -> list[float]:
    """The loads that were captured."""
    return sorted({row["share"] for row in found["loads"]})


def handshakes(found: Found) -> str:
    """Median of the handshakes by load, and what 95 of 100 stay below."""
    lines = [
        [
            f"{percent(share)} of its most",
            *(f"{row['handshake_ns'] / 1e6:.1f} / {row['handshake_p95_ns'] / 1e6:.1f}" for row in _row(found, share)),
        ]
        for share in shares(found)
    ]
    return table(["ms: median / p95", *TERMINATORS], lines)


def _row(found: Found, share: float) -> Iterable[Found]:
    rows = {(row["terminator"], row["share"]): row for row in found["loads"]}
    return (rows[name, share] for name in TERMINATORS)


PARTS = ("opening", "TLS: terminator", "TLS: others", "client", "terminator", "backend")


def parts(row: Found) -> list[float]:
    """Where the milliseconds of one request went, in the order of :data:`PARTS`."""
    spent = (
        row["syn_ns"], row["server_ns"], row["tls_ns"] - row["server_ns"], row["client_ns"],
        row["proxy_ns"], row["connect_ns"] + row["backend_ns"],
    )  # fmt: skip
    return [ns / row["answered"] / 1e6 for ns in spent]


def queue(found: Found) -> str:
    """Where the time of a request goes, at half the load and beyond the most."""
    lines = []
    for share in (0.5, max(shares(found))):
        for name, row in zip(TERMINATORS, _row(found, share), strict=True):
            spent = parts(row)
            lines.append([name, percent(share), *(f"{ms:.1f}" for ms in spent), f"{sum(spent):.1f}"])
    return table(["ms of a request", "load", *PARTS, "in all"], lines)
