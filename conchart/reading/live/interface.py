"""Packets of a network interface, as they come: libpcap captures them, and writes them into the pipe that is read.

In: the name of an interface, a filter. Out: a capture in pcap's format with nanoseconds, and what the system lost of
it. No packet passes through Python: libpcap's own function writes each.
"""

import ctypes
import errno
import os
import select
import sys
from collections.abc import Iterator
from time import monotonic
from typing import Any

from conchart.errors import CaptureError, OutputError, UsageError
from conchart.labels.units import SECOND
from conchart.reading import bpf
from conchart.reading.live.growing import PAUSE, Growing, copy_new

_SNAP_LENGTH = 262_144
"""Whole packets, as tcpdump has it."""
_WAIT_MS = 100
"""How long packets may lie in the system's buffer: fetched together they cost less."""
_DRAIN = 1.0
"""Seconds in which what had come before the end is fetched."""
_COOKED = 276
"""LINKTYPE_LINUX_SLL2: says of what ``any`` hears on which interface that was."""
_COUNTER = 0xFFFFFFFF
"""libpcap's counters begin again after it."""


class Interface(Growing):
    """A network interface, or ``any``: all of them."""

    def __init__(
        self,
        interface: str,
        *,
        filter: str | None = None,  # noqa: A002  (as everywhere)
        lasting_ns: int | None = None,
        buffer_bytes: int = 64 << 20,
    ) -> None:
        """Begin to capture. Only this call needs the privileges of the process.

        Args:
            interface: As the system calls it; ``any`` is all of them, on Linux.
            filter: In tcpdump's language; packets that it leaves out do not leave the kernel.
            lasting_ns: End by itself after so many nanoseconds.
            buffer_bytes: Room for packets that come while others are being read.

        Raises:
            CaptureError: There is no such interface, or nobody may capture on it.
            UsageError: The filter does not compile.
        """
        super().__init__(f"{interface} (live)")
        self.keep: str | None = None
        self._interface = interface
        self._lasting_ns = lasting_ns
        self._pcap = bpf.library()
        self._handle = self._open(buffer_bytes)
        try:
            if filter:
                self._set_filter(filter)
            # Its pump alone asks it, when it says that it has something.
            if self._pcap.setnonblock(self._handle, 1, self._complaint):
                raise self._refused(self._complaint.value.decode(errors="replace"))
        except BaseException:
            self._pcap.close(self._handle)
            raise

    def keep_packets(self, path: str) -> None:
        """Write the packets into a file, too, as ``tcpdump -w`` does.

        Raises:
            OutputError: It cannot be written.
        """
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666))
        except OSError as error:
            raise OutputError(f"cannot write {path}: {error.strerror or error}") from None
        self.name = self.keep = path

    def _open(self, buffer_bytes: int) -> Any:  # noqa: ANN401  (the bindings have no types)
        pcap, self._complaint = self._pcap, ctypes.create_string_buffer(self._pcap.PCAP_ERRBUF_SIZE)
        handle = pcap.create(self._interface.encode(errors="replace"), self._complaint)
        if not handle:
            raise self._refused(self._complaint.value.decode(errors="replace"))
        pcap.set_snaplen(handle, _SNAP_LENGTH)
        pcap.set_promisc(handle, 1)
        pcap.set_timeout(handle, _WAIT_MS)
        pcap.set_buffer_size(handle, min(buffer_bytes, (1 << 31) - 1))
        pcap.set_tstamp_precision(handle, pcap.PCAP_TSTAMP_PRECISION_NANO)  # where it cannot, it stays microseconds
        status = pcap.activate(handle)
        if status < 0:
            reason = pcap.geterr(handle).decode(errors="replace") or pcap.statustostr(status).decode()
            pcap.close(handle)
            raise self._refused(reason, status)
        if self._interface == "any":
            pcap.set_datalink(handle, _COOKED)  # where it cannot, it stays LINUX_SLL
        return handle

    def _refused(self, reason: str, status: int = 0) -> CaptureError:
        """Say why nothing can be captured, and what to try."""
        pcap, advice = self._pcap, ""
        if status in (pcap.PCAP_ERROR_PERM_DENIED, pcap.PCAP_ERROR_PROMISC_PERM_DENIED):
            reason = "capturing needs root or the capability cap_net_raw"
            python = os.path.realpath(sys.executable)
            advice = (
                f"\n  sudo conchart live -i {self._interface} … drops its privileges once capturing starts;"
                f"\n  sudo tcpdump -i {self._interface} -U -w - | conchart - lets conchart run without privileges;"
                f"\n  sudo setcap cap_net_raw=ep {python} lets every Python program capture."
            )
        elif status == pcap.PCAP_ERROR_NO_SUCH_DEVICE:
            names = ", ".join(interfaces())
            advice = f"\n  Interfaces here: {names}" if names else ""
        return CaptureError(f"cannot capture on {self._interface}: {reason}{advice}")

    def _set_filter(self, expression: str) -> None:
        pcap, handle = self._pcap, self._handle
        # Complaints point at the fault. Of an interface the code is another one: it asks the kernel for VLAN tags.
        bpf.compile_filter(expression, pcap.datalink(handle))
        program = pcap.bpf_program()
        failed = pcap.compile(handle, ctypes.byref(program), expression.encode(), 1, pcap.PCAP_NETMASK_UNKNOWN)
        if failed:
            raise UsageError(f"filter: {pcap.geterr(handle).decode(errors='replace')}")
        try:
            if pcap.setfilter(handle, ctypes.byref(program)):
                raise CaptureError(f"filter: {pcap.geterr(handle).decode(errors='replace')}")
        finally:
            pcap.freecode(ctypes.byref(program))

    def _pump(self, sink: int) -> None:
        pcap, handle = self._pcap, self._handle
        source = os.open(self.keep, os.O_RDONLY) if self.keep else None
        dumper = pcap.dump_open(handle, (self.keep or f"/dev/fd/{sink}").encode(errors="surrogateescape"))
        try:
            if not dumper:
                raise CaptureError(pcap.geterr(handle).decode(errors="replace"))
            pcap.dump_flush(dumper)
            for _ in self._dumped(dumper):
                if pcap.dump_flush(dumper):
                    if source is None:
                        return  # enough was read
                    raise CaptureError(f"cannot write {self.keep}: {os.strerror(ctypes.get_errno() or errno.ENOSPC)}")
                if source is not None:
                    copy_new(source, sink)
        finally:
            if dumper:
                pcap.dump_close(dumper)
            if source is not None:
                os.close(source)
            pcap.close(handle)

    def _dumped(self, dumper: Any) -> Iterator[None]:  # noqa: ANN401  (the bindings have no types)
        """Hand what comes to libpcap's writer, and yield, until it is over and all that had come is written."""
        pcap, handle = self._pcap, self._handle
        write = ctypes.cast(pcap.dump, pcap.pcap_handler)
        into = ctypes.cast(dumper, ctypes.POINTER(ctypes.c_ubyte))
        descriptor = pcap.get_selectable_fd(handle)
        counters, last = pcap.stat(), (0, 0)
        self.packets = self.dropped = 0
        ends_at = monotonic() + self._lasting_ns / SECOND if self._lasting_ns is not None else None
        wanted = until = None
        while True:
            if until is None and (self._over.is_set() or (ends_at is not None and monotonic() >= ends_at)):
                pcap.stats(handle, ctypes.byref(counters))
                wanted, until = counters.ps_recv - counters.ps_drop, monotonic() + _DRAIN
            left = -1 if wanted is None else (wanted - self.packets) & _COUNTER
            if left == 0 or (until is not None and monotonic() >= until):
                break
            select.select([descriptor], [], [], PAUSE)
            fetched = pcap.dispatch(handle, left, write, into)
            if fetched < 0:
                raise CaptureError(pcap.geterr(handle).decode(errors="replace"))
            self.packets += fetched
            if pcap.stats(handle, ctypes.byref(counters)) == 0:
                lost = counters.ps_drop, counters.ps_ifdrop
                self.dropped += sum((now - before) & _COUNTER for now, before in zip(lost, last, strict=True))
                last = lost
            if fetched:
                yield


def interfaces() -> list[str]:
    """Name what can be captured on."""
    pcap = bpf.library()
    complaint = ctypes.create_string_buffer(pcap.PCAP_ERRBUF_SIZE)
    first = ctypes.POINTER(pcap.pcap_if_t)()
    if pcap.findalldevs(ctypes.byref(first), complaint):
        return []
    names, one = [], first
    while one:
        names.append(one.contents.name.decode(errors="replace"))
        one = one.contents.next
    pcap.freealldevs(first)
    return names
