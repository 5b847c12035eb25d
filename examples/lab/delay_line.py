"""A long cable between two network namespaces: every packet comes out a fixed time after it went in.

    python3 delay_line.py LEFT_NAMESPACE LEFT_INTERFACE RIGHT_NAMESPACE RIGHT_INTERFACE MILLISECONDS
                          [RULE...] [--rate BITS_PER_SECOND] [--log FILE]

With a rate, each direction carries so many bits of IP packets in a second, one packet after the other: a packet comes
out a fixed time after its last bit went in. Packets wait for their turn in a queue without an end. (``tc``'s token
bucket lets a packet through at once after a pause: at 26,400 bits a second, that is half a second too early.)

Makes a TUN interface in each namespace, says ``ready``, and carries packets until it is ended; so do they.
``tc netem`` does the same inside the kernel, but many kernels come without it, and it cannot be told which packets to
lose. In: raw IP packets. Nothing is lost, reordered or changed unless a rule says so (``rules.py``); FILE tells what
was done to each TCP segment, one JSON object a line: ``at`` (when it went in, nanoseconds since the Unix epoch),
``monotonic_ns``, ``from``, ``ports``, ``kind``, ``seq``, ``ack``, ``length``, ``size``, ``verdict`` (``pass``,
``drop``, ``hold``) and ``due_at``, when it was due at the other end.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import fcntl
import heapq
import json
import os
import select
import signal
import struct
import sys
import time
from itertools import count
from pathlib import Path

from rules import Rule, read_packet, read_rule

# linux/if_tun.h and linux/sched.h
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
CLONE_NEWNET = 0x40000000

LARGEST_PACKET = 65_536
NICENESS = -10
"""A busy machine must not make the cable longer."""
AWAKE_NS = 300_000
"""Nor must the time it takes to wake up: before a packet is due, the clock is watched without sleeping."""


def open_end(namespace: str, interface: str) -> int:
    """Make one end in ``namespace`` and return its file descriptor. This process stays in that namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/run/netns", namespace).open("rb") as handle:
        if libc.setns(handle.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter namespace {namespace}")
    end = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", interface.encode(), IFF_TUN | IFF_NO_PI))
    return end


class Judge:
    """Applies the rules to each packet, and keeps the log."""

    def __init__(self, delay_ns: int, rate: float | None, rules: list[Rule], log: Path | None) -> None:
        """Open the log, if there is one. ``rate``: bits a second; None: as fast as this program can."""
        self._delay_ns = delay_ns
        self._rate = rate
        self._free_ns = {"left": 0, "right": 0}
        self._rules = rules
        self._log = log.open("w", buffering=1) if log else None

    def due_ns(self, sender: str, raw: bytes, now_ns: int) -> int | None:
        """Say when a packet that goes in now comes out, by the monotonic clock; None when it is lost."""
        due_ns = self._sent_ns(sender, len(raw), now_ns) + self._delay_ns
        packet = read_packet(raw) if self._rules or self._log else None
        if packet is None:
            return due_ns
        chosen = [rule for rule in self._rules if rule.chooses(sender, packet)]
        held_ns = sum(rule.hold_ns for rule in chosen)
        dropped = any(rule.verb == "drop" for rule in chosen)
        if self._log:
            at = time.time_ns()
            said = {
                "at": at, "monotonic_ns": now_ns, "from": sender, "ports": packet.ports, "kind": packet.kind,
                "seq": packet.seq, "ack": packet.ack, "length": packet.length, "size": packet.size,
                "verdict": "drop" if dropped else "hold" if held_ns else "pass",
                "due_at": at + due_ns - now_ns + held_ns,
            }  # fmt: skip
            self._log.write(json.dumps(said) + "\n")
        return None if dropped else due_ns + held_ns

    def _sent_ns(self, sender: str, size: int, now_ns: int) -> int:
        """Say when the last bit of a packet of ``size`` bytes is on the line, and keep the line busy until then."""
        if self._rate is None:
            return now_ns
        self._free_ns[sender] = max(now_ns, self._free_ns[sender]) + round(size * 8e9 / self._rate)
        return self._free_ns[sender]


def carry(left: int, right: int, judge: Judge) -> None:
    """Carry packets both ways for ever. Those due at the same time keep their order."""
    other = {left: right, right: left}
    names = {left: "left", right: "right"}
    on_the_way: list[tuple[int, int, int, bytes]] = []
    order = count()
    while True:
        patience = max(0, on_the_way[0][0] - AWAKE_NS - time.monotonic_ns()) / 1e9 if on_the_way else None
        for end in select.select([left, right], [], [], patience)[0]:
            packet = os.read(end, LARGEST_PACKET)
            due_ns = judge.due_ns(names[end], packet, time.monotonic_ns())
            if due_ns is not None:
                heapq.heappush(on_the_way, (due_ns, next(order), other[end], packet))
        while on_the_way and on_the_way[0][0] <= time.monotonic_ns():
            _, _, end, packet = heapq.heappop(on_the_way)
            try:
                os.write(end, packet)
            except OSError as error:
                if error.errno != errno.EIO:  # the far end is not up yet: like any cable, this one loses the packet
                    raise


def main() -> None:
    """Read the command line, make both ends, carry."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    for name in ("left_namespace", "left_interface", "right_namespace", "right_interface"):
        parser.add_argument(name)
    parser.add_argument("milliseconds", type=float)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--log", type=Path)
    parser.add_argument("rules", nargs="*", type=read_rule, metavar="RULE")
    said = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the lab; there is nothing to say about it here
    os.nice(NICENESS)
    left = open_end(said.left_namespace, said.left_interface)
    right = open_end(said.right_namespace, said.right_interface)
    judge = Judge(round(said.milliseconds * 1e6), said.rate, said.rules, said.log)
    os.write(sys.stdout.fileno(), b"ready\n")
    carry(left, right, judge)


if __name__ == "__main__":
    main()
