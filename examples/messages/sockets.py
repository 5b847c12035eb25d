"""WebSocket: server and client of the package websockets, in clear and over TLS.

In: a folder to work in. Out: `messages.txt` (what both programs wrote down), and over TLS `keys.log`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

from truth import Diary, certificate
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve

PORT, TLS_PORT = 8765, 8766
PAUSES = (0.0, 0.05, 0.1, 0.2, 0.05)
"""Seconds before each message that a subscriber is sent."""


class Talk:
    """What both ends say."""

    def __init__(self, diary: Diary) -> None:
        """Write into that diary."""
        self.diary = diary

    async def serve(self, socket: ServerConnection) -> None:
        """Push messages to who subscribes, echo what others say."""
        assert socket.request is not None
        exchange = int(socket.request.path.rpartition("/")[2])
        if exchange == 0:
            for number, pause in enumerate(PAUSES):
                await asyncio.sleep(pause)
                await self._say(socket, exchange, "server", "tick " * (number + 1))
            # One message in three frames, and a ping between the second and the third.
            await self._fragments(socket, exchange)
            await socket.wait_closed()
            return
        async for message in socket:
            if exchange == 1:
                self.diary.received(exchange, "client")
                await self._say(socket, exchange, "server", message)
            else:
                await socket.send(message)

    async def subscribe(self, socket: ClientConnection) -> None:
        """Listen to all that is pushed."""
        for _ in range(len(PAUSES) + 1):
            await socket.recv()
            self.diary.received(0, "server")

    async def talk(self, socket: ClientConnection) -> None:
        """Say something, and hear it again: each form of a length, and both kinds."""
        for message in ("short", "middle " * 100, b"\0" * 70_000):
            await self._say(socket, 1, "client", message)
            await socket.recv()
            self.diary.received(1, "server")
            await asyncio.sleep(0.03)

    @staticmethod
    async def compress(socket: ClientConnection) -> None:
        """Say a long line, compressed (RFC 7692): its length on the wire is not what the program knows."""
        await socket.send("again and " * 100)
        await socket.recv()

    async def _say(
        self, socket: ClientConnection | ServerConnection, exchange: int, sender: str, message: str | bytes
    ) -> None:
        self.diary.sending(exchange, sender, message, "text" if isinstance(message, str) else "binary")
        await socket.send(message)

    async def _fragments(self, socket: ServerConnection, exchange: int) -> None:
        async def parts() -> AsyncIterator[str]:
            yield "one "
            await asyncio.sleep(0.08)
            yield "two "
            self.diary.sending(exchange, "server", b"", "ping")
            await socket.ping(b"")
            yield "three"

        self.diary.sending(exchange, "server", "one two three", "text")
        await socket.send(parts())


async def _talk(diary: Diary, port: int, server: ssl.SSLContext | None, client: ssl.SSLContext | None) -> None:
    talk, scheme = Talk(diary), "ws" if client is None else "wss"
    async with serve(talk.serve, "localhost", port, ssl=server, ping_interval=None):
        for exchange, scenario in enumerate((talk.subscribe, talk.talk, talk.compress)):
            address, compression = f"{scheme}://localhost:{port}/{exchange}", "deflate" if exchange == 2 else None
            async with connect(address, ssl=client, compression=compression, ping_interval=None) as socket:
                await scenario(socket)
            await asyncio.sleep(0.05)


def run(_folder: Path, output: Path) -> None:
    """Talk in clear."""
    diary = Diary()
    asyncio.run(_talk(diary, PORT, None, None))
    diary.keep(output)


def run_over_tls(folder: Path, output: Path) -> None:
    """Talk over TLS, and keep the client's secrets."""
    diary = Diary()
    made, key = certificate(folder)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(made, key)
    client = ssl.create_default_context(cafile=made)
    client.keylog_filename = str(folder / "secrets")
    asyncio.run(_talk(diary, TLS_PORT, server, client))
    diary.keep(output)
    (output / "keys.log").write_text((folder / "secrets").read_text())
