"""The law of cost: what a capture four times as large may cost, in rows and instructions, never in seconds."""
