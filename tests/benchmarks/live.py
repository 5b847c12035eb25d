"""Real captures for the benchmark: nginx or Redis and their clients in network namespaces, and tcpdump beside them.

In: a shape, where its ends are, and a number of packets. Out: a pcap file as tcpdump writes it, whose last connections
are cut where it stopped. On *loopback* client and server share an address, as on a developer's machine; *apart*, each
has an address and a namespace of its own, and tcpdump listens at the server's end of the link between them. Needs root
(or a user namespace), iproute2, nginx, wrk, openssl and tcpdump; HTTP/2 also h2load; Redis only redis-server and
redis-benchmark in place of nginx and wrk. The keys live as long as the run.
Captures are real, so no two are alike: compare tools on one of them, never one with another.

    python -m tests.benchmarks.live resumed /tmp/resumed.pcap --packets 1000000 --ends apart
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import click

from tests.benchmarks.generate import SNAPSHOT

Shape = Literal["full", "resumed", "keepalive", "bulk", "headers", "http2", "redis", "pipelined"]
Ends = Literal["loopback", "apart"]
PROGRAMS = ("ip", "nginx", "wrk", "openssl", "tcpdump")
OF_REDIS = ("ip", "redis-server", "redis-benchmark", "tcpdump")
START_S = 10
STOP_S = 10
TIMEOUT_S = 300
BULK_BYTES = 64 << 20
ETHERNET = ("mtu", "1500", "gso_max_segs", "1", "up")
"""No super-segments: packets are what a cable would carry."""
CLIENT, SERVER = "192.0.2.1", "192.0.2.2"

CONFIGURATION = """
daemon off; master_process off; user root;
pid @RUN@/pid; error_log @RUN@/error.log;
events { worker_connections 1024; }
http {
    access_log off; sendfile off; keepalive_requests 1000000;
    client_body_temp_path @RUN@/body; proxy_temp_path @RUN@/proxy; fastcgi_temp_path @RUN@/fastcgi;
    uwsgi_temp_path @RUN@/uwsgi; scgi_temp_path @RUN@/scgi;
    ssl_certificate @RUN@/server.crt; ssl_certificate_key @RUN@/server.key;
    ssl_protocols TLSv1.3; ssl_session_cache off; ssl_session_tickets @TICKETS@;
    server {
        listen 80;
        listen 443 ssl @HTTP2@;
        root @RUN@/files;
    }
}
"""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What wrk, or h2load for HTTP/2, asks nginx for; or redis-benchmark, a Redis."""

    url: str
    connections: int
    close: bool = False
    """One request per connection."""
    tickets: bool = False
    """The server gives session tickets; wrk comes back with them."""
    http2: bool = False
    snapshot: int = 0
    """Bytes that are kept of each packet; all of them when 0."""
    pipeline: int = 0
    """Commands that a client of Redis sends at a time; 0 where nginx is asked."""

    @property
    def port(self) -> int:
        """Where the server listens, last of all."""
        return 6379 if self.pipeline else 443

    def serve(self, run: Path) -> list[str]:
        """The words of the server."""
        if self.pipeline:
            no_persistence = ["--save", "", "--appendonly", "no", "--protected-mode", "no"]
            return ["redis-server", "--dir", str(run), "--logfile", "log", *no_persistence]
        return ["nginx", "-p", str(run), "-e", str(run / "log"), "-c", str(run / "conf")]

    def load(self, server: str) -> list[str]:
        """The words of a client that asks until it is stopped, at the latest after the longest run."""
        if self.pipeline:
            endless = ["-n", str(1_000_000_000), "-P", str(self.pipeline), "-c", str(self.connections), "-q"]
            return ["redis-benchmark", "-h", server, *endless, "-t", "get", "-r", "10000"]
        address = self.url.replace("SERVER", server)
        if self.http2:
            streams = ["-c", str(self.connections), "-m", "10", "-t", "1"]
            return ["h2load", *streams, "-D", str(TIMEOUT_S), address]
        header = ["-H", "Connection: close"] if self.close else []
        return ["wrk", "-t", "1", "-c", str(self.connections), "-d", f"{TIMEOUT_S}s", *header, address]


TRAFFIC: Mapping[Shape, Traffic] = {
    "full": Traffic("https://SERVER/page", 50, close=True),
    "resumed": Traffic("https://SERVER/page", 50, close=True, tickets=True),
    "keepalive": Traffic("http://SERVER/page", 50),
    "bulk": Traffic("http://SERVER/image", 8),
    "headers": Traffic("http://SERVER/image", 8, snapshot=SNAPSHOT),
    "http2": Traffic("https://SERVER/page", 20, http2=True),
    "redis": Traffic("redis://SERVER", 20, pipeline=1),
    "pipelined": Traffic("redis://SERVER", 20, pipeline=16),
}


@dataclass(frozen=True, slots=True)
class Network:
    """Where programs run: words that go before theirs, the server's address, and the interface that is captured."""

    client: Sequence[str]
    server: Sequence[str]
    address: str
    interface: str


def missing(shape: Shape = "full") -> list[str]:
    """What this machine lacks; nothing, and captures of the shape can be made."""
    traffic = TRAFFIC[shape]
    programs = OF_REDIS if traffic.pipeline else (*PROGRAMS, "h2load") if traffic.http2 else PROGRAMS
    return [name for name in programs if not shutil.which(name)] + (["root"] if os.geteuid() else [])


