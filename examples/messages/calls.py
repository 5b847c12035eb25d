"""gRPC: a server of grpcio with one method of each kind, asked by grpcio in clear, and by grpc-js of Node over TLS.

In: a folder to work in. Out: `messages.txt` (what both programs wrote down), `codes.txt` (how each call ended for its
client), and over TLS `keys.log`. Payloads are bytes without meaning: no part of the lab needs their encoding.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path

import grpc
from truth import Diary, certificate

PORT, TLS_PORT = 50051, 50052
SERVICE = "shop.Orders"
PAUSES = (0.0, 0.05, 0.1, 0.2, 0.05)
"""Seconds before each message that a watcher is sent."""
PARTS = (20_000, 40_000, 10)
"""Bytes of each part of an upload: more than one DATA frame, and less."""
CALLS = ("Get", "Watch", "Upload", "Chat", "Full", "Slow", "Nothing")
"""The method of each call, in their order. There is no method of the last name."""


class Orders:
    """The service."""

    def __init__(self, diary: Diary) -> None:
        """Write into that diary."""
        self.diary = diary

    def get(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        """One message for one."""
        call = self._call(context)
        self.diary.received(call, "client")
        return self._reply(call, request * 2)

    def watch(self, _request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        """Many messages for one, each after its pause."""
        call = self._call(context)
        self.diary.received(call, "client")
        for number, pause in enumerate(PAUSES):
            time.sleep(pause)
            yield self._reply(call, b"order" * (number + 1))

    def upload(self, requests: Iterable[bytes], context: grpc.ServicerContext) -> bytes:
        """One message for many."""
        call, size = self._call(context), 0
        for part in requests:
            self.diary.received(call, "client")
            size += len(part)
        return self._reply(call, str(size).encode())

    def chat(self, requests: Iterable[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        """A message for each."""
        call = self._call(context)
        for line in requests:
            self.diary.received(call, "client")
            yield self._reply(call, line.upper())

    def full(self, _request: bytes, context: grpc.ServicerContext) -> bytes:
        """No capacity."""
        self.diary.received(self._call(context), "client")
        context.abort(grpc.StatusCode.UNAVAILABLE, "no capacity")

    def slow(self, _request: bytes, context: grpc.ServicerContext) -> bytes:
        """Later than the client's deadline."""
        self.diary.received(self._call(context), "client")
        time.sleep(0.4)
        return b"late"

    @staticmethod
    def _call(context: grpc.ServicerContext) -> int:
        return int(dict(context.invocation_metadata())["call"])

    def _reply(self, call: int, message: bytes) -> bytes:
        self.diary.sending(call, "server", message)
        return message


@contextmanager
def serving(diary: Diary, address: str, credentials: grpc.ServerCredentials | None = None) -> Iterator[None]:
    """Let the server run."""
    orders = Orders(diary)
    handlers = {
        "Get": grpc.unary_unary_rpc_method_handler(orders.get),
        "Watch": grpc.unary_stream_rpc_method_handler(orders.watch),
        "Upload": grpc.stream_unary_rpc_method_handler(orders.upload),
        "Chat": grpc.stream_stream_rpc_method_handler(orders.chat),
        "Full": grpc.unary_unary_rpc_method_handler(orders.full),
        "Slow": grpc.unary_unary_rpc_method_handler(orders.slow),
    }
    server = grpc.server(futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    if credentials is None:
        server.add_insecure_port(address)
    else:
        server.add_secure_port(address, credentials)
    server.start()
    try:
        yield
    finally:
        server.stop(1).wait()


def run(_folder: Path, output: Path) -> None:
    """Call each method in clear, one after the other."""
    diary, codes = Diary(), []
    with serving(diary, f"127.0.0.1:{PORT}"), grpc.insecure_channel(f"127.0.0.1:{PORT}") as channel:
        for call, method in enumerate(CALLS):
            codes.append(f"{call} {method} {_ask(diary, channel, call, method)}\n")
            time.sleep(0.02)
    diary.keep(output)
    (output / "codes.txt").write_text("".join(codes))


def _ask(diary: Diary, channel: grpc.Channel, call: int, method: str) -> str:
    path, about = f"/{SERVICE}/{method}", (("call", str(call)),)

    def paced(messages: Iterable[bytes]) -> Iterator[bytes]:
        for message in messages:
            time.sleep(0.03)
            diary.sending(call, "client", message)
            yield message

    def heard(messages: Iterable[bytes]) -> None:
        for _ in messages:
            diary.received(call, "server")

    def calling(**options: object) -> None:
        diary.sending(call, "client", b"order 7")
        channel.unary_unary(path)(b"order 7", metadata=about, **options)
        diary.received(call, "server")

    def watching() -> None:
        diary.sending(call, "client", b"all")
        heard(channel.unary_stream(path)(b"all", metadata=about))

    def uploading() -> None:
        channel.stream_unary(path)(paced([b"p" * size for size in PARTS]), metadata=about)
        diary.received(call, "server")

    ways: dict[str, Callable[[], None]] = {
        "Watch": watching,
        "Upload": uploading,
        "Chat": lambda: heard(channel.stream_stream(path)(paced([b"one", b"two", b"three"]), metadata=about)),
        "Slow": lambda: calling(timeout=0.2),
        # Compressed: its length on the wire is not what the program knows.
        "Nothing": lambda: channel.unary_unary(path)(
            b"nothing " * 50, metadata=about, compression=grpc.Compression.Gzip
        ),
    }
    try:
        ways.get(method, calling)()
    except grpc.RpcError as error:
        return error.code().name
    return "OK"


def run_over_tls(folder: Path, output: Path) -> None:
    """Let Node call two methods over TLS, and keep its secrets."""
    diary = Diary()
    made, key = certificate(folder)
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), made.read_bytes())])
    with serving(diary, f"localhost:{TLS_PORT}", credentials):
        secrets = folder / "secrets"
        words = ["node", f"--tls-keylog={secrets}", str(Path(__file__).with_name("client.js"))]
        finished = subprocess.run(
            [*words, str(made), f"localhost:{TLS_PORT}"], check=True, capture_output=True, text=True
        )
    diary.merge(finished.stdout)
    diary.keep(output)
    (output / "keys.log").write_text(secrets.read_text())
