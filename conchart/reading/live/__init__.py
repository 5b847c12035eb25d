"""Captures that are still growing: an interface, a pipe, a file that somebody else writes."""
