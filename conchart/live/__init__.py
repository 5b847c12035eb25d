"""Captures that are still growing: an interface, a pipe, a file that somebody else writes."""

from conchart.live.growing import Followed, Growing, Piped
from conchart.live.interface import Interface
from conchart.live.privileges import become, unprivileged

__all__ = ["Followed", "Growing", "Interface", "Piped", "become", "unprivileged"]
