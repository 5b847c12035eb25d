"""A shop that keeps prices in Redis, by way of valkey-glide, which sends the commands of all tasks on one connection.

    python3 multiplexing.py ADDRESS STORE shared|own

A worker waits for orders (BLPOP, half a second at a time). `shared`: on the connection that the pages use, too;
`own`: on one of its own.
"""

import asyncio
import sys

from glide import GlideClient, GlideClientConfiguration, NodeAddress

ADDRESS, STORE, WAY = sys.argv[1:]
BLOCKING_SECONDS = 0.5


async def connect() -> GlideClient:
    """Connect to Redis."""
    return await GlideClient.create(GlideClientConfiguration([NodeAddress(STORE, 6379)], request_timeout=5000))


async def work(queue: GlideClient) -> None:
    """Wait for orders, for ever."""
    while True:
        await queue.blpop(["orders"], BLOCKING_SECONDS)
        await asyncio.sleep(0.2)


async def main() -> None:
    """Serve pages; the worker begins with the first one."""
    clients: list[GlideClient] = []
    working = []

    async def begin() -> None:
        clients.append(await connect())
        queue = clients[0] if WAY == "shared" else await connect()
        working.append(asyncio.create_task(work(queue)))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            while await reader.readline() not in (b"\r\n", b""):
                pass
            if not clients:
                await begin()
            price = await clients[0].get("price:" + line.split()[1].decode().strip("/")) or b"none"
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(price)}\r\n\r\n"
            writer.write(head.encode() + price)
            await writer.drain()

    server = await asyncio.start_server(serve, ADDRESS, 80)
    async with server:
        await server.serve_forever()


asyncio.run(main())
