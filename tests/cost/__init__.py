"""The law of cost: what a capture four times as large may cost, in rows touched and in lines of Python, never in seconds."""
