"""Captures that are still growing: an interface, a pipe, a file that somebody else writes."""

from conchart.reading.live.growing import Followed, Growing, Piped
from conchart.reading.live.interface import Interface
from conchart.reading.live.privileges import become, unprivileged
from conchart.reading.live.sockets import Sockets

__all__ = ["Followed", "Growing", "Interface", "Piped", "Sockets", "become", "unprivileged"]
