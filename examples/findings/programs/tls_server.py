"""A server that is slow or rude where it is told: python3 tls_server.py ADDRESS PORT KEYS OPTION...

``https`` answers every request with 200 bytes; ``smtps`` and ``smtp`` take mail, with TLS from the first byte or after
STARTTLS. ``lookup=MS`` looks so long for the certificate of the name that is asked for, ``reset=N`` ends every Nth
connection with a RST in the middle of its response, ``ask=1`` asks for the client's certificate.
"""

from __future__ import annotations

import socket
import ssl
import struct
import sys
import time
from pathlib import Path

BODY = b"x" * 200
HEAD = b"HTTP/1.1 200 OK\r\nServer: slow/1.0\r\nContent-Length: %d\r\n\r\n"


def context(keys: Path, lookup_ms: int, ask: bool) -> ssl.SSLContext:
    """Return what handshakes are made with."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(keys / "server.crt", keys / "server.key")
    if ask:
        made.load_verify_locations(keys / "authority.crt")
        made.verify_mode = ssl.CERT_REQUIRED

    def look_up(_socket: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        time.sleep(lookup_ms / 1000)

    if lookup_ms:
        made.sni_callback = look_up
    return made


def read_head(peer: ssl.SSLSocket) -> bytes:
    """Read up to the empty line; nothing when the client has gone."""
    head = b""
    while b"\r\n\r\n" not in head:
        more = peer.recv(4096)
        if not more:
            return b""
        head += more
    return head


def answer(peer: ssl.SSLSocket, reset: bool) -> None:
    """Answer one request; ``reset`` says half of it and breaks off."""
    while read_head(peer):
        if reset:
            peer.sendall(HEAD % (2 * len(BODY)) + BODY)
            time.sleep(0.05)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        peer.sendall(HEAD % len(BODY) + BODY)


def take_mail(peer: socket.socket, secured: ssl.SSLContext | None) -> None:
    """Take mail, after STARTTLS where ``secured`` is given."""
    peer.sendall(b"220 shop.example ESMTP\r\n")
    while line := peer.recv(4096):
        verb = line[:4].upper()
        if verb == b"EHLO":
            peer.sendall(b"250-shop.example\r\n250 STARTTLS\r\n" if secured else b"250 shop.example\r\n")
        elif verb == b"STAR" and secured:
            peer.sendall(b"220 go ahead\r\n")
            peer, secured = secured.wrap_socket(peer, server_side=True), None
        elif verb == b"DATA":
            peer.sendall(b"354 go on\r\n")
            while not peer.recv(4096).endswith(b"\r\n.\r\n"):
                pass
            peer.sendall(b"250 taken\r\n")
        elif verb == b"QUIT":
            peer.sendall(b"221 bye\r\n")
            break
        else:
            peer.sendall(b"250 fine\r\n")
    peer.close()


def main() -> None:
    """Read the command line, serve one connection after the other until stopped."""
    address, port, keys, kind, *options = sys.argv[1:]
    settings = dict(option.split("=") for option in options)
    secured = context(Path(keys), int(settings.get("lookup", 0)), "ask" in settings)
    every = int(settings.get("reset", 0))
    with socket.create_server((address, int(port))) as listener:
        number = 0
        while True:
            plain, _ = listener.accept()
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            number += 1
            try:
                if kind == "smtp":
                    take_mail(plain, secured)
                    continue
                with secured.wrap_socket(plain, server_side=True) as peer:
                    if kind == "smtps":
                        take_mail(peer, None)
                    else:
                        answer(peer, bool(every) and number % every == 0)
            except OSError as error:
                print(error, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
