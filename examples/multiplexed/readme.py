"""A capture's README: topology, how it was made, what to see."""

from __future__ import annotations

import shlex

from cases import FRESH, HELD_OUT, Case
from lab.clients import BODY, SECRETS
from lab.programs import versions
from road import CLIENT, MIDDLE_NEAR_CLIENT, MIDDLE_NEAR_SERVER, SERVER

MIDDLE = f"{MIDDLE_NEAR_CLIENT} middle {MIDDLE_NEAR_SERVER}"
CONFIGURATIONS = {"nginx": "nginx.conf", "apache": "httpd.conf", "haproxy": "haproxy.cfg"}
VERSIONS = {
    "curl": ("curl", "--version"),
    "h2load": ("h2load", "--version"),
    "go": ("go", "version"),
    "java": ("java", "--version"),
    "chromium": ("chromium", "--version"),
    "nginx": ("nginx", "-v"),
    "haproxy": ("haproxy", "-v"),
}


def readme(name: str, case: Case, apache: str) -> str:
    """Say how the capture was made and what to see in it."""
    distance = f"{case.delay_ms:g} ms" if case.delay_ms else "veth"
    between = (
        f"Every packet takes {case.delay_ms:g} ms each way between client and middle\n"
        "(`examples/lab/delay_line.py`); the middle stands beside the server."
        if case.delay_ms
        else "Veth cables join them: a round trip takes some 0.05 ms."
    )
    program, behind = name.split("-")[:2]
    added = "".join(f", `{directive}`" for directive in case.directives)
    writer = f"{behind} wrote them (`examples/lab/secrets.c`)" if case.server_secrets else "the client wrote them"
    if case.server_secrets and behind == "apache":
        writer = "Apache wrote them"
    version_lines = versions([VERSIONS[program], VERSIONS.get(behind, (apache, "-v")), ("tcpdump", "--version")])
    held_out = (
        "**Held out**: conchart's reading without keys is not to be tuned on this capture."
        if name in HELD_OUT
        else "**Fresh**: made after conchart's reading without keys stood, which is not to be tuned on this capture."
        if name in FRESH
        else "Not held out: conchart's reading without keys may be tuned on this capture."
    )
    files = "\n- The pages are in `examples/multiplexed/pages`." * (program == "chromium")
    files += f"\n- `{BODY}N` is a file of N bytes." * any(
        word.removeprefix("@").startswith(BODY) for word in case.client
    )
    return f"""\
# {case.title}

Made by `examples/multiplexed/make-captures`; what the set is for is in `examples/multiplexed/README.md`.
{held_out}

## Topology

    client {CLIENT} ──{distance}── {MIDDLE} ──veth── {SERVER}:443 {behind} ── backend

Three network namespaces on one machine. {between}

## How it was made

Client:

    {shlex.join(case.client)}

- Server: {behind}, `examples/lab/{CONFIGURATIONS[behind]}`, with HTTP/2, TLS {case.tls}{added}.
- Backend: `examples/lab/backend.py`; `/wait-MS/…` is answered after MS milliseconds.{files}
- Captured at the {case.vantage}: `tcpdump -n --time-stamp-precision=nano -w input.pcap tcp port 443`.
- `{SECRETS}` has the TLS secrets, as {writer}:
  `tshark -o tls.keylog_file:{SECRETS} -r input.pcap -Y http2`.

{version_lines}

## What to see

{case.see}
"""
