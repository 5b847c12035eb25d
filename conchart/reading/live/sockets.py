"""Which process owns a socket of this machine, asked of the system while a capture runs.

In: the kernel's list of sockets (sock_diag(7), as ``ss`` reads it), ``/proc``. Out: rows for ``connections``.

Anybody may list sockets. Whose they are, ``/proc/PID/fd`` says, which only root and the process's own user may read:
what cannot be read is counted, and nothing else happens. A look takes at most a tenth of the time.
"""

import os
import re
import socket
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv6Address
from pathlib import Path
from threading import Event, Thread
from time import monotonic

_SOCK_DIAG = 4
"""NETLINK_SOCK_DIAG"""
_BY_FAMILY = 20
_DUMP = 0x301
"""NLM_F_REQUEST | NLM_F_DUMP"""
_DONE, _ERROR = 3, 2
_LISTEN = 10
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBBI48s")
_BOUND = 7
"""TCP_CLOSE, in which UDP sockets are that are bound to no peer."""

_PAUSE = 0.05
"""Seconds between two looks at the least: a connection that is shorter may be missed."""
_SHARE = 10
_MOST = 65_536
"""Sockets that are remembered. Of more, the first ones."""
_TRIES = 3
"""Looks after which a socket's owner is not looked for any more."""
_CONTAINER = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")

Key = tuple[str, str, int, str, int]
"""Transport, own address and port, the peer's; of a socket that accepts any, ``""`` and 0."""


@dataclass(frozen=True, slots=True)
class Process:
    """Who owns a socket."""

    pid: int
    program: str | None
    container_id: str | None


class Sockets:
    """The sockets of this machine, and their owners, for as long as somebody watches them."""

    def __init__(self) -> None:
        """Watch nothing yet."""
        self.owners: dict[Key, Process] = {}
        self.unknown: set[Key] = set()
        """Those whose owner could not be read."""
        self._inodes: dict[int, Process] = {}
        self._tries: dict[int, int] = {}
        self._over = Event()
        self._thread: Thread | None = None

    @classmethod
    def watched(cls) -> "Sockets | None":
        """Look once, with the rights that the process has now, then go on with those that it keeps.

        Returns:
            None where the system cannot be asked.
        """
        sockets = cls()
        try:
            sockets.look()
        except (OSError, AttributeError):  # no Linux, or a sandbox
            return None
        sockets._thread = Thread(target=sockets._watch, name="conchart-sockets", daemon=True)
        sockets._thread.start()
        return sockets

    def end(self) -> None:
        """Look no more. May be called again."""
        self._over.set()
        if self._thread:
            self._thread.join()
            self._thread = None

    def rows(self) -> Iterator[tuple[str, str, int, str, int, int, str | None, str | None]]:
        """Give each socket whose owner is known: the key, then process id, program, container."""
        for key, owner in list(self.owners.items()):
            yield (*key, owner.pid, owner.program, owner.container_id)

    def look(self) -> None:
        """See which sockets there are, and whose those are that are new.

        Raises:
            OSError: The kernel does not say.
        """
        wanted: dict[int, list[Key]] = {}
        for key, inode in _sockets():
            if owner := self._inodes.get(inode):
                if key in self.owners or len(self.owners) < _MOST:
                    self.owners[key] = owner
            elif self._tries.get(inode, 0) < _TRIES and len(self._tries) < _MOST:
                wanted.setdefault(inode, []).append(key)
        if not wanted:
            return
        found = _owners(wanted.keys())
        for inode, keys in wanted.items():
            self._tries[inode] = self._tries.get(inode, 0) + 1
            if owner := found.get(inode):
                self._inodes[inode] = owner
                self.owners.update(dict.fromkeys(keys, owner))
                self.unknown.difference_update(keys)
            else:
                self.unknown.update(key for key in keys if key not in self.owners)

    def _watch(self) -> None:
        while not self._over.is_set():
            began = monotonic()
            try:
                self.look()
            except OSError:
                return
            self._over.wait(max(_PAUSE, (monotonic() - began) * (_SHARE - 1)))


def _sockets() -> Iterator[tuple[Key, int]]:
    """Ask the kernel for all sockets of TCP and UDP that belong to somebody, with their inodes."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as netlink:
        netlink.settimeout(1)
        for family in (socket.AF_INET, socket.AF_INET6):
            for transport, protocol in (("tcp", socket.IPPROTO_TCP), ("udp", socket.IPPROTO_UDP)):
                request = _REQUEST.pack(family, protocol, 0, 0, 0xFFFFFFFF, bytes(48))
                netlink.send(_HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, _DUMP, 0, 0) + request)
                yield from _answers(netlink, transport)


def _answers(netlink: socket.socket, transport: str) -> Iterator[tuple[Key, int]]:
    while True:
        data = netlink.recv(1 << 16)
        at = 0
        while at + _HEADER.size <= len(data):
            length, kind, *_ = _HEADER.unpack_from(data, at)
            if kind in (_DONE, _ERROR) or length < _HEADER.size:
                return
            message = data[at + _HEADER.size : at + length]
            at += (length + 3) & ~3
            if len(message) < 72:  # noqa: PLR2004  (struct inet_diag_msg)
                continue
            family, state = message[0], message[1]
            port, peer_port = struct.unpack(">HH", message[4:8])
            (inode,) = struct.unpack("=I", message[68:72])
            if not inode:
                continue
            address, peer = _address(family, message[8:24]), _address(family, message[24:40])
            if state in (_LISTEN, _BOUND) or not peer_port:
                peer, peer_port = "", 0
            yield (transport, address, port, peer, peer_port), inode


def _address(family: int, data: bytes) -> str:
    """Write an address as the core does; ``""`` is any."""
    if family == socket.AF_INET:
        return "" if data[:4] == bytes(4) else socket.inet_ntoa(data[:4])
    if data == bytes(16):
        return ""
    address = IPv6Address(data)
    return str(address.ipv4_mapped or address)


def _owners(inodes: Iterable[int]) -> dict[int, Process]:
    """Find the processes that have these sockets; of several, the one with the lowest number."""
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    found: dict[int, Process] = {}
    for pid in sorted(int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()):
        if not wanted:
            break
        process = None
        for link in _links(f"/proc/{pid}/fd"):
            if (inode := wanted.pop(link, None)) is not None:
                process = process or _process(pid)
                found[inode] = process
    return found


def _links(folder: str) -> Iterator[str]:
    """Give what each descriptor of a process is; nothing where it ended, or is somebody else's."""
    with suppress(OSError), os.scandir(folder) as descriptors:
        for one in descriptors:
            with suppress(OSError):
                yield os.readlink(one.path)  # noqa: PTH115  (a path for each descriptor of a machine takes a while)


def _process(pid: int) -> Process:
    return Process(pid, _program(pid), _container(pid))


def _program(pid: int) -> str | None:
    try:
        return str(Path(f"/proc/{pid}/exe").readlink()).removesuffix(" (deleted)")
    except OSError:
        try:
            return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip() or None
        except OSError:
            return None


def _container(pid: int) -> str | None:
    """Container runtimes name the control group of a process after the container (proc_pid_cgroup(5))."""
    try:
        groups = Path(f"/proc/{pid}/cgroup").read_text(errors="replace")
    except OSError:
        return None
    found = _CONTAINER.search(groups)
    return found[0] if found else None
