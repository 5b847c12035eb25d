"""The tables of the lesson's README, from ``results.json`` and the study. Nothing else has a figure of its own."""

from __future__ import annotations

import re
from typing import Any

from cases import CASES
from grid import PROTECTIONS
from lab.lesson import machine_named, table
from measure import MB
from study import ATHLON, SPEEDS, WAYS, XEON, Speed

Found = dict[str, Any]

VERSION = re.compile(r"[\w-]+[ /][\d.]+\d")
"""Name and number, somewhere in what a program says of itself."""

DEFAULT = "TLS 1.3 AES256-GCM"
"""What these programs agree on when nobody tells them anything."""
NO_AES = f"{DEFAULT}, no AES instructions"
HEADS = [f"{client} {direction}" for client, direction in WAYS]


def tables(found: Found) -> dict[str, str]:
    """Return every table of the page, by the name of its place."""
    return {
        "machine": machine(found),
        "then-and-now": then_and_now(found),
        "ratios": ratios(found),
        "both-ends": both_ends(found),
        "records": records(found),
        "limits": limits(found),
        "ktls": ktls(found),
    }


def machine(found: Found) -> str:
    """Say on what it was measured."""
    programs = ", ".join(VERSION.findall(program)[0].replace("/", " ") for program in found["programs"])
    return (
        f"{machine_named(found['machine'])}; {programs}. "
        f"{found['bytes'] // MB:,} MB a transfer, the best of {found['rounds']}."
    )


def speeds(found: Found) -> dict[str, tuple[Speed | None, ...]]:
    """Today's figures as the study has its own: by protection, a speed for each of WAYS."""
    megabytes = found["bytes"] / MB
    seen = {
        (row["name"], row["client"], row["direction"]): Speed(
            megabytes / row["seconds"], megabytes / max(row["client_cpu"]["user"], 0.001)
        )
        for row in found["transfers"]
    }
    names = [name for name in PROTECTIONS if any(key[0] == name for key in seen)]
    return {name: tuple(seen.get((name, *way)) for way in WAYS) for name in names}


def then_and_now(found: Found) -> str:
    """The study's table, with today's rows below its own."""
    rows = [
        [f"2014 {processor.partition(' ')[0]}, {cipher}", *map(both, row)]
        for processor, ciphers in SPEEDS.items()
        for cipher, row in ciphers.items()
    ]
    rows += [[f"today, {name}", *map(both, row)] for name, row in speeds(found).items()]
    return table(["MB/s: seen / per second of client's user CPU", *HEADS], rows)


def both(speed: Speed | None) -> str:
    """Both figures of a transfer, to three digits."""
    return "–" if speed is None else f"{digits(speed.transfer)} / {digits(speed.cpu)}"


def digits(value: float) -> str:
    """Three digits, and no more than one behind the point."""
    return f"{value:.1f}" if value < 100 else f"{float(f'{value:.3g}'):,.0f}"


def ratios(found: Found) -> str:
    """What carries over: proportions, not MB/s. Each is of transfer speeds, but for the last."""
    xeon, athlon, today = SPEEDS[XEON], SPEEDS[ATHLON], speeds(found)
    rows = [
        ["no TLS ÷ AES256-GCM, with AES instructions", *over(xeon["no TLS"], xeon["AES256-GCM"]),
         *over(today["no TLS"], today[DEFAULT])],
        ["no TLS ÷ AES256-GCM, without", *over(athlon["no TLS"], athlon["AES256-GCM"]),
         *over(today["no TLS"], today[NO_AES])],
        ["AES256-GCM with ÷ without AES instructions", *over(xeon["AES256-GCM"], athlon["AES256-GCM"]),
         *over(today[DEFAULT], today[NO_AES])],
        ["AES256-GCM ÷ AES128-SHA", *over(xeon["AES256-GCM"], xeon["AES128-SHA"]),
         *over(today["TLS 1.2 AES256-GCM"], today["TLS 1.2 AES128-SHA"])],
    ]  # fmt: skip
    return table(["", *(f"2014 {head}" for head in HEADS), *(f"today {head}" for head in HEADS)], rows)


def over(above: tuple[Speed | None, ...], below: tuple[Speed | None, ...]) -> list[str]:
    """Quotients of the speeds that were seen."""
    return [
        "–" if not up or not down else f"{up.transfer / down.transfer:.1f} ×"
        for up, down in zip(above, below, strict=True)
    ]


def both_ends(found: Found) -> str:
    """CPU of either end: milliseconds for each 1,024 MB."""
    gigabytes = found["bytes"] / MB / 1024
    rows = []
    for row in found["transfers"]:
        cells = (
            f"{1000 * row[end][kind] / gigabytes:,.0f}"
            for end in ("client_cpu", "server_cpu")
            for kind in ("user", "system")
        )
        rows.append([f"{row['client']} {row['direction']}", row["name"], *cells])
    heads = ["", "ms of CPU a GB", "client user", "client system", "server user", "server system"]
    return table(heads, rows)


def records(found: Found) -> str:
    """Sizes of records, and what they add: the same for both clients."""
    sizes = {
        (row["direction"], row["name"]): row["records"][1]
        for row in found["transfers"]
        if row["records"] and "," not in row["name"]
    }
    rows = []
    for name in dict.fromkeys(name for _, name in sizes):
        down, up = (sizes.get((direction, name)) for direction in ("down", "up"))
        rows.append([name, *(f"{size:,}" if size else "–" for size in (down, up)), overhead(down or up)])
    return table(["", "bytes of a record, down", "up", "of them not content"], rows)


def overhead(size: int) -> str:
    """What a full record has beside its 16,384 bytes of content."""
    return f"{size - 16_384} ({(size - 16_384) / size:.2%})"


def limits(found: Found) -> str:
    """What conchart says of each capture."""
    rows = []
    for row in found["captures"]:
        case = CASES[row["case"]]
        shares = [f"`{limit['kind']}` {limit['ns'] / row['ns']:.0%}" for limit in row["limits"][:2]]
        if not case.limit:
            shares.append("else nobody pauses")
        rate = row["bytes"] / MB / (row["ns"] / 1e9)
        rows.append([f"`{row['case']}`", f"{row['ns'] / 1e6:,.0f} ms", f"{rate:.1f}", ", ".join(shares), finding(row)])
    return table(["capture", "transfer", "MB/s", "of it, conchart says", "finding"], rows)


def finding(row: Found) -> str:
    """The worst finding."""
    return "{finding} ({severity})".format(**row["findings"][0]) if row["findings"] else "–"


def ktls(found: Found) -> str:
    """Say what kTLS brings, or that it could not be tried."""
    if not found["ktls"]:
        return (
            f"The kernel of this machine ({found['machine']['kernel']}) was built without kTLS: `make-captures`\n"
            "asked it, and measured nothing. On a kernel that has it, the tables above get a row for it."
        )
    with_it, without = (
        next(
            row
            for row in found["transfers"]
            if (row["client"], row["direction"], row["name"]) == ("curl", "down", name)
        )
        for name in (f"{DEFAULT}, kTLS", DEFAULT)
    )
    return table(
        ["curl down, nginx", "seconds", "server user", "server system"],
        [
            [
                name,
                *(
                    f"{value:.2f} s"
                    for value in (row["seconds"], row["server_cpu"]["user"], row["server_cpu"]["system"])
                ),
            ]
            for name, row in (("without kTLS", without), ("with kTLS", with_it))
        ],
    )
