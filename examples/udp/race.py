"""A client that tries QUIC and TCP at once, asks on the one that stands first, and gives the other up.

    race.py NAME PATH

Chromium refuses QUIC where the certificate is of an authority of one's own, so that its QUIC never wins in a lab.
Certificates are not verified. In: SSLKEYLOGFILE, where secrets go. Out: on standard output ``h3`` or ``http/1.1``.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
from pathlib import Path

from aioquic.asyncio import QuicConnectionProtocol, connect
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import QuicEvent

PORT = 443
KEYS = Path(os.environ["SSLKEYLOGFILE"])


class Asking(QuicConnectionProtocol):
    """One connection of HTTP/3, for one request."""

    _http: H3Connection | None = None
    answered = False

    async def ask(self, name: str, path: str) -> None:
        """Wait for the whole answer."""
        self._http = H3Connection(self._quic)
        self._done = self._loop.create_future()
        headers = {":method": "GET", ":scheme": "https", ":authority": name, ":path": path}
        stream = self._quic.get_next_available_stream_id()
        self._http.send_headers(stream, [(key.encode(), value.encode()) for key, value in headers.items()], True)
        self.transmit()
        await self._done

    def quic_event_received(self, event: QuicEvent) -> None:
        """Look for the answer's end."""
        for each in self._http.handle_event(event) if self._http else ():
            if isinstance(each, HeadersReceived | DataReceived) and each.stream_ended and not self._done.done():
                self._done.set_result(None)


async def by_quic(name: str, path: str, won: asyncio.Event) -> str | None:
    """Ask over HTTP/3, unless TCP was first."""
    with KEYS.open("a") as secrets:
        configuration = QuicConfiguration(
            alpn_protocols=H3_ALPN, server_name=name, verify_mode=ssl.CERT_NONE, secrets_log_file=secrets
        )
        async with connect(name, PORT, configuration=configuration, create_protocol=Asking) as connection:
            if won.is_set():
                return None
            won.set()
            assert isinstance(connection, Asking)
            await connection.ask(name, path)
            return "h3"


async def by_tcp(name: str, path: str, won: asyncio.Event) -> str | None:
    """Ask over HTTP/1.1, unless QUIC was first."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.keylog_filename = str(KEYS)
    context.set_alpn_protocols(["http/1.1"])
    reader, writer = await asyncio.open_connection(name, PORT, ssl=context)
    if won.is_set():
        writer.close()
        return None
    won.set()
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
    await reader.read()
    writer.close()
    return "http/1.1"


async def main() -> None:
    """Begin both."""
    name, path = sys.argv[1:]
    won = asyncio.Event()
    results = await asyncio.gather(by_quic(name, path, won), by_tcp(name, path, won))
    print(*filter(None, results))  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main())
