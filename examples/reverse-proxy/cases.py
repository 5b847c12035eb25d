"""The cases of the lesson: what each sets up, what the client runs, what to see; and their READMEs."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass

from lab.network import SLICE_SECONDS
from lab.programs import versions
from shop import BACKEND, CLIENT, DELAY_MS, PROXY_BACK, PROXY_FRONT, SITE_NAME

MSIE_7 = "Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 5.1)"
ONE_OBJECT = ("curl", "--fail", "--silent", "--show-error", "--output", "page.html")
WHOLE_PAGE = ("wget", "--quiet", "--page-requisites", "--no-host-directories", "--execute", "robots=off")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One capture: how the proxy is set up, what the client runs, what a reader should see."""

    title: str
    client: tuple[str, ...]
    see: str
    tls: bool = True
    key_bits: int = 2048
    browsers: str | None = None
    """``before`` or ``after``: which conf/browsers-*.conf the proxy reads."""
    client_keys: bool = False
    """The proxy asks for a client certificate: the client signs with its own private key."""
    client_cpu_percent: int | None = None


TRUST = {"curl": ("--cacert", "keys/authority.crt"), "wget": ("--ca-certificate", "keys/authority.crt")}
AS_MSIE_7 = ("--user-agent", MSIE_7)

CASES = {
    "http": Case(
        title="One object over plain HTTP",
        client=(*ONE_OBJECT, f"http://{SITE_NAME}/"),
        tls=False,
        see="""\
- One client connection, one backend connection. The backend's lies inside the client's: the proxy connects, asks, is
  answered, and only then answers the client. The client's wait **is** the backend's connect, request and wait.
- Most of the client connection's time is the 10 ms round trip between client and proxy; the proxy and its backend
  need 2 ms.
- The backend answers `HTTP/1.0 200 OK`: its connection ends after one response.""",
    ),
    "http-page": Case(
        title="A page of three objects over plain HTTP",
        client=(*WHOLE_PAGE, f"http://{SITE_NAME}/"),
        tls=False,
        see="""\
- One client connection carries three requests, one after the other: HTTP/1.1 keeps it open.
- Three backend connections, one per object: the backend speaks HTTP/1.0, so each ends after one response.
- The client pays one TCP handshake. The proxy pays three, on a cable where a round trip is next to nothing.""",
    ),
    "https-slow-client": Case(
        title="TLS with a client that is short of CPU",
        client=(
            *("wget", "--quiet", *TRUST["wget"]),
            *("--certificate", "keys/client.crt", "--private-key", "keys/client.key", f"https://{SITE_NAME}/"),
        ),
        key_bits=4096,
        client_keys=True,
        client_cpu_percent=2,
        see="""\
- At least 80 % of the client connection's time, from SYN to the last byte of the response, is the TLS handshake.
- The proxy opens its connection to the backend only after the handshake: a slow client keeps a proxy waiting, not a
  backend.
- The long gap in the handshake stands between the server's flight and the client's: the client computes. It checks
  the server's certificate and signs with its own 4096-bit RSA key. The network is not to blame: the TCP handshake
  shows a round trip of 10 ms. Nor is the proxy: its flight follows the ClientHello within the time of one RSA
  signature.""",
    ),
    "https": Case(
        title="One object over TLS, ordinary client",
        client=(*ONE_OBJECT, *TRUST["curl"], f"https://{SITE_NAME}/"),
        see="""\
- One full TLS 1.3 handshake, one request, one backend connection.
- The request follows the client's Finished at once: TLS 1.3 costs one round trip.
- Compare with `http`: same client program, same object, same backend. The difference is TLS.
- The RSTs at the very end are harmless: the proxy's close_notify reaches a client that has already gone.""",
    ),
    "https-no-keepalive": Case(
        title="A page of three objects over TLS, keepalive refused to anything that says MSIE",
        client=(*WHOLE_PAGE, *TRUST["wget"], *AS_MSIE_7, f"https://{SITE_NAME}/"),
        browsers="before",
        see="""\
- Three client connections, one after the other, each with a **full** TLS 1.3 handshake: nothing is resumed, wget
  keeps no sessions.
- The proxy ends each connection after one response (`BrowserMatch ".*MSIE.*" nokeepalive …`,
  `conf/browsers-before.conf`).
- Two of the three handshakes buy nothing.
- In each handshake some 40 ms are a stand-off: wget sends ChangeCipherSpec, and its Finished waits until that is
  acknowledged (Nagle); the proxy, with nothing to say, delays the acknowledgement by 40 ms. curl, which sets
  TCP_NODELAY, never waits.""",
    ),
    "https-keepalive": Case(
        title="The same page, same client, with the BrowserMatch line corrected",
        client=(*WHOLE_PAGE, *TRUST["wget"], *AS_MSIE_7, f"https://{SITE_NAME}/"),
        browsers="after",
        see="""\
- One client connection, one full TLS 1.3 handshake, three requests (`BrowserMatch "MSIE [2-5]\\." …`,
  `conf/browsers-after.conf`).
- Still three backend connections: the backend speaks HTTP/1.0.
- The difference to `https-no-keepalive` is one line of configuration.
- The RSTs at the very end are harmless: the proxy's close_notify reaches a client that has already gone.""",
    ),
}


def readme(case: Case, apache: str) -> str:
    """Say how the capture was made and what to see in it."""
    port, modules = (443, "mod_proxy and mod_ssl") if case.tls else (80, "mod_proxy")
    keys = f", RSA {case.key_bits} certificate signed by an RSA {case.key_bits} authority" if case.tls else ""
    programs = [[case.client[0], "--version"], [apache, "-v"], [sys.executable, "--version"], ["tcpdump", "--version"]]
    if case.tls:
        programs.append(["openssl", "version"])
    browsers = f", with `conf/browsers-{case.browsers}.conf`" if case.browsers else ""
    return f"""\
# {case.title}

Made by `examples/reverse-proxy/make-captures`; lesson and questions in `examples/reverse-proxy/README.md`.

## Topology

    client {CLIENT} ──{DELAY_MS} ms── {PROXY_FRONT}:{port} proxy {PROXY_BACK} ── {BACKEND}:8080 backend

Three network namespaces on one machine. Between client and proxy every packet takes {DELAY_MS} ms each way
(`examples/lab/delay_line.py`); proxy and backend are joined by a veth cable, where a round trip takes some 0.02 ms.

## How it was made

Client:

    {shlex.join(case.client)}
{slowness(case)}
- Proxy: Apache with {modules}, `examples/lab/httpd.conf`{keys}{browsers}.
- Backend: `python3 -m http.server 8080`, which answers HTTP/1.0.
- Captured on the proxy, both legs in one file: `tcpdump -i any -n --time-stamp-precision=nano -w input.pcap tcp`.
- Each object was fetched once before tcpdump started, so that no start-up of a server is in the capture.
- The TCP checksums of the backend leg are unfinished: the kernel leaves them to the (virtual) card, as in any capture
  taken on the sender.

{versions(programs)}

## What to see

{case.see}
"""


def slowness(case: Case) -> str:
    """Say how the client was slowed down, if it was."""
    if case.client_cpu_percent is None:
        return ""
    run_ms = SLICE_SECONDS * 1e3
    stop_ms = run_ms * (100 / case.client_cpu_percent - 1)
    return f"""
It was let run for {case.client_cpu_percent} % of the time, as `cpulimit` does: SIGCONT for {run_ms:g} ms,
then SIGSTOP for {stop_ms:g} ms. Its kernel, the proxy and the backend ran freely.
"""
