"""The law of cost: what a capture four times as large may cost, in rows and lines of Python, never in seconds."""
