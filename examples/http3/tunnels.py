"""Tunnels in HTTP/3 by aioquic: CONNECT-UDP, WebTransport and WebSocket on one connection.

    tunnels.py serve ADDRESS PORT CERTIFICATE KEY QLOG_FOLDER
    tunnels.py ask NAME AUTHORITY KEYS QLOG_FOLDER

The server proxies UDP (RFC 9298) to an echo on its own loopback, refuses every other target, and sends back what comes
through WebTransport (draft-ietf-webtrans-http3) and WebSocket (RFC 9220). It opens a tunnel ``SETUP_SECONDS`` after it
was asked. The client uses one after the other, with an ordinary request meanwhile, and prints one JSON object for each
tunnel: ``stream``, ``tunnel``, ``status``, and what it handed to HTTP/3 and got from it: ``sent_bytes``, ``got_bytes``,
``sent_datagrams``, ``got_datagrams``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.buffer import encode_uint_var
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DatagramReceived, DataReceived, H3Event, HeadersReceived, WebTransportStreamDataReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ProtocolNegotiated, QuicEvent, StreamDataReceived
from aioquic.quic.logger import QuicFileLogger
from wsproto import Connection, ConnectionType
from wsproto.events import CloseConnection, Message, TextMessage

PORT, ECHO_PORT = 443, 7
SETUP_SECONDS, ANSWER_SECONDS, PAUSE_SECONDS = 0.03, 0.05, 0.02
MAX_DATAGRAM = 65536
CONTEXT = b"\0"
"""Before the payload of UDP (RFC 9298 section 5)."""
GREETING = b"g" * 700
"""What the server sends on a stream of WebTransport that it opens."""


class Echo(asyncio.DatagramProtocol):
    """The target behind the proxy."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what answers go through."""
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Send it back."""
        self._transport.sendto(data, addr)


class Onward(asyncio.DatagramProtocol):
    """The proxy's socket towards the target."""

    def __init__(self, back: Callable[[bytes], None]) -> None:
        """Keep who wants the answers."""
        self._back = back

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Hand an answer on."""
        self._back(data)


class Proxy(QuicConnectionProtocol):
    """One connection of the server."""

    _http: H3Connection | None = None

    def quic_event_received(self, event: QuicEvent) -> None:
        """Hand what QUIC delivers to HTTP/3, and answer."""
        if isinstance(event, ProtocolNegotiated):
            self._http = H3Connection(self._quic, enable_webtransport=True)
            self._onward: dict[int, asyncio.DatagramTransport] = {}
            self._sockets: dict[int, Connection] = {}
            self._open: set[int] = set()
            self._tasks: list[asyncio.Task[None]] = []
        for each in self._http.handle_event(event) if self._http else ():
            self._heard(each)
        self.transmit()

    def _heard(self, event: H3Event) -> None:
        assert self._http is not None
        if isinstance(event, HeadersReceived):
            fields = dict(event.headers)
            wait = SETUP_SECONDS if b":protocol" in fields else ANSWER_SECONDS
            self._loop.call_later(wait, lambda: self._tasks.append(self._loop.create_task(self._answer(event))))
        elif isinstance(event, DatagramReceived) and event.stream_id in self._onward:
            self._onward[event.stream_id].sendto(event.data.removeprefix(CONTEXT))
        elif isinstance(event, DatagramReceived):
            self._http.send_datagram(event.stream_id, event.data)
        elif isinstance(event, WebTransportStreamDataReceived):
            if event.stream_id % 4 == 0:
                self._quic.send_stream_data(event.stream_id, event.data, end_stream=event.stream_ended)
        elif isinstance(event, DataReceived):
            if event.data and event.stream_id in self._sockets:
                self._echo(event.stream_id, event.data)
            if event.stream_ended and event.stream_id in self._open:
                self._http.send_data(event.stream_id, b"", end_stream=True)

    def _echo(self, stream: int, data: bytes) -> None:
        """Answer the messages of a WebSocket."""
        assert self._http is not None
        socket = self._sockets[stream]
        socket.receive_data(data)
        for event in socket.events():
            if isinstance(event, Message):
                self._http.send_data(stream, socket.send(Message(event.data)), end_stream=False)
            elif isinstance(event, CloseConnection):
                self._http.send_data(stream, socket.send(event.response()), end_stream=False)

    async def _answer(self, event: HeadersReceived) -> None:
        assert self._http is not None
        fields, stream, extra = dict(event.headers), event.stream_id, list[tuple[bytes, bytes]]()
        kind, status = fields.get(b":protocol"), b"200"
        if kind == b"connect-udp":
            host, port = fields[b":path"].decode().strip("/").split("/")[-2:]
            if (host, port) != ("127.0.0.1", str(ECHO_PORT)):
                status = b"403"
            else:
                transport, _ = await self._loop.create_datagram_endpoint(
                    lambda: Onward(lambda data: self._back(stream, data)), remote_addr=(host, int(port))
                )
                self._onward[stream] = transport
                extra = [(b"capsule-protocol", b"?1")]
        elif kind == b"websocket":
            self._sockets[stream] = Connection(ConnectionType.SERVER)
        is_open = kind is not None and status == b"200"
        if is_open:
            self._open.add(stream)
        self._http.send_headers(
            stream, [(b":status", status), (b"server", b"aioquic"), *extra], end_stream=kind is not None and not is_open
        )
        if kind is None:
            self._http.send_data(stream, b"x" * 3000, end_stream=True)
        if kind == b"webtransport":
            opened = self._http.create_webtransport_stream(stream)
            self._quic.send_stream_data(opened, GREETING, end_stream=True)
        self.transmit()

    def _back(self, stream: int, data: bytes) -> None:
        assert self._http is not None
        self._http.send_datagram(stream, CONTEXT + data)
        self.transmit()


@dataclass(kw_only=True)
class Tunnel:
    """What the client knows of a tunnel."""

    stream: int
    tunnel: str
    status: int | None = None
    sent_bytes: int = 0
    got_bytes: int = 0
    sent_datagrams: int = 0
    got_datagrams: int = 0


class Client(QuicConnectionProtocol):
    """One connection of the client."""

    def __init__(self, quic: QuicConnection, stream_handler: object = None) -> None:
        """Begin HTTP/3 at once: the server's settings come with its handshake."""
        super().__init__(quic)
        self._http = H3Connection(quic, enable_webtransport=True)
        self.tunnels: dict[int, Tunnel] = {}
        self._ours: dict[int, int] = {}
        self._answers: dict[int, asyncio.Future[None]] = {}
        self._news = asyncio.Event()

    def quic_event_received(self, event: QuicEvent) -> None:
        """Count what comes."""
        if isinstance(event, StreamDataReceived) and event.stream_id in self._ours:
            # Of a stream that it has opened itself, aioquic takes the answer for frames.
            self.tunnels[self._ours[event.stream_id]].got_bytes += len(event.data)
            self._news.set()
            return
        for each in self._http.handle_event(event):
            if isinstance(each, HeadersReceived):
                if each.stream_id in self.tunnels:
                    self.tunnels[each.stream_id].status = int(dict(each.headers)[b":status"])
                self._answers[each.stream_id].set_result(None)
            elif isinstance(each, DatagramReceived):
                tunnel = self.tunnels[each.stream_id]
                tunnel.got_datagrams += 1
                tunnel.got_bytes += len(each.data)
            elif isinstance(each, WebTransportStreamDataReceived):
                self.tunnels[each.session_id].got_bytes += len(each.data)
            elif isinstance(each, DataReceived) and each.stream_id in self.tunnels:
                self.tunnels[each.stream_id].got_bytes += len(each.data)
            self._news.set()

    async def ask(self, method: str, path: str, protocol: str | None = None, *more: tuple[str, str]) -> int:
        """Ask, and wait for the head of the answer."""
        stream = self._quic.get_next_available_stream_id()
        fields = [
            (":method", method),
            (":scheme", "https"),
            (":authority", self._quic.configuration.server_name or ""),
            (":path", path),
        ]
        if protocol:
            fields.append((":protocol", protocol))
            self.tunnels[stream] = Tunnel(stream=stream, tunnel=protocol)
        headers = [(key.encode(), value.encode()) for key, value in [*fields, *more]]
        self._answers[stream] = self._loop.create_future()
        self._http.send_headers(stream, headers, end_stream=protocol is None)
        self.transmit()
        await self._answers[stream]
        return stream

    def data(self, stream: int, data: bytes, *, end: bool = False) -> None:
        """Send content of a tunnel in DATA frames."""
        self.tunnels[stream].sent_bytes += len(data)
        self._http.send_data(stream, data, end_stream=end)
        self.transmit()

    def datagram(self, stream: int, data: bytes) -> None:
        """Send an HTTP datagram."""
        self.tunnels[stream].sent_bytes += len(data)
        self.tunnels[stream].sent_datagrams += 1
        self._http.send_datagram(stream, data)
        self.transmit()

    def on_stream(self, session: int, data: bytes, *, one_way: bool) -> None:
        """Send on a stream of WebTransport's."""
        stream = self._http.create_webtransport_stream(session, is_unidirectional=one_way)
        self._ours[stream] = session
        self.tunnels[session].sent_bytes += len(data)
        self._quic.send_stream_data(stream, data, end_stream=True)
        self.transmit()

    async def got(self, stream: int, size: int) -> None:
        """Wait until so many bytes have come."""
        while self.tunnels[stream].got_bytes < size:
            self._news.clear()
            await self._news.wait()

    async def udp(self) -> None:
        """Send six datagrams to the echo: the last one in a capsule."""
        path = f"/.well-known/masque/udp/127.0.0.1/{ECHO_PORT}/"
        stream = await self.ask("CONNECT", path, "connect-udp", ("capsule-protocol", "?1"))
        for number in range(1, 6):
            self.datagram(stream, CONTEXT + b"u" * 100 * number)
            await self.got(stream, sum(1 + 100 * each for each in range(1, number + 1)))
        value = CONTEXT + b"c" * 60
        self.tunnels[stream].sent_datagrams += 1
        self.data(stream, encode_uint_var(0) + encode_uint_var(len(value)) + value)
        await asyncio.sleep(PAUSE_SECONDS)
        self.data(stream, b"", end=True)

    async def transport(self) -> None:
        """Send on both kinds of streams, and datagrams."""
        stream = await self.ask("CONNECT", "/counter", "webtransport")
        self.on_stream(stream, b"b" * 2000, one_way=False)
        self.on_stream(stream, b"o" * 500, one_way=True)
        for number in range(3):
            self.datagram(stream, b"d" * (40 + number))
        await self.got(stream, 2000 + len(GREETING) + 40 + 41 + 42)
        self.data(stream, b"", end=True)

    async def socket(self) -> None:
        """Say four messages, one after the other, with pauses."""
        stream = await self.ask("CONNECT", "/chat", "websocket", ("sec-websocket-version", "13"))
        socket = Connection(ConnectionType.CLIENT)
        expected = 0
        for number in range(1, 5):
            self.data(stream, socket.send(TextMessage("w" * 50 * number)))
            expected += 50 * number + (2 if number < 3 else 4)
            await self.got(stream, expected)
            await asyncio.sleep(PAUSE_SECONDS)
        self.data(stream, socket.send(CloseConnection(code=1000)))
        await self.got(stream, expected + 4)
        self.data(stream, b"", end=True)


