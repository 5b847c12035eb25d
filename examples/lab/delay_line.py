"""A long cable between two network namespaces: every packet comes out a fixed time after it went in.

    python3 delay_line.py LEFT_NAMESPACE LEFT_INTERFACE RIGHT_NAMESPACE RIGHT_INTERFACE MILLISECONDS

Makes a TUN interface in each namespace, says ``ready``, and carries packets until it is ended; so do they.
``tc netem`` does the same inside the kernel, but many kernels come without it. In: raw IP packets. Nothing is lost,
reordered or changed; only the delay is ours.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import select
import signal
import struct
import sys
import time
from collections import deque
from pathlib import Path

# linux/if_tun.h and linux/sched.h
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
CLONE_NEWNET = 0x40000000

LARGEST_PACKET = 65_536
NICENESS = -10
"""A busy machine must not make the cable longer."""
AWAKE_SECONDS = 0.0003
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


def carry(left: int, right: int, delay: float) -> None:
    """Carry packets both ways, ``delay`` seconds each, for ever. As the delay is fixed, one queue keeps the order."""
    other = {left: right, right: left}
    on_the_way: deque[tuple[float, int, bytes]] = deque()
    while True:
        patience = max(0.0, on_the_way[0][0] - AWAKE_SECONDS - time.monotonic()) if on_the_way else None
        for end in select.select([left, right], [], [], patience)[0]:
            on_the_way.append((time.monotonic() + delay, other[end], os.read(end, LARGEST_PACKET)))
        while on_the_way and on_the_way[0][0] <= time.monotonic():
            _, end, packet = on_the_way.popleft()
            try:
                os.write(end, packet)
            except OSError as error:
                if error.errno != errno.EIO:  # the far end is not up yet: like any cable, this one loses the packet
                    raise


def main() -> None:
    """Read the command line, make both ends, carry."""
    left_namespace, left_interface, right_namespace, right_interface, milliseconds = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the lab; there is nothing to say about it here
    os.nice(NICENESS)
    left, right = open_end(left_namespace, left_interface), open_end(right_namespace, right_interface)
    os.write(sys.stdout.fileno(), b"ready\n")
    carry(left, right, float(milliseconds) / 1000)


if __name__ == "__main__":
    main()
