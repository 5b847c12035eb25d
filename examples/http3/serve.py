"""An HTTP/3 server by aioquic: /bytes-N is answered with N bytes, /wait-MS/bytes-N after MS milliseconds.

    serve.py ADDRESS PORT CERTIFICATE KEY QLOG_FOLDER [--retry] [--forget] [--restart] [--policy N]

``--retry`` answers each first packet with a Retry. ``--forget`` gives tickets and
knows none of them afterwards: early data is refused. ``--restart`` forgets each connection after its first answer, as a
restarted server does that has kept the key of its reset tokens: what comes after that is answered with a stateless
reset (RFC 9000 section 10.3). ``--policy`` gives each answer a Content-Security-Policy of N bytes. The folder gets a
qlog of each connection when it ends.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated, QuicEvent
from aioquic.quic.logger import QuicFileLogger
from aioquic.tls import SessionTicket

PATH = re.compile(rb"(?:/wait-(\d+))?/bytes-(\d+)")


SHORTEST_RESET, LONGEST_RESET = 21, 43


class Answering(QuicConnectionProtocol):
    """One connection: each request on its stream."""

    _http: H3Connection | None = None
    restarts = False
    policy = b""
    _forgotten = False

    def datagram_received(self, data: bytes | str, addr: tuple[str, int]) -> None:
        """Of a connection that is forgotten, all that is left is the token."""
        if not self._forgotten:
            super().datagram_received(data, addr)
        elif isinstance(data, bytes) and not data[0] & 0x80 and len(data) > SHORTEST_RESET:
            (token,) = (
                identifier.stateless_reset_token
                for identifier in self._quic._host_cids
                if data[1:].startswith(identifier.cid)
            )  # noqa: SLF001
            length = min(len(data) - 1, LONGEST_RESET)
            head = bytes([0x40 | os.urandom(1)[0] & 0x3F]) + os.urandom(length - 1 - len(token))
            self._transport.sendto(head + token, addr)

    def transmit(self) -> None:
        """Send what is due; of what is forgotten, nothing is."""
        if not self._forgotten:
            super().transmit()

    def quic_event_received(self, event: QuicEvent) -> None:
        """Hand what QUIC delivers to HTTP/3, and answer requests."""
        if isinstance(event, ProtocolNegotiated):
            self._http = H3Connection(self._quic)
        if self._http is None:
            return
        for each in self._http.handle_event(event):
            if isinstance(each, HeadersReceived):
                match = PATH.fullmatch(dict(each.headers)[b":path"])
                wait_ms, length = (int(number or 0) for number in match.groups()) if match else (0, -1)
                self._loop.call_later(wait_ms / 1000, self._answer, each.stream_id, length)

    def _answer(self, stream_id: int, length: int) -> None:
        """Answer with so many bytes; with fewer than none: not found."""
        assert self._http is not None
        status = b"404" if length < 0 else b"200"
        headers = [(b":status", status), (b"server", b"aioquic"), (b"content-length", b"%d" % max(length, 0))]
        headers += [(b"content-security-policy", self.policy)] * bool(self.policy)
        self._http.send_headers(stream_id, headers, end_stream=length <= 0)
        if length > 0:
            self._http.send_data(stream_id, b"x" * length, end_stream=True)
        self.transmit()
        self._forgotten = self.restarts


async def main() -> None:
    """Read the command line and serve until we are ended."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    for name in ("certificate", "key", "qlog"):
        parser.add_argument(name)
    for name in ("--retry", "--forget", "--restart"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--policy", type=int, default=0)
    options = parser.parse_args()
    logger = QuicFileLogger(options.qlog)
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN, quic_logger=logger, max_data=1 << 24)
    configuration.load_cert_chain(options.certificate, options.key)
    tickets: dict[bytes, SessionTicket] = {}

    def keep(ticket: SessionTicket) -> None:
        tickets[ticket.ticket] = ticket

    Answering.restarts = options.restart
    Answering.policy = b" ".join(b"https://cdn-%d.example" % number for number in range(options.policy))[
        : options.policy
    ]
    await serve(
        options.address, options.port, configuration=configuration, create_protocol=Answering, retry=options.retry,
        session_ticket_handler=keep, session_ticket_fetcher=(lambda _: None) if options.forget else tickets.get,
    )  # fmt: skip
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    for trace in list(logger._traces):  # noqa: SLF001  the connections whose CONNECTION_CLOSE was lost
        logger.end_trace(trace)


if __name__ == "__main__":
    asyncio.run(main())
