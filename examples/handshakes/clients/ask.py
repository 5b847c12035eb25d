"""Asks over HTTP/1.1 through a program that carries bytes: openssl s_client, gnutls-cli.

    python3 ask.py [--early | --pipelined] REQUEST... -- COMMAND...

A request is written METHOD:TARGET:BODY_BYTES and leaves once the response to the one before has been read, in one
write. ``--early``: COMMAND sends the first one itself, as 0-RTT data. ``--pipelined``: all leave before the first
response is read (RFC 9112 section 9.3.2). What COMMAND says before a response is skipped.
"""

from __future__ import annotations

import subprocess
import sys
from typing import IO

HOST = "shop.example"
PATIENCE_SECONDS = 5


def request(line: str) -> bytes:
    """Return METHOD:TARGET:BODY_BYTES as HTTP/1.1 writes it."""
    method, target, size = line.split(":")
    length = f"Content-Length: {size}\r\n" if size != "0" else ""
    return f"{method} {target} HTTP/1.1\r\nHost: {HOST}\r\n{length}\r\n".encode() + b"x" * int(size)


def read_response(source: IO[bytes]) -> None:
    """Read up to the end of one response.

    Raises:
        EOFError: there was none.
    """
    length, inside = 0, False
    for line in source:
        inside = inside or line.startswith(b"HTTP/1.1 ")
        if inside and line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
        if inside and line == b"\r\n":
            source.read(length)
            return
    raise EOFError("the connection ended before the response")


def main() -> int:
    """Read the command line, ask, end the program."""
    words = sys.argv[1:]
    early, pipelined = words[0] == "--early", words[0] == "--pipelined"
    split = words.index("--")
    lines = words[early or pipelined : split]
    carrier = subprocess.Popen(words[split + 1 :], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if carrier.stdin is None or carrier.stdout is None:
        raise RuntimeError("no pipes")
    if pipelined:
        for line in lines:
            carrier.stdin.write(request(line))
            carrier.stdin.flush()
    for number, line in enumerate(lines):
        if not pipelined and (number or not early):
            carrier.stdin.write(request(line))
            carrier.stdin.flush()
        read_response(carrier.stdout)
    carrier.stdin.close()
    try:
        carrier.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        carrier.terminate()
        carrier.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
