"""A server of HTTP/2 that offers HTTP/3 with ALTSVC frames (RFC 7838 section 4), and with no header field.

    altsvc.py ADDRESS PORT CERTIFICATE KEY

A connection begins with a frame that names the origin, on stream 0. A request with an odd query gets one on its own
stream, before its response. Non-goals: several requests at a time, request bodies.
"""

from __future__ import annotations

import asyncio
import ssl
import sys

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived

ORIGIN = b"https://shop.example"
OFFER = b'h3=":443"; ma=86400'
OTHER_OFFER = b'h3=":8443"; ma=60'
BODY = b"x" * 500


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection."""
    connection = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
    connection.initiate_connection()
    connection.advertise_alternative_service(OFFER, origin=ORIGIN)
    while True:
        writer.write(connection.data_to_send())
        data = await reader.read(65536)
        if not data:
            break
        for event in connection.receive_data(data):
            if isinstance(event, RequestReceived):
                answer(connection, event)
    writer.close()


def answer(connection: H2Connection, request: RequestReceived) -> None:
    """Send 500 bytes, behind an offer where the query is odd."""
    assert request.stream_id is not None
    path = dict(request.headers or [])[":path"]
    if path[-1:] in "13579":
        connection.advertise_alternative_service(OTHER_OFFER, stream_id=request.stream_id)
    connection.send_headers(request.stream_id, [(":status", "200"), ("content-length", str(len(BODY)))])
    connection.send_data(request.stream_id, BODY, end_stream=True)


async def main(address: str, port: str, certificate: str, key: str) -> None:
    """Listen until the lab ends the program."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["h2"])
    server = await asyncio.start_server(serve, address, int(port), ssl=context)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
