"""A capture's README: topology, how it was made, what to see."""

from __future__ import annotations

import shlex
from pathlib import Path

from cases import Case
from lab.clients import BODY, COOKIE, SECRETS, Words
from lab.programs import versions
from room import CLIENT, SERVER

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = {
    "curl": ("curl", "--version"),
    "openssl": ("openssl", "version"),
    "gnutls-cli": ("gnutls-cli", "--version"),
    "BUILT/go-client": ("go", "version"),
    "BUILT/rustls-client": ("cargo", "--version"),
    "python3": (
        "python3",
        "-c",
        "import ssl, sys; print('Python', sys.version.split()[0], 'with', ssl.OPENSSL_VERSION)",
    ),
    "java": ("java", "--version"),
    "chromium": ("chromium", "--version"),
}


def readme(case: Case, apache: str) -> str:
    """Say how the capture was made and what to see in it."""
    distance = f"{case.delay_ms:g} ms" if case.delay_ms else "veth"
    between = (
        f"Every packet takes {case.delay_ms:g} ms each way (`examples/lab/delay_line.py`)."
        if case.delay_ms
        else "A veth cable joins them: a round trip takes some 0.03 ms."
    )
    commands = "\n".join(f"    {shlex.join(words)}" for words in case.clients)
    configuration = "nginx.conf" if case.server == "nginx" else "httpd.conf"
    additions = [f"`{directive.replace(f'{ROOT}/', '')}`" for directive in case.directives]
    additions += ["a client certificate is required"] * case.client_keys + ["HTTP/2"] * case.http2
    added = f", with {', '.join(additions)}" if additions else ""
    certificate = "ECDSA P-256" if case.keys == "ec" else f"RSA {case.keys.removeprefix('rsa:')}"
    writer = "server" if case.server_secrets else "client"
    front = ("nginx", "-v") if case.server == "nginx" else (apache, "-v")
    programs = dict.fromkeys(program(words) for words in case.clients)
    version_lines = versions([*(VERSIONS[name] for name in programs), front, ("tcpdump", "--version")])
    named = any(word.startswith("@") for words in case.clients for word in words)
    files = (
        f"\n- `@{BODY}N` and `@{COOKIE}N` are files: a request's body of N bytes, a Cookie field of N." if named else ""
    )
    order = "all at once" if case.together else "one command after the other"
    return f"""\
# {case.title}

Made by `examples/handshakes/make-captures`; what the set is for is in `examples/handshakes/README.md`.

## Topology

    client {CLIENT} ──{distance}── {SERVER}:443 server ── 127.0.0.1:8080 backend

Two network namespaces on one machine. {between}

## How it was made

Client, {order}:

{commands}

- Server: {case.server}, `examples/lab/{configuration}`{added}; {certificate} certificate signed by a like authority.
- Backend: `examples/lab/backend.py`; `/wait-MS/…` is answered after MS milliseconds.{files}
- Captured on the {case.vantage}: `tcpdump -n --time-stamp-precision=nano -w input.pcap tcp port 443`.
- `{SECRETS}` has the TLS secrets, as the {writer} wrote them:
  `tshark -o tls.keylog_file:{SECRETS} -r input.pcap -Y http`.

{version_lines}

## What to see

{case.see}
"""


def program(words: Words) -> str:
    """Name the program that speaks TLS: for ``ask.py`` the one it drives."""
    return words[words.index("--") + 1] if "--" in words else words[0]
