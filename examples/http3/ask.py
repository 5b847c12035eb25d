"""A client of HTTP/3 by aioquic.

    ask.py NAME AUTHORITY KEYS QLOG_FOLDER PATH… [--visits N] [--again early|ticket|full] [--one-by-one] [--update]
           [--rebind] [--first-alone] [--apart SECONDS] [--ping SECONDS] [--cookie N] [--patience SECONDS]
           [--cipher NAME] [--version 1|2] [--greased]

Asks for all paths at once on one connection, or for one after the other. ``pause-MS`` among the paths waits so many
milliseconds before it asks for the next, whatever is answered by then. With ``--visits`` it does so on several
connections, one after the other; from the second on with a full handshake, or as ``--again`` says: with early data, or
with the ticket alone. ``--first-alone`` asks for the first path, and for all others at once when it is answered;
``--apart`` for each path so long after the one before, answered or not. ``--update`` changes the keys between requests,
``--rebind`` the client's port, as an address translation does after a pause. ``--ping`` sends a PING every so many
seconds, ``--cookie`` a cookie of N bytes with each request. After ``--patience``, answers are waited for no longer.
``--greased`` tries a version first that no server speaks.

In: the PEM file of the authority that signed the certificate. Out: secrets in KEYS, a qlog of each connection, and on
standard output one JSON object for each request: ``connection``, ``stream``, ``path``, ``status``, ``bytes``,
``requested_at``, ``first_at`` and ``done_at`` by this program's clock, nanoseconds since the Unix epoch.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from aioquic.asyncio import QuicConnectionProtocol, connect
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import QuicEvent
from aioquic.quic.logger import QuicFileLogger
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import CipherSuite, SessionTicket

PORT = 443
VERSIONS = {"1": QuicProtocolVersion.VERSION_1, "2": QuicProtocolVersion.VERSION_2}
GREASED = 0x1A2A3A4A
"""A version that is reserved, so that nobody has it (RFC 9000 section 15)."""
PAUSE = re.compile(r"pause-(\d+)")
TICKET_SECONDS = 0.1
"""After the answers: until the ticket has come, and acknowledgements have gone."""


@dataclass(kw_only=True)
class Request:
    """What became of a request."""

    connection: int
    stream: int
    path: str
    requested_at: int
    status: int | None = None
    bytes: int = 0
    first_at: int | None = None
    done_at: int | None = None


class Silent(asyncio.DatagramTransport):
    """Of a connection that was reset: nothing is sent any more."""

    def sendto(self, data: object, addr: object = None) -> None:
        """Drop it."""


class Asking(QuicConnectionProtocol):
    """One connection: sends requests, keeps what comes back."""

    def __init__(self, quic: QuicConnection, stream_handler: object = None) -> None:
        """Begin HTTP/3 at once: with early data, requests go before the handshake ends."""
        super().__init__(quic)
        self._http = H3Connection(quic)
        self.requests: dict[int, Request] = {}
        self._waiting: dict[int, asyncio.Future[None]] = {}

    def ask(self, name: str, path: str, connection: int, cookie: int = 0) -> asyncio.Future[None]:
        """Send a request; what is returned is done when the answer is whole."""
        stream = self._quic.get_next_available_stream_id()
        headers = [(":method", "GET"), (":scheme", "https"), (":authority", name), (":path", path)]
        headers += [("cookie", f"{stream}-{time.time_ns():x}-".ljust(cookie, "x"))] * bool(cookie)
        self.requests[stream] = Request(connection=connection, stream=stream, path=path, requested_at=time.time_ns())
        self._waiting[stream] = self._loop.create_future()
        self._http.send_headers(stream, [(key.encode(), value.encode()) for key, value in headers], end_stream=True)
        return self._waiting[stream]

    def datagram_received(self, data: bytes | str, addr: tuple[str, int]) -> None:
        """Give up at a stateless reset (RFC 9000 section 10.3.1), which aioquic does not look for."""
        identifiers = [self._quic._peer_cid, *self._quic._peer_cid_available]  # noqa: SLF001
        if data[-16:] not in [each.stateless_reset_token for each in identifiers]:
            return super().datagram_received(data, addr)
        self._transport = Silent()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_result(None)
        return None

    def quic_event_received(self, event: QuicEvent) -> None:
        """Hand what QUIC delivers to HTTP/3, and take answers."""
        for each in self._http.handle_event(event):
            if not isinstance(each, HeadersReceived | DataReceived):
                continue
            request = self.requests[each.stream_id]
            request.first_at = request.first_at or time.time_ns()
            if isinstance(each, HeadersReceived):
                request.status = int(dict(each.headers)[b":status"])
            else:
                request.bytes += len(each.data)
            if each.stream_ended:
                request.done_at = time.time_ns()
                self._waiting[each.stream_id].set_result(None)

    async def rebind(self) -> None:
        """Go on from another port of this host."""
        before = self._transport
        await self._loop.create_datagram_endpoint(lambda: self, local_addr=("::", 0))
        before.close()


def in_turn(options: argparse.Namespace) -> list[list[str]]:
    """Give the paths that are asked for at once, one list after the other."""
    if options.one_by_one or options.apart:
        return [[path] for path in options.paths]
    return [options.paths[:1], options.paths[1:]] if options.first_alone else [options.paths]


async def ping(asking: Asking, seconds: float) -> None:
    """Send a PING every so many seconds, until we are cancelled."""
    while True:
        await asyncio.sleep(seconds)
        await asking.ping()


async def visit(options: argparse.Namespace, configuration: QuicConfiguration, connection: int, *, early: bool) -> None:
    """Ask for all paths on a connection."""
    tickets: list[SessionTicket] = []
    async with connect(
        options.name, PORT, configuration=configuration, create_protocol=Asking,
        session_ticket_handler=tickets.append, wait_connected=not early,
    ) as asking:  # fmt: skip
        assert isinstance(asking, Asking)
        pinging = asyncio.ensure_future(ping(asking, options.ping)) if options.ping else None
        later = list[asyncio.Future[None]]()
        for paths in in_turn(options):
            if asking.requests and options.update:
                asking.request_key_update()
            if asking.requests and options.rebind:
                await asking.rebind()
            answers = []
            for path in paths:
                if pause := PAUSE.fullmatch(path):
                    asking.transmit()
                    await asyncio.sleep(int(pause[1]) / 1000)
                else:
                    answers.append(asking.ask(options.name, path, connection, options.cookie))
            asking.transmit()
            later += answers if options.apart else []
            await (asyncio.sleep(options.apart) if options.apart else asyncio.wait(answers, timeout=options.patience))
        await asyncio.gather(*later)
        await asyncio.sleep(TICKET_SECONDS)
        if pinging:
            pinging.cancel()
    for request in asking.requests.values():
        sys.stdout.write(json.dumps(asdict(request)) + "\n")
    configuration.session_ticket = tickets[-1] if tickets else None


async def main(words: Sequence[str] | None = None) -> None:
    """Read the command line, visit once or twice."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    for name in ("name", "authority"):
        parser.add_argument(name)
    parser.add_argument("keys", type=Path)
    parser.add_argument("qlog")
    parser.add_argument("paths", nargs="+", metavar="PATH")
    parser.add_argument("--again", choices=("early", "ticket", "full"), default="full")
    parser.add_argument("--visits", type=int, default=1)
    for name in ("--one-by-one", "--update", "--rebind", "--greased", "--first-alone"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--cookie", type=int, default=0)
    parser.add_argument("--patience", type=float)
    for name in ("--apart", "--ping"):
        parser.add_argument(name, type=float, default=0)
    parser.add_argument("--cipher", choices=[suite.name for suite in CipherSuite])
    parser.add_argument("--version", choices=VERSIONS, default="1")
    options = parser.parse_args(words)
    version = VERSIONS[options.version]
    with options.keys.open("a") as keys:
        configuration = QuicConfiguration(
            alpn_protocols=H3_ALPN, cafile=options.authority, secrets_log_file=keys, server_name=options.name,
            quic_logger=QuicFileLogger(options.qlog), supported_versions=[*[GREASED] * options.greased, version],
            original_version=GREASED if options.greased else version,
            cipher_suites=[CipherSuite[options.cipher]] if options.cipher else None, max_data=1 << 24,
            max_stream_data=1 << 24,
        )  # fmt: skip
        for number in range(options.visits):
            ticket = configuration.session_ticket if options.again != "full" else None
            if ticket and options.again == "ticket":
                ticket = replace(ticket, max_early_data_size=None)
            configuration.session_ticket = ticket
            await visit(options, configuration, number, early=bool(ticket) and options.again == "early")


if __name__ == "__main__":
    asyncio.run(main())
