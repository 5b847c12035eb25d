"""The tables of the lesson's README, from ``results.json`` and the study. Nothing else has a figure of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from lab.lesson import machine_named, table
from study import BYTES, CONNECTIONS, Pair

Found = dict[str, Any]

NAME_AND_VERSION = re.compile(r"(\w+).*?(\d+(?:\.\d+)+)")
REUSE = {"1.2": "session-id", "1.3": "psk"}
TODAY = (
    ("1.2", "NULL-SHA", "RSA-2048"),
    ("1.2", "AES128-GCM", "RSA-2048"),
    ("1.2", "AES256-GCM", "RSA-2048"),
    ("1.2", "ChaCha20-Poly1305", "RSA-2048"),
    ("1.2", "AES128-GCM", "RSA-4096"),
    ("1.2", "AES128-GCM", "ECDSA P-256"),
    ("1.3", "AES128-GCM", "RSA-2048"),
    ("1.3", "AES256-GCM", "RSA-2048"),
    ("1.3", "ChaCha20-Poly1305", "RSA-2048"),
    ("1.3", "AES128-GCM", "RSA-4096"),
    ("1.3", "AES128-GCM", "ECDSA P-256"),
)
WAYS = (("1.2", "full"), ("1.2", "session-id"), ("1.2", "ticket"), ("1.3", "full"), ("1.3", "psk"), ("1.3", "0rtt"))
NAMES = {"full": "full", "session-id": "session id", "ticket": "ticket", "psk": "PSK", "0rtt": "0-RTT"}
KINDS = {how: "psk-0rtt" if how == "0rtt" else how for how in NAMES}
"""What conchart calls them."""
ENDS = ("client", "server")
USUAL, TODAY_USUAL = "SSLv3 RC4-MD5, RSA-1024", ("1.2", "AES128-GCM", "RSA-2048")
COMPARED = ("SSLv3 RC4-MD5", "SSLv3 RC4-MD5, RSA-1024", "SSLv3 DES-CBC3-SHA")


def tables(found: Found) -> dict[str, str]:
    """Return every table of the page, by the name of its place."""
    return {
        "machine": machine(found),
        "then-and-now": then_and_now(found),
        "cheaper": cheaper(found),
        "ratios": ratios(found),
        "ways": ways(found),
        "stages": stages(found),
        "nginx": nginx(found),
        "group": group(found),
        "group-wire": group_wire(found),
        "wire": wire(found),
    }


def machine(found: Found) -> str:
    """Say on what it was measured."""
    named = (NAME_AND_VERSION.match(program) for program in found["programs"])
    programs = ", ".join(" ".join(name.groups()) for name in named if name)
    return (
        f"{machine_named(found['machine'])}; {programs}. "
        f"Medians of {found['connections']:,} connections, the least disturbed of {found['rounds']} rounds."
    )


def then_and_now(found: Found) -> str:
    """The study's table, with today's rows below its own."""
    rows = [[f"1997 {name}", *(both(pair) for pair in pairs)] for name, pairs in CONNECTIONS.items()]
    rows += [
        [f"TLS {v} {cipher}, {key}", *(both(pair) for pair in today(found, v, cipher, key))] for v, cipher, key in TODAY
    ]
    return table(["ms of CPU: full / reuse", *(f"{size:,} B" for size in BYTES)], rows)


def cheaper(found: Found) -> str:
    """The usual connection of either era."""
    then, now, psk = CONNECTIONS[USUAL], today(found, *TODAY_USUAL), today(found, "1.3", *TODAY_USUAL[1:])
    rows = [
        [what, *(micro(round(ns)) for ns in (was, is_)), f"{was / is_:,.0f} ×"]
        for what, was, is_ in (
            ("a full handshake and a byte", first(then)[0] * 1e6, first(now)[0] * 1e6),
            ("a resumed one and a byte", first(then)[1] * 1e6, first(now)[1] * 1e6),
            ("the same in TLS 1.3", first(then)[1] * 1e6, first(psk)[1] * 1e6),
            ("each further 1,000 bytes", byte_ns(then) * 1e3, byte_ns(now) * 1e3),
        )
    ]
    return table(["", f"1997 {USUAL}", "TLS 1.2 AES128-GCM, RSA-2048", "cheaper by"], rows)


def first(pairs: Sequence[Pair | None]) -> Pair:
    """Return the pair of one byte, which everybody has measured."""
    if pairs[0] is None:
        raise ValueError("not published")
    return pairs[0]


def byte_ns(pairs: Sequence[Pair | None]) -> float:
    """Work out what a byte costs: the slope from the least to the most bytes, full handshakes."""
    most = pairs[-1]
    if most is None:
        raise ValueError("not published")
    return (most[0] - first(pairs)[0]) * 1e6 / (BYTES[-1] - BYTES[0])


def ratios(found: Found) -> str:
    """What carries over: proportions, not milliseconds."""
    measured = [(f"1997 {name}", CONNECTIONS[name]) for name in COMPARED]
    measured += [
        (f"TLS {v} {cipher}, {key}", today(found, v, cipher, key)) for v, cipher, key in TODAY if cipher != "NULL-SHA"
    ]
    rows = []
    for name, pairs in measured:
        full, reused = first(pairs)
        rows.append(
            [
                name,
                f"{1000 / full:,.0f}",
                *(f"{pair[0] / pair[1]:.1f} ×" for pair in (pairs[0], pairs[-1]) if pair),
                f"{(full - reused) * 1e3 / byte_ns(pairs):,.0f} kB",
            ]
        )
    heads = ["", "full handshakes per second", "full ÷ reuse, 1 B", "full ÷ reuse, 102,400 B", "reuse saves as much as"]
    return table(heads, rows)


def ways(found: Found) -> str:
    """Each way to shake hands, one byte."""
    rows = []
    for version, how in WAYS:
        row = cell(found, version, "AES128-GCM", "RSA-2048", how, 1)
        full = cell(found, version, "AES128-GCM", "RSA-2048", "full", 1)["cpu_ns"]
        ends = [sum(row[end].values()) for end in ENDS]
        rows.append(
            [
                f"TLS {version} {NAMES[how]}",
                *(micro(ns) for ns in (*ends, row["cpu_ns"])),
                f"{row['cpu_ns'] / full:.0%}".replace("%", " %"),
            ]
        )
    return table(["AES128-GCM, RSA-2048, 1 byte", "client", "server", "both", "of a full one"], rows)


def stages(found: Found) -> str:
    """Where in the connection either end computes."""
    rows = []
    for version, how in WAYS:
        row = cell(found, version, "AES128-GCM", "RSA-2048", how, 1)
        for end in ENDS:
            spent = row[end]
            waited = spent["answers"] / sum(spent.values())
            rows.append(
                [
                    f"TLS {version} {NAMES[how]}: {end}",
                    *(micro(ns) for ns in spent.values()),
                    f"{waited:.0%}".replace("%", " %"),
                ]
            )
    return table(["", "set up, tear down", "hello", "answers", "last", "data", "a capture can see"], rows)


def group(found: Found) -> str:
    """X25519 against X25519MLKEM768."""
    cpu = {(row["group"], row["key"], row["how"]): row["cpu_ns"] for row in found["in_go"] if row["bytes"] == 1}
    rows = []
    for key in ("RSA-2048", "RSA-4096", "ECDSA P-256"):
        for how in ("full", "psk"):
            old, new = cpu["X25519", key, how], cpu["X25519MLKEM768", key, how]
            rows.append([f"{key}, {NAMES[how]}", micro(old), micro(new), micro(new - old, "+ "), f"{new / old:.2f} ×"])
    return table(["Go, TLS 1.3, 1 byte", "X25519", "X25519MLKEM768", "", ""], rows)


def nginx(found: Found) -> str:
    """What nginx and curl took, as conchart reads it, beside the lesson's own server."""
    read = {row["case"]: row["conchart"] for row in found["over_a_wire"]}
    (used,) = (row["nginx_cpu_ns"] for row in found["over_a_wire"] if row["program"] == "nginx")
    rows = [
        [
            NAMES[how],
            *(
                micro(ns)
                for ns in (read[ours][how]["server"], *(read["nginx-curl"][how][end] for end in ("server", "client")))
            ),
        ]
        for how, ours in (("full", "tls13-full"), ("psk", "tls13-psk"))
    ]
    mean = ["mean of both", "", micro(sum(read["nginx-curl"][how]["server"] for how in ("full", "psk")) // 2), ""]
    rows = [[*row, ""] for row in rows] + [[*mean, micro(used)]]
    heads = ["as conchart reads it", "server of `cost.c`", "nginx", "curl", "nginx's CPU, whole connection"]
    return table(heads, rows)


def group_wire(found: Found) -> str:
    """The same over a wire, as conchart reads it."""
    rows = []
    for row in found["over_a_wire"]:
        if row["program"] == "cost-go":
            read = row["conchart"][row["how"]]
            sizes = [f"{read[name]:,} B" for name in ("client_hello_bytes", "server_flight_bytes")]
            times = [micro(ns) for ns in (read["client"], read["server"], read["client"] + read["server"])]
            rows.append([f"`{row['case']}`", *sizes, *times])
    return table(["as conchart reads it", "ClientHello", "server's flight", "client", "server", "both"], rows)


def wire(found: Found) -> str:
    """Conchart's computing times beside the CPU that the programs counted."""
    rows = []
    for row in found["over_a_wire"]:
        if "cpu" not in row:
            continue
        of = (row["version"], "AES128-GCM", row["key"], row["how"], 1)
        for end in ENDS:
            conchart, counted = row["conchart"][KINDS[row["how"]]][end], row["cpu"][end]["answers"]
            process = [cell(found, *of, place=place)[end]["answers"] for place in ("in_process", "with_pauses")]
            times = [micro(ns) for ns in (*process, counted, conchart)]
            rows.append([f"`{row['case']}`: {end}", *times, over(conchart - counted)])
    heads = ["CPU of answers", "in a row", "with pauses", "in these handshakes", "conchart reads", "less CPU"]
    return table(heads, rows)


def today(found: Found, version: str, cipher: str, key: str) -> list[Pair]:
    """Return milliseconds of a connection, full and reused, for each of BYTES."""
    rows = [[cell(found, version, cipher, key, how, size) for how in ("full", REUSE[version])] for size in BYTES]
    return [(full["cpu_ns"] / 1e6, reused["cpu_ns"] / 1e6) for full, reused in rows]


def cell(found: Found, *of: str | int, place: str = "in_process") -> Found:
    """Return the one row of ``in_process``, or another place, with these values."""
    names = ("version", "cipher", "key", "how", "bytes")
    (row,) = (row for row in found[place] if tuple(row[name] for name in names) == of)
    chosen: Found = row
    return chosen


def both(pair: Pair | None) -> str:
    """Write full and reuse, in milliseconds, as the study has them."""
    return f"{pair[0]:.2f} / {pair[1]:.2f}" if pair else "–"


def micro(ns: int, sign: str = "") -> str:
    """Write whole microseconds."""
    return f"{sign}{ns / 1000:,.0f} µs"


def over(ns: int) -> str:
    """Write a difference in whole microseconds."""
    return f"{'+' if ns >= 0 else '-'} {abs(ns) / 1000:,.0f} µs"
