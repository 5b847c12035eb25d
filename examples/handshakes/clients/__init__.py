"""Command lines of the clients: each asks the same requests in its own way.

Each function returns the words that a case runs on the client host, in a folder that has ``keys/``; ``CLIENTS`` stands
for the folder of this file, ``BUILT`` for that of the compiled clients. A request is METHOD:TARGET:BODY_BYTES, for
curl, Go and Python also METHOD:TARGET:BODY_BYTES:COOKIE_BYTES.
"""

from __future__ import annotations

from collections.abc import Sequence

from lab.clients import BODY, COOKIE, SECRETS, Words

ADDRESS = "10.78.0.20"
NAME = "shop.example"
AUTHORITY = "keys/authority.crt"
SESSION = "session.pem"
EARLY_DATA = "early-data"
LONGEST_WORD = 20_000
"""Bytes of a request's body that curl takes from its command line; larger ones come from a file."""


def curl(version: str, requests: Sequence[str], *options: str, twice: bool = False) -> Words:
    """Use curl; ``twice``: a second connection follows, as the first one's last request asks to close it."""
    words: list[str] = ["curl"]
    lines = [(line, False) for line in requests]
    for number, (line, last) in enumerate([*lines[:-1], (requests[-1], True), *lines] if twice else lines):
        method, target, size, *cookie = line.split(":")
        words += ["--next"] * bool(number)
        words += ["--silent", "--show-error", "--cacert", AUTHORITY, f"--tlsv{version}", "--tls-max", version, *options]
        words += ["--request", method, "--output", "page"] + ["--header", "Connection: close"] * last
        if size != "0":
            words += ["--data", "x" * int(size) if int(size) <= LONGEST_WORD else f"@{BODY}{size}"]
        words += ["--header", f"@{COOKIE}{cookie[0]}"] if cookie else []
        words.append(f"https://{NAME}{target}")
    return tuple(words)


def curl_together(version: str, requests: Sequence[str], connections: int, *options: str) -> Words:
    """Use curl on several connections at once; each takes the next request when it is free."""
    at_once = ("--parallel", "--parallel-immediate", "--parallel-max", str(connections))
    program, *rest = curl(version, requests, *options)
    return (program, *at_once, *rest)


def openssl(version: str, requests: Sequence[str], *options: str) -> Words:
    """Use openssl s_client."""
    protocol = f"-tls{version.replace('.', '_')}"
    trust = ("-verify_return_error", "-CAfile", AUTHORITY)
    carrier = ("openssl", "s_client", "-connect", f"{NAME}:443", "-servername", NAME, "-quiet", "-no_ign_eof")
    return ("python3", "CLIENTS/ask.py", *requests, "--", *carrier, protocol, *trust, "-keylogfile", SECRETS, *options)


def openssl_pipelined(version: str, requests: Sequence[str]) -> Words:
    """Use openssl s_client; all requests leave before the first response is there."""
    program, script, *rest = openssl(version, requests)
    return (program, script, "--pipelined", *rest)


def openssl_again(version: str, first: Sequence[str], then: Sequence[str], *options: str) -> tuple[Words, Words]:
    """Use openssl s_client twice: the second connection resumes the session of the first."""
    return (
        openssl(version, first, "-sess_out", SESSION, *options),
        openssl(version, then, "-sess_in", SESSION, *options),
    )


def openssl_early(first: Sequence[str], then: Sequence[str]) -> tuple[Words, Words]:
    """Use openssl s_client twice: the second connection sends its first request as 0-RTT data."""
    full, resumed = openssl_again("1.3", first, then)
    program, script, *rest = resumed
    return full, (program, script, "--early", *rest, "-early_data", EARLY_DATA)


def gnutls(version: str, requests: Sequence[str], *options: str, early: bool = False) -> Words:
    """Use gnutls-cli; with ``--resume`` it connects twice and asks the second time."""
    priority = f"NORMAL:-VERS-ALL:+VERS-TLS{version}"
    carrier = ("gnutls-cli", "--x509cafile", AUTHORITY, "--priority", priority, "--port", "443", *options, NAME)
    flags = ("--early",) if early else ()
    data = ("--earlydata", EARLY_DATA) if early else ()
    return ("python3", "CLIENTS/ask.py", *flags, *requests, "--", *carrier, *data)


def go(version: str, how: str, requests: Sequence[str]) -> Words:
    """Use client.go."""
    return ("BUILT/go-client", f"{ADDRESS}:443", NAME, AUTHORITY, version, how, *requests)


def go_together(version: str, connections: int, requests: Sequence[str]) -> Words:
    """Use client.go on several connections at once; each asks every request, and thinks before the next."""
    return go(version, f"together-{connections}", requests)


def python(version: str, connections: int, requests: Sequence[str], *, think_ms: int = 7) -> Words:
    """Use threads.py: Python's ssl on several connections at once; each asks every request, and thinks in between."""
    return (
        "python3", "CLIENTS/threads.py", NAME, AUTHORITY, version, str(connections), str(think_ms), *requests,
    )  # fmt: skip


def rustls(version: str, how: str, requests: Sequence[str]) -> Words:
    """Use the client in rustls/."""
    return ("BUILT/rustls-client", f"{ADDRESS}:443", NAME, AUTHORITY, version, how, *requests)


def java(version: str, how: str, requests: Sequence[str]) -> Words:
    """Use Client.java."""
    return ("java", "CLIENTS/Client.java", NAME, AUTHORITY, version, how, *requests)


def chromium(target: str) -> Words:
    """Use Chromium without a window: it loads a page and what the page asks for."""
    flags = (
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
        "--no-first-run", "--ignore-certificate-errors", "--user-data-dir=profile", "--dump-dom",
    )  # fmt: skip
    return ("chromium", *flags, f"https://{NAME}{target}")
