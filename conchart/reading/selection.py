"""Which packets of a capture are wanted.

In: what a person asked for. Out: a ``Selection`` that can select something, and the options that say the same.
"""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

from conchart.errors import UsageError
from conchart.labels.units import When, format_when, parse_when

Compiler = Callable[[int], list[tuple[int, int, int, int]]]


class Bounds(TypedDict):
    """The first instant that is wanted and the first that is not, in nanoseconds, and how many packets."""

    start: int | None
    end: int | None
    start_relative: bool
    end_relative: bool
    count: int | None


DETAILED = 20_000
"""Packets up to which all of them, and all records and messages, are kept without being asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A choice of packets; what is None chooses all."""

    filter: str | None = None
    """An expression in tcpdump's language."""
    start: When | None = None
    """The first instant that is wanted."""
    end: When | None = None
    """The first instant after it that is not."""
    count: int | None = None
    """So many packets, and no more."""

    def __str__(self) -> str:
        """Write it as options of the command line; empty where every packet is wanted."""
        options = (
            ("-f", self.filter and shlex.quote(self.filter)),
            ("-s", self.start and format_when(self.start)),
            ("-e", self.end and format_when(self.end)),
            ("-c", self.count),
        )
        return " ".join(f"{option} {value}" for option, value in options if value not in (None, ""))

    @property
    def bounds(self) -> "Bounds":
        """What the native core is told besides the filter."""
        return {
            "start": self.start.ns if self.start else None,
            "end": self.end.ns if self.end else None,
            "start_relative": self.start.relative if self.start else False,
            "end_relative": self.end.relative if self.end else False,
            "count": self.count,
        }

    @property
    def is_by_packet(self) -> bool:
        """Is each packet chosen by itself, whatever came before it?"""
        return self.count is None and not any(time and time.relative for time in (self.start, self.end))

    def compiler(self) -> Compiler | None:
        """Bind the filter, where there is one, for the native core to compile for each link type.

        Raises:
            UsageError: It is no sentence of tcpdump's language.
        """
        if not self.filter:
            return None
        from conchart.reading import bpf  # not above: it loads ctypes, and few captures are filtered

        return bpf.compiler(self.filter)


def selection(expression: str | None, start: int | str | None, end: int | str | None, count: int | None) -> Selection:
    """Read what a person asked for.

    Raises:
        UsageError: A time cannot be read, or no instant is between the two.
    """
    first, last = _when(start), _when(end)
    # A time of the clock and one after the first packet cannot be compared before that packet is read.
    if first and last and first.relative == last.relative and first.ns >= last.ns:
        raise UsageError(
            f"no packet can be selected: the start ({format_when(first)}) is not before the end ({format_when(last)})"
        )
    return Selection(filter=expression or None, start=first, end=last, count=count)


def parse_selection(options: str) -> Selection:
    """Read what a ``Selection`` was written as.

    Raises:
        UsageError: It is none.
    """
    try:
        words = shlex.split(options)
    except ValueError:
        words = [options]
    values = dict(zip(words[::2], words[1::2], strict=False))
    count = values.pop("-c", "")
    parsed = selection(values.pop("-f", None), values.pop("-s", None), values.pop("-e", None), int(count or 0) or None)
    if str(parsed) != options:
        raise UsageError(f"cannot read how packets were chosen: {options}")
    return parsed


def _when(value: int | str | None) -> When | None:
    return When(ns=value, relative=False) if isinstance(value, int) else parse_when(value) if value else None
