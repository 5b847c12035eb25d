"""A name server behind the resolver that thinks before it answers, and loses what it hears first.

python3 upstream.py PORT ADDRESS

slow.example    every answer takes 120 ms
lost.example    the first query for each type is lost: there is no answer to it

Every name has ADDRESS (A); asked for another type, there is no such record.
"""

from __future__ import annotations

import socketserver
import struct
import sys
import time
from typing import ClassVar

THINKING_SECONDS = 0.12
HEADER = 12
A = 1
RESPONSE_FLAGS = 0x8580
"""QR, AA, RD, RA (RFC 1035 section 4.1.1)."""


class Thinker(socketserver.BaseRequestHandler):
    """Answers one query."""

    heard: ClassVar[set[bytes]] = set()

    def handle(self) -> None:
        """Lose it, or think and answer."""
        query, socket = self.request
        end = query.index(b"\0", HEADER) + 5
        question = query[HEADER:end]
        if question.lower().startswith(b"\x04lost") and question not in self.heard:
            self.heard.add(question)
            return
        if question.lower().startswith(b"\x04slow"):
            time.sleep(THINKING_SECONDS)
        answers = [self.address()] if question[-4:-2] == struct.pack(">H", A) else []
        head = query[:2] + struct.pack(">5H", RESPONSE_FLAGS, 1, len(answers), 0, 0)
        socket.sendto(b"".join([head, question, *answers]), self.client_address)

    def address(self) -> bytes:
        """An A record of the name in the question, to be forgotten at once."""
        octets = bytes(int(part) for part in sys.argv[2].split("."))
        return struct.pack(">HHHIH", 0xC000 | HEADER, A, 1, 0, len(octets)) + octets


if __name__ == "__main__":
    socketserver.ThreadingUDPServer(("127.0.0.1", int(sys.argv[1])), Thinker).serve_forever()
