"""DNS over QUIC (RFC 9250) by aioquic, for a resolver that does not speak it: each query goes on over UDP.

serve.py ADDRESS PORT CERTIFICATE KEY
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import QuicEvent, StreamDataReceived

ADDRESS, PORT, CERTIFICATE, KEY = sys.argv[1:]


class Asking(asyncio.DatagramProtocol):
    """One query on its way to the resolver."""

    def __init__(self, query: bytes, answered: asyncio.Future[bytes]) -> None:
        """Remember what to ask, and whom to tell."""
        self._query, self._answered = query, answered

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        cast(asyncio.DatagramTransport, transport).sendto(self._query)

    def datagram_received(self, data: bytes, _: object) -> None:
        """Tell."""
        self._answered.set_result(data)


class Answering(QuicConnectionProtocol):
    """One connection: each query on its stream."""

    def __init__(self, *arguments: object, **options: object) -> None:
        """Nothing was said yet."""
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        self._heard: dict[int, bytes] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def quic_event_received(self, event: QuicEvent) -> None:
        """Take bytes of a query; when it is whole, answer it."""
        if isinstance(event, StreamDataReceived):
            self._heard[event.stream_id] = self._heard.get(event.stream_id, b"") + event.data
            if event.end_stream:
                task = asyncio.ensure_future(self._answer(event.stream_id, self._heard.pop(event.stream_id)[2:]))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _answer(self, stream_id: int, query: bytes) -> None:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[bytes] = loop.create_future()
        transport, _ = await loop.create_datagram_endpoint(lambda: Asking(query, answered), remote_addr=(ADDRESS, 53))
        answer = await answered
        transport.close()
        self._quic.send_stream_data(stream_id, len(answer).to_bytes(2, "big") + answer, end_stream=True)
        self.transmit()


async def main() -> None:
    """Serve until we are ended."""
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["doq"])
    configuration.load_cert_chain(CERTIFICATE, KEY)
    await serve(ADDRESS, int(PORT), configuration=configuration, create_protocol=Answering)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
