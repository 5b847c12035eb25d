"""Command lines of the clients: each speaks HTTP/2 in its own way.

Each function returns the words that a case runs on the client host, in a folder that has ``keys/``; ``CLIENTS`` stands
for the folder of this file, ``BUILT`` for that of the compiled clients.

What Go and Java do is written in steps, each done when the one before is over:

METHOD:TARGET:BODY_BYTES            a request; Go takes METHOD:TARGET:BODY_BYTES:PAUSE_MS, too, and sends the body in
                                    four parts with pauses between
REQUEST+REQUEST…                    requests sent together
pause-MS                            nothing
again                               what follows is asked on a new connection, which resumes the session
"""

from __future__ import annotations

from lab.clients import Words

NAME = "shop.example"
AUTHORITY = "keys/authority.crt"
TRUST = ("--silent", "--show-error", "--cacert", AUTHORITY, "--http2")


def url(target: str) -> str:
    """Return where a target is."""
    return f"https://{NAME}{target}"


def curl(*targets: str, options: Words = ()) -> Words:
    """Use curl: one request after the other."""
    words = ["curl", *TRUST, *options]
    for target in targets:
        words += ["--output", "page", url(target)]
    return tuple(words)


def curl_together(*targets: str, options: Words = ()) -> Words:
    """Use curl: all requests on one connection, at once."""
    return curl(*targets, options=("--parallel", *options))


def curl_upload(body: str, target: str, *, then: str) -> Words:
    """Use curl: the file ``body`` is posted to ``target``; then another is asked for."""
    return (*curl(target, options=("--data-binary", body)), "--next", *curl(then)[1:])


def chromium(page: str, seconds: float) -> Words:
    """Use Chromium without a window: it shows a page for so many seconds."""
    flags = (
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
        "--no-first-run", "--ignore-certificate-errors", "--user-data-dir=profile",
    )  # fmt: skip
    return ("CLIENTS/for-seconds", f"{seconds:g}", "chromium", *flags, url(f"/wait-5/page-{page}"))


def h2load(*targets: str, options: Words) -> Words:
    """Use h2load, a load generator: it asks for the targets in turn."""
    return ("h2load", *options, *map(url, targets))


def go(*plans: Words, ping_ms: int = 0) -> Words:
    """Use client.go; each plan is followed by a goroutine of its own. ``ping_ms``: it pings after so long a silence."""
    words = [word for plan in plans for word in ("and", *plan)]
    return ("BUILT/go-client", NAME, AUTHORITY, str(ping_ms), *words[1:])


def java(*plan: str) -> Words:
    """Use Client.java."""
    return ("java", "CLIENTS/Client.java", NAME, AUTHORITY, *plan)
