"""A resolver that knows one name, and answers when it likes.

python3 names.py ADDRESS PORT NAME IT_IS [wait-MS | silent]

NAME has the address IT_IS (A); any other name does not exist, NAME has no other record. It answers MS milliseconds
later, or hears every question and says nothing. It says that it listens by listening on TCP as well.
"""

import socket
import struct
import sys
import time
from socketserver import BaseRequestHandler, ThreadingUDPServer

HEADER, A, NO_ERROR, NO_NAME = 12, 1, 0x8580, 0x8583
NAME = b"".join(bytes([len(label)]) + label.encode() for label in sys.argv[3].split("."))
HOW = sys.argv[5] if len(sys.argv) > 5 else "wait-0"


class Resolver(BaseRequestHandler):
    """Answers one query (RFC 1035 section 4.1)."""

    def handle(self) -> None:
        """Wait, then answer; or do not."""
        query, resolver = self.request
        if HOW == "silent":
            return
        time.sleep(int(HOW.removeprefix("wait-")) / 1000)
        question = query[HEADER : query.index(b"\0", HEADER) + 5]
        is_name = question[:-5].lower() == NAME
        address = is_name and question[-4:-2] == struct.pack(">H", A)
        answer = struct.pack(">HHHIH", 0xC000 | HEADER, A, 1, 0, 4) + socket.inet_aton(sys.argv[4]) if address else b""
        head = query[:2] + struct.pack(">5H", NO_ERROR if is_name else NO_NAME, 1, bool(address), 0, 0)
        resolver.sendto(head + question + answer, self.client_address)


with socket.create_server((sys.argv[1], int(sys.argv[2]))):
    ThreadingUDPServer((sys.argv[1], int(sys.argv[2])), Resolver).serve_forever()