async def serve_until_ended(options: argparse.Namespace) -> None:
    """Serve, with the echo behind."""
    loop = asyncio.get_running_loop()
    logger = QuicFileLogger(options.qlog)
    await loop.create_datagram_endpoint(Echo, local_addr=("127.0.0.1", ECHO_PORT))
    configuration = QuicConfiguration(
        is_client=False, alpn_protocols=H3_ALPN, quic_logger=logger, max_datagram_frame_size=MAX_DATAGRAM
    )
    configuration.load_cert_chain(options.certificate, options.key)
    await serve(options.address, options.port, configuration=configuration, create_protocol=Proxy)
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    for trace in list(logger._traces):  # noqa: SLF001  the connections whose CONNECTION_CLOSE was lost
        logger.end_trace(trace)


async def ask(options: argparse.Namespace) -> None:
    """Use each tunnel."""
    with options.keys.open("a") as keys:
        configuration = QuicConfiguration(
            alpn_protocols=H3_ALPN, cafile=options.authority, secrets_log_file=keys, server_name=options.name,
            quic_logger=QuicFileLogger(options.qlog), max_datagram_frame_size=MAX_DATAGRAM,
        )  # fmt: skip
        async with connect(options.name, PORT, configuration=configuration, create_protocol=Client) as client:
            assert isinstance(client, Client)
            await asyncio.gather(client.udp(), client.ask("GET", "/page"))
            await client.transport()
            await client.socket()
            await client.ask("CONNECT", "/.well-known/masque/udp/192.0.2.1/53/", "connect-udp")
            await asyncio.sleep(PAUSE_SECONDS)
        for tunnel in client.tunnels.values():
            sys.stdout.write(json.dumps(asdict(tunnel)) + "\n")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    roles = parser.add_subparsers(required=True)
    server = roles.add_parser("serve")
    server.add_argument("address")
    server.add_argument("port", type=int)
    for name in ("certificate", "key", "qlog"):
        server.add_argument(name)
    server.set_defaults(run=serve_until_ended)
    client = roles.add_parser("ask")
    client.add_argument("name")
    client.add_argument("authority")
    client.add_argument("keys", type=Path)
    client.add_argument("qlog")
    client.set_defaults(run=ask)
    options = parser.parse_args()
    asyncio.run(options.run(options))


if __name__ == "__main__":
    main()
