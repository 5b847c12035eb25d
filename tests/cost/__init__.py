"""The law of cost: what a capture four times as large may cost, in rows, lines of Python and instructions."""
