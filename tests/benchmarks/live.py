"""Real captures for the benchmark: nginx and wrk in a network namespace of their own, and tcpdump beside them.

In: a shape and a number of packets. Out: a pcap file as tcpdump writes it, whose last connections are cut where it
stopped. Needs root (or a user namespace), iproute2, nginx, wrk, openssl and tcpdump. The keys live as long as the run.
Captures are real, so no two are alike: compare tools on one of them, never one with another.

    python -m tests.benchmarks.live resumed /tmp/resumed.pcap --packets 1000000
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

import click

from tests.benchmarks.generate import SHAPES, Shape

PROGRAMS = ("ip", "nginx", "wrk", "openssl", "tcpdump")
START_S = 10
STOP_S = 10
TIMEOUT_S = 300
BULK_BYTES = 64 << 20

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
        listen 127.0.0.1:80;
        listen 127.0.0.1:443 ssl;
        root @RUN@/files;
    }
}
"""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What wrk asks nginx for."""

    url: str
    connections: int
    close: bool = False
    """One request per connection."""
    tickets: bool = False
    """The server gives session tickets; wrk comes back with them."""


TRAFFIC: Mapping[Shape, Traffic] = {
    "full": Traffic("https://127.0.0.1/page", 50, close=True),
    "resumed": Traffic("https://127.0.0.1/page", 50, close=True, tickets=True),
    "keepalive": Traffic("http://127.0.0.1/page", 50),
    "bulk": Traffic("http://127.0.0.1/image", 8),
}


def missing() -> list[str]:
    """What this machine lacks; nothing, and captures can be made."""
    return [name for name in PROGRAMS if not shutil.which(name)] + (["root"] if os.geteuid() else [])


def capture(shape: Shape, path: Path, packets: int) -> str:
    """Write ``packets`` packets of a shape to ``path``.

    Returns:
        What tcpdump said: packets captured and dropped.

    Raises:
        TimeoutError: nginx or tcpdump did not start, or there was too little traffic.
        subprocess.CalledProcessError: a program is wrong; its words are on standard error.
    """
    traffic = TRAFFIC[shape]
    with ExitStack() as undo:
        run = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="conchart-benchmark-")))
        prepare(run, traffic)
        network = undo.enter_context(namespace())
        undo.enter_context(
            running([*network, "nginx", "-p", str(run), "-e", str(run / "log"), "-c", str(run / "conf")])
        )
        wait_until(lambda: listens(network, 443), "nginx listens")
        said = run / "tcpdump"
        # Its buffer holds what comes while the others have the processors.
        words = ["tcpdump", "-i", "lo", "-n", "-B", "262144", "-Z", "root", "-c", str(packets), "-w", str(path)]
        with said.open("wb") as log:
            dumping = undo.enter_context(running([*network, *words], stderr=log))
        wait_until(lambda: b"listening" in said.read_bytes(), "tcpdump listens")
        header = ["-H", "Connection: close"] if traffic.close else []
        load = ["wrk", "-t", "1", "-c", str(traffic.connections), "-d", f"{TIMEOUT_S}s", *header, traffic.url]
        undo.enter_context(running([*network, *load], stdout=subprocess.DEVNULL))
        try:
            dumping.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{packets} packets: not within {TIMEOUT_S} s") from None
        text = said.read_text()
        return "; ".join(re.findall(r"^\d+ packets (?:captured|dropped by \w+)$", text, re.MULTILINE))


def prepare(run: Path, traffic: Traffic) -> None:
    """Lay out what nginx needs."""
    files = run / "files"
    files.mkdir()
    (files / "page").write_bytes(b"conchart " * 128)
    (files / "image").write_bytes(os.urandom(1 << 20) * (BULK_BYTES >> 20))
    text = CONFIGURATION.replace("@RUN@", str(run)).replace("@TICKETS@", "on" if traffic.tickets else "off")
    (run / "conf").write_text(text)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(run / "server.key")]
    words = ["openssl", "req", "-x509", *key, "-out", str(run / "server.crt"), "-days", "2", "-subj", "/CN=benchmark"]
    subprocess.run(words, check=True, stderr=subprocess.DEVNULL)


@contextmanager
def namespace() -> Iterator[list[str]]:
    """A network namespace with a loopback of Ethernet's MTU and segments: the words that run a program in it."""
    name = f"conchart-benchmark-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        # No super-segments: packets are what a cable would carry.
        loopback = ["link", "set", "lo", "mtu", "1500", "gso_max_segs", "1", "up"]
        subprocess.run(["ip", "-n", name, *loopback], check=True)
        yield ["ip", "netns", "exec", name]
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


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
@click.argument("shape", type=click.Choice(list(SHAPES)))
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--packets", default=1_000_000, show_default=True, type=click.IntRange(min=1))
def main(shape: Shape, path: Path, packets: int) -> None:
    """Capture real traffic of SHAPE to PATH."""
    if lacking := missing():
        raise click.ClickException(f"this machine lacks {', '.join(lacking)}")
    said = capture(shape, path, packets)
    click.echo(f"{path}: {packets:,} packets, {path.stat().st_size:,} bytes ({said})")


if __name__ == "__main__":
    main()
