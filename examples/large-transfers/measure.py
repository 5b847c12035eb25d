"""Measures the cells on one machine, over its loopback: MB/s, CPU of either end, sizes of records.

In: cells. Out: rows of ``results.json``. Time is that of the client's process, with its start and its handshake: some
hundredths of a second, which is why the file is large. A MB has 2^20 bytes, as in the study. Of several rounds the
fastest counts, and of CPU the least: other programs can only add to either.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict

from grid import NO_AES_GNUTLS, NO_AES_OPENSSL, Cell
from lab.keys import make_keys
from lab.lesson import ask_conchart
from lab.listening import Listener, settle
from line import NAME, Machine
from serving import PLAIN_PORT, PORT, FileServer

MB = 1 << 20
RECORDS_BYTES = 1 << 18
"""Of the transfer whose records are looked at: few enough for tcpdump on a busy machine."""
LARGEST_PACKET = 65_600
"""Of a loopback."""
NO_AES_PORTS = {"plain_port": 81, "port": 444}
KTLS_PORTS = {"plain_port": 82, "port": 445}
KTLS = "ssl_conf_command Options KTLS;"
TCP_ULP = 31
"""linux/tcp.h"""
RECORDS = f"""
SELECT sender, usual, count(*) FILTER (bytes = usual) AS many, count(*) AS records FROM (
    SELECT *, mode(bytes) OVER side AS usual, sum(bytes) OVER side AS sent
    FROM records WHERE kind = 'ApplicationData' AND cover = 'sealed' WINDOW side AS (PARTITION BY stream, sender))
WHERE sent > {RECORDS_BYTES} GROUP BY stream, sender, usual ORDER BY stream
"""

Row = dict[str, object]


def kernel_has_tls() -> bool:
    """Can this kernel encrypt for a program (kTLS)? It says no other way: there may be a module to load."""
    with socket.socket() as unconnected:
        try:
            unconnected.setsockopt(socket.IPPROTO_TCP, TCP_ULP, b"tls")
        except OSError as error:
            return error.errno == errno.ENOTCONN
    return True


def measure(wanted: Sequence[Cell], size: int, rounds: int) -> list[Row]:
    """Measure every cell ``rounds`` times, in turns."""
    with Bench(size) as bench:
        taken: dict[Cell, list[Row]] = {cell: [] for cell in wanted}
        for _ in range(rounds):
            for cell, rows in taken.items():
                rows.append(bench.transfer(cell))
    with Bench(RECORDS_BYTES) as bench:
        sizes = bench.records([cell for cell in wanted if cell.protection.cipher])
    return [
        {
            **asdict(cell),
            "seconds": round(min(row["seconds"] for row in rows), 3),  # type: ignore[type-var]
            "client_cpu": best(rows, "client_cpu"),
            "server_cpu": best(rows, "server_cpu"),
            "records": sizes.get(cell),
        }
        for cell, rows in taken.items()
    ]


def best(rows: list[Row], name: str) -> dict[str, float]:
    """User and system seconds of the round in which their sum was least."""
    user, system = min((row[name] for row in rows), key=sum)  # type: ignore[call-overload]
    return {"user": round(user, 3), "system": round(system, 3)}


class Bench:
    """One machine with nginx on it: once as it is, once without AES instructions, once with kTLS."""

    def __init__(self, size: int) -> None:
        """Say how large the file is."""
        self._size = size
        self._undo = ExitStack()

    def __enter__(self) -> Bench:
        """Start the servers."""
        try:
            self._machine = self._undo.enter_context(Machine())
            self._keys = make_keys(self._machine.folder / "keys", "rsa:2048")
            self._usual = self._serve()
            self._without_aes = self._serve(**NO_AES_PORTS, environment=NO_AES_OPENSSL)
            self._ktls = self._serve(**KTLS_PORTS, directives=KTLS) if kernel_has_tls() else None
        except BaseException:
            self._undo.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End them."""
        self._undo.close()

    def _serve(self, **options: object) -> FileServer:
        server = FileServer(
            self._machine, self._machine.host, "127.0.0.1", self._keys, self._size,
            **options,  # type: ignore[arg-type]
        )  # fmt: skip
        return self._undo.enter_context(server)

    def transfer(self, cell: Cell) -> Row:
        """Let the client of a cell fetch or send the file once."""
        protection = cell.protection
        server, ports = self._usual, {"plain_port": PLAIN_PORT, "port": PORT}
        if protection.no_aes:
            server, ports = self._without_aes, NO_AES_PORTS
        if protection.ktls and self._ktls:
            server, ports = self._ktls, KTLS_PORTS
        words = self._words(cell, server, ports)
        environment = {**os.environ, **(NO_AES_OPENSSL | NO_AES_GNUTLS if protection.no_aes else {})}
        before, began = server.cpu(), time.perf_counter()
        client = self._machine.start(self._machine.host, words, env=environment, preexec_fn=keep_off_the_servers_cpu)
        _, status, used = os.wait4(client.pid, 0)
        seconds = time.perf_counter() - began
        client.returncode = os.waitstatus_to_exitcode(status)
        if client.returncode:
            raise RuntimeError(f"{cell}: exit code {client.returncode}")
        if (cipher := server.next_cipher()) != protection.cipher:
            raise RuntimeError(f"{cell}: nginx says {cipher}")
        after = server.cpu()
        server.empty()
        return {
            "seconds": seconds,
            "client_cpu": (used.ru_utime, used.ru_stime),
            "server_cpu": (after[0] - before[0], after[1] - before[1]),
        }

    def _words(self, cell: Cell, server: FileServer, ports: dict[str, int]) -> list[str]:
        scheme, port = ("https", ports["port"]) if cell.protection.cipher else ("http", ports["plain_port"])
        path = "store/zeros" if cell.direction == "up" else f"{cell.protection.path}zeros"
        url, authority = f"{scheme}://{NAME}:{port}/{path}", str(self._keys / "authority.crt")
        if cell.client == "wget":
            words = ["wget", "--no-config", "--no-hsts", "--quiet", "--output-document", os.devnull]
            words += ["--ca-certificate", authority]
            return [*words, f"--ciphers={cell.protection.gnutls}", url]
        words = ["curl", "--disable", "--silent", "--show-error", "--fail", "--cacert", authority]
        words += ["--upload-file", str(server.file)] if cell.direction == "up" else ["--output", os.devnull]
        return [*words, *cell.protection.openssl, url]

    def records(self, wanted: Sequence[Cell]) -> dict[Cell, list[int]]:
        """Return how many records of the usual size, that size, and how many other ones carry the file of each cell."""
        host, capture = self._machine.host, self._machine.folder / "records.pcap"
        listener = Listener(self._machine, host, "lo", "tcp", capture, LARGEST_PACKET)
        for cell in wanted:
            self.transfer(cell)
        settle()
        listener.stop()
        found = ask_conchart(capture, RECORDS)
        sizes: dict[Cell, list[int]] = {}
        for cell, row in zip(wanted, found, strict=True):
            if row["sender"] != ("client" if cell.direction == "up" else "server"):
                raise RuntimeError(f"{cell}: the file came from the {row['sender']}")
            sizes[cell] = [row["many"], row["usual"], row["records"] - row["many"]]
        return sizes


def keep_off_the_servers_cpu() -> None:
    """Servers keep to the first CPU (``stay_on_one_cpu``): clients use the others, where there are any."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, mine - {min(mine)} or mine)