def capture(shape: Shape, path: Path, packets: int, ends: Ends = "loopback", beside: Path | None = None) -> str:
    """Write ``packets`` packets of a shape to ``path``.

    Args:
        shape: The traffic.
        path: Of the capture, at the server's end.
        packets: So many are captured there.
        ends: Where client and server are.
        beside: Of a second capture of the same traffic, at the client's end: *apart* only.

    Returns:
        What tcpdump said: packets captured and dropped.

    Raises:
        TimeoutError: The server or tcpdump did not start, or there was too little traffic.
        subprocess.CalledProcessError: a program is wrong; its words are on standard error.
    """
    traffic = TRAFFIC[shape]
    with ExitStack() as undo:
        run = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="conchart-benchmark-")))
        if not traffic.pipeline:
            prepare(run, traffic)
        network = undo.enter_context(loopback() if ends == "loopback" else apart())
        undo.enter_context(running([*network.server, *traffic.serve(run)], stdout=subprocess.DEVNULL))
        wait_until(lambda: listens(network.server, traffic.port), "the server listens")
        # Its buffer holds what comes while the others have the processors.
        words = ["tcpdump", "-i", network.interface, "-n", "-B", "262144", "-s", str(traffic.snapshot)]
        words += ["-Z", "root", "-c", str(packets), "tcp", "-w"]

        def dump(end: Sequence[str], to: Path, log_path: Path) -> subprocess.Popen[bytes]:
            with log_path.open("wb") as log:
                dumping = undo.enter_context(running([*end, *words, str(to)], stderr=log))
            wait_until(lambda: b"listening" in log_path.read_bytes(), "tcpdump listens")
            return dumping

        log_path = run / "tcpdump"
        dumping = dump(network.server, path, log_path)
        others = [dump(network.client, beside, run / "tcpdump of the client")] if beside else []
        load = [*network.client, *traffic.load(network.address)]
        undo.enter_context(running(load, stdout=subprocess.DEVNULL))
        try:
            for one in (dumping, *others):
                one.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{packets} packets: not within {TIMEOUT_S} s") from None
        text = log_path.read_text()
        return "; ".join(re.findall(r"^\d+ packets (?:captured|dropped by \w+)$", text, re.MULTILINE))


def prepare(run: Path, traffic: Traffic) -> None:
    """Lay out what nginx needs."""
    files = run / "files"
    files.mkdir()
    (files / "page").write_bytes(b"conchart " * 128)
    (files / "image").write_bytes(os.urandom(1 << 20) * (BULK_BYTES >> 20))
    text = CONFIGURATION.replace("@RUN@", str(run)).replace("@TICKETS@", "on" if traffic.tickets else "off")
    text = text.replace("@HTTP2@", "http2" if traffic.http2 else "")
    (run / "conf").write_text(text)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(run / "server.key")]
    words = ["openssl", "req", "-x509", *key, "-out", str(run / "server.crt"), "-days", "2", "-subj", "/CN=benchmark"]
    subprocess.run(words, check=True, stderr=subprocess.DEVNULL)


@contextmanager
def namespace(role: str) -> Iterator[str]:
    """A network namespace, and its name. The kernel takes its links away with it."""
    name = f"conchart-benchmark-{role}-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(["ip", "-n", name, "link", "set", "lo", *ETHERNET], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


def inside(name: str) -> list[str]:
    """The words that run a program in a namespace."""
    return ["ip", "netns", "exec", name]


@contextmanager
def loopback() -> Iterator[Network]:
    """Client and server on one machine's loopback, with the same address."""
    with namespace("both") as name:
        yield Network(inside(name), inside(name), "127.0.0.1", "lo")


@contextmanager
def apart() -> Iterator[Network]:
    """Client and server in namespaces of their own, with a link between them."""
    with namespace("client") as client, namespace("server") as server:
        ends = ["eth0", "netns", client, "type", "veth", "peer", "name", "eth0", "netns", server]
        subprocess.run(["ip", "link", "add", *ends], check=True)
        for name, address in ((client, CLIENT), (server, SERVER)):
            subprocess.run(["ip", "-n", name, "address", "add", f"{address}/24", "dev", "eth0"], check=True)
            subprocess.run(["ip", "-n", name, "link", "set", "eth0", *ETHERNET], check=True)
        yield Network(inside(client), inside(server), SERVER, "eth0")


@contextmanager
def running(words: Sequence[str], **options: object) -> Iterator[subprocess.Popen[bytes]]:
    """A program that ends with the block at the latest."""
    program = subprocess.Popen(words, **options)  # type: ignore[call-overload]
    try:
        yield program
    finally:
        program.terminate()
        try:
            program.wait(STOP_S)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()


def listens(network: Sequence[str], port: int) -> bool:
    """Is there a listening socket at this port?"""
    words = [*network, "cat", "/proc/net/tcp"]
    sockets = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()[1:]
    return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in sockets)


def wait_until(ready: Callable[[], bool], what: str) -> None:
    """Poll until it is so.

    Raises:
        TimeoutError: It was not, within 10 s.
    """
    deadline = time.monotonic() + START_S
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {START_S} s")
        time.sleep(0.02)


@click.command()
@click.argument("shape", type=click.Choice(get_args(Shape)))
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--packets", default=1_000_000, show_default=True, type=click.IntRange(min=1))
@click.option("--ends", default="loopback", show_default=True, type=click.Choice(get_args(Ends)))
@click.option("--beside", type=click.Path(dir_okay=False, path_type=Path), help="Capture at the client's end, too.")
def main(shape: Shape, path: Path, packets: int, ends: Ends, beside: Path | None) -> None:
    """Capture real traffic of SHAPE to PATH."""
    if beside and ends != "apart":
        raise click.UsageError("--beside: client and server have one end, unless they are apart")
    if lacking := missing(shape):
        raise click.ClickException(f"this machine lacks {', '.join(lacking)}")
    summary = capture(shape, path, packets, ends, beside)
    click.echo(f"{path}: {packets:,} packets, {path.stat().st_size:,} bytes ({summary})")


if __name__ == "__main__":
    main()
