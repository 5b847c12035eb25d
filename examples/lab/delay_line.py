"""A long cable between two network namespaces: every packet comes out a fixed time after it went in.

    python3 delay_line.py LEFT_NAMESPACE LEFT_INTERFACE RIGHT_NAMESPACE RIGHT_INTERFACE MILLISECONDS
                          [RULE...] [--back MILLISECONDS] [--rate BITS_PER_SECOND] [--queue BYTES]
                          [--loss SHARE] [--loss-back SHARE] [--seed NUMBER] [--log FILE] [--drops FILE]

Both directions take the same time unless ``--back`` says another one for packets from right to left.

With a rate, each direction carries so many bits of IP packets in a second, one packet after the other: a packet comes
out a fixed time after its last bit went in. Packets wait for their turn in a queue without an end, or in one that holds
``--queue`` bytes and drops the packet that finds no room. (``tc``'s token bucket lets a packet through at once after a
pause: at 26,400 bits a second, that is half a second too early.)

``--loss`` drops a share of the packets from left to right at random, ``--loss-back`` of those from right to left. The
same seed chooses the same numbers again.

Makes a TUN interface in each namespace, says ``ready``, and carries packets until it is ended; so do they.
``tc netem`` does the same inside the kernel, but many kernels come without it, and it cannot be told which packets to
lose. In: raw IP packets. Nothing is lost, reordered, doubled or changed unless a rule says so (``rules.py``). FILE
tells what was done to each TCP segment and UDP datagram, one JSON object a line: ``at`` (when it went in, nanoseconds
since the Unix epoch), ``monotonic_ns``, ``from``, ``ports``, ``kind``, ``seq``, ``ack``, ``length``, ``size``,
``verdict`` (``pass``, ``drop``, ``hold``, ``twice``) and ``due_at``, when it was due at the other end. The file of
``--drops`` has each packet that was dropped, of any protocol: ``at``, ``from``, ``why`` (``rule``, ``loss``,
``queue``), ``source``, ``destination``, ``protocol``, ``ip_id``, ``ports``, ``seq``, ``ack``, ``flags``, ``length`` and
``payload``, a hash of its payload.
What does not apply is null.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import fcntl
import heapq
import json
import os
import random
import select
import signal
import struct
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TextIO

from dropped import describe
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


@dataclass(kw_only=True)
class Way:
    """One direction of the line, and until when it is busy."""

    delay_ns: int
    rate: float | None = None
    """Bits a second; None: as fast as this program can."""
    queue: int | None = None
    """Bytes that may wait for their turn; None: all."""
    loss: float = 0
    """Share of the packets that get lost."""
    free_ns: int = 0

    def has_room(self, size: int, now_ns: int) -> bool:
        """Say whether a packet of ``size`` bytes finds room in the queue. The packet that is being sent is in it."""
        if self.rate is None or self.queue is None:
            return True
        return max(0, self.free_ns - now_ns) * self.rate + size * 8e9 <= self.queue * 8e9

    def sent_ns(self, size: int, now_ns: int) -> int:
        """Say when the last bit of a packet of ``size`` bytes is on the line, and keep the line busy until then."""
        if self.rate is None:
            return now_ns
        self.free_ns = max(now_ns, self.free_ns) + round(size * 8e9 / self.rate)
        return self.free_ns


class Judge:
    """Applies rules, chance and queues to each packet, and keeps the logs."""

    def __init__(
        self,
        ways: Mapping[str, Way],
        *,
        rules: list[Rule] | None = None,
        log: TextIO | None = None,
        drops: TextIO | None = None,
        seed: int = 0,
    ) -> None:
        """Take the logs, if there are any. ``ways``: that of the packets which enter at ``left`` and at ``right``."""
        self._ways = ways
        self._rules = rules or []
        self._chance = {sender: random.Random(f"{seed} {sender}") for sender in ways}
        self._log, self._drops = log, drops

    def due_ns(self, sender: str, raw: bytes, now_ns: int) -> int | None:
        """Say when a packet that goes in now comes out first, by the monotonic clock; None when it is lost."""
        return next(iter(self.all_due_ns(sender, raw, now_ns)), None)

    def all_due_ns(self, sender: str, raw: bytes, now_ns: int) -> list[int]:
        """Say when a packet that goes in now comes out, by the monotonic clock, each time that it does."""
        way = self._ways[sender]
        packet = read_packet(raw) if self._rules or self._log else None
        chosen = [rule for rule in self._rules if packet and rule.chooses(sender, packet)]
        held_ns = sum(rule.hold_ns for rule in chosen if rule.verb == "hold")
        again = [rule.hold_ns for rule in chosen if rule.verb == "twice"]
        why = self._why_dropped(sender, len(raw), now_ns, chosen)
        # A packet that a rule or chance drops is lost on the way: it has used the line's time.
        due_ns = None if why == "queue" else way.sent_ns(len(raw), now_ns) + way.delay_ns + held_ns
        if packet and self._log:
            at = time.time_ns()
            entry = {
                "at": at, "monotonic_ns": now_ns, "from": sender, "ports": packet.ports, "kind": packet.kind,
                "seq": packet.seq, "ack": packet.ack, "length": packet.length, "size": packet.size,
                "verdict": "drop" if why else "hold" if held_ns else "twice" if again else "pass",
                "due_at": None if due_ns is None else at + due_ns - now_ns,
            }  # fmt: skip
            self._log.write(json.dumps(entry) + "\n")
        if why and self._drops:
            entry = {"at": time.time_ns(), "from": sender, "why": why, **describe(raw)}
            self._drops.write(json.dumps(entry) + "\n")
        return [] if why or due_ns is None else [due_ns, *(due_ns + later_ns for later_ns in again)]

    def _why_dropped(self, sender: str, size: int, now_ns: int, chosen: list[Rule]) -> str | None:
        way = self._ways[sender]
        if any(rule.verb == "drop" for rule in chosen):
            return "rule"
        if way.loss and self._chance[sender].random() < way.loss:
            return "loss"
        return None if way.has_room(size, now_ns) else "queue"


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
            for due_ns in judge.all_due_ns(names[end], packet, time.monotonic_ns()):
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
    parser.add_argument("--back", type=float, metavar="MILLISECONDS")
    parser.add_argument("--rate", type=float)
    parser.add_argument("--queue", type=int, metavar="BYTES")
    parser.add_argument("--loss", type=float, default=0, metavar="SHARE")
    parser.add_argument("--loss-back", type=float, default=0, metavar="SHARE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--drops", type=Path)
    parser.add_argument("rules", nargs="*", type=read_rule, metavar="RULE")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the lab; there is nothing to say about it here
    os.nice(NICENESS)
    left = open_end(options.left_namespace, options.left_interface)
    right = open_end(options.right_namespace, options.right_interface)
    back_ms = options.milliseconds if options.back is None else options.back
    ways = {
        sender: Way(delay_ns=round(ms * 1e6), rate=options.rate, queue=options.queue, loss=loss)
        for sender, ms, loss in (("left", options.milliseconds, options.loss), ("right", back_ms, options.loss_back))
    }
    log, drops = (path.open("w", buffering=1) if path else None for path in (options.log, options.drops))
    judge = Judge(ways, rules=options.rules, log=log, drops=drops, seed=options.seed)
    os.write(sys.stdout.fileno(), b"ready\n")
    carry(left, right, judge)


if __name__ == "__main__":
    main()
