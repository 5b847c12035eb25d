"""A client, a SOCKS proxy, a relay and a web server, all at one address: each client's connection leads to two others.

Command: python3 relayed.py REQUESTS. Listens on ports 1080 (SOCKS), 1234 (relay) and 8000 (web server) of 127.0.0.1,
asks, and ends. Whatever the client wants, the SOCKS proxy connects to the relay, and the relay to the web server.
"""

from __future__ import annotations

import asyncio
import random
import struct
import sys
from asyncio import StreamReader, StreamWriter

HOST, SOCKS_PORT, RELAY_PORT, WEB_PORT = "127.0.0.1", 1080, 1234, 8000
NAME = b"shop.example"
REQUESTS_PER_CONNECTION = 4
METHODS, CONNECT = b"\x05\x01\x00", b"\x05\x01\x00\x03"
"""RFC 1928: version 5, no authentication; CONNECT to a name."""
CONNECTED = b"\x05\x00\x00\x01" + bytes(6)
END = b"\r\n\r\n"


async def hand_on(reader: StreamReader, writer: StreamWriter) -> None:
    """Hand everything on, to the end."""
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


async def relay(reader: StreamReader, writer: StreamWriter, port: int = WEB_PORT, greeting: bytes = b"") -> None:
    """Connect to ``port``, say so, and hand on in both directions."""
    there, back = await asyncio.open_connection(HOST, port)
    writer.write(greeting)
    await asyncio.gather(hand_on(reader, back), hand_on(there, writer))
    back.close()
    writer.close()


async def socks(reader: StreamReader, writer: StreamWriter) -> None:
    """Take a SOCKS request, and relay to the relay."""
    await reader.readexactly(len(METHODS))
    writer.write(b"\x05\x00")
    await reader.readexactly(len(CONNECT) + 1 + len(NAME) + 2)
    await relay(reader, writer, RELAY_PORT, CONNECTED)


async def web(reader: StreamReader, writer: StreamWriter) -> None:
    """Answer requests, each after about 10 ms."""
    while not reader.at_eof():
        try:
            await reader.readuntil(END)
        except asyncio.IncompleteReadError:
            break
        await asyncio.sleep(random.expovariate(100))
        body = bytes(random.choice([300, 700, 2000]))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    writer.close()


async def ask(requests: int) -> None:
    """Ask, some times on each connection."""
    for number in range(requests):
        if number % REQUESTS_PER_CONNECTION == 0:
            reader, writer = await asyncio.open_connection(HOST, SOCKS_PORT)
            writer.write(METHODS)
            await reader.readexactly(2)
            writer.write(CONNECT + bytes([len(NAME)]) + NAME + struct.pack(">H", WEB_PORT))
            await reader.readexactly(len(CONNECTED))
        writer.write(b"GET /stock HTTP/1.1\r\nHost: shop.example\r\n\r\n")
        head = await reader.readuntil(END)
        await reader.readexactly(int(head.partition(b"Content-Length: ")[2].partition(b"\r")[0]))
        await asyncio.sleep(random.expovariate(500))
        if number % REQUESTS_PER_CONNECTION == REQUESTS_PER_CONNECTION - 1:
            writer.close()


async def main() -> None:
    """Start everybody, and ask."""
    for serve, port in ((web, WEB_PORT), (relay, RELAY_PORT), (socks, SOCKS_PORT)):
        await asyncio.start_server(serve, HOST, port)
    await ask(int(sys.argv[1]))
    await asyncio.sleep(0.1)


if __name__ == "__main__":
    random.seed(1)
    asyncio.run(main())
